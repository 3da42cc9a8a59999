// A launch's filter with a part less, for tests that show what each part is needed for.
#ifndef BULKHEAD_TESTS_LAUNCHER_SECCOMP_FILTER_PARTS_H_
#define BULKHEAD_TESTS_LAUNCHER_SECCOMP_FILTER_PARTS_H_

#include <optional>
#include <vector>

#include "bulkhead/launcher/seccomp/filters.h"

namespace bulkhead::launcher {

// The set whose merged filter, of this architecture, is this one.
std::optional<FilterSet> SetOfFilter(FilterView filter);

// What the parts of the set but this one do; compiled now, for this architecture. Without placeholders only.
std::vector<BpfInstruction> FilterWithout(FilterSet set, FilterName part);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_TESTS_LAUNCHER_SECCOMP_FILTER_PARTS_H_
