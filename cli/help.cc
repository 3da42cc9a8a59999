#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bulkhead/cli/flag_table.h"
#include "bulkhead/cli/flags.h"
#include "bulkhead/cli/output.h"

namespace bulkhead::cli {
namespace {

void AppendRow(std::string* out, absl::string_view left, std::size_t left_columns, absl::string_view text) {
  const std::string padding(std::max(left_columns, left.size()) - left.size(), ' ');
  const std::string start = absl::StrCat("  ", left, padding, "  ");
  AppendWrapped(out, start, start.size(), text);
}

std::string FlagColumn(const FlagSpec& spec) {
  return spec.value == nullptr ? spec.name : absl::StrCat(spec.name, " ", spec.value);
}

void AppendExamples(std::string* out, absl::string_view examples) {
  absl::StrAppend(out, "\nExamples:\n");
  for (const absl::string_view example : absl::StrSplit(examples, '\n', absl::SkipEmpty())) {
    absl::StrAppend(out, "  ", example, "\n");
  }
}

}  // namespace

std::string GeneralHelp() {
  std::string out =
      "Starts local MCP servers in a jail, from a policy file, and ends their whole process tree.\n"
      "\n"
      "Usage: bulkhead COMMAND [flags] ...\n"
      "\n"
      "Commands:\n";
  std::size_t columns = 0;
  for (const CommandSpec& spec : kCommandSpecs) columns = std::max(columns, absl::string_view(spec.usage).size());
  for (const CommandSpec& spec : kCommandSpecs) AppendRow(&out, spec.usage, columns, spec.summary);
  absl::StrAppend(&out, "\n`bulkhead COMMAND --help` says more; `bulkhead --version` prints the version.\n");
  AppendExamples(&out, kCommandSpecs[0].examples);
  return out;
}

std::string CommandHelp(Command command) {
  for (const CommandSpec& spec : kCommandSpecs) {
    if (spec.command != command) continue;
    std::string out = absl::StrCat("Usage: bulkhead ", spec.usage, "\n\n", spec.name, ": ", spec.summary, ".\n\n",
                                   spec.about, "\nFlags:\n");
    std::size_t columns = 0;
    for (const FlagSpec& flag : kFlagSpecs) {
      if (Takes(command, flag.flag)) columns = std::max(columns, FlagColumn(flag).size());
    }
    for (const FlagSpec& flag : kFlagSpecs) {
      if (!Takes(command, flag.flag)) continue;
      AppendRow(&out, FlagColumn(flag), columns,
                absl::StrCat(flag.help, flag.repeatable && flag.value != nullptr ? " (repeatable)" : ""));
    }
    AppendExamples(&out, spec.examples);
    return out;
  }
  return GeneralHelp();
}

}  // namespace bulkhead::cli
