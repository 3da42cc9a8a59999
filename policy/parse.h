// ParsePolicy without the last step, for tests of what is not enforced yet. Not for users: only a Policy proves that
// all of it is enforced.
#ifndef BULKHEAD_POLICY_PARSE_H_
#define BULKHEAD_POLICY_PARSE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bulkhead/policy/grammar.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

absl::StatusOr<PolicyFields> ParseFields(const PolicyText& text, const ParseOptions& options, Unenforced unenforced);

// "files-0123456789abcdef" for /srv/files.json: readable, one path component, the same as long as the policy's identity
// (compose.h) is.
std::string CacheKey(absl::string_view identity);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_PARSE_H_
