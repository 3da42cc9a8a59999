#include "bulkhead/launcher/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

// From linux/memfd.h of Linux 6.3, and linux/fcntl.h; older headers lack some.
constexpr unsigned kMfdCloexec = 1, kMfdAllowSealing = 2, kMfdNoexecSeal = 8, kMfdExec = 16;
constexpr int kAllSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

bool WriteAll(int fd, absl::string_view content) {
  while (!content.empty()) {
    const ssize_t count = write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    content.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

// setrlimit(2): what goes beyond RLIMIT_FSIZE, which counts for memfds too, is answered by SIGXFSZ and by EFBIG. While
// one of these lives, the calling thread has the error alone.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &old_);
  }
  ~NoFileSizeSignal() {
    const int error = errno;
    const timespec now = {0, 0};
    sigtimedwait(&signal_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
    errno = error;
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t signal_, old_;
};

absl::StatusOr<UniqueFd> OpenStderrFile(const std::string& path) {
  const auto refuse = [&path](absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot append the server's stderr to ", policy::Quote(path), ": ", why));
  };
  // O_NONBLOCK: the open of a fifo must fail, not wait for a reader.
  UniqueFd fd = OpenWithoutLinks(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
  if (!fd.valid() && errno == ELOOP) return refuse("there is a symbolic link in it; write the path without links");
  if (!fd.valid() && errno == ENXIO) return refuse("it is not a regular file");
  if (!fd.valid()) return refuse(strerror(errno));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return refuse(strerror(errno));
  if (!S_ISREG(info.st_mode)) return refuse("it is not a regular file");
  if (fcntl(fd.get(), F_SETFL, O_APPEND) != 0 || !MoveAboveTargets(fd)) return refuse(strerror(errno));
  return fd;
}

}  // namespace

UniqueFd OpenWithoutLinks(const std::string& path, int flags, mode_t mode) {
  open_how how = {};
  how.flags = static_cast<unsigned>(flags);
  how.mode = mode;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const long fd = syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof(how));
  if (fd >= 0 || errno != ENOSYS) return UniqueFd(static_cast<int>(fd));
  return UniqueFd(open(path.c_str(), flags | O_NOFOLLOW, mode));  // before Linux 5.6
}

UniqueFd DuplicateAboveTargets(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd));
  // fcntl(2): EINVAL where the first number to try is above RLIMIT_NOFILE.
  if (!copy.valid() && errno == EINVAL) errno = EMFILE;
  return copy;
}

bool MoveAboveTargets(UniqueFd& fd) {
  if (fd.get() >= kFirstFreeFd) return true;
  UniqueFd moved = DuplicateAboveTargets(fd.get());
  if (!moved.valid()) return false;
  fd = std::move(moved);
  return true;
}

UniqueFd SealedMemfd(const char* name, std::initializer_list<absl::string_view> parts, MemfdUse use) {
  const unsigned flags = kMfdCloexec | kMfdAllowSealing;
  const unsigned mode = use == MemfdUse::kExecute ? kMfdExec : kMfdNoexecSeal;
  long made = syscall(SYS_memfd_create, name, flags | mode);
  if (made < 0 && errno == EINVAL) made = syscall(SYS_memfd_create, name, flags);  // before Linux 6.3
  UniqueFd fd(static_cast<int>(made));
  const NoFileSizeSignal no_signal;
  bool complete = fd.valid();
  for (const absl::string_view part : parts) complete = complete && WriteAll(fd.get(), part);
  if (!complete || fcntl(fd.get(), F_ADD_SEALS, kAllSeals) != 0 || !MoveAboveTargets(fd)) fd.reset();
  return fd;
}

UniqueFd OpenPidFd(pid_t pid) {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (fd.valid() && !MoveAboveTargets(fd)) fd.reset();
  return fd;
}

UniqueFd OpenNull() {
  UniqueFd fd(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (fd.valid() && !MoveAboveTargets(fd)) fd.reset();
  return fd;
}

absl::StatusOr<UniqueFd> OpenServerStderr(const policy::StderrRules& rules) {
  UniqueFd fd;
  switch (rules.mode) {
    case policy::StderrMode::kInherit:
      break;
    case policy::StderrMode::kDiscard:
      fd = OpenNull();
      if (!fd.valid()) return OurError("cannot open \"/dev/null\" for the server's stderr", errno);
      break;
    case policy::StderrMode::kFile:
      return OpenStderrFile(rules.file);
  }
  return fd;
}

}  // namespace bulkhead::launcher
