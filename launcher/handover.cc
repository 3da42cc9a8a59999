#include "bulkhead/launcher/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

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

absl::StatusOr<UniqueFd> OpenStderrFile(const std::string& path) {
  const auto refuse = [&path](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat("cannot append the server's stderr to \"", path, "\": ", why));
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

bool IsFolder(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// 0 or errno. `mode` and `owner` count for root only; another's folders are 0700 and his own.
int MakeFolder(const std::string& path, mode_t mode, const std::optional<FolderToMake::Owner>& owner) {
  if (IsFolder(path)) return 0;
  if (mkdir(path.c_str(), 0700) != 0) {
    const int error = errno;
    return error == EEXIST && IsFolder(path) ? 0 : error;  // another launch may have been faster
  }
  if (geteuid() != 0) return 0;
  // By descriptor: what is at the path may have been replaced by someone who may write above it. fchmod, because the
  // umask counts for mkdir.
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (!fd.valid() || fstat(fd.get(), &info) != 0) return errno;
  if (info.st_uid != 0) return EPERM;
  if (fchmod(fd.get(), mode) != 0) return errno;
  return owner.has_value() && fchown(fd.get(), owner->uid, owner->gid) != 0 ? errno : 0;
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

absl::Status OurError(absl::string_view what, int error) {
  const std::string text = absl::StrCat(what, ": ", strerror(error));
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
    case ENOSPC:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::InternalError(text);
  }
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

absl::Status MakeFolders(const std::vector<FolderToMake>& folders) {
  for (const FolderToMake& folder : folders) {
    size_t end = 0;
    do {
      end = folder.path.find('/', end + 1);
      const bool is_last = end == std::string::npos;
      const std::string part = folder.path.substr(0, end);
      const int error = MakeFolder(part, is_last ? 0700 : 0755, is_last ? folder.owner : std::nullopt);
      if (error == 0) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot make the folder \"", part, "\": ", error == EEXIST ? "something else is there" : strerror(error)));
    } while (end != std::string::npos);
  }
  return absl::OkStatus();
}

}  // namespace bulkhead::launcher
