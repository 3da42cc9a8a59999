// ServerRun is one run of one server, from its start to the end of its tree: process, conversation and stderr together.
// Session and Deliver are made of these. It never starts anything again.
#ifndef BULKHEAD_MCP_SERVER_RUN_H_
#define BULKHEAD_MCP_SERVER_RUN_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "asio/any_io_executor.hpp"
#include "asio/steady_timer.hpp"
#include "bulkhead/jsonrpc/stream.h"
#include "bulkhead/launcher/process.h"
#include "bulkhead/mcp/client.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::mcp {

// Times of an end, in order: what is queued is still written, then the keeper's ladder begins.
inline constexpr std::chrono::milliseconds kFlushTime(500);
// Between the end of stdout and the exit, or the other way round, that belong together.
inline constexpr std::chrono::milliseconds kSettleTime(500);

inline constexpr std::size_t kStderrTailBytes = 4096;

// What the policy says about the conversation.
ClientOptions MakeClientOptions(const policy::Policy& policy, ClientInfo info, EraChoice era);

// Threads: as Client's.
class ServerRun : public std::enable_shared_from_this<ServerRun> {
 public:
  struct End {
    jsonrpc::CloseReason reason;  // kEndOfInput, kReadFailed, kWriteFailed: it exited or closed its stdio
    absl::Status detail;          // Unavailable, for people
    std::optional<launcher::ExitStatus> exit;
  };
  struct Handlers {
    Client::Handlers client;  // all but on_close
    std::function<void(absl::string_view text)> on_stderr;
    // Once, unless Stop or Kill was called before. Calls in flight have not failed yet. The tree is being ended then,
    // without anybody waiting for it.
    std::function<void(const End& end)> on_end;
  };

  // ValidateCommand, BuildLaunchPlan, Launch: everything is looked up anew.
  static absl::StatusOr<std::shared_ptr<ServerRun>> Start(asio::any_io_executor executor, const policy::Policy& policy,
                                                          const policy::CommandRequest& request, ClientOptions options,
                                                          absl::Duration launch_timeout, Handlers handlers);
  ~ServerRun();  // kills the tree

  Client& client() { return *client_; }
  void FailAll(const absl::Status& why);  // the client's, if it is there
  const launcher::EnforcementReport& report() const { return process_->report(); }
  std::string stderr_tail() const;
  void DrainStderr();  // what is in the pipe by now
  // `why`, with the server's name, what it last wrote to stderr, and the plan's hints.
  absl::Status Explain(const absl::Status& why) const;

  // The gentle end. Completes in bounded time, when the tree is gone; the run keeps itself alive until then.
  void Stop(absl::AnyInvocable<void(launcher::ExitStatus)> handler);
  // Begins the hard one, also after a gentle one; from any handler. Nothing is called any more, but for the handlers of
  // what was to be stopped.
  void Kill();

 private:
  ServerRun(asio::any_io_executor executor, launcher::Process process, std::string program,
            std::vector<std::string> hints, Handlers handlers);
  void Converse(ClientOptions options);
  void ReadStderr();
  enum class Piece { kText, kNone, kEnd };
  Piece ReadStderrPiece();
  void OnClose(jsonrpc::CloseReason reason, absl::Status detail);
  void OnExit(const launcher::ExitStatus& status);
  void AwaitOther();
  void Ended();

  asio::any_io_executor executor_;
  std::optional<launcher::Process> process_;
  std::string program_;
  std::vector<std::string> hints_;  // of the plan: why it may not have what it needs
  Handlers handlers_;
  std::unique_ptr<Client> client_;
  jsonrpc::Stream stderr_;
  asio::steady_timer timer_;
  std::string tail_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> ended_at_;
  std::optional<launcher::ExitStatus> exit_;
  std::optional<jsonrpc::CloseReason> closed_;
  absl::Status close_detail_;
  bool is_over_ = false;  // on_end was called, or nobody wants it any more
};

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_MCP_SERVER_RUN_H_
