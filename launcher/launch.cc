// Launch: from a plan to a running server.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/system_executor.hpp"
#include "bulkhead/launcher/cgroup.h"
#include "bulkhead/launcher/failure.h"
#include "bulkhead/launcher/folders.h"
#include "bulkhead/launcher/handover.h"
#include "bulkhead/launcher/keeper_image.h"
#include "bulkhead/launcher/keeper_process.h"
#include "bulkhead/launcher/linux.h"
#include "bulkhead/launcher/process.h"
#include "bulkhead/launcher/secrets.h"

namespace bulkhead::launcher {
namespace {

using Impl = KeeperProcess;
using Clock = Impl::Clock;

constexpr char kWhat[] = "cannot prepare the server's start";
// Beyond both graces: killing and reaping a large tree on a busy machine.
constexpr std::chrono::seconds kStopSpare(5);

// The keeper's ends.
struct Ends {
  UniqueFd fd[kFirstFreeFd];
};

absl::Status MakePipe(UniqueFd& reader, UniqueFd& writer) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return OurError(kWhat, errno);
  reader.reset(fds[0]);
  writer.reset(fds[1]);
  // Ours too: in a host with 0 to 2 closed, a printf of the host's must not land in the server's stdin.
  if (!MoveAboveTargets(reader) || !MoveAboveTargets(writer)) return OurError(kWhat, errno);
  return absl::OkStatus();
}

absl::Status MakeStderr(const policy::StderrRules& rules, LaunchOptions::Stderr wanted, Ends& ends, Impl& impl) {
  if (rules.mode != policy::StderrMode::kInherit) {
    absl::StatusOr<UniqueFd> opened = OpenServerStderr(rules);
    if (!opened.ok()) return opened.status();
    ends.fd[STDERR_FILENO] = *std::move(opened);
    return absl::OkStatus();
  }
  if (wanted == LaunchOptions::Stderr::kPipe) return MakePipe(impl.err, ends.fd[STDERR_FILENO]);
  // A copy, since the host's own may have CLOEXEC, or be closed.
  ends.fd[STDERR_FILENO] = DuplicateAboveTargets(STDERR_FILENO);
  if (ends.fd[STDERR_FILENO].valid()) return absl::OkStatus();
  if (errno != EBADF) return OurError(kWhat, errno);
  ends.fd[STDERR_FILENO] = OpenNull();
  return ends.fd[STDERR_FILENO].valid() ? absl::OkStatus() : OurError(kWhat, errno);
}

absl::Status MakeControl(Ends& ends, Impl& impl) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return OurError(kWhat, errno);
  impl.control.reset(pair[0]);
  ends.fd[wire::kControlFd].reset(pair[1]);
  if (!MoveAboveTargets(impl.control) || !MoveAboveTargets(ends.fd[wire::kControlFd])) return OurError(kWhat, errno);
  ends.fd[wire::kHostPidFd] = OpenPidFd(getpid());
  if (ends.fd[wire::kHostPidFd].valid()) return absl::OkStatus();
  if (errno != ENOSYS) return OurError(kWhat, errno);
  return absl::FailedPreconditionError(absl::StrCat(kWhat, ": this kernel has no pidfd_open; Linux 5.3 has"));
}

absl::Status MakeEnds(const LaunchPlan& plan, const LaunchOptions& options, Ends& ends, Impl& impl) {
  absl::StatusOr<UniqueFd> secrets = SecretsPipe(plan.command().env);
  if (!secrets.ok()) return secrets.status();
  ends.fd[wire::kSecretsFd] = *std::move(secrets);
  absl::Status status = MakePipe(ends.fd[STDIN_FILENO], impl.in);
  if (status.ok()) status = MakePipe(impl.out, ends.fd[STDOUT_FILENO]);
  if (status.ok()) status = MakeStderr(plan.stderr_rules(), options.stderr_to, ends, impl);
  if (status.ok()) status = MakeControl(ends, impl);
  if (!status.ok()) return status;
  ends.fd[wire::kPlanFd] = SealedMemfd("bulkhead-plan", {plan.bytes()}, MemfdUse::kRead);
  if (!ends.fd[wire::kPlanFd].valid()) return OurError("cannot write the plan to a memfd (memfd_create)", errno);
  return absl::OkStatus();
}

// The child of vfork, which shares our memory and our stack until it runs the keeper: system calls only, and not by
// functions that are cancellation points (close(2) is one). Leaves errno in `error`.
[[noreturn]] void ExecInChild(int keeper_fd, const int (&sources)[kFirstFreeFd], volatile int& error) {
  char name[] = "bulkhead-keeper";
  char* const argv[] = {name, nullptr};
  char* const envp[] = {nullptr};
  long result = 0;
  for (int target = 0; target < kFirstFreeFd && result >= 0; ++target) {
    if (sources[target] >= 0) {
      result = syscall(SYS_dup3, sources[target], target, 0);
    } else {
      syscall(SYS_close, target);  // what the host has there itself, without CLOEXEC, is not for the keeper
    }
  }
  if (result >= 0) syscall(SYS_execveat, keeper_fd, "", argv, envp, AT_EMPTY_PATH);
  error = errno;
  for (;;) syscall(SYS_exit_group, 127);
}

// vfork and not fork: the host's size does not matter, and no copy of it runs. posix_spawn does the same, but takes
// half as long again: it asks for each of the 64 signals' dispositions, which exec resets anyway, and makes a stack.
// All signals are blocked, so that no handler of the host's runs in the child; they stay blocked across exec, which the
// keeper expects, and what is ignored stays ignored until the keeper resets it. Returns errno.
[[gnu::noinline]] int Spawn(int keeper_fd, const Ends& ends, pid_t& pid) {
  int sources[kFirstFreeFd];
  for (int target = 0; target < kFirstFreeFd; ++target) sources[target] = ends.fd[target].get();
  volatile int error = 0;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  const pid_t child = vfork();
  if (child == 0) ExecInChild(keeper_fd, sources, error);
  const int fork_error = child < 0 ? errno : 0;
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (fork_error != 0) return fork_error;
  if (error == 0) {
    pid = child;
    return 0;
  }
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return error;
}

// Opens the keeper's pidfd, which may be too late: if the host ignores SIGCHLD or reaps all children, a keeper that
// ended at once is gone, and its number may even be another process's. Then the socket, which ends with the keeper,
// must do.
void PinKeeper(pid_t pid, Impl& impl) {
  impl.keeper = OpenPidFd(pid);
  pollfd control = {impl.control.get(), 0, 0};
  siginfo_t info;
  if (impl.keeper.valid() && poll(&control, 1, 0) == 1 &&  // POLLHUP: so it was not pinned while alive
      waitid(P_PIDFD, static_cast<id_t>(impl.keeper.get()), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    impl.keeper.reset();
  }
}

// One message, and the jail init's pidfd if it comes with it. 0 bytes: the keeper is gone. Negative: errno.
ssize_t Receive(int control, wire::Message& message, UniqueFd& init) {
  iovec part = {&message, sizeof(message)};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = space;
  header.msg_controllen = sizeof(space);
  const ssize_t count = recvmsg(control, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0) return -errno;
  const cmsghdr* attached = CMSG_FIRSTHDR(&header);
  if (attached != nullptr && attached->cmsg_level == SOL_SOCKET && attached->cmsg_type == SCM_RIGHTS &&
      attached->cmsg_len == CMSG_LEN(sizeof(int))) {
    int fd;
    memcpy(&fd, CMSG_DATA(attached), sizeof(fd));
    init.reset(fd);
    MoveAboveTargets(init);
  }
  return count;
}

// Waits for what the keeper says first. Not OK: it said nothing.
absl::Status AwaitFirst(Impl& impl, absl::Duration timeout, wire::Message& message) {
  constexpr absl::Duration kTimeoutMax = absl::Hours(24);
  const auto deadline = Clock::now() + absl::ToChronoNanoseconds(std::min(timeout, kTimeoutMax));
  while (true) {
    const ssize_t count = Receive(impl.control.get(), message, impl.init);
    if (count == sizeof(message)) return absl::OkStatus();
    if (count == 0) return absl::InternalError("the keeper ended before the server started (killed from outside?)");
    if (count > 0) return absl::InternalError("the keeper sent a message of the wrong size");
    if (count == -ECONNRESET || count == -EINTR) continue;
    if (count != -EAGAIN) return OurError("cannot hear from the keeper", static_cast<int>(-count));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) break;
    pollfd control = {impl.control.get(), POLLIN, 0};
    poll(&control, 1, static_cast<int>(left));
  }
  return absl::DeadlineExceededError(absl::StrCat("the server did not start within ", absl::FormatDuration(timeout),
                                                  "; a file system that its grants name may not answer"));
}

Clock::duration StopTime(const LaunchPlan& plan) {
  wire::Plan header = {};
  if (plan.bytes().size() >= sizeof(header)) memcpy(&header, plan.bytes().data(), sizeof(header));
  return std::chrono::milliseconds(header.stdin_grace_ms) + std::chrono::milliseconds(header.term_grace_ms) +
         kStopSpare;
}

}  // namespace

absl::StatusOr<Process> LaunchWithKeeper(const LaunchPlan& plan, asio::any_io_executor executor,
                                         const LaunchOptions& options) {
  absl::Status status = MakeFolders(plan.folders_to_make());
  if (!status.ok()) return status;
  auto impl = std::make_shared<Impl>();
  impl->owner = getpid();
  impl->executor = std::move(executor);
  impl->stop_time_max = StopTime(plan);
  impl->cgroup_folder = plan.cgroup_folder();
  if (!plan.cgroup_folder().empty()) SweepCgroups(plan.cgroup_folder());

  pid_t pid = 0;
  {
    Ends ends;  // closed before the wait, or a keeper's death would not show
    status = MakeEnds(plan, options, ends, *impl);
    if (status.ok()) status = ExecuteKeeper([&ends, &pid](int keeper) { return Spawn(keeper, ends, pid); });
    if (!status.ok()) return status;
  }
  PinKeeper(pid, *impl);
  Process process = ProcessMaker::Make(impl);  // from here on, leaving ends and reaps the keeper

  wire::Message first = {};
  status = AwaitFirst(*impl, options.start_timeout, first);
  if (!status.ok()) return status;
  if (first.event == wire::Event::kFailed) return StatusOfFailure(plan.bytes(), first);
  if (first.event != wire::Event::kStarted || first.variant >= plan.variants().size()) {
    return absl::InternalError("the keeper sent a message that makes no sense");
  }
  impl->report = plan.variants()[first.variant].report;
  return process;
}

}  // namespace bulkhead::launcher
