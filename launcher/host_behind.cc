#include "bulkhead/launcher/host_behind.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/handover.h"

namespace bulkhead::launcher {
namespace {

struct PipeEnd {
  int fd;       // ours
  mode_t mode;  // of the link in /proc/PID/fd to the other end: how it is open (proc_pid_fd(5))
  bool is_pipe;
  struct stat status;
};

// 0: none, or not to be seen from here.
pid_t ParentOf(pid_t pid) {
  const UniqueFd stat(open(absl::StrCat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t bytes = stat.valid() ? read(stat.get(), text, sizeof text - 1) : -1;
  if (bytes <= 0) return 0;
  text[bytes] = '\0';
  const char* after_name = strrchr(text, ')');  // a name may hold anything
  int parent = 0;
  return after_name != nullptr && sscanf(after_name, ") %*c %d", &parent) == 1 ? parent : 0;
}

bool HoldsOneOf(pid_t pid, const PipeEnd (&ends)[2]) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(absl::StrCat("/proc/", pid, "/fd").c_str()), &closedir);
  if (folder == nullptr) return false;
  while (const dirent* entry = readdir(folder.get())) {
    struct stat found, link;
    if (fstatat(dirfd(folder.get()), entry->d_name, &found, 0) != 0 || !S_ISFIFO(found.st_mode)) continue;
    for (const PipeEnd& end : ends) {
      if (!end.is_pipe || found.st_dev != end.status.st_dev || found.st_ino != end.status.st_ino) continue;
      if (fstatat(dirfd(folder.get()), entry->d_name, &link, AT_SYMLINK_NOFOLLOW) == 0 && (link.st_mode & end.mode)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

UniqueFd OpenHostBehindParent() {
  PipeEnd ends[2] = {{STDIN_FILENO, S_IWUSR, false, {}}, {STDOUT_FILENO, S_IRUSR, false, {}}};
  for (PipeEnd& end : ends) end.is_pipe = fstat(end.fd, &end.status) == 0 && S_ISFIFO(end.status.st_mode);
  if (!ends[0].is_pipe && !ends[1].is_pipe) return UniqueFd();
  pid_t pid = getppid();
  if (pid <= 1 || HoldsOneOf(pid, ends)) return UniqueFd();
  for (int above = 0; above < kAncestorsMax; ++above) {
    const pid_t parent = ParentOf(pid);
    if (parent <= 1) break;  // the end of PID 1 is that of everything
    UniqueFd pidfd = OpenPidFd(parent);
    // The number may have become another's before it was opened; then the child has another parent.
    if (!pidfd.valid() || ParentOf(pid) != parent) break;
    if (HoldsOneOf(parent, ends)) return pidfd;
    pid = parent;
  }
  return UniqueFd();
}

}  // namespace bulkhead::launcher
