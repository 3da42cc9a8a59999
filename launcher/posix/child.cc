#include "bulkhead/launcher/posix/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/errors.h"
#include "bulkhead/launcher/posix/plan.h"
#include "bulkhead/launcher/waitable_process.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

// How long the killed of a group are given to be gone, after which the end is reported all the same: whoever adopts
// orphans may never reap them.
constexpr std::chrono::milliseconds kGroupGoneTime(200);
// No system call waits for processes that are not our children, so whether they are gone is asked for, this often.
constexpr std::chrono::milliseconds kGroupAskedEvery(1);

// What the child did when it failed.
enum class Step : int { kSession, kUser, kLimit, kFolder, kStdio, kExec };
struct Failure {
  Step step;
  int error;
};

// All that the child needs, gathered before it exists.
struct ChildPlan {
  const PosixPlan& posix;
  const char* program;
  const char* cwd;
  std::vector<char*> argv, envp;
  int in, out, err;  // above kFailureFd
  int failure;       // the writing end of a pipe, above kFailureFd
};

constexpr int kFailureFd = 3;

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Closes every descriptor from `first` on.
void CloseFrom(int first) {
#if defined(__FreeBSD__) || defined(__OpenBSD__) || defined(__NetBSD__) || defined(__DragonFly__) || \
    (defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34))
  closefrom(first);
#else
  const long count = sysconf(_SC_OPEN_MAX);
  for (long fd = first; fd < (count < 0 ? 65536 : count); ++fd) close(static_cast<int>(fd));
#endif
}

// exec keeps what is ignored, and what is blocked.
void ResetSignals() {
#ifdef NSIG
  constexpr int kSignals = NSIG;
#else
  constexpr int kSignals = 65;
#endif
  for (int signal = 1; signal < kSignals; ++signal) {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);  // fails for those that can't be changed
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool Become(const Account& account) {
  const gid_t gid = account.gid;
  return setgroups(1, &gid) == 0 && setgid(account.gid) == 0 && setuid(account.uid) == 0;
}

// A limit above the hard one is what there is: only root could have more, and less was not asked for.
bool Limit(const PosixPlan::Limit& limit) {
  struct rlimit now;
  if (getrlimit(limit.resource, &now) != 0) return false;
  rlim_t value = limit.value;
  if (now.rlim_max != RLIM_INFINITY) value = std::min(value, now.rlim_max);
  const struct rlimit wanted = {value, value};
  return setrlimit(limit.resource, &wanted) == 0;
}

// Runs in the child, which may share the host's memory: system calls on values that are there already, nothing else.
[[noreturn]] void ExecInChild(const ChildPlan& plan) {
  Step step = Step::kSession;
  int failure = plan.failure;
  const auto fail = [&step, &failure] {
    const Failure what = {step, errno};
    (void)!write(failure, &what, sizeof(what));
    _exit(125);
  };
  if (setsid() < 0) fail();
  ResetSignals();
  step = Step::kStdio;
  if (dup2(plan.in, 0) < 0 || dup2(plan.out, 1) < 0 || dup2(plan.err, 2) < 0 || dup2(plan.failure, kFailureFd) < 0) {
    fail();
  }
  failure = kFailureFd;
  if (fcntl(kFailureFd, F_SETFD, FD_CLOEXEC) != 0) fail();
  CloseFrom(kFailureFd + 1);
  step = Step::kLimit;
  for (const PosixPlan::Limit& limit : plan.posix.limits) {
    if (!Limit(limit)) fail();
  }
  step = Step::kUser;
  if (plan.posix.account.has_value() && !Become(*plan.posix.account)) fail();
  step = Step::kFolder;
  if (chdir(plan.cwd) != 0) fail();
  step = Step::kExec;
  execve(plan.program, plan.argv.data(), plan.envp.data());
  fail();
  _exit(125);
}

// vfork: the host's size does not matter, and no copy of it runs. Where the child changes its user, fork: the C
// library's setuid tells all threads of a process, which in a child of vfork are the host's.
[[gnu::noinline]] pid_t Spawn(const ChildPlan& plan) {
  const SignalsBlocked blocked;  // no handler of the host's runs in the child
  const pid_t child = plan.posix.account.has_value() ? fork() : vfork();
  if (child == 0) ExecInChild(plan);
  return child;
}

absl::Status StatusOf(const Failure& failure, const LaunchPlan& plan, const char* cwd) {
  const char* const error = strerror(failure.error);
  switch (failure.step) {
    case Step::kSession:
      return OurError("cannot give the server a session of its own", failure.error);
    case Step::kUser:
      return OurError("cannot become the server's user", failure.error);
    case Step::kLimit:
      return OurError("cannot set the server's limits", failure.error);
    case Step::kStdio:
      return OurError("cannot give the server its stdio", failure.error);
    case Step::kFolder:
      return absl::PermissionDeniedError(
          absl::StrCat("cannot use the working folder ", policy::Quote(cwd), ": ", error));
    case Step::kExec:
      if (failure.error == ENOENT) {
        return absl::PermissionDeniedError(absl::StrCat("cannot run ", policy::Quote(plan.program()),
                                                        ": its loader, or its interpreter's, is not there"));
      }
      if (failure.error == EACCES || failure.error == ENOEXEC || failure.error == EPERM) {
        return absl::PermissionDeniedError(absl::StrCat("cannot run ", policy::Quote(plan.program()), ": ", error));
      }
      return OurError(absl::StrCat("cannot run ", policy::Quote(plan.program())), failure.error);
  }
  return absl::InternalError("the child sent what makes no sense");
}

// A pipe whose ends are above the server's descriptors, with CLOEXEC.
bool MakePipe(UniqueFd& reader, UniqueFd& writer) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const UniqueFd first(ends[0]), second(ends[1]);
  reader.reset(fcntl(first.get(), F_DUPFD_CLOEXEC, kFailureFd + 1));
  writer.reset(fcntl(second.get(), F_DUPFD_CLOEXEC, kFailureFd + 1));
  return reader.valid() && writer.valid();
}

// Until the child's exec has succeeded (0 bytes), or it says why not, or the time is over (ETIMEDOUT).
int AwaitExec(int reader, absl::Duration timeout, std::optional<Failure>& failure) {
  const auto deadline =
      std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(std::min(timeout, absl::Hours(24)));
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd poll_fd = {reader, POLLIN, 0};
    if (left <= 0) return ETIMEDOUT;
    if (poll(&poll_fd, 1, static_cast<int>(left)) <= 0) continue;
    Failure what;
    const ssize_t count = read(reader, &what, sizeof(what));
    if (count < 0 && errno == EINTR) continue;
    if (count == sizeof(what)) failure = what;
    return count < 0 ? errno : 0;
  }
}

std::string MakePrivateFolder(const PosixPlan& plan) {
  std::string path = "/tmp/bulkhead-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) return "";
  const std::string tmp = path + "/tmp";
  bool made = mkdir(tmp.c_str(), 0700) == 0;
  if (plan.account.has_value()) {
    made = made && chown(tmp.c_str(), plan.account->uid, plan.account->gid) == 0 &&
           chown(path.c_str(), plan.account->uid, plan.account->gid) == 0;
  }
  if (made) return path;
  const int error = errno;
  rmdir(tmp.c_str());
  rmdir(path.c_str());
  errno = error;
  return "";
}

void RemovePrivateFolder(const std::string& path) {
  std::error_code error;
  if (!path.empty()) std::filesystem::remove_all(path, error);  // follows no links
}

// The kernel would reap the leader by itself, and its number be free for others while we mean to kill its group.
bool ChildrenAreReapedByOthers() {
  struct sigaction action;
  return sigaction(SIGCHLD, nullptr, &action) == 0 &&
         (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0);
}

ExitStatus ToExitStatus(int wait_status, const struct rusage& usage) {
  ExitStatus status;
  if (WIFSIGNALED(wait_status)) {
    status.kind = ExitStatus::Kind::kSignaled;
    status.signal = WTERMSIG(wait_status);
  } else {
    status.code = WEXITSTATUS(wait_status);
  }
  status.user_time = absl::DurationFromTimeval(usage.ru_utime);
  status.system_time = absl::DurationFromTimeval(usage.ru_stime);
#ifdef __APPLE__
  status.max_resident_bytes = static_cast<std::uint64_t>(usage.ru_maxrss);
#else
  status.max_resident_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
#endif
  return status;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Child>> Child::Start(const LaunchPlan& plan, const Stdio& stdio,
                                                    absl::Duration timeout) {
  const PosixPlan& posix = *plan.posix();
  if (ChildrenAreReapedByOthers()) {
    return absl::FailedPreconditionError(
        "the portable backend needs SIGCHLD not to be ignored (sigaction: SIG_IGN or SA_NOCLDWAIT), or it can't end a "
        "server's process group safely");
  }
  std::shared_ptr<Child> child(new Child);
  child->stdin_grace_ = posix.stdin_grace;
  child->term_grace_ = posix.term_grace;
  UniqueFd reader, writer;
  if (!MakePipe(child->end_reader_, child->end_writer_) || !MakePipe(reader, writer)) {
    return OurError("cannot make the server's pipes", errno);
  }
  std::vector<std::string> env = posix.env;
  if (posix.has_private_folder()) {
    child->private_folder_ = MakePrivateFolder(posix);
    if (child->private_folder_.empty()) return OurError("cannot make the server's private folder in /tmp", errno);
    if (posix.private_home) env.push_back(absl::StrCat("HOME=", child->private_folder_));
    if (posix.private_tmp) env.push_back(absl::StrCat("TMPDIR=", child->private_folder_, "/tmp"));
  }
  const std::string cwd = !posix.cwd.empty()                ? posix.cwd
                          : !child->private_folder_.empty() ? child->private_folder_
                                                            : "/";
  const ChildPlan child_plan = {posix,         plan.program().c_str(), cwd.c_str(),     Pointers(plan.command().argv),
                                Pointers(env), stdio.in.get(),         stdio.out.get(), stdio.err.get(),
                                writer.get()};
  child->pid_ = Spawn(child_plan);
  const int spawn_error = errno;
  writer.reset();
  std::optional<Failure> failure;
  int error = 0;
  if (child->pid_ > 0) error = AwaitExec(reader.get(), timeout, failure);
  if (child->pid_ > 0 && error == 0 && !failure.has_value()) {
    const SignalsBlocked blocked;
    std::thread([child] { child->Watch(); }).detach();
    return child;
  }
  if (child->pid_ > 0) {
    kill(child->pid_, SIGKILL);
    while (waitpid(child->pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  RemovePrivateFolder(child->private_folder_);
  if (child->pid_ < 0) return OurError("cannot start a process", spawn_error);
  if (error == ETIMEDOUT) {
    return absl::DeadlineExceededError(absl::StrCat("the server did not start within ", absl::FormatDuration(timeout)));
  }
  if (error != 0) return OurError("cannot hear from the server's process", error);
  return StatusOf(*failure, plan, cwd.c_str());
}

void Child::Watch() {
  // WNOWAIT keeps the leader a zombie, so that its group's number can't be reused between learning of its end and
  // killing what is left of the group.
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  ExitStatus status;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    int wait_status = 0;
    struct rusage usage = {};
    // Not a zombie of ours any more: somebody else reaped it, and the number means nothing.
    siginfo_t still = {};
    const bool ours = waitid(P_PID, static_cast<id_t>(pid_), &still, WEXITED | WNOWAIT | WNOHANG) == 0;
    if (ours) kill(-pid_, SIGKILL);
    pid_t reaped = -1;
    while (ours && (reaped = wait4(pid_, &wait_status, 0, &usage)) < 0 && errno == EINTR) {
    }
    leader_gone_ = true;
    status = ToExitStatus(wait_status, usage);
    if (reaped != pid_) status.kind = ExitStatus::Kind::kKeeperLost;
  }
  // Signal 0 hurts nobody, whoever has the number now.
  const auto deadline = std::chrono::steady_clock::now() + kGroupGoneTime;
  while (kill(-pid_, 0) == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kGroupAskedEvery);  // the reason: see kGroupAskedEvery
  }
  RemovePrivateFolder(private_folder_);
  const std::lock_guard<std::mutex> lock(mutex_);
  result_ = status;
  ended_.notify_all();
  // A byte, and not the end of the pipe: a fork of the host has the other end, too.
  (void)!write(end_writer_.get(), "", 1);
}

std::optional<ExitStatus> Child::result() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return result_;
}

void Child::Signal(int signal) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!leader_gone_) kill(-pid_, signal);
}

bool Child::LivesAfter(absl::Duration time) {
  std::unique_lock<std::mutex> lock(mutex_);
  return !ended_.wait_for(lock, absl::ToChronoMilliseconds(time), [this] { return result_.has_value(); });
}

void Child::RunLadder(From from) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (on_ladder_) return;
    on_ladder_ = true;
  }
  if (from == From::kStdinClosed && !LivesAfter(stdin_grace_)) return;
  Signal(SIGTERM);
  Signal(SIGCONT);  // one that is stopped would not hear it
  if (LivesAfter(term_grace_)) Signal(SIGKILL);
}

void Child::StartLadder(const std::shared_ptr<Child>& child, From from) {
  const SignalsBlocked blocked;
  std::thread([child, from] { child->RunLadder(from); }).detach();
}

}  // namespace bulkhead::launcher
