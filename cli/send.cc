// request: one JSON-RPC request, the raw exchange.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/bind_cancellation_slot.hpp"
#include "asio/cancellation_signal.hpp"
#include "asio/executor_work_guard.hpp"
#include "asio/io_context.hpp"
#include "bulkhead/cli/commands.h"
#include "bulkhead/cli/interrupts.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/cli/suggest.h"
#include "bulkhead/cli/talk.h"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/mcp/deliver.h"

namespace bulkhead::cli {
namespace {

std::string ExitJson(const launcher::ExitStatus& exit) {
  switch (exit.kind) {
    case launcher::ExitStatus::Kind::kExited:
      return absl::StrCat("{\"code\":", exit.code, "}");
    case launcher::ExitStatus::Kind::kSignaled:
      return absl::StrCat("{\"signal\":", exit.signal, "}");
    case launcher::ExitStatus::Kind::kKeeperLost:
      return "null";
  }
  return "null";
}

constexpr std::int64_t kMethodNotFound = -32601;  // JSON-RPC 2.0, 5.1

// What a client may ask for by the specification, of any version.
std::vector<std::string> Methods() {
  return {"completion/complete",
          "initialize",
          "logging/setLevel",
          "ping",
          "prompts/get",
          "prompts/list",
          "resources/list",
          "resources/read",
          "resources/subscribe",
          "resources/templates/list",
          "resources/unsubscribe",
          "server/discover",
          "tools/call",
          "tools/list"};
}

// One request and the server's whole life, with a line of progress on a terminal.
class Delivery {
 public:
  Delivery(const Flags& flags, Loaded loaded) : flags_(flags), loaded_(std::move(loaded)) {}

  absl::StatusOr<mcp::DeliverResult> Ask(mcp::DeliverRequest request) {
    mcp::DeliverOptions options;
    options.era = EraOf(flags_);
    options.on_gone = [this] { is_gone_ = true; };
    std::string progress;
    if (isatty(STDERR_FILENO) == 1 && !flags_.json) {
      options.on_progress = [&progress](const mcp::Progress& now) { progress = absl::StrCat(", ", ProgressText(now)); };
    }
    const auto started = std::chrono::steady_clock::now();
    ProgressLine line(*io_, [&] {
      if (signal_ != 0) return std::string(kStoppingText);
      const auto time = std::chrono::steady_clock::now() - started;
      return absl::StrCat("waiting for ", *flags_.method, ": ",
                          std::chrono::duration_cast<std::chrono::seconds>(time).count(), " s", progress);
    });
    std::optional<absl::StatusOr<mcp::DeliverResult>> result;
    mcp::AsyncDeliver(io_->get_executor(), loaded_.policy, loaded_.request.command, std::move(request),
                      flags_.timeout.value_or(mcp::kDeliverTime), std::move(options),
                      asio::bind_cancellation_slot(cancel_.slot(), [&](absl::StatusOr<mcp::DeliverResult> outcome) {
                        result = std::move(outcome);
                        is_answered_ = true;
                      }));
    RunUntil(is_answered_);
    return *std::move(result);
  }

  // The server's end is bounded by the two graces; what was asked for is there already.
  void AwaitEnd() { RunUntil(is_gone_); }

 private:
  // Does not return after an interrupt.
  void RunUntil(const bool& is_done) {
    {
      const Interrupts interrupts(*io_, [this](int signal) { OnInterrupt(signal); });
      while (!is_killed_ && !(signal_ == 0 ? is_done : is_gone_)) io_->run_one();
    }
    if (signal_ == 0) return;
    io_.reset();  // kills what is left
    EndBy(signal_);
  }
  void OnInterrupt(int signal) {
    is_killed_ = is_answered_ || signal_ != 0;
    signal_ = signal;
    cancel_.emit(asio::cancellation_type::terminal);
  }

  const Flags& flags_;
  const Loaded loaded_;
  std::unique_ptr<asio::io_context> io_ = std::make_unique<asio::io_context>();
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_->get_executor()};
  asio::cancellation_signal cancel_;
  int signal_ = 0;  // the last interrupt
  bool is_answered_ = false, is_gone_ = false, is_killed_ = false;
};

}  // namespace

int RequestCommand(const Flags& flags) {
  const std::string params = flags.params.value_or("");
  if (!params.empty()) {
    const absl::Status status = CheckJsonObject("--params", params, R"({"uri":"file:///srv/a"})");
    if (!status.ok()) return FailUsage(status, "request");
  }
  std::optional<Loaded> loaded;
  if (const int code = Load(Command::kRequest, flags, &loaded); code != 0) return code;
  Delivery delivery(flags, *std::move(loaded));
  const absl::StatusOr<mcp::DeliverResult> result = delivery.Ask({*flags.method, params});
  if (!result.ok()) return FailLaunch(Command::kRequest, result.status());
  const mcp::Reply& reply = result->reply;
  int code = 0;
  if (!flags.json && !reply.error) code = PrintResult(absl::StrCat(Harmless(reply.result), "\n"));
  if (flags.json) {
    code = PrintResult(absl::StrCat("{\"request\":", result->raw_request, ",\"response\":", result->raw_response));
  }
  delivery.AwaitEnd();
  const launcher::ExitStatus exit = result->exit.get();
  if (flags.json && code == 0) {
    code = PrintResult(
        absl::StrCat(",\"stderr\":", result->stderr_text ? jsonrpc::QuoteJson(*result->stderr_text) : "null",
                     ",\"exit\":", ExitJson(exit), "}\n"));
  }
  if (code != 0) return code;
  if (!reply.error) return 0;
  code = FailAnswered(*flags.method, *reply.error);
  const std::string nearest = Suggest(*flags.method, Methods());
  if (reply.error->code == kMethodNotFound && !nearest.empty() && nearest != *flags.method) {
    Complain(absl::StrCat("did you mean ", nearest, "?"));
  }
  return code;
}

}  // namespace bulkhead::cli
