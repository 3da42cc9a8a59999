// What a variant of a plan enforces, in words for people.
#ifndef BULKHEAD_LAUNCHER_REPORT_H_
#define BULKHEAD_LAUNCHER_REPORT_H_

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

EnforcementReport MakeReport(const VariantKind& kind, const policy::PolicyFields& policy, const JailLayout& layout,
                             const KernelFeatures& features);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_REPORT_H_
