// What becomes a server's stderr on the portable backend.
#ifndef BULKHEAD_LAUNCHER_POSIX_STDIO_H_
#define BULKHEAD_LAUNCHER_POSIX_STDIO_H_

#include "absl/status/statusor.h"
#include "bulkhead/launcher/unique_fd.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::launcher {

// A copy with a number above the server's 0, 1, 2 and the one that tells of failures; with CLOEXEC. `fd` stays.
UniqueFd CopyAboveStdio(int fd);

// By the policy: our own, /dev/null, or a file to append to, which is a regular one, with no symbolic link anywhere in
// its path. FailedPrecondition otherwise.
absl::StatusOr<UniqueFd> OpenPosixStderr(const policy::StderrRules& rules);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_POSIX_STDIO_H_
