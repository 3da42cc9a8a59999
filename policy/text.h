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

// `text` with each character that a terminal or an editor does not show as itself written as an escape, such as \x1b
// and \u202e: control characters (C0, DEL and C1), what turns the direction of writing, separators of lines and
// paragraphs, what is shown as nothing (Unicode's Default_Ignorable_Code_Point, but for the variation selectors of
// emoji, U+FE00 to U+FE0F), and bytes that are not UTF-8. Characters in `kept`, which is ASCII, stay. For reading only:
// a backslash stays as it is. Whatever comes from outside goes through here, or through what is below, before it is
// shown; applying it twice changes nothing.
std::string Visible(absl::string_view text, absl::string_view kept = "");

// `value` in double quotes, quotes and backslashes escaped, the rest as Visible does; cut after `bytes_max` bytes.
std::string Quote(absl::string_view value, std::size_t bytes_max = kQuotedBytesMax);

// `key` as one reference token of a JSON pointer (RFC 6901), escaped and cut as Quote does.
std::string PointerToken(absl::string_view key);

// The one of `known` that `word` was probably meant to be: the same but for case, '-' for '_', or one or two slips of
// the finger. Empty if there is none.
std::string NearMiss(absl::string_view word, const std::vector<absl::string_view>& known);

// The position of the first byte that is not valid UTF-8 (RFC 3629), or npos.
std::size_t FindInvalidUtf8(absl::string_view text);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_TEXT_H_
