// What this kernel, and the place we run in (a container, a distribution's hardening), let us enforce. Found out by
// trying, never by version number: the whole chain is run once in a child that then exits.
#ifndef BULKHEAD_LAUNCHER_FEATURES_H_
#define BULKHEAD_LAUNCHER_FEATURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/policy/policy.h"

namespace bulkhead::launcher {

// One mechanism, for `bulkhead doctor`.
struct FeatureCheck {
  std::string name;  // the kernel's word: "user namespaces", "landlock", "seccomp", "cgroup v2", "memfd exec" ...
  bool available = false;
  std::string detail;  // "ABI 7", or the call that failed and its error: "clone(CLONE_NEWUSER): EPERM"
  std::string remedy;  // one sentence for the person who runs the machine; empty when available
};

// Where a launch makes its cgroup: see launcher/cgroup.h. Limits that it doesn't take are rlimits.
struct CgroupPlace {
  std::string folder;                                            // in which the group is made; empty: none is
  std::string mount;                                             // where cgroup v2 is mounted
  bool memory = false, pids = false;                             // the controllers that a group in `folder` has
  bool swap = false;                                             // memory.swap.max is there
  std::uint64_t memory_max = UINT64_MAX, pids_max = UINT64_MAX;  // those of our own group; UINT64_MAX: none
  std::string why_not, remedy;                                   // sentences for people, where a controller is missing
};

struct KernelFeatures {
  int landlock_abi = 0;  // 0: none
  bool is_root = false;  // effective uid 0
  CgroupPlace cgroup;
};

// Cheap (a few system calls, no child): what BuildLaunchPlan needs. Whether namespaces work is shown by the
// launch.
KernelFeatures DetectKernelFeatures();

struct DoctorReport {
  std::vector<FeatureCheck> checks;
  // The strongest tier that a real launch of a small program reached here.
  bool any_tier = false;
  policy::Tier tier = policy::Tier::kC;
};

// Runs real launches in every tier. Takes a few milliseconds each.
DoctorReport RunDoctor();

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_FEATURES_H_
