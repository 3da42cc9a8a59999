// What the commands that talk to a server themselves share: one conversation, waited for step by step, with a progress
// line on a terminal. Nothing is written on a good run.
#ifndef BULKHEAD_CLI_TALK_H_
#define BULKHEAD_CLI_TALK_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "asio/cancellation_signal.hpp"
#include "asio/executor_work_guard.hpp"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "bulkhead/cli/flags.h"
#include "bulkhead/cli/prepare.h"
#include "bulkhead/mcp/session.h"

namespace bulkhead::cli {

// One line on stderr that is overwritten, if stderr is a terminal and the wait is long enough to be noticed.
class ProgressLine {
 public:
  // `text` gives the line; called again each second, from the executor of `io`.
  ProgressLine(asio::io_context& io, std::function<std::string()> text);
  ~ProgressLine();  // and clears it
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void Show();

 private:
  void Await(std::chrono::milliseconds time);
  bool is_terminal_;
  bool is_shown_ = false;
  std::function<std::string()> text_;
  asio::steady_timer timer_;
};

class Talk {
 public:
  // Starts the server and opens the conversation. Returns 0, or complains and returns the exit code.
  static int Begin(Command command, const Flags& flags, std::unique_ptr<Talk>* talk);
  ~Talk();  // stops the server, and waits for its end
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  absl::StatusOr<mcp::Reply> Call(const std::string& method, const std::string& params);
  absl::StatusOr<std::vector<std::string>> List(const std::string& method, const std::string& member);
  bool Offers(absl::string_view capability) const;  // tools, resources, prompts

 private:
  Talk(const Flags& flags, Loaded loaded);
  mcp::CallOptions MakeCallOptions();
  template <typename Value, typename Start>
  Value Await(Start start);
  void RunUntil(const std::function<bool()>& is_done);  // does not return after an interrupt
  void OnInterrupt(int signal);
  void Close();
  std::function<std::string()> UnlessStopping(std::function<std::string()> text);

  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{
      io_.get_executor()};  // Await ends by its handler only
  Flags flags_;
  std::string program_;
  std::string progress_;
  asio::cancellation_signal cancel_;  // of the call in flight
  int signal_ = 0;                    // the last interrupt
  bool is_closing_ = false, is_closed_ = false;
  std::unique_ptr<mcp::Session> session_;
};

mcp::EraChoice EraOf(const Flags& flags);

// "3 of 10: indexing"
std::string ProgressText(const mcp::Progress& progress);
// Ok if `text`, which `flag` was given, is a JSON object; else what it is instead, with `example`.
absl::Status CheckJsonObject(absl::string_view flag, absl::string_view text, absl::string_view example);

// `text` from a server, so that it can't drive the terminal, nor hide anything there: policy::Visible. As it is when
// stdout is no terminal.
std::string Harmless(absl::string_view text, absl::string_view kept = "\n\t");
// The member `key` of the JSON object `object` as text; empty if it has none.
std::string TextMember(absl::string_view object, absl::string_view key);
// The error of a server's answer: complains, and returns kExitAnsweredError.
int FailAnswered(absl::string_view method, const jsonrpc::ErrorObject& error);
inline constexpr int kExitAnsweredError = 1;
// {"code":...,"message":...,"data":...}
std::string ErrorJson(const jsonrpc::ErrorObject& error);

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_TALK_H_
