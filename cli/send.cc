// request: one JSON-RPC request, the raw exchange.
#include <chrono>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/cli/commands.h"
#include "bulkhead/cli/output.h"
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

}  // namespace

int RequestCommand(const Flags& flags) {
  const std::string params = flags.params.value_or("");
  if (!params.empty() &&
      (jsonrpc::ValidateJson(params) != jsonrpc::JsonError::kNone || !absl::StartsWith(params, "{"))) {
    return FailUsage(absl::InvalidArgumentError("--params must be a JSON object, such as {\"uri\":\"file:///srv/a\"}"),
                     "request");
  }
  std::optional<Loaded> loaded;
  if (const int code = Load(Command::kRequest, flags, &loaded); code != 0) return code;
  mcp::DeliverOptions options;
  options.era = EraOf(flags);
  const auto result = mcp::Deliver(loaded->policy, loaded->request.command, {*flags.method, params},
                                   flags.timeout.value_or(mcp::kDeliverTime), options);
  if (!result.ok()) return FailLaunch(Command::kRequest, result.status());
  const mcp::Reply& reply = result->reply;
  int code = 0;
  if (!flags.json && !reply.error) code = PrintResult(absl::StrCat(reply.result, "\n"));
  if (flags.json) {
    code = PrintResult(absl::StrCat("{\"request\":", result->raw_request, ",\"response\":", result->raw_response));
  }
  // The server's end is bounded by the two graces; what was asked for is there already.
  const launcher::ExitStatus exit = result->exit.get();
  if (flags.json && code == 0) {
    code = PrintResult(
        absl::StrCat(",\"stderr\":", result->stderr_text ? jsonrpc::QuoteJson(*result->stderr_text) : "null",
                     ",\"exit\":", ExitJson(exit), "}\n"));
  }
  if (code != 0) return code;
  return reply.error ? FailAnswered(*flags.method, *reply.error) : 0;
}

}  // namespace bulkhead::cli
