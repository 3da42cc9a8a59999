// What files a jail has: grants resolved to real paths, merged, and put in the order in which they must be mounted. A
// pure step between the policy's lists and the plan's: looks at the host's files, changes nothing.
#ifndef BULKHEAD_LAUNCHER_JAIL_LAYOUT_H_
#define BULKHEAD_LAUNCHER_JAIL_LAYOUT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bulkhead/launcher/file_system.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::launcher {

// Reading is part of every grant.
struct Access {
  bool write = false;
  bool execute = false;
};
inline bool Covers(Access a, Access b) { return (a.write || !b.write) && (a.execute || !b.execute); }

// "/a" < "/a/b" < "/a-b": a folder stands right before what lies in it.
struct PathLess {
  bool operator()(const std::string& a, const std::string& b) const;
};

struct Granted {
  ResolvedPath path;
  Access access;
  std::string origin;
  bool runtime = false;     // of :runtime or ours: belongs to the system, not to a person
  bool to_be_made = false;  // a ${cache} that isn't there yet: Launch makes it
  bool optional = false;    // the policy says that it may be missing
};

// An empty file system in memory that lives as long as the jail.
struct PrivateFolder {
  std::string path;  // without links
  std::string mode;  // for mount(2): "1777"
  std::string origin;
};

// What is taken away again inside a granted tree. A mount over the path itself: Landlock can't deny inside what it
// allows, so this needs tier A.
struct Covered {
  enum class How {
    kPin,      // a folder above a protected or hidden path: it can't be renamed, which would carry that path away
    kProtect,  // read-only, with all that is in it
    kHide,     // there, but empty and unreadable
  };
  ResolvedPath path;
  How how = How::kPin;
  std::string origin;
};

struct JailLayout {
  std::vector<Granted> grants;         // sorted: a folder stands before what lies in it; nothing redundant
  std::vector<Covered> covered;        // sorted likewise; each lies inside a grant
  std::vector<PrivateFolder> folders;  // sorted likewise; never at or above a grant of the same path
  std::vector<SymlinkOnPath> links;    // on the way to grants
  std::string home;                    // the private home, or empty
  std::vector<std::string> warnings;

  // What the server may do at `real` (a path without links), or null when it isn't there.
  const Granted* GrantFor(const std::string& real) const;
  bool IsVisible(const std::string& real) const;
};

struct LayoutRequest {
  const policy::PolicyFields& policy;
  std::string home;                    // the server's $HOME, or empty
  std::vector<Granted> program;        // the command itself
  std::vector<FolderToMake> make_now;  // folders that may be missing because they will be made
};

// Errors are PermissionDenied: a grant that does not exist, leads out of its folder, or is a device; a protected or
// hidden path likewise, or one that the server could get at by another name (a link that it may replace, a hard link).
absl::StatusOr<JailLayout> MakeJailLayout(const LayoutRequest& request);

// The paths that :runtime stands for, all optional.
struct RuntimePath {
  const char* path;
  bool execute;
};
const std::vector<RuntimePath>& RuntimePaths(policy::NetworkMode network);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_JAIL_LAYOUT_H_
