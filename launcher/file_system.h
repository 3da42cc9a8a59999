// Looking at the host's file system while a plan is made, where Linux has its own ways: who may do what there. Nothing
// here changes anything.
#ifndef BULKHEAD_LAUNCHER_FILE_SYSTEM_H_
#define BULKHEAD_LAUNCHER_FILE_SYSTEM_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "bulkhead/launcher/resolved_path.h"

namespace bulkhead::launcher {

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
