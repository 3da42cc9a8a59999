#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bulkhead/cli/commands.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/cli/suggest.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::cli {
namespace {

// The first paragraph of a preset's first comment says what it is for.
std::string FirstComment(absl::string_view text) {
  std::vector<absl::string_view> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (!absl::ConsumePrefix(&line, "//") || line.empty()) break;
    lines.push_back(absl::StripAsciiWhitespace(line));
  }
  return absl::StrJoin(lines, " ");
}

int PrintOne(absl::string_view asked_for) {
  const absl::string_view name = absl::StripPrefix(asked_for, "preset:");
  const absl::StatusOr<std::string> text = policy::PresetText(name);
  if (text.ok()) return PrintResult(*text);
  const std::vector<std::string> known = policy::PresetNames();
  return FailUsage(absl::InvalidArgumentError(absl::StrCat("there is no preset ", Quote(name), DidYouMean(name, known),
                                                           " (there are: ", absl::StrJoin(known, ", "), ")")),
                   "presets");
}

}  // namespace

int PresetsCommand(const Flags& flags) {
  if (!flags.rest.empty()) return PrintOne(flags.rest.front());
  const Style style = Style::ForStdout();
  const std::vector<std::string> names = policy::PresetNames();
  std::size_t columns = 0;
  for (const std::string& name : names) columns = std::max(columns, name.size());
  std::string out;
  for (const std::string& name : names) {
    const absl::StatusOr<std::string> text = policy::PresetText(name);
    if (!text.ok()) return Fail(text.status(), kExitFailed);
    const std::string padding(columns - name.size() + 2, ' ');
    AppendWrapped(&out, absl::StrCat(style.Bold(name), padding), columns + 2, FirstComment(*text));
  }
  return PrintResult(out);
}

}  // namespace bulkhead::cli
