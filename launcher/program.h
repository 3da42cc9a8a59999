// Finds the program of a command and looks at what it is, so that what is wrong with it is said before anything starts.
#ifndef BULKHEAD_LAUNCHER_PROGRAM_H_
#define BULKHEAD_LAUNCHER_PROGRAM_H_

#include <string>

#include "absl/status/statusor.h"
#include "bulkhead/launcher/file_system.h"

namespace bulkhead::launcher {

struct Program {
  std::string path;   // as it will be executed
  ResolvedPath file;  // what that is
  // What the kernel starts to run it, if anything: the interpreter of a script's first line, or the ELF loader.
  std::string interpreter;
  bool is_script = false;
};

// `name` is an absolute path, or a bare name that is looked up on `path_list`. Errors, each with a message of its own:
// NotFound: the command is not there. PermissionDenied: a folder, not executable, not a program, a script whose
// interpreter is missing, an ELF file whose loader is missing or that is made for another machine.
absl::StatusOr<Program> FindProgram(const std::string& name, bool look_up, const std::string& path_list);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_PROGRAM_H_
