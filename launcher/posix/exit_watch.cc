#include "bulkhead/launcher/posix/exit_watch.h"

// Tests put a stand-in there, so that these lines are compiled and run on Linux, too.
#if __has_include(<sys/event.h>)
#include <fcntl.h>
#include <sys/event.h>
#include <sys/time.h>
#endif

namespace bulkhead::launcher {

#if __has_include(<sys/event.h>)

UniqueFd WatchExit(pid_t pid) {
  UniqueFd queue(kqueue());
  struct kevent change;
  EV_SET(&change, static_cast<uintptr_t>(pid), EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, nullptr);
  // Forks don't get it, but programs would.
  if (!queue.valid() || fcntl(queue.get(), F_SETFD, FD_CLOEXEC) != 0 ||
      kevent(queue.get(), &change, 1, nullptr, 0, nullptr) != 0) {
    return UniqueFd();
  }
  return queue;
}

#else

UniqueFd WatchExit(pid_t) { return UniqueFd(); }

#endif

}  // namespace bulkhead::launcher
