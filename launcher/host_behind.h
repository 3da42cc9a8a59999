// The host behind a shell. `bulkhead run` watches its parent, which is the host only where the host starts it directly.
// Behind a wrapper the end of the host shows in the pipes, unless a hostile server opens their other ends by
// /proc/self/fd (of a socket it can't: ENXIO). So the host itself is looked for: the process that holds these ends.
#ifndef BULKHEAD_LAUNCHER_HOST_BEHIND_H_
#define BULKHEAD_LAUNCHER_HOST_BEHIND_H_

#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {

// How far up it is looked for: a host, a package runner, its shells.
inline constexpr int kAncestorsMax = 16;

// A pidfd, above the targets, of the nearest ancestor that can write into the pipe that is our stdin, or read the one
// that is our stdout. Empty where that is the parent itself, where neither is a pipe, or where /proc doesn't show it:
// a process of another user, one that is not dumpable, one that is no ancestor. Takes no lock; any thread may call.
UniqueFd OpenHostBehindParent();

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_HOST_BEHIND_H_
