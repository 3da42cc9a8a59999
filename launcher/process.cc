#include "bulkhead/launcher/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "asio/system_executor.hpp"
#include "bulkhead/launcher/process_impl.h"

namespace bulkhead::launcher {
namespace {

// ~Process: of its second, how long the keeper may take to kill and reap before it is killed itself.
constexpr std::chrono::milliseconds kKeeperKillTime(800), kKernelKillTime(200);

bool IsReadable(int fd) {
  pollfd poll_fd = {fd, POLLIN, 0};
  return poll(&poll_fd, 1, 0) == 1;
}

// ECHILD, when the host ignores SIGCHLD or reaps all children itself, is as good.
void Reap(int pidfd) {
  siginfo_t info;
  while (waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) != 0 && errno == EINTR) {
  }
}

// The rest of the time in whole milliseconds, rounded up; -1: no deadline.
int MillisecondsUntil(const std::optional<std::chrono::steady_clock::time_point>& deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, std::numeric_limits<int>::max()));
}

// Asio starts threads for the system executor when it is first used. The host's signals are not for them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t old_;
};

ExitStatus StatusOf(const std::optional<wire::Message>& exited) {
  ExitStatus status;
  status.kind = ExitStatus::Kind::kKeeperLost;
  if (!exited) return status;
  status.user_time = absl::Microseconds(static_cast<int64_t>(exited->user_us));
  status.system_time = absl::Microseconds(static_cast<int64_t>(exited->system_us));
  status.max_resident_bytes = exited->max_resident_bytes;
  if (exited->wait_status < 0) return status;
  if (WIFSIGNALED(exited->wait_status)) {
    status.kind = ExitStatus::Kind::kSignaled;
    status.signal = WTERMSIG(exited->wait_status);
  } else {
    status.kind = ExitStatus::Kind::kExited;
    status.code = WEXITSTATUS(exited->wait_status);
  }
  return status;
}

}  // namespace

void Process::Impl::ReadMessages() {
  wire::Message message;
  while (true) {
    const ssize_t count = recv(control.get(), &message, sizeof(message), MSG_DONTWAIT);
    // ECONNRESET, once, when the keeper ended before it read our last order; its messages are still there.
    if (count < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
    // Without a pidfd the end of the socket, which only the keeper holds, is all there is to see.
    if (count == 0 && !keeper.valid()) keeper_gone = true;
    if (count <= 0) return;
    if (count == sizeof(message) && message.event == wire::Event::kExited) exited = message;
  }
}

bool Process::Impl::Settle() {
  if (status) return true;
  if (!keeper_gone && keeper.valid() && IsReadable(keeper.get())) {
    keeper_gone = true;
    Reap(keeper.get());
  }
  ReadMessages();  // after the keeper's end: all that it said is here
  if (!keeper_gone) return false;
  if (!exited && init.valid()) {  // the keeper was killed; the init ends the tree, then itself
    if (!IsReadable(init.get())) return false;
    Reap(init.get());  // ours only if this process is a child subreaper
  }
  status = StatusOf(exited);
  if (const auto timer = stop_timer.lock()) timer->cancel();
  return true;
}

int Process::Impl::WaitFd() const {
  if (keeper_gone) return init.get();
  return keeper.valid() ? keeper.get() : control.get();
}

bool Process::Impl::AwaitEnd(std::optional<Clock::time_point> deadline) {
  while (true) {
    pollfd poll_fd = {-1, POLLIN, 0};
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
      poll_fd.fd = WaitFd();
    }
    const int time = MillisecondsUntil(deadline);
    if (time == 0) return false;
    poll(&poll_fd, 1, time);
  }
}

void Process::Impl::Send(char order) {
  if (send(control.get(), &order, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) return;
  if (order == wire::kKill) KillKeeper();
}

void Process::Impl::KillKeeper() {
  // A pidfd never means another process; for one that is gone this fails with ESRCH.
  if (keeper.valid()) syscall(SYS_pidfd_send_signal, keeper.get(), SIGKILL, nullptr, 0);
}

std::shared_ptr<Process::Impl::Watch> Process::Impl::StartWatch(const std::shared_ptr<Impl>& impl) {
  auto watch = std::shared_ptr<Watch>(new Watch{impl, asio::posix::stream_descriptor(impl->executor), {}});
  impl->watch = watch;
  Arm(watch);
  return watch;
}

void Process::Impl::Arm(const std::shared_ptr<Watch>& watch) {
  asio::error_code error;
  watch->descriptor.close(error);
  UniqueFd copy(fcntl(watch->impl->WaitFd(), F_DUPFD_CLOEXEC, 0));
  if (copy.valid()) watch->descriptor.assign(copy.get(), error);
  if (copy.valid() && !error) {
    (void)copy.release();
    watch->descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                 [watch](asio::error_code failed) { OnReadable(watch, static_cast<bool>(failed)); });
    return;
  }
  WaitOnThread(watch);
}

// When there is no descriptor left: the promise to complete holds, at the price of a thread of the system executor.
void Process::Impl::WaitOnThread(const std::shared_ptr<Watch>& watch) {
  asio::post(asio::system_executor(), [watch] { watch->impl->AwaitEnd(std::nullopt); });
}

void Process::Impl::OnReadable(const std::shared_ptr<Watch>& watch, bool failed) {
  Impl& impl = *watch->impl;
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

asio::any_io_executor Process::ExecutorOf(const Impl& impl) { return impl.executor; }

void Process::StartWait(const std::shared_ptr<Impl>& impl, std::unique_ptr<WaitHandler> handler) {
  const SignalsBlocked blocked;
  std::shared_ptr<Impl::Watch> watch;
  std::unique_lock<std::mutex> lock(impl->mutex);
  // A settled tree takes no more handlers, so that none is put where nobody looks again.
  if (!impl->Settle()) {
    watch = impl->watch.lock();
    if (!watch) watch = Impl::StartWatch(impl);
    watch->handlers.push_back(std::move(handler));
    return;
  }
  lock.unlock();
  handler->Complete(*impl->status);
  impl->AwaitEnd(std::nullopt);  // if it was this call that saw the end: the others
}

void Process::BeginStop(const std::shared_ptr<Impl>& impl) {
  impl->in.reset();
  impl->Send(wire::kStop);
  const SignalsBlocked blocked;
  const std::lock_guard<std::mutex> lock(impl->mutex);
  if (impl->status || !impl->stop_timer.expired()) return;
  // The keeper's ladder is bounded; this is for a keeper that somebody stopped.
  auto timer = std::make_shared<asio::steady_timer>(impl->executor);
  impl->stop_timer = timer;
  timer->expires_after(impl->stop_time_max);
  timer->async_wait([impl, timer](asio::error_code cancelled) {
    if (!cancelled) impl->KillKeeper();
  });
}

ExitStatus Process::Wait() {
  impl_->AwaitEnd(std::nullopt);
  return *impl_->status;
}

ExitStatus Process::Stop() {
  impl_->in.reset();
  impl_->Send(wire::kStop);
  if (!impl_->AwaitEnd(Impl::Clock::now() + impl_->stop_time_max)) impl_->KillKeeper();
  return Wait();
}

void Process::Kill() { impl_->Send(wire::kKill); }

void Process::End() {
  if (!impl_) return;
  if (impl_->owner == getpid() && !impl_->AwaitEnd(Impl::Clock::now())) {
    Kill();
    if (!impl_->AwaitEnd(Impl::Clock::now() + kKeeperKillTime)) {
      impl_->KillKeeper();
      impl_->AwaitEnd(Impl::Clock::now() + kKernelKillTime);
    }
  }
  // A handler that waits still has its part of the rest. After the kill, or a server might see a SIGPIPE first.
  impl_->in.reset();
  impl_->out.reset();
  impl_->err.reset();
  impl_.reset();
}

Process::Process(Process&&) noexcept = default;
Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    End();
    impl_ = std::move(other.impl_);
  }
  return *this;
}
Process::~Process() { End(); }

int Process::pidfd() const { return impl_->keeper.valid() ? impl_->keeper.get() : impl_->control.get(); }
UniqueFd& Process::stdin_fd() { return impl_->in; }
UniqueFd& Process::stdout_fd() { return impl_->out; }
UniqueFd& Process::stderr_fd() { return impl_->err; }
const EnforcementReport& Process::report() const { return impl_->report; }

}  // namespace bulkhead::launcher
