// BecomeKeeper: `bulkhead run` turns into the keeper by exec, so that nothing of the command stays in memory.
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/cgroup.h"
#include "bulkhead/launcher/folders.h"
#include "bulkhead/launcher/handover.h"
#include "bulkhead/launcher/host_behind.h"
#include "bulkhead/launcher/keeper_image.h"
#include "bulkhead/launcher/linux.h"
#include "bulkhead/launcher/process.h"
#include "bulkhead/launcher/secrets.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

constexpr char kWhat[] = "cannot become the keeper";

// Closed ones would otherwise be taken by the next files that are opened.
absl::Status FillStdio() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    if (open("/dev/null", O_RDWR) != fd) return OurError("cannot open \"/dev/null\" in place of closed stdio", errno);
  }
  return absl::OkStatus();
}

absl::StatusOr<UniqueFd> OpenReport(const std::string& path) {
  UniqueFd fd;
  if (path.empty()) return fd;
  // O_NONBLOCK: the open of a fifo must fail, not wait for a reader.
  fd.reset(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600));
  if (fd.valid() && MoveAboveTargets(fd)) return fd;
  const int error = errno;
  return absl::FailedPreconditionError(absl::StrCat("cannot write the report to ", policy::Quote(path), ": ",
                                                    error == ELOOP   ? "it is a symbolic link"
                                                    : error == ENXIO ? "it is a fifo that nobody reads"
                                                                     : strerror(error)));
}

// Empty when there is no parent to watch: PID 1 of a container has none, nor has a process whose parent is outside of
// its process id namespace. A parent that can't be watched is a refusal: the server would outlive a host that is
// killed.
absl::StatusOr<UniqueFd> OpenParent() {
  UniqueFd parent;
  const pid_t pid = getppid();
  if (pid == 0) return parent;
  parent = OpenPidFd(pid);
  const int error = parent.valid() ? 0 : errno;
  // The number may have become another's before it was opened; then our parent has changed as well.
  if (getppid() != pid) return absl::FailedPreconditionError(absl::StrCat(kWhat, ": the host is gone already"));
  if (error == 0) return parent;
  if (error != ENOSYS && error != EPERM) return OurError(kWhat, error);
  return absl::FailedPreconditionError(
      absl::StrCat(kWhat, ": the host can't be watched (pidfd_open: ", strerror(error),
                   "); Linux 5.3 has that call, and a container's system call filter has to let it pass"));
}

// Without close_range (before Linux 5.11, or where a container refuses it).
void SetCloexecOneByOne() {
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    const int fd = atoi(entry->path().filename().c_str());
    if (fd >= kFirstFreeFd) fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

// Puts each source, all of which are above the targets, where the keeper expects it, and lets nothing else through.
int Place(const UniqueFd (&sources)[kFirstFreeFd]) {
  for (int target = STDERR_FILENO + 1; target < kFirstFreeFd; ++target) {
    if (!sources[target].valid()) {
      close(target);
    } else if (dup2(sources[target].get(), target) < 0) {
      return errno;
    }
  }
  if (syscall(SYS_close_range, kFirstFreeFd, ~0u, CLOSE_RANGE_CLOEXEC) != 0) SetCloexecOneByOne();
  return 0;
}

int Execute(int keeper, const UniqueFd (&sources)[kFirstFreeFd]) {
  if (const int error = Place(sources); error != 0) return error;
  char name[] = "bulkhead";
  char* const argv[] = {name, nullptr};
  char* const envp[] = {nullptr};
  syscall(SYS_execveat, keeper, "", argv, envp, AT_EMPTY_PATH);
  return errno;
}

}  // namespace

absl::Status BecomeLinuxKeeper(const LaunchPlan& plan, const std::string& report_path) {
  absl::string_view bytes = plan.bytes();
  wire::Plan header;
  if (bytes.size() < sizeof(header)) return absl::InternalError(absl::StrCat(kWhat, ": the plan is cut short"));
  memcpy(&header, bytes.data(), sizeof(header));
  if ((header.flags & wire::kRunMode) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(kWhat, ": the plan was made for Launch; set PlanOptions::run_mode"));
  }

  signal(SIGXFSZ, SIG_IGN);  // setrlimit(2): a memfd counts for the host's RLIMIT_FSIZE; the keeper takes it back
  absl::Status status = FillStdio();
  if (status.ok()) status = MakeFolders(plan.folders_to_make());
  if (!status.ok()) return status;
  if (!plan.cgroup_folder().empty()) SweepCgroups(plan.cgroup_folder());
  // First: a descriptor that a secret comes from may have any number, also one of ours to be.
  absl::StatusOr<UniqueFd> secrets = SecretsPipe(plan.command().env);
  if (!secrets.ok()) return secrets.status();
  absl::StatusOr<UniqueFd> server_stderr = OpenServerStderr(plan.stderr_rules());
  if (!server_stderr.ok()) return server_stderr.status();
  absl::StatusOr<UniqueFd> report = OpenReport(report_path);
  if (!report.ok()) return report.status();
  absl::StatusOr<UniqueFd> parent = OpenParent();
  if (!parent.ok()) return parent.status();
  UniqueFd host = OpenHostBehindParent();

  if (parent->valid()) header.flags |= wire::kWatchParent;
  if (host.valid()) header.flags |= wire::kWatchHost;
  if (report->valid()) header.flags |= wire::kHasReport;
  const absl::string_view head(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.remove_prefix(sizeof(header));
  UniqueFd sources[kFirstFreeFd];
  sources[wire::kPlanFd] = SealedMemfd("bulkhead-plan", {head, bytes}, MemfdUse::kRead);
  if (!sources[wire::kPlanFd].valid()) return OurError("cannot write the plan to a memfd (memfd_create)", errno);
  sources[wire::kControlFd] = *std::move(parent);
  sources[wire::kHostPidFd] = std::move(host);
  sources[wire::kReportFd] = *std::move(report);
  sources[wire::kServerStderrFd] = *std::move(server_stderr);
  sources[wire::kSecretsFd] = *std::move(secrets);
  return ExecuteKeeper([&sources](int keeper) { return Execute(keeper, sources); });
}

}  // namespace bulkhead::launcher
