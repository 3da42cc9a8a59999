// The file that a policy has the server's stderr appended to.
#ifndef BULKHEAD_LAUNCHER_WINDOWS_STDERR_FILE_H_
#define BULKHEAD_LAUNCHER_WINDOWS_STDERR_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {

// `path` is normal, as policy/paths.h says. Made if it isn't there. Inheritable; it can append, and neither read nor
// overwrite. FailedPrecondition when it can't be opened, is no regular file, or is not where `path` says: behind a
// link, or named by a short name.
absl::StatusOr<UniqueFd> OpenToAppend(const std::string& path);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_WINDOWS_STDERR_FILE_H_
