// Finds the program of a command and looks at what it is, so that what is wrong with it is said before anything starts.
#ifndef BULKHEAD_LAUNCHER_PROGRAM_H_
#define BULKHEAD_LAUNCHER_PROGRAM_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bulkhead/launcher/resolved_path.h"

namespace bulkhead::launcher {

// Whether the server may write to the file or folder `real`, a path without links.
using MayWrite = absl::FunctionRef<bool(const std::string& real)>;

struct Program {
  std::string path;   // as it will be executed
  ResolvedPath file;  // what that is
  // What the kernel starts to run it, if anything: the interpreter of a script's first line, or the ELF loader.
  std::string interpreter;
  bool is_script = false;
};

// Looks `name` up on the absolute, non-empty entries of `path_list` (colon-separated); passes over what the server may
// write. NotFound names the list.
absl::StatusOr<std::string> FindOnPath(absl::string_view name, absl::string_view path_list, MayWrite may_write);

// Looks at a program that is no script, open as `fd`, whose first bytes are `head`, and sets program.interpreter.
using LookAtElf = absl::Status (*)(int fd, const std::string& head, Program& program);

// `name` is an absolute path, or a bare name that is looked up on `path_list`, but not in folders that the server may
// write: what it put there would be started in the name of the policy. Errors, each with a message of its own:
// NotFound: the command is not there. PermissionDenied: a folder, not executable, empty, a script whose interpreter is
// missing, what `look_at_elf` finds. Where that is null, the kernel will say what is wrong with other files.
absl::StatusOr<Program> FindProgram(const std::string& name, bool look_up, const std::string& path_list,
                                    MayWrite server_may_write, LookAtElf look_at_elf);

// PermissionDenied: "can't run ...", and why.
absl::Status RefuseProgram(absl::string_view path, absl::string_view why);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_PROGRAM_H_
