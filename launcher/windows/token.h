// The server's token: the user's, with less. What a user may do to his own files stays.
#ifndef BULKHEAD_LAUNCHER_WINDOWS_TOKEN_H_
#define BULKHEAD_LAUNCHER_WINDOWS_TOKEN_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {

// A copy of this process's token without any privilege but SeChangeNotify, which lets a path lead through folders that
// can't be listed, and in which the group Administrators only denies (CreateRestrictedToken). Each privilege is named:
// wine 8 doesn't know DISABLE_MAX_PRIVILEGE.
absl::StatusOr<UniqueFd> MakeServerToken();

// What the system says back is what counts: FailedPrecondition if the process has another privilege, or is an
// administrator.
absl::Status CheckServerToken(NativeFd process);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_WINDOWS_TOKEN_H_
