// Globs of arguments and of environment names: '*' stands for any bytes, '?' for one, everything else for itself.
#ifndef BULKHEAD_POLICY_GLOB_H_
#define BULKHEAD_POLICY_GLOB_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace bulkhead::policy {

bool IsGlob(absl::string_view text);

bool GlobMatches(absl::string_view glob, absl::string_view text);

// Whether all that `narrow` matches is matched by `wide`. May say no where the answer is yes, never the other way.
bool GlobCovers(absl::string_view wide, absl::string_view narrow);

bool AnyGlobMatches(const std::vector<std::string>& globs, absl::string_view text);

// Globs that match only what some glob of `a` and some glob of `b` match. Where two globs overlap but neither covers
// the other, the overlap is left out. Each entry once, in the order of `a`.
std::vector<std::string> IntersectGlobs(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_GLOB_H_
