#include "bulkhead/launcher/folders.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/unique_fd.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

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

absl::Status MakeFolders(const std::vector<FolderToMake>& folders) {
  for (const FolderToMake& folder : folders) {
    size_t end = 0;
    do {
      end = folder.path.find('/', end + 1);
      const bool is_last = end == std::string::npos;
      const std::string part = folder.path.substr(0, end);
      const int error = MakeFolder(part, is_last ? 0700 : 0755, is_last ? folder.owner : std::nullopt);
      if (error == 0) continue;
      const std::string why =
          error == EEXIST ? "something else is there"
                          : absl::StrCat(strerror(error), "; XDG_CACHE_HOME chooses another place for ${cache}");
      return absl::FailedPreconditionError(absl::StrCat("cannot make the folder ", policy::Quote(part), ": ", why));
    } while (end != std::string::npos);
  }
  return absl::OkStatus();
}

}  // namespace bulkhead::launcher
