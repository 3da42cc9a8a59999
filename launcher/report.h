// What a variant of a plan enforces, in words for people.
#ifndef BULKHEAD_LAUNCHER_REPORT_H_
#define BULKHEAD_LAUNCHER_REPORT_H_

#include <cstdint>
#include <string>

#include "bulkhead/launcher/features.h"
#include "bulkhead/launcher/jail_layout.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::launcher {

// How one variant works, whatever tier it is called.
struct VariantKind {
  policy::Tier tier;
  bool namespaces;
  bool landlock;
};

// The cgroup of one variant: what it limits for the whole tree.
struct CgroupUse {
  bool used = false;
  std::uint64_t memory_bytes = 0, processes = 0;  // 0: not by it
  std::string why_not;                            // where a limit of the policy is left to rlimits, or could be
};

EnforcementReport MakeReport(const VariantKind& kind, const policy::PolicyFields& policy, const JailLayout& layout,
                             const KernelFeatures& features, const CgroupUse& cgroup);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_REPORT_H_
