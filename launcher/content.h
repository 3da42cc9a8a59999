// What a file holds, as command.sha256 pins it: its digest, and the state it was in when it was read. A file is checked
// twice: by its content while the plan is made, by its state right before the server's program runs. Whoever writes to
// it in between changes its ctime, which only the kernel sets (inode(7)); who has it open for writing at the exec makes
// that fail (ETXTBSY, execve(2)).
#ifndef BULKHEAD_LAUNCHER_CONTENT_H_
#define BULKHEAD_LAUNCHER_CONTENT_H_

#include <sys/stat.h>

#include <string>

#include "absl/status/statusor.h"

namespace bulkhead::launcher {

struct Content {
  std::string sha256;     // 64 lower-case hexadecimal digits
  struct stat info = {};  // before the first byte was read, and still after the last
};

// PermissionDenied: it can't be read, is not a regular file, or changes while it is read.
absl::StatusOr<Content> ReadContent(const std::string& path);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_CONTENT_H_
