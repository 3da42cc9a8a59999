// What is left of a policy under a ceiling: only what both grant. DESIGN.md has the table that says what this means for
// each field. Where it can't be expressed, less is granted.
#ifndef BULKHEAD_POLICY_CEILING_H_
#define BULKHEAD_POLICY_CEILING_H_

#include "bulkhead/policy/fields.h"
#include "bulkhead/policy/mistakes.h"

namespace bulkhead::policy {

// `ceiling` was read with Purpose::kCeiling. What falls away is said in the draft's warnings; what can't be narrowed to
// anything a policy can say is a mistake. Doing it twice changes nothing more.
void NarrowTo(const Draft& ceiling, Draft& draft, Mistakes& mistakes);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_CEILING_H_
