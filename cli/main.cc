// bulkhead: chooses the command; see flag_table.h for the words and one file each for what they do.
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bulkhead/cli/commands.h"
#include "bulkhead/cli/flags.h"
#include "bulkhead/cli/host.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/cli/version.h"

namespace bulkhead::cli {
namespace {

int Dispatch(Command command, const Flags& flags) {
  switch (command) {
    case Command::kRun:
      return RunCommand(flags);
    case Command::kExplain:
      return ExplainCommand(flags);
    case Command::kTools:
    case Command::kResources:
    case Command::kPrompts:
      return ListCommand(command, flags);
    case Command::kCall:
      return CallCommand(flags);
    case Command::kRequest:
      return RequestCommand(flags);
    case Command::kCheck:
      return CheckCommand(flags);
    case Command::kDoctor:
      return DoctorCommand(flags);
    case Command::kPresets:
      return PresetsCommand(flags);
  }
  return kExitFailed;
}

int Main(int argc, char** argv) {
  if (argc < 2)
    return FailUsage(
        absl::InvalidArgumentError(
            "a command is missing: run, explain, tools, resources, prompts, call, request, check, doctor or presets"),
        "");
  const absl::string_view first(argv[1]);
  if (first == "--help" || first == "-h") return PrintResult(GeneralHelp());
  if (first == "--version") return PrintResult(absl::StrCat("bulkhead ", kVersion, "\n"));
  const absl::StatusOr<Command> command = ParseCommandName(first);
  if (!command.ok()) return FailUsage(command.status(), "");
  const absl::StatusOr<Flags> flags = ParseFlags(*command, std::vector<std::string>(argv + 2, argv + argc));
  if (!flags.ok()) return FailUsage(flags.status(), CommandName(*command));
  if (flags->help) return PrintResult(CommandHelp(*command));
  return Dispatch(*command, *flags);
}

}  // namespace
}  // namespace bulkhead::cli

#ifdef _WIN32
// Windows' own text is UTF-16; ours is UTF-8.
int wmain(int argc, wchar_t** argv) {
  std::vector<std::string> words;
  for (int i = 0; i < argc; ++i) words.push_back(bulkhead::cli::ToUtf8(argv[i]));
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  if (!bulkhead::cli::OpenStandardDescriptors()) return bulkhead::cli::kExitFailed;
  return bulkhead::cli::Main(argc, pointers.data());
}
#else
int main(int argc, char** argv) {
  if (!bulkhead::cli::OpenStandardDescriptors()) return bulkhead::cli::kExitFailed;
  return bulkhead::cli::Main(argc, argv);
}
#endif
