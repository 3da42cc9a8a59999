// A program and its arguments, one a line. What is started through cmd.exe holds nothing that cmd.exe would take for
// more than text, in whichever quotes; what is started directly is read back as it was meant.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/policy/windows_command.h"
#include "tests/fuzz/policy/fuzz.h"

using namespace bulkhead::policy;  // NOLINT(google-build-using-namespace): a program of one function

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::string> lines = Lines(data, size);
  const std::string program = absl::StrCat("C:\\", lines[0]);
  const bool is_batch_file = IsBatchFile(program);
  Demand(is_batch_file || (!absl::EndsWithIgnoreCase(program, ".bat") && !absl::EndsWithIgnoreCase(program, ".cmd")),
         "a batch file is known");
  const auto refused = MakeWindowsStart(program, lines, BatchFiles::kRefuse, "C:\\Windows\\System32");
  Demand(!is_batch_file || !refused.ok(), "a batch file is refused");
  const auto start = MakeWindowsStart(program, lines, BatchFiles::kChecked, "C:\\Windows\\System32");
  if (!start.ok()) return 0;
  Demand(absl::EndsWith(start->application, "cmd.exe") == (is_batch_file || absl::EndsWith(program, "cmd.exe")),
         "only a batch file is given to cmd.exe");
  if (!is_batch_file) {
    Demand(start->application == program && start->command_line == refused->command_line,
           "a program is started itself");
    return 0;
  }
  const std::string head = "cmd.exe /d /e:on /v:off /s /c \"";
  Demand(absl::StartsWith(start->command_line, head) && absl::EndsWith(start->command_line, "\"\""),
         "the line is wrapped");
  const std::string inside = start->command_line.substr(head.size(), start->command_line.size() - head.size() - 1);
  Demand(inside.find_first_of("%^&|<>!\r\n") == std::string::npos, "nothing of cmd.exe's own is in the line");
  std::size_t quotes = 0;
  for (const char c : inside) quotes += c == '"' ? 1 : 0;
  Demand(quotes == 2 * lines.size(), "each word is in one pair of quotes");
  return 0;
}
