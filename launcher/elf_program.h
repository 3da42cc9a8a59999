// What Linux needs to run an ELF file. <elf.h> is not on every system, and others have loaders elsewhere than a file
// says.
#ifndef BULKHEAD_LAUNCHER_ELF_PROGRAM_H_
#define BULKHEAD_LAUNCHER_ELF_PROGRAM_H_

#include <string>

#include "absl/status/status.h"
#include "bulkhead/launcher/program.h"

namespace bulkhead::launcher {

// A LookAtElf. PermissionDenied: its loader is missing, it is cut off or made for another machine.
absl::Status LookAtElfProgram(int fd, const std::string& head, Program& program);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_ELF_PROGRAM_H_
