// What a path really is, and through which links. Nothing here changes anything.
#ifndef BULKHEAD_LAUNCHER_RESOLVED_PATH_H_
#define BULKHEAD_LAUNCHER_RESOLVED_PATH_H_

#include <sys/stat.h>

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

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_RESOLVED_PATH_H_
