// tools, resources, prompts: what a server offers.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bulkhead/cli/commands.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/cli/talk.h"
#include "bulkhead/jsonrpc/json_text.h"

namespace bulkhead::cli {
namespace {

constexpr std::size_t kIndent = 4;

struct Offer {
  const char* capability;
  const char* method;
  const char* member;
  const char* name;  // the member that names one
};

std::vector<Offer> OffersOf(Command command) {
  if (command == Command::kTools) return {{"tools", "tools/list", "tools", "name"}};
  if (command == Command::kPrompts) return {{"prompts", "prompts/list", "prompts", "name"}};
  return {{"resources", "resources/list", "resources", "uri"},
          {"resources", "resources/templates/list", "resourceTemplates", "uriTemplate"}};
}

// "path, head?: number" of a tool's JSON Schema.
std::string SchemaArguments(absl::string_view tool) {
  const absl::string_view schema = jsonrpc::FindMember(tool, "inputSchema").value_or("");
  std::vector<std::string> required, arguments;
  const absl::string_view list = jsonrpc::FindMember(schema, "required").value_or("");
  jsonrpc::ForEachMember(list, [&](const jsonrpc::JsonMember& element) {
    required.push_back(jsonrpc::StringValue(element.value).value_or(""));
    return true;
  });
  const absl::string_view properties = jsonrpc::FindMember(schema, "properties").value_or("");
  jsonrpc::ForEachMember(properties, [&](const jsonrpc::JsonMember& property) {
    const std::string name = jsonrpc::StringValue(absl::StrCat("\"", property.key, "\"")).value_or("");
    bool is_required = false;
    for (const std::string& one : required) is_required |= one == name;
    const std::string type = TextMember(property.value, "type");
    arguments.push_back(absl::StrCat(name, is_required ? "" : "?", type.empty() || type == "string" ? "" : ": ",
                                     type == "string" ? "" : type));
    return true;
  });
  return absl::StrJoin(arguments, ", ");
}

// The same of a prompt's list of arguments.
std::string PromptArguments(absl::string_view prompt) {
  std::vector<std::string> arguments;
  const absl::string_view list = jsonrpc::FindMember(prompt, "arguments").value_or("");
  jsonrpc::ForEachMember(list, [&](const jsonrpc::JsonMember& argument) {
    const bool is_required = jsonrpc::FindMember(argument.value, "required").value_or("") == "true";
    arguments.push_back(absl::StrCat(TextMember(argument.value, "name"), is_required ? "" : "?"));
    return true;
  });
  return absl::StrJoin(arguments, ", ");
}

void AppendForPeople(std::string* out, const Offer& offer, absl::string_view element, const Style& style) {
  const std::string name = TextMember(element, offer.name);
  std::string title = TextMember(element, "title");
  if (title.empty() && absl::string_view(offer.name) != "name") title = TextMember(element, "name");
  absl::StrAppend(out, style.Bold(Harmless(name, "")), title.empty() ? "" : "  ", Harmless(title, ""), "\n");
  const std::string arguments =
      absl::string_view(offer.capability) == "tools" ? SchemaArguments(element) : PromptArguments(element);
  const std::string indent(kIndent, ' ');
  if (!arguments.empty()) AppendWrapped(out, indent, kIndent, Harmless(absl::StrCat("arguments: ", arguments), ""));
  const std::string description = Harmless(TextMember(element, "description"));
  for (const absl::string_view line : absl::StrSplit(description, '\n', absl::SkipWhitespace())) {
    AppendWrapped(out, indent, kIndent, line);
  }
}

}  // namespace

int ListCommand(Command command, const Flags& flags) {
  std::unique_ptr<Talk> talk;
  if (const int code = Talk::Begin(command, flags, &talk); code != 0) return code;
  const Style style = Style::ForStdout();
  std::string text, json;
  for (const Offer& offer : OffersOf(command)) {
    std::vector<std::string> elements;
    if (talk->Offers(offer.capability)) {
      auto listed = talk->List(offer.method, offer.member);
      if (!listed.ok()) {
        Complain(listed.status().message());
        return absl::IsUnknown(listed.status()) ? kExitAnsweredError : kExitFailed;
      }
      elements = *std::move(listed);
    }
    absl::StrAppend(&json, json.empty() ? "{" : ",", "\"", offer.member, "\":[", absl::StrJoin(elements, ","), "]");
    for (const std::string& element : elements) AppendForPeople(&text, offer, element, style);
  }
  if (text.empty() && !flags.json) Complain(absl::StrCat("the server offers no ", CommandName(command)));
  return PrintResult(flags.json ? absl::StrCat(json, "}\n") : text);
}

}  // namespace bulkhead::cli
