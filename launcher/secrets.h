// The secrets of a plan on their way to the keeper: read from where the policy says, at each start anew, and written
// into a pipe. They are never part of the plan, of an argument or of a message.
#ifndef BULKHEAD_LAUNCHER_SECRETS_H_
#define BULKHEAD_LAUNCHER_SECRETS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "bulkhead/launcher/unique_fd.h"
#include "bulkhead/policy/command.h"

namespace bulkhead::launcher {

// The reading end of a pipe that holds "NAME=value" and a zero byte for each secret of `env`, in order; above the
// keeper's targets, with CLOEXEC. Empty when there is none. All of them together have at most wire::kSecretsBytesMax
// bytes.
//
// A variable is taken from this process's environment (getenv(3): no other thread may change that meanwhile). Of a file
// and a descriptor the line's end is cut off. A descriptor is read to its end, which for a pipe can be done once: a
// second start then fails. FailedPrecondition: not to be had, empty, too long, or no text that an environment may hold;
// names the variable and the source, never the value.
absl::StatusOr<UniqueFd> SecretsPipe(const std::vector<policy::EnvEntry>& env);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_SECRETS_H_
