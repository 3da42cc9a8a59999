// How names and values of a policy are shown in messages, and what a mistyped one was probably meant to be.
#ifndef BULKHEAD_POLICY_TEXT_H_
#define BULKHEAD_POLICY_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace bulkhead::policy {

// How much of a value a message repeats.
inline constexpr std::size_t kQuotedBytesMax = 512;

// `value` in double quotes, control characters escaped (a policy may come with terminal codes in it), cut at
// kQuotedBytesMax.
std::string Quote(absl::string_view value);

// `key` as one reference token of a JSON pointer (RFC 6901), control characters escaped, cut as Quote does.
std::string PointerToken(absl::string_view key);

// The one of `known` that `word` was probably meant to be: the same but for case, '-' for '_', or one or two slips of
// the finger. Empty if there is none.
std::string NearMiss(absl::string_view word, const std::vector<absl::string_view>& known);

// The position of the first byte that is not valid UTF-8 (RFC 3629), or npos.
std::size_t FindInvalidUtf8(absl::string_view text);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_TEXT_H_
