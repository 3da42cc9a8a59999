// RunPosix: `bulkhead run`. This process stays beside the server, with the server's stdio as its own, and does what the
// keeper does on Linux as far as POSIX lets it.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/errors.h"
#include "bulkhead/launcher/folders.h"
#include "bulkhead/launcher/posix/child.h"
#include "bulkhead/launcher/posix/exit_watch.h"
#include "bulkhead/launcher/posix/plan.h"
#include "bulkhead/launcher/posix/posix.h"
#include "bulkhead/launcher/posix/stdio.h"
#include "bulkhead/launcher/report_json.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

// How often it is asked whether the parent is still there, where the system has nothing to wait on.
constexpr int kParentCheckMs = 250;
// A socket whose other end is shut down for writing: others than Linux and FreeBSD say POLLHUP of it, or nothing.
#ifdef POLLRDHUP
constexpr short kNoMoreInput = POLLRDHUP;
#else
constexpr short kNoMoreInput = 0;
#endif
constexpr absl::Duration kStartTimeout = absl::Seconds(60);

int signal_pipe = -1;  // for the handler; set once, before it is installed

void OnSignal(int) {
  const int error = errno;
  (void)!write(signal_pipe, "", 1);
  errno = error;
}

void Handle(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

absl::Status CatchSignals(UniqueFd& reader) {
  int ends[2];
  if (pipe(ends) != 0) return OurError("cannot make a pipe", errno);
  const UniqueFd first(ends[0]), second(ends[1]);
  reader = CopyAboveStdio(first.get());
  UniqueFd writer = CopyAboveStdio(second.get());
  if (!reader.valid() || !writer.valid()) return OurError("cannot make a pipe", errno);
  fcntl(writer.get(), F_SETFL, O_NONBLOCK);
  signal_pipe = writer.release();  // open until this process ends
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) Handle(signal, OnSignal);
  for (const int signal : {SIGTSTP, SIGTTIN, SIGTTOU, SIGPIPE}) Handle(signal, SIG_IGN);
  Handle(SIGCHLD, SIG_DFL);  // the host may have left it ignored
  return absl::OkStatus();
}

// Runs the ladder when it should be run, until the server's end.
void Supervise(const std::shared_ptr<Child>& child, int signals, pid_t parent) {
  bool ended = false, asked = false, host_gone = false, stdin_gone = false, stdout_gone = false;
  const UniqueFd parent_exit = WatchExit(parent);
  const int look_again_ms = parent_exit.valid() ? -1 : kParentCheckMs;
  int timeout_ms = 0;  // looks at the parent once after the watch has begun
  while (!ended) {
    // POLLHUP and POLLERR come unasked. A descriptor that said so once is not asked again.
    pollfd polls[] = {{child->end_fd(), POLLIN, 0},
                      {signals, POLLIN, 0},
                      {stdin_gone ? -1 : STDIN_FILENO, kNoMoreInput, 0},
                      {stdout_gone ? -1 : STDOUT_FILENO, 0, 0},
                      {host_gone || !parent_exit.valid() ? -1 : parent_exit.get(), POLLIN, 0}};
    poll(polls, 5, timeout_ms);
    timeout_ms = host_gone ? -1 : look_again_ms;
    ended = polls[0].revents != 0;
    char byte;
    if (polls[1].revents != 0 && read(signals, &byte, 1) == 1) {
      if (asked) {
        child->Signal(SIGKILL);
      } else {
        Child::StartLadder(child, Child::From::kTerm);
      }
      asked = true;
    }
    stdin_gone = stdin_gone || polls[2].revents != 0;
    stdout_gone = stdout_gone || polls[3].revents != 0;
    const bool parent_gone = polls[4].revents != 0 || getppid() != parent;
    if (host_gone || (!parent_gone && !(stdin_gone && stdout_gone))) continue;
    host_gone = true;
    Child::StartLadder(child, Child::From::kStdinClosed);
  }
}

void WriteAll(int fd, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t count = write(fd, text.data() + at, text.size() - at);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) at += static_cast<std::size_t>(count);
  }
}

std::string ReportTail(const ExitStatus& status) {
  const bool exited = status.kind == ExitStatus::Kind::kExited;
  return absl::StrCat(",\"exit\":{\"", exited ? "code" : "signal",
                      "\":", exited ? status.code : status.shell_code() - 128,
                      "},\"usage\":{\"user_us\":", absl::ToInt64Microseconds(status.user_time),
                      ",\"system_us\":", absl::ToInt64Microseconds(status.system_time),
                      ",\"max_resident_bytes\":", status.max_resident_bytes, "}}\n");
}

}  // namespace

absl::Status RunPosix(const LaunchPlan& plan, const std::string& report_path) {
  if (!plan.posix()->run_mode) {
    return absl::InvalidArgumentError(
        "cannot become the keeper: the plan was made for Launch; set PlanOptions::run_mode");
  }
  const pid_t parent = getppid();  // before the server runs: the host may be killed as soon as it does
  absl::Status status = MakeFolders(plan.folders_to_make());
  if (!status.ok()) return status;
  UniqueFd report;
  if (!report_path.empty()) {
    // O_NONBLOCK: the open of a fifo must fail, not wait for a reader.
    report.reset(
        open(report_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600));
    if (!report.valid()) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot write the report to ", policy::Quote(report_path), ": ", strerror(errno)));
    }
  }
  absl::StatusOr<UniqueFd> err = OpenPosixStderr(plan.stderr_rules());
  if (!err.ok()) return err.status();
  UniqueFd signals;
  status = CatchSignals(signals);
  if (!status.ok()) return status;
  Stdio stdio{CopyAboveStdio(STDIN_FILENO), CopyAboveStdio(STDOUT_FILENO), *std::move(err)};
  if (!stdio.in.valid() || !stdio.out.valid()) return OurError("cannot pass stdio to the server", errno);
  const absl::StatusOr<std::shared_ptr<Child>> child = Child::Start(plan, stdio, kStartTimeout);
  if (!child.ok()) return child.status();
  stdio = {};
  Supervise(*child, signals.get(), parent);
  const ExitStatus end = (*child)->result().value_or(ExitStatus());
  if (report.valid()) {
    WriteAll(report.get(), absl::StrCat(ReportJsonHead(plan.variants()[0].report, plan.program()), ReportTail(end)));
  }
  _exit(end.shell_code());
}

}  // namespace bulkhead::launcher
