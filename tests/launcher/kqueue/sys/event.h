// A stand-in for <sys/event.h> of the BSDs and macOS, on Linux's pidfds: as much of kqueue as
// launcher/posix/exit_watch.cc uses, so that it is compiled and run here. Names and types are those of FreeBSD's
// kqueue(2). What is asked for beyond that is an error.
#ifndef BULKHEAD_TESTS_LAUNCHER_KQUEUE_SYS_EVENT_H_
#define BULKHEAD_TESTS_LAUNCHER_KQUEUE_SYS_EVENT_H_

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct kevent {
  uintptr_t ident;
  short filter;
  unsigned short flags;
  unsigned int fflags;
  int64_t data;
  void* udata;
};

constexpr short EVFILT_PROC = -5;
constexpr unsigned short EV_ADD = 1;
constexpr unsigned int NOTE_EXIT = 0x80000000;

inline void EV_SET(struct kevent* event, uintptr_t ident, short filter, unsigned short flags, unsigned int fflags,
                   int64_t data, void* udata) {
  *event = {ident, filter, flags, fflags, data, udata};
}

inline int kqueue() { return epoll_create1(0); }

// The pidfd is never closed, since a queue forgets what is: no test makes many.
inline int kevent(int queue, const struct kevent* changes, int change_count, struct kevent*, int event_count,
                  const struct timespec*) {
  if (change_count != 1 || event_count != 0 || changes->filter != EVFILT_PROC || changes->flags != EV_ADD ||
      changes->fflags != NOTE_EXIT) {
    errno = EINVAL;
    return -1;
  }
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(changes->ident), 0));
  struct epoll_event readable = {};
  readable.events = EPOLLIN;
  return pidfd < 0 ? -1 : epoll_ctl(queue, EPOLL_CTL_ADD, pidfd, &readable);
}

#endif  // BULKHEAD_TESTS_LAUNCHER_KQUEUE_SYS_EVENT_H_
