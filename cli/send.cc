// request: one JSON-RPC request, the raw exchange.
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/executor_work_guard.hpp"
#include "asio/io_context.hpp"
#include "bulkhead/cli/commands.h"
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

// The request, with a line of progress on a terminal.
absl::StatusOr<mcp::DeliverResult> Ask(asio::io_context& io, const Flags& flags, const Loaded& loaded,
                                       mcp::DeliverRequest request, mcp::DeliverOptions options) {
  std::optional<absl::StatusOr<mcp::DeliverResult>> result;
  std::string progress;
  if (isatty(STDERR_FILENO) == 1 && !flags.json) {
    options.on_progress = [&progress](const mcp::Progress& now) { progress = absl::StrCat(", ", ProgressText(now)); };
  }
  const auto started = std::chrono::steady_clock::now();
  ProgressLine line(io, [&] {
    const auto time = std::chrono::steady_clock::now() - started;
    return absl::StrCat("waiting for ", *flags.method, ": ",
                        std::chrono::duration_cast<std::chrono::seconds>(time).count(), " s", progress);
  });
  const auto work = asio::make_work_guard(io);
  mcp::AsyncDeliver(io.get_executor(), loaded.policy, loaded.request.command, std::move(request),
                    flags.timeout.value_or(mcp::kDeliverTime), std::move(options),
                    [&result](absl::StatusOr<mcp::DeliverResult> outcome) { result = std::move(outcome); });
  while (!result) io.run_one();
  return *std::move(result);
}

}  // namespace

int RequestCommand(const Flags& flags) {
  const std::string params = flags.params.value_or("");
  if (!params.empty()) {
    const absl::Status status = CheckJsonObject("--params", params, R"({"uri":"file:///srv/a"})");
    if (!status.ok()) return FailUsage(status, "request");
  }
  std::optional<Loaded> loaded;
  if (const int code = Load(Command::kRequest, flags, &loaded); code != 0) return code;
  mcp::DeliverOptions options;
  options.era = EraOf(flags);
  asio::io_context io;
  const absl::StatusOr<mcp::DeliverResult> result = Ask(io, flags, *loaded, {*flags.method, params}, options);
  if (!result.ok()) return FailLaunch(Command::kRequest, result.status());
  const mcp::Reply& reply = result->reply;
  int code = 0;
  if (!flags.json && !reply.error) code = PrintResult(absl::StrCat(Harmless(reply.result), "\n"));
  if (flags.json) {
    code = PrintResult(absl::StrCat("{\"request\":", result->raw_request, ",\"response\":", result->raw_response));
  }
  // The server's end is bounded by the two graces; what was asked for is there already.
  while (result->exit.wait_for(std::chrono::seconds(0)) != std::future_status::ready && io.run_one() != 0) {
  }
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
