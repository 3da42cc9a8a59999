#include "bulkhead/launcher/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {
namespace {

// Goes through a tree by descriptors, one name at a time: a path can be longer than the kernel takes (PATH_MAX), and a
// tree deeper than there are descriptors. So the way back is "..", and what was left is known again by its inode.
class PrivilegedSearch {
 public:
  explicit PrivilegedSearch(int entries_max) : entries_left_(entries_max) {}

  PrivilegedFile Run(const std::string& folder, bool& complete) {
    complete = true;
    struct stat top;
    if (lstat(folder.c_str(), &top) != 0) return {};
    if (S_ISREG(top.st_mode)) {
      Look(AT_FDCWD, folder, top);
      if (!found_.path.empty()) found_.path = folder;
      return found_;
    }
    at_.reset(open(folder.c_str(), kFolder));
    bool goes_on = at_.valid() && Enter(std::string());
    while (goes_on && found_.path.empty() && !levels_.empty()) goes_on = Step();
    complete = goes_on && all_;
    if (!found_.path.empty()) found_.path = absl::StrCat(folder, Path(), "/", found_.path);
    return found_;
  }

 private:
  static constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

  struct Level {
    std::string name;
    struct statx info;
    std::vector<std::string> folders;  // to be entered yet
  };

  std::string Path() const {
    std::string path;
    for (std::size_t i = 1; i < levels_.size(); ++i) absl::StrAppend(&path, "/", levels_[i].name);
    return path;
  }

  static bool IsSame(const struct statx& a, const struct statx& b) {
    return a.stx_ino == b.stx_ino && a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor;
  }

  bool Identify(struct statx* info) const {
    return statx(at_.get(), "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, info) == 0;
  }

  // One folder down, or back up. False: it can't go on.
  bool Step() {
    if (!levels_.back().folders.empty()) {
      const std::string name = std::move(levels_.back().folders.back());
      levels_.back().folders.pop_back();
      UniqueFd below(openat(at_.get(), name.c_str(), kFolder));
      if (!below.valid()) {
        all_ = all_ && errno == ENOENT;
        return true;
      }
      std::swap(at_, below);
      if (!IsOtherMount()) return Enter(name);
      std::swap(at_, below);
      return true;
    }
    levels_.pop_back();
    if (levels_.empty()) return true;
    UniqueFd above(openat(at_.get(), "..", kFolder));
    if (!above.valid()) return false;
    at_ = std::move(above);
    struct statx now;
    return Identify(&now) && IsSame(now, levels_.back().info);  // else it was moved away under us
  }

  // Only the mount itself is shown under another owner, not what is mounted below. Not by st_dev: the subvolumes of
  // btrfs have their own, and are the same mount.
  bool IsOtherMount() const {
    struct statx now;
    const struct statx& top = levels_.front().info;
    return Identify(&now) && (now.stx_mask & top.stx_mask & STATX_MNT_ID) != 0 && now.stx_mnt_id != top.stx_mnt_id;
  }

  // Looks at what lies in the folder that is open, and keeps the names of its folders. False: it can't go on.
  bool Enter(const std::string& name) {
    Level level{name, {}, {}};
    if (!Identify(&level.info)) return false;
    levels_.push_back(std::move(level));
    const int copy = openat(at_.get(), ".", kFolder);
    DIR* const listing = copy < 0 ? nullptr : fdopendir(copy);
    if (listing == nullptr) {
      if (copy >= 0) close(copy);
      return false;
    }
    const bool goes_on = List(listing);
    closedir(listing);
    return goes_on;
  }

  bool List(DIR* listing) {
    for (;;) {
      errno = 0;
      const dirent* entry = readdir(listing);
      if (entry == nullptr) return errno == 0;
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (--entries_left_ < 0) return false;
      struct stat info;
      if (fstatat(at_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
        all_ = all_ && errno == ENOENT;
        continue;
      }
      if (S_ISDIR(info.st_mode)) levels_.back().folders.push_back(name);
      if (S_ISREG(info.st_mode)) Look(at_.get(), name, info);
      if (!found_.path.empty()) return true;
    }
  }

  void Look(int folder, const std::string& name, const struct stat& info) {
    // There is no call that takes a folder and a name (getxattrat is of Linux 6.13).
    const std::string path = folder == AT_FDCWD ? name : absl::StrCat("/proc/self/fd/", folder, "/", name);
    const bool setid = (info.st_mode & 06000) != 0;
    if (setid || lgetxattr(path.c_str(), "security.capability", nullptr, 0) > 0) found_ = {name, !setid};
  }

  int entries_left_;
  bool all_ = true;
  UniqueFd at_;  // the folder of levels_.back()
  std::vector<Level> levels_;
  PrivilegedFile found_;
};

}  // namespace

bool MayMapOwners(std::string path) {
  struct statfs info;
  while (statfs(path.empty() ? "/" : path.c_str(), &info) != 0) {
    if (errno != ENOENT || path.empty()) return true;
    path.erase(path.rfind('/'));
  }
  switch (static_cast<unsigned long>(info.f_type)) {
    case OVERLAYFS_SUPER_MAGIC:
    case RAMFS_MAGIC:
    case NFS_SUPER_MAGIC:
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
      return false;
    default:
      return true;
  }
}

std::string ClosedFolderAbove(absl::string_view path, std::uint32_t uid, std::uint32_t gid) {
  for (std::size_t end = path.find('/', 1); end != absl::string_view::npos; end = path.find('/', end + 1)) {
    const std::string folder(path.substr(0, end));
    struct stat info;
    if (stat(folder.c_str(), &info) != 0) return "";
    const mode_t search = info.st_uid == uid ? S_IXUSR : info.st_gid == gid ? S_IXGRP : S_IXOTH;
    if ((info.st_mode & search) == 0) return folder;
  }
  return "";
}

bool OnlyRootReaches(absl::string_view path) {
  const std::size_t last = path.rfind('/');
  for (std::size_t end = 1; last != absl::string_view::npos && end <= last; ++end) {
    end = std::min(path.find('/', end), path.size());
    if (end > last) return false;
    struct stat info;
    if (lstat(std::string(path.substr(0, end)).c_str(), &info) != 0) return false;
    if (info.st_uid == 0 && (info.st_mode & (S_IXGRP | S_IXOTH)) == 0) return true;
  }
  return false;
}

PrivilegedFile FindPrivilegedFile(const std::string& folder, bool& complete, int entries_max) {
  return PrivilegedSearch(entries_max).Run(folder, complete);
}

}  // namespace bulkhead::launcher
