// What the host prepares before a keeper starts, whether by Launch or by BecomeKeeper: descriptors, the sealed plan
// and the server's stderr.
#ifndef BULKHEAD_LAUNCHER_HANDOVER_H_
#define BULKHEAD_LAUNCHER_HANDOVER_H_

#include <sys/types.h>

#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bulkhead/launcher/errors.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/plan_format.h"
#include "bulkhead/launcher/unique_fd.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::launcher {

// The keeper starts with no descriptor from this one on.
inline constexpr int kFirstFreeFd = wire::kSecretsFd + 1;

// Gives the descriptor a number that the keeper's own can't overwrite, with CLOEXEC. False and errno if none is left.
bool MoveAboveTargets(UniqueFd& fd);

// A copy with such a number and CLOEXEC; `fd` stays. Empty, with errno, on failure.
UniqueFd DuplicateAboveTargets(int fd);

enum class MemfdUse { kRead, kExecute };
// A memfd with these parts, one after the other, that nobody can change any more; above the targets, with CLOEXEC.
// Empty, with errno, on failure.
UniqueFd SealedMemfd(const char* name, std::initializer_list<absl::string_view> parts, MemfdUse use);

// A pidfd, above the targets, or empty and errno.
UniqueFd OpenPidFd(pid_t pid);

// Fails with ELOOP when there is a symbolic link anywhere in the path: O_NOFOLLOW looks at the last component only, and
// a hostile workspace may plant a link higher up.
UniqueFd OpenWithoutLinks(const std::string& path, int flags, mode_t mode);

// /dev/null, above the targets, or empty and errno.
UniqueFd OpenNull();

// What the server's stderr is to be when the policy says discard or file; empty for inherit.
// FailedPrecondition when the file can't be appended to, is not a regular file, or has a link in its path.
absl::StatusOr<UniqueFd> OpenServerStderr(const policy::StderrRules& rules);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_HANDOVER_H_
