// Where a launch may make a cgroup (cgroup v2, cgroups(7)) for a server and all that it starts, or why nowhere. The
// files of cgroup v2 are looked at, nothing is changed: whether a group can be made is shown by the launch.
#ifndef BULKHEAD_LAUNCHER_CGROUP_H_
#define BULKHEAD_LAUNCHER_CGROUP_H_

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"
#include "bulkhead/launcher/features.h"

namespace bulkhead::launcher {

// `root`: where cgroups are mounted, "/sys/fs/cgroup"; v2 alone, or beside v1 in "unified". `own`: the text of
// /proc/self/cgroup. `uid`: who would make the group, and has to own the folder it lies in.
//
// A group that limits memory or processes must have a parent that gives it these controllers, and such a parent holds
// no processes itself (the "no internal processes" rule of cgroups(7)). So the new group lies beside the own one, in
// its parent. What systemd delegates to a user is like that. The machine's root group, which may hold both, is left
// out: its folder has mode 0555, and the keeper of root gives up the right to change it all the same.
CgroupPlace ChooseCgroup(const std::string& root, absl::string_view own, uid_t uid);

// The same for this process.
CgroupPlace FindCgroup();

// The groups of launches lie in CgroupPlace::folder under this name and, in hexadecimal, the process id namespace and
// the pid of the keeper.
inline constexpr char kCgroupPrefix[] = "bulkhead-";
inline constexpr char kInitCgroupSuffix[] = ".init";  // of the jail init's

// Removes groups in `folder` whose keeper is no more, which happens to a keeper that is killed. One that holds a
// process can't be removed (EBUSY); that of a living keeper, also one of another process id namespace, is left alone.
// Errors are not worth a word: what is left is an empty folder.
void SweepCgroups(const std::string& folder);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_CGROUP_H_
