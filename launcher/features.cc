#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bulkhead/launcher/cgroup.h"
#include "bulkhead/launcher/linux.h"

namespace bulkhead::launcher {

KernelFeatures DetectLinuxFeatures() {
  KernelFeatures features;
  // landlock_create_ruleset(2): with this flag it gives the ABI, ENOSYS where it isn't built in and EOPNOTSUPP where it
  // is turned off.
  const long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  features.landlock_abi = abi > 0 ? static_cast<int>(abi) : 0;
  features.is_root = geteuid() == 0;
  features.cgroup = FindCgroup();
  return features;
}

}  // namespace bulkhead::launcher
