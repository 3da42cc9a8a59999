// What bulkhead.exe does not do yet: it says so, and starts nothing.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/cli/commands.h"
#include "bulkhead/cli/output.h"

namespace bulkhead::cli {
namespace {

int Refuse(Command command) {
  return Fail(
      absl::UnimplementedError(absl::StrCat(
          "\"", CommandName(command), "\" is not there on Windows yet; run, explain, check, doctor and presets are")),
      kExitFailed);
}

}  // namespace

int ListCommand(Command command, const Flags&) { return Refuse(command); }
int CallCommand(const Flags&) { return Refuse(Command::kCall); }
int RequestCommand(const Flags&) { return Refuse(Command::kRequest); }

}  // namespace bulkhead::cli
