#include "bulkhead/policy/text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace bulkhead::policy {
namespace {

std::string Folded(absl::string_view word) {
  std::string folded = absl::AsciiStrToLower(word);
  std::replace(folded.begin(), folded.end(), '-', '_');
  return folded;
}

// The Damerau-Levenshtein distance (a swap of neighbours counts as one), by three rows of its table.
std::size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row[b.size()];
}

// The length of the valid UTF-8 sequence at `s`, or 0.
std::size_t SequenceLength(absl::string_view s) {
  const auto byte = [s](std::size_t i) { return static_cast<std::uint8_t>(s[i]); };
  const auto follows = [&](std::size_t i, std::uint8_t low, std::uint8_t high) {
    return i < s.size() && byte(i) >= low && byte(i) <= high;
  };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1, 0x80, 0xBF) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    // No overlong forms, no surrogates.
    const std::uint8_t low = first == 0xE0 ? 0xA0 : 0x80;
    const std::uint8_t high = first == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const std::uint8_t low = first == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t high = first == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2, 0x80, 0xBF) && follows(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

// At most kQuotedBytesMax bytes of `text`, in whole characters.
absl::string_view Cut(absl::string_view text) {
  if (text.size() <= kQuotedBytesMax) return text;
  std::size_t end = kQuotedBytesMax;
  while (end > 0 && (static_cast<std::uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

std::string Quote(absl::string_view value) {
  const absl::string_view shown = Cut(value);
  return absl::StrCat("\"", absl::Utf8SafeCEscape(shown), shown.size() < value.size() ? "…\"" : "\"");
}

std::string PointerToken(absl::string_view key) {
  std::string token = absl::StrReplaceAll(Cut(key), {{"~", "~0"}, {"/", "~1"}});
  return absl::Utf8SafeCEscape(token);
}

std::string NearMiss(absl::string_view word, const std::vector<absl::string_view>& known) {
  constexpr std::size_t kWordBytesMax = 64;
  if (word.empty() || word.size() > kWordBytesMax) return "";
  const std::string folded = Folded(word);
  std::string best;
  std::size_t best_distance = 3;
  for (const absl::string_view candidate : known) {
    const std::size_t distance = Distance(folded, Folded(candidate));
    // Two slips in a word of three letters are another word.
    if (distance * 3 > candidate.size()) continue;
    if (distance < best_distance) {
      best_distance = distance;
      best = std::string(candidate);
    }
  }
  return best;
}

std::size_t FindInvalidUtf8(absl::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t word = 0;
    if (text.size() - at >= sizeof word) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        at += sizeof word;
        continue;
      }
    }
    const std::size_t length = SequenceLength(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return absl::string_view::npos;
}

}  // namespace bulkhead::policy
