#include "bulkhead/launcher/keeper_image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bulkhead/launcher/handover.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

bool IsRefusal(int error) { return error == EACCES || error == EPERM; }

// The memfd that this process runs keepers from. A host may close descriptors that it doesn't know, so that the number
// alone proves nothing: whatever took its place must never be executed.
class KeeperMemfd {
 public:
  // The descriptor, or -1 and errno.
  int Get() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (fd_.valid() && !IsStillOurs()) (void)fd_.release();  // somebody else's by now
    if (!fd_.valid()) Make();
    return fd_.get();
  }

 private:
  bool IsStillOurs() const {
    struct stat now;
    return fstat(fd_.get(), &now) == 0 && now.st_dev == made_.st_dev && now.st_ino == made_.st_ino;
  }

  void Make() {
    UniqueFd fd = SealedMemfd("bulkhead-keeper", {KeeperBytes()}, MemfdUse::kExecute);
    if (fd.valid() && fstat(fd.get(), &made_) == 0) fd_ = std::move(fd);
  }

  std::mutex mutex_;
  UniqueFd fd_;
  struct stat made_ = {};
};

KeeperMemfd& ProcessKeeper() {
  // Never destroyed: a thread may launch while static objects are being destroyed.
  static KeeperMemfd* const keeper = new KeeperMemfd;
  return *keeper;
}

bool HoldsKeeperBytes(int fd) {
  absl::string_view expected = KeeperBytes();
  char block[4096];
  while (true) {
    const ssize_t count = read(fd, block, sizeof(block));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0 && expected.empty();
    const size_t size = static_cast<size_t>(count);
    if (expected.substr(0, size) != absl::string_view(block, size)) return false;
    expected.remove_prefix(size);
  }
}

}  // namespace

absl::StatusOr<UniqueFd> OpenInstalledKeeper(const std::string& path) {
  const auto refuse = [&path](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat(policy::Quote(path), " ", why));
  };
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return refuse(absl::StrCat("can't be opened: ", strerror(errno)));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return refuse(absl::StrCat("can't be examined: ", strerror(errno)));
  if (!S_ISREG(info.st_mode)) return refuse("is not a regular file");
  if (info.st_uid != 0) return refuse("does not belong to root");
  if ((info.st_mode & 022) != 0) return refuse("can be written by others than its owner");
  if (!HoldsKeeperBytes(fd.get())) return refuse("is not the keeper of this build");
  if (!MoveAboveTargets(fd)) return OurError("cannot start the keeper", errno);
  return fd;
}

absl::Status ExecuteKeeper(absl::FunctionRef<int(int fd)> execute) {
  const char* refused_call = "memfd_create";
  int error = 0;
  if (const int fd = ProcessKeeper().Get(); fd >= 0) {
    refused_call = "exec of a memfd";
    error = execute(fd);
    if (error == 0) return absl::OkStatus();
  } else {
    error = errno;
  }
  if (error == ENOENT) {
    return absl::FailedPreconditionError("cannot start the keeper: \"/proc\" is not mounted here; mount it");
  }
  if (!IsRefusal(error)) return OurError("cannot start the keeper", error);

  std::string why_not;
  for (const char* path : kInstalledKeepers) {
    absl::StatusOr<UniqueFd> installed = OpenInstalledKeeper(path);
    int installed_error = 0;
    if (installed.ok()) {
      installed_error = execute(installed->get());
      if (installed_error == 0) return absl::OkStatus();
    }
    absl::StrAppend(&why_not, why_not.empty() ? "" : "; ",
                    installed.ok() ? absl::StrCat(policy::Quote(path), " can't be run: ", strerror(installed_error))
                                   : std::string(installed.status().message()));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("cannot start the keeper: this system does not let a program be run from memory (", refused_call,
                   ": ", strerror(error), "), and no installed copy can be used: ", why_not,
                   "; install this build's keeper as ", policy::Quote(kInstalledKeepers[0]),
                   ", owned by root with mode 0755, or set the sysctl vm.memfd_noexec to 0 or 1"));
}

}  // namespace bulkhead::launcher
