// call: one tool, its result.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bulkhead/cli/commands.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/cli/suggest.h"
#include "bulkhead/cli/talk.h"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/mcp/protocol.h"

namespace bulkhead::cli {
namespace {

constexpr std::size_t kNamesShownMax = 30;  // of a server's tools, where one is missing

bool IsJson(absl::string_view text) { return jsonrpc::ValidateJson(text) == jsonrpc::JsonError::kNone; }

// --arg says text, the tool's schema says of what type it is.
std::string ArgumentsJson(const Flags& flags, absl::string_view tool) {
  const absl::string_view schema = jsonrpc::FindMember(tool, "inputSchema").value_or("");
  const absl::string_view properties = jsonrpc::FindMember(schema, "properties").value_or("");
  std::vector<std::string> members;
  for (const auto& [name, value] : flags.args) {
    const std::string type = TextMember(jsonrpc::FindMember(properties, name).value_or(""), "type");
    const bool is_json = type != "string" && IsJson(value);
    members.push_back(absl::StrCat(jsonrpc::QuoteJson(name), ":", is_json ? value : jsonrpc::QuoteJson(value)));
  }
  return absl::StrCat("{", absl::StrJoin(members, ","), "}");
}

// The tool's declaration, or a complaint that names the nearest.
absl::StatusOr<std::string> FindTool(Talk& talk, const std::string& name) {
  auto tools = talk.List("tools/list", "tools");
  if (!tools.ok()) return tools.status();
  std::vector<std::string> names;
  for (std::string& tool : *tools) {
    names.push_back(TextMember(tool, "name"));
    if (names.back() == name) return std::move(tool);
  }
  const std::string nearest = DidYouMean(name, names);
  if (!nearest.empty()) return absl::NotFoundError(absl::StrCat("the server has no tool ", Quote(name), nearest));
  const std::size_t more = names.size() - std::min(names.size(), kNamesShownMax);
  names.resize(names.size() - more);
  return absl::NotFoundError(absl::StrCat("the server has no tool ", Quote(name),
                                          " (there are: ", absl::StrJoin(names, ", "),
                                          more == 0 ? "" : absl::StrCat(" and ", more, " more"), ")"));
}

std::string ContentForPeople(absl::string_view content) {
  const std::string type = TextMember(content, "type");
  if (type == "text") {
    std::string text = Harmless(TextMember(content, "text"));
    return absl::StrCat(text, absl::EndsWith(text, "\n") ? "" : "\n");
  }
  const std::string data = TextMember(content, "data");
  if (!data.empty()) {
    return absl::StrCat("[", Harmless(type), " ", Harmless(TextMember(content, "mimeType")), ", ", data.size() / 4 * 3,
                        " bytes; --json has them]\n");
  }
  const absl::string_view resource = jsonrpc::FindMember(content, "resource").value_or(content);
  const std::string text = TextMember(resource, "text");
  return absl::StrCat("[", Harmless(type), " ", Harmless(TextMember(resource, "uri")), "]\n", Harmless(text),
                      text.empty() || absl::EndsWith(text, "\n") ? "" : "\n");
}

std::string ResultForPeople(absl::string_view result) {
  std::string text;
  jsonrpc::ForEachMember(jsonrpc::FindMember(result, "content").value_or(""), [&](const jsonrpc::JsonMember& element) {
    text += ContentForPeople(element.value);
    return true;
  });
  const auto structured = jsonrpc::FindMember(result, "structuredContent");
  if (text.empty() && structured) text = absl::StrCat(Harmless(*structured), "\n");
  return text;
}

// After a failure: which arguments the tool does not declare, and which it must have. It may take them all the same.
void ExplainArguments(absl::string_view arguments, absl::string_view tool) {
  const absl::string_view schema = jsonrpc::FindMember(tool, "inputSchema").value_or("");
  const absl::string_view properties = jsonrpc::FindMember(schema, "properties").value_or("");
  std::vector<std::string> declared, given;
  const auto collect = [](absl::string_view object, std::vector<std::string>* names) {
    jsonrpc::ForEachMember(object, [names](const jsonrpc::JsonMember& member) {
      names->push_back(jsonrpc::StringValue(absl::StrCat("\"", member.key, "\"")).value_or(""));
      return true;
    });
  };
  collect(properties, &declared);
  collect(arguments, &given);
  const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> others;  // that may have been meant
  for (const std::string& name : declared) {
    if (!is_in(given, name)) others.push_back(name);
  }
  for (const std::string& name : given) {
    if (declared.empty() || is_in(declared, name)) continue;
    Complain(absl::StrCat(TextMember(tool, "name"), " declares no argument ", Quote(name), DidYouMean(name, others)));
  }
  for (const std::string& name : mcp::StringArray(jsonrpc::FindMember(schema, "required").value_or(""))) {
    if (is_in(given, name)) continue;
    Complain(absl::StrCat(TextMember(tool, "name"), " needs the argument ", Quote(name)));
  }
}

}  // namespace

int CallCommand(const Flags& flags) {
  if (flags.arguments) {
    const absl::Status status = CheckJsonObject("--arguments", *flags.arguments, R"({"path":"/srv/a"})");
    if (!status.ok()) return FailUsage(status, "call");
  }
  std::unique_ptr<Talk> talk;
  if (const int code = Talk::Begin(Command::kCall, flags, &talk); code != 0) return code;
  const auto tool = FindTool(*talk, *flags.tool);
  if (!tool.ok()) {
    Complain(tool.status().message());
    return absl::IsNotFound(tool.status()) || absl::IsUnknown(tool.status()) ? kExitAnsweredError : kExitFailed;
  }
  const std::string arguments = flags.arguments ? *flags.arguments : ArgumentsJson(flags, *tool);
  const auto reply = talk->Call(
      "tools/call", absl::StrCat("{\"name\":", jsonrpc::QuoteJson(*flags.tool), ",\"arguments\":", arguments, "}"));
  if (!reply.ok()) return Fail(reply.status(), kExitFailed);
  const bool has_failed = reply->error || jsonrpc::FindMember(reply->result, "isError").value_or("") == "true";
  if (reply->error) {
    ExplainArguments(arguments, *tool);
    if (flags.json) PrintResult(absl::StrCat("{\"error\":", ErrorJson(*reply->error), "}\n"));
    return FailAnswered("tools/call", *reply->error);
  }
  const int printed = PrintResult(flags.json ? absl::StrCat(reply->result, "\n") : ResultForPeople(reply->result));
  if (printed != 0) return printed;
  if (has_failed) ExplainArguments(arguments, *tool);
  return has_failed ? kExitAnsweredError : 0;
}

}  // namespace bulkhead::cli
