#include "bulkhead/launcher/keeper_process.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "bulkhead/launcher/cgroup.h"

namespace bulkhead::launcher {
namespace {

// ~Process: of its second, how long the keeper may take to kill and reap before it is killed itself.
constexpr std::chrono::milliseconds kKeeperKillTime(800), kKernelKillTime(200);

// ECHILD, when the host ignores SIGCHLD or reaps all children itself, is as good.
void Reap(int pidfd) {
  siginfo_t info;
  while (waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED | WNOHANG) != 0 && errno == EINTR) {
  }
}

ExitStatus StatusOf(const std::optional<wire::Message>& exited) {
  ExitStatus status;
  status.kind = ExitStatus::Kind::kKeeperLost;
  if (!exited) return status;
  status.user_time = absl::Microseconds(static_cast<int64_t>(exited->user_us));
  status.system_time = absl::Microseconds(static_cast<int64_t>(exited->system_us));
  status.max_resident_bytes = exited->max_resident_bytes;
  status.memory_kills = exited->memory_kills;
  status.refused_processes = exited->refused_processes;
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

void KeeperProcess::ReadMessages() {
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

bool KeeperProcess::Settle() {
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
    if (!cgroup_folder.empty()) SweepCgroups(cgroup_folder);
  }
  status = StatusOf(exited);
  if (const auto timer = stop_timer.lock()) timer->cancel();
  return true;
}

int KeeperProcess::WaitFd() const {
  if (keeper_gone) return init.get();
  return keeper.valid() ? keeper.get() : control.get();
}

void KeeperProcess::Send(char order) {
  if (send(control.get(), &order, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1) return;
  if (order == wire::kKill) KillKeeper();
}

void KeeperProcess::KillKeeper() {
  // A pidfd never means another process; for one that is gone this fails with ESRCH.
  if (keeper.valid()) syscall(SYS_pidfd_send_signal, keeper.get(), SIGKILL, nullptr, 0);
}

int KeeperProcess::EndFd() const { return keeper.valid() ? keeper.get() : control.get(); }

void KeeperProcess::BeginStop(const std::shared_ptr<ProcessImpl>& self) {
  in.reset();
  Send(wire::kStop);
  const SignalsBlocked blocked;
  const std::lock_guard<std::mutex> lock(mutex);
  if (status || !stop_timer.expired()) return;
  // The keeper's ladder is bounded; this is for a keeper that somebody stopped.
  auto timer = std::make_shared<asio::steady_timer>(executor);
  stop_timer = timer;
  timer->expires_after(stop_time_max);
  timer->async_wait([this, self, timer](asio::error_code cancelled) {
    if (!cancelled) KillKeeper();
  });
}

ExitStatus KeeperProcess::Stop() {
  in.reset();
  Send(wire::kStop);
  if (!AwaitEnd(Clock::now() + stop_time_max)) KillKeeper();
  return Wait();
}

void KeeperProcess::Kill() { Send(wire::kKill); }

void KeeperProcess::End() {
  if (owner != getpid() || AwaitEnd(Clock::now())) return;
  Kill();
  if (AwaitEnd(Clock::now() + kKeeperKillTime)) return;
  KillKeeper();
  AwaitEnd(Clock::now() + kKernelKillTime);
}

}  // namespace bulkhead::launcher
