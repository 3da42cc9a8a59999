// Launch: from a plan to a running server.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/system_executor.hpp"
#include "bulkhead/launcher/failure.h"
#include "bulkhead/launcher/handover.h"
#include "bulkhead/launcher/keeper_image.h"
#include "bulkhead/launcher/process.h"
#include "bulkhead/launcher/process_impl.h"

namespace bulkhead::launcher {
namespace {

using Impl = ProcessMaker::Impl;
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
  ends.fd[STDERR_FILENO].reset(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, kFirstFreeFd));
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
  absl::Status status = MakePipe(ends.fd[STDIN_FILENO], impl.in);
  if (status.ok()) status = MakePipe(impl.out, ends.fd[STDOUT_FILENO]);
  if (status.ok()) status = MakeStderr(plan.stderr_rules(), options.stderr_to, ends, impl);
  if (status.ok()) status = MakeControl(ends, impl);
  if (!status.ok()) return status;
  ends.fd[wire::kPlanFd] = SealedMemfd("bulkhead-plan", plan.bytes(), MemfdUse::kRead);
  if (!ends.fd[wire::kPlanFd].valid()) return OurError("cannot write the plan to a memfd", errno);
  return absl::OkStatus();
}

// posix_spawn and not fork: nothing of ours runs in a copy of the host, and the host's size does not matter. Returns
// errno. Ignored signals stay ignored until the keeper resets them.
int Spawn(int keeper_fd, const Ends& ends, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  int error = posix_spawn_file_actions_init(&actions);
  if (error != 0) return error;
  error = posix_spawnattr_init(&attributes);
  if (error != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return error;
  }
  for (int target = 0; target < kFirstFreeFd && error == 0; ++target) {
    const int source = ends.fd[target].get();
    // What the host has there itself, without CLOEXEC, is not for the keeper.
    error = source >= 0 ? posix_spawn_file_actions_adddup2(&actions, source, target)
                        : posix_spawn_file_actions_addclose(&actions, target);
  }
  sigset_t none;
  sigemptyset(&none);
  if (error == 0) error = posix_spawnattr_setsigmask(&attributes, &none);
  if (error == 0) error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  char path[32];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", keeper_fd);
  char name[] = "bulkhead-keeper";
  char* const argv[] = {name, nullptr};
  char* const envp[] = {nullptr};
  if (error == 0) error = posix_spawn(&pid, path, &actions, &attributes, argv, envp);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
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

absl::StatusOr<Process> Launch(const LaunchPlan& plan, asio::any_io_executor executor, const LaunchOptions& options) {
  absl::Status status = MakeFolders(plan.folders_to_make());
  if (!status.ok()) return status;
  auto impl = std::make_shared<Impl>();
  impl->owner = getpid();
  impl->executor = std::move(executor);
  impl->stop_time_max = StopTime(plan);

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

absl::StatusOr<Process> Launch(const LaunchPlan& plan, const LaunchOptions& options) {
  return Launch(plan, asio::system_executor(), options);
}

}  // namespace bulkhead::launcher
