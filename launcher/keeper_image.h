// The keeper: a small static program whose bytes are part of this library, run from a sealed memfd. Where memfds may
// not be executed (memfd_create(2), vm.memfd_noexec) an installed copy is run instead, if only root can have put it
// there.
#ifndef BULKHEAD_LAUNCHER_KEEPER_IMAGE_H_
#define BULKHEAD_LAUNCHER_KEEPER_IMAGE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bulkhead/launcher/keeper/keeper_bytes.h"
#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {

// Where an installed copy may be, tried in this order.
inline constexpr const char* kInstalledKeepers[] = {"/usr/lib/bulkhead/keeper", "/usr/libexec/bulkhead/keeper"};

// Calls execute(fd), which tries to run the file behind `fd` and returns 0 or errno: first with the memfd, which is
// made once per process, then, if that may not be executed, with an installed copy. The descriptor has CLOEXEC, is
// above those that the keeper starts with (plan_format.h), and is borrowed for the call. Any thread. Errors:
// FailedPrecondition with the remedy when nothing may be executed; Internal or ResourceExhausted otherwise.
absl::Status ExecuteKeeper(absl::FunctionRef<int(int fd)> execute);

// Opens an installed copy, or says why it is not to be trusted: it must be a regular file of root, writable by nobody
// else, and hold exactly KeeperBytes().
absl::StatusOr<UniqueFd> OpenInstalledKeeper(const std::string& path);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_KEEPER_IMAGE_H_
