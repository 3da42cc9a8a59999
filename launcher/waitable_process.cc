#include "bulkhead/launcher/waitable_process.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#endif

#include <algorithm>
#include <limits>
#include <utility>

#include "asio/post.hpp"
#include "asio/system_executor.hpp"
#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {
namespace {

// The rest of the time in whole milliseconds, rounded up; -1: no deadline.
int MillisecondsUntil(const std::optional<std::chrono::steady_clock::time_point>& deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, std::numeric_limits<int>::max()));
}

#ifdef _WIN32
void WaitFor(NativeFd event, int milliseconds) {
  WaitForSingleObject(event, milliseconds < 0 ? INFINITE : static_cast<DWORD>(milliseconds));
}

UniqueFd Copy(NativeFd event) {
  HANDLE copy = nullptr;
  DuplicateHandle(GetCurrentProcess(), event, GetCurrentProcess(), &copy, 0, FALSE, DUPLICATE_SAME_ACCESS);
  return UniqueFd(copy);
}

template <typename Handler>
void WaitFor(asio::windows::object_handle& event, Handler handler) {
  event.async_wait(std::move(handler));
}
#else
void WaitFor(int fd, int milliseconds) {
  pollfd poll_fd = {fd, POLLIN, 0};
  poll(&poll_fd, 1, milliseconds);
}

UniqueFd Copy(int fd) { return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

template <typename Handler>
void WaitFor(asio::posix::stream_descriptor& descriptor, Handler handler) {
  descriptor.async_wait(asio::posix::stream_descriptor::wait_read, std::move(handler));
}
#endif

}  // namespace

#ifndef _WIN32
SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old_);
}
SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }

bool IsReadable(int fd) {
  pollfd poll_fd = {fd, POLLIN, 0};
  return poll(&poll_fd, 1, 0) == 1;
}
#endif

bool WaitableProcess::AwaitEnd(std::optional<Clock::time_point> deadline) {
  while (true) {
    NativeFd wait_fd = NoFd();
    {
      std::shared_ptr<Watch> held;  // its last reference must not go while the mutex is held
      std::vector<std::unique_ptr<WaitHandler>> handlers;
      std::unique_lock<std::mutex> lock(mutex);
      if (Settle()) {
        held = watch.lock();
        if (held) handlers.swap(held->handlers);
        const ExitStatus ended = *status;
        lock.unlock();
        for (const auto& handler : handlers) handler->Complete(ended);
        return true;
      }
      wait_fd = WaitFd();
    }
    const int time = MillisecondsUntil(deadline);
    if (time == 0) return false;
    WaitFor(wait_fd, time);
  }
}

std::shared_ptr<WaitableProcess::Watch> WaitableProcess::StartWatch(const std::shared_ptr<WaitableProcess>& impl) {
  auto watch = std::shared_ptr<Watch>(new Watch{impl, Descriptor(impl->executor), {}});
  impl->watch = watch;
  Arm(watch);
  return watch;
}

void WaitableProcess::Arm(const std::shared_ptr<Watch>& watch) {
  asio::error_code error;
  watch->descriptor.close(error);
  UniqueFd copy = Copy(watch->impl->WaitFd());
  if (copy.valid()) watch->descriptor.assign(copy.get(), error);
  if (copy.valid() && !error) {
    (void)copy.release();
    WaitFor(watch->descriptor, [watch](asio::error_code failed) { OnReadable(watch, static_cast<bool>(failed)); });
    return;
  }
  WaitOnThread(watch);
}

// When there is no descriptor left: the promise to complete holds, at the price of a thread of the system executor.
void WaitableProcess::WaitOnThread(const std::shared_ptr<Watch>& watch) {
  asio::post(asio::system_executor(), [watch] { watch->impl->AwaitEnd(std::nullopt); });
}

void WaitableProcess::OnReadable(const std::shared_ptr<Watch>& watch, bool failed) {
  WaitableProcess& impl = *watch->impl;
  std::vector<std::unique_ptr<WaitHandler>> handlers;
  std::unique_lock<std::mutex> lock(impl.mutex);
  if (!impl.Settle()) {
    failed ? WaitOnThread(watch) : Arm(watch);
    return;
  }
  handlers.swap(watch->handlers);
  const ExitStatus ended = *impl.status;
  lock.unlock();
  for (const auto& handler : handlers) handler->Complete(ended);
}

void WaitableProcess::StartWait(const std::shared_ptr<ProcessImpl>& self, std::unique_ptr<WaitHandler> handler) {
  const SignalsBlocked blocked;
  std::shared_ptr<Watch> held;
  std::unique_lock<std::mutex> lock(mutex);
  // A settled tree takes no more handlers, so that none is put where nobody looks again.
  if (!Settle()) {
    held = watch.lock();
    if (!held) held = StartWatch(std::static_pointer_cast<WaitableProcess>(self));
    held->handlers.push_back(std::move(handler));
    return;
  }
  lock.unlock();
  handler->Complete(*status);
  AwaitEnd(std::nullopt);  // if it was this call that saw the end: the others
}

ExitStatus WaitableProcess::Wait() {
  AwaitEnd(std::nullopt);
  return *status;
}

}  // namespace bulkhead::launcher
