// Waiting for the end of a process that is not our child: POSIX has no way, the BSDs and macOS have kqueue.
#ifndef BULKHEAD_LAUNCHER_POSIX_EXIT_WATCH_H_
#define BULKHEAD_LAUNCHER_POSIX_EXIT_WATCH_H_

#include <sys/types.h>

#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {

// A descriptor that poll(2) says is readable once `pid` has ended, and from then on (kqueue, EVFILT_PROC, NOTE_EXIT).
// Empty where the system has none, where it doesn't let us watch `pid`, and when `pid` has ended already: who asks then
// has to look by himself. Once it is there, `pid` has to be looked at again: its number may have been another's before.
UniqueFd WatchExit(pid_t pid);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_POSIX_EXIT_WATCH_H_
