// Looking at the host's file system while a plan is made: what a path really is, through which links, and whose.
// Nothing here changes anything.
#ifndef BULKHEAD_LAUNCHER_FILE_SYSTEM_H_
#define BULKHEAD_LAUNCHER_FILE_SYSTEM_H_

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bulkhead::launcher {

// A symbolic link met on the way: where it is (a path without links) and its text.
struct SymlinkOnPath {
  std::string at;
  std::string text;
};

// What a path names, with all links followed.
struct ResolvedPath {
  std::string asked_for;
  std::string real;  // without any link
  std::vector<SymlinkOnPath> links;
  struct stat info = {};
  bool is_folder() const { return S_ISDIR(info.st_mode); }
};

// How many links one path may go through, as in the kernel (path_resolution(7)).
inline constexpr int kSymlinksMax = 40;

// `path` is absolute. Errors name the first component that is at fault: NotFound, or PermissionDenied for everything
// else (a loop, no right to look, not a folder).
absl::StatusOr<ResolvedPath> ResolvePath(absl::string_view path);

// The same, and refuses (PermissionDenied) what lies outside of `beneath`, where a link may lead. The folder itself may
// be reached through links: it is the one who starts the server who named it. Whoever changes a link meanwhile gains
// nothing: the launch opens the real path, follows no link, and compares.
absl::StatusOr<ResolvedPath> ResolvePathBeneath(absl::string_view path, absl::string_view beneath);

// True when `path` is `folder` or lies beneath it. Both absolute and without links or "..".
bool IsWithin(absl::string_view path, absl::string_view folder);

// Whether mounts of this file system can show files under another owner (mount_setattr(2), MOUNT_ATTR_IDMAP). False
// only for those known not to; a file system not known here is found out at the launch. A path that is not there yet
// counts as what is above it.
bool MayMapOwners(std::string path);

// The first folder above `path` (absolute, without links) that the user may not search, by its mode; or empty.
std::string ClosedFolderAbove(absl::string_view path, std::uint32_t uid, std::uint32_t gid);

// True when a folder above `path` (absolute, without links) is root's and lets nobody else through by its mode, which
// with an access control list is the most that the list may give. No other user can run what lies there. Not `path`
// itself: who may write there as its owner can open it to all.
bool OnlyRootReaches(absl::string_view path);

// A file that gives rights to whoever runs it: setuid, setgid, or with file capabilities (capabilities(7)).
struct PrivilegedFile {
  std::string path;  // empty: none
  bool by_capabilities = false;
};

// The first in a folder's tree, however deep; links and other mounts are not followed. Looks at no more than
// kPrivilegedSearchMax entries; `complete` says whether that was all, and all could be looked at.
inline constexpr int kPrivilegedSearchMax = 50000;
PrivilegedFile FindPrivilegedFile(const std::string& folder, bool& complete, int entries_max = kPrivilegedSearchMax);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_FILE_SYSTEM_H_
