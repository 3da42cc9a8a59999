#include "bulkhead/launcher/other_user.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bulkhead/launcher/plan_format.h"

namespace bulkhead::launcher {
namespace {

constexpr absl::string_view kWhat = "cannot give a server that root starts a user of its own: ";
constexpr absl::string_view kRemedy = "; start bulkhead as an ordinary user, or ";

bool HasCapabilities() {
  constexpr std::uint32_t kNeeded = 1u << CAP_SETUID | 1u << CAP_SETGID;
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  return syscall(SYS_capget, &header, data) != 0 || (data[0].effective & kNeeded) == kNeeded;
}

// user_namespaces(7): lines of first id inside, first id outside, count. What can't be read is left to the steps.
bool MapsOnePerLaunch(const char* path) {
  constexpr std::uint64_t kFirst = wire::kPerLaunchUidBase, kCount = wire::kPerLaunchUids;
  std::ifstream map(path);
  if (!map.is_open()) return true;
  for (std::uint64_t inside, outside, count; map >> inside >> outside >> count;) {
    if (inside <= kFirst && kFirst - inside + kCount <= count) return true;
  }
  return false;
}

}  // namespace

absl::Status CanBecomeOtherUser(bool one_per_launch) {
  if (geteuid() != 0) return absl::OkStatus();
  if (!HasCapabilities()) {
    return absl::FailedPreconditionError(absl::StrCat(
        kWhat, "it has no CAP_SETUID or no CAP_SETGID here, as in a container without them", kRemedy, "keep them"));
  }
  for (const char* path : {"/proc/self/uid_map", "/proc/self/gid_map"}) {
    if (!one_per_launch || MapsOnePerLaunch(path)) continue;
    return absl::FailedPreconditionError(absl::StrCat(kWhat, path, " has no ids for that, as in a rootless container",
                                                      kRemedy,
                                                      "name an account that is there as \"user\" in the policy"));
  }
  return absl::OkStatus();
}

}  // namespace bulkhead::launcher
