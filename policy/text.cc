#include "bulkhead/policy/text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
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

// The code point of the valid sequence `s`.
std::uint32_t Decode(absl::string_view s) {
  std::uint32_t code_point = static_cast<std::uint8_t>(s[0]);
  if (s.size() > 1) code_point &= 0xFFu >> (s.size() + 1);
  for (const char c : s.substr(1)) code_point = code_point << 6 | (static_cast<std::uint8_t>(c) & 0x3Fu);
  return code_point;
}

// What is not shown as itself. General categories Cc, Zl and Zp of Unicode 15, the property
// Default_Ignorable_Code_Point (DerivedCoreProperties.txt) without U+FE00 to U+FE0F, and the annotation marks U+FFF9 to
// U+FFFB.
bool IsUnseen(std::uint32_t code_point) {
  struct Range {
    std::uint32_t first, last;
  };
  static constexpr Range kUnseen[] = {
      {0x0000, 0x001F}, {0x007F, 0x009F}, {0x00AD, 0x00AD}, {0x034F, 0x034F},   {0x061C, 0x061C},   {0x115F, 0x1160},
      {0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x200B, 0x200F}, {0x2028, 0x202E},   {0x2060, 0x206F},   {0x3164, 0x3164},
      {0xFEFF, 0xFEFF}, {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
  };
  return std::any_of(std::begin(kUnseen), std::end(kUnseen), [code_point](const Range& range) {
    return code_point >= range.first && code_point <= range.last;
  });
}

void AppendEscape(std::uint32_t code_point, std::string* out) {
  if (code_point == '\n' || code_point == '\t' || code_point == '\r') {
    absl::StrAppend(out, code_point == '\n' ? "\\n" : code_point == '\t' ? "\\t" : "\\r");
  } else if (code_point < 0x80) {
    absl::StrAppend(out, "\\x", absl::Hex(code_point, absl::kZeroPad2));
  } else if (code_point < 0x10000) {
    absl::StrAppend(out, "\\u", absl::Hex(code_point, absl::kZeroPad4));
  } else {
    absl::StrAppend(out, "\\U", absl::Hex(code_point, absl::kZeroPad8));
  }
}

// At most `bytes_max` bytes of `text`, in whole characters.
absl::string_view Cut(absl::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  while (end > 0 && (static_cast<std::uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

std::string Visible(absl::string_view text, absl::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    // Most of it is plain.
    const auto plain = std::find_if_not(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
    out.append(text.begin(), plain);
    text.remove_prefix(static_cast<std::size_t>(plain - text.begin()));
    if (text.empty()) return out;
    const std::size_t length = SequenceLength(text);
    const absl::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0) {
      absl::StrAppend(&out, "\\x", absl::Hex(static_cast<std::uint8_t>(text[0]), absl::kZeroPad2));
    } else if (!IsUnseen(Decode(character)) || absl::StrContains(kept, character)) {
      absl::StrAppend(&out, character);
    } else {
      AppendEscape(Decode(character), &out);
    }
    text.remove_prefix(character.size());
  }
}

std::string Quote(absl::string_view value, std::size_t bytes_max) {
  const absl::string_view shown = Cut(value, bytes_max);
  const std::string escaped = absl::StrReplaceAll(shown, {{"\\", "\\\\"}, {"\"", "\\\""}});
  return absl::StrCat("\"", Visible(escaped), shown.size() < value.size() ? "…\"" : "\"");
}

std::string PointerToken(absl::string_view key) {
  const std::string token = absl::StrReplaceAll(Cut(key, kQuotedBytesMax), {{"~", "~0"}, {"/", "~1"}});
  return Visible(absl::StrReplaceAll(token, {{"\\", "\\\\"}, {"\"", "\\\""}}));
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
