#include "bulkhead/launcher/posix/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bulkhead/launcher/errors.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

// One component at a time, each without following a link.
UniqueFd OpenAppendWithoutLinks(const std::string& path) {
  UniqueFd folder(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  for (std::size_t i = 0; i + 1 < parts.size() && folder.valid(); ++i) {
    folder.reset(openat(folder.get(), parts[i].c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!folder.valid() || parts.empty()) return UniqueFd();
  // O_NONBLOCK: the open of a fifo must fail, not wait for a reader.
  return UniqueFd(openat(folder.get(), parts.back().c_str(),
                         O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
}

absl::StatusOr<UniqueFd> OpenFile(const std::string& path) {
  const auto refuse = [&path](absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot append the server's stderr to ", policy::Quote(path), ": ", why));
  };
  UniqueFd fd = OpenAppendWithoutLinks(path);
  // ENOTDIR: so says Linux of a link where a folder is expected.
  if (!fd.valid() && (errno == ELOOP || errno == EMLINK || errno == ENOTDIR)) {
    return refuse("there is a symbolic link in it, or a file where a folder should be; write the path without links");
  }
  if (!fd.valid() && errno == ENXIO) return refuse("it is not a regular file");
  if (!fd.valid()) return refuse(strerror(errno));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return refuse(strerror(errno));
  if (!S_ISREG(info.st_mode)) return refuse("it is not a regular file");
  if (fcntl(fd.get(), F_SETFL, O_APPEND) != 0) return refuse(strerror(errno));
  return fd;
}

}  // namespace

UniqueFd CopyAboveStdio(int fd) { return UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 4)); }

absl::StatusOr<UniqueFd> OpenPosixStderr(const policy::StderrRules& rules) {
  UniqueFd fd;
  switch (rules.mode) {
    case policy::StderrMode::kInherit:
      fd = CopyAboveStdio(STDERR_FILENO);
      if (fd.valid() || errno != EBADF) break;
      [[fallthrough]];  // ours is closed
    case policy::StderrMode::kDiscard:
      fd.reset(open("/dev/null", O_RDWR | O_CLOEXEC));
      break;
    case policy::StderrMode::kFile: {
      absl::StatusOr<UniqueFd> file = OpenFile(rules.file);
      if (!file.ok()) return file.status();
      fd = *std::move(file);
      break;
    }
  }
  if (fd.valid()) fd = CopyAboveStdio(fd.get());
  if (!fd.valid()) return OurError("cannot open the server's stderr", errno);
  return fd;
}

}  // namespace bulkhead::launcher
