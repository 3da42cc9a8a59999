// Whether root can give a server a user other than root here.
#ifndef BULKHEAD_LAUNCHER_OTHER_USER_H_
#define BULKHEAD_LAUNCHER_OTHER_USER_H_

#include "absl/status/status.h"

namespace bulkhead::launcher {

// Root of a container may have lost capabilities, or be root of a user namespace that has few ids, or none but its own.
// The steps that then fail only know EPERM and EINVAL. FailedPrecondition, with the remedy. `one_per_launch`: it is to
// be one of the ids from wire::kPerLaunchUidBase on, else an account. Ok for who isn't root.
absl::Status CanBecomeOtherUser(bool one_per_launch);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_OTHER_USER_H_
