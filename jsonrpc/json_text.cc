#include "bulkhead/jsonrpc/json_text.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/charconv.h"
#include "bulkhead/jsonrpc/json_scan.h"

namespace bulkhead::jsonrpc {
namespace {

using internal::Scanned;

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
// Stands for a code point that no UTF-8 can say.
constexpr std::uint32_t kNoCodePoint = 0xFFFFFFFF;

const char* End(absl::string_view text) { return text.data() + text.size(); }

absl::string_view Between(const char* begin, const char* end) {
  return absl::string_view(begin, static_cast<std::size_t>(end - begin));
}

// Four hexadecimal digits at `at`, or kNoCodePoint.
std::uint32_t HexValue(const char* at, const char* end) {
  if (end - at < 4) return kNoCodePoint;
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = at[i];
    const char lower = static_cast<char>(c | 0x20);
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<std::uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      value = value * 16 + static_cast<std::uint32_t>(lower - 'a' + 10);
    } else {
      return kNoCodePoint;
    }
  }
  return value;
}

bool IsHighSurrogate(std::uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowSurrogate(std::uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

// The code point of the escape whose backslash is at `*at`, which is moved behind it; a lone surrogate stays one.
std::uint32_t TakeEscape(const char** at, const char* end) {
  ++*at;
  if (*at == end) return kNoCodePoint;
  const char c = *(*at)++;
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'u':
      break;
    default:
      return static_cast<unsigned char>(c);
  }
  const std::uint32_t unit = HexValue(*at, end);
  if (unit == kNoCodePoint) return unit;
  *at += 4;
  if (!IsHighSurrogate(unit) || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u') return unit;
  const std::uint32_t low = HexValue(*at + 2, end);
  if (low == kNoCodePoint || !IsLowSurrogate(low)) return unit;
  *at += 6;
  return 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
}

// What a string says, a few bytes at a time: a byte as it is, or what an escape stands for.
class StringBytes {
 public:
  explicit StringBytes(absl::string_view inside) : at_(inside.data()), end_(End(inside)) {}

  // False at the end. A lone surrogate is given in three bytes, as if UTF-8 had it: equal to nothing but itself.
  bool Next(char* byte) {
    if (index_ == size_) {
      if (at_ == end_) return false;
      Load();
    }
    *byte = bytes_[index_++];
    return true;
  }

 private:
  void Load() {
    index_ = 0;
    size_ = 1;
    if (*at_ != '\\') {
      bytes_[0] = *at_++;
      return;
    }
    size_ = Encode(TakeEscape(&at_, end_), bytes_);
  }

 public:
  static int Encode(std::uint32_t code_point, char* bytes) {
    const auto low = [code_point](int shift) { return static_cast<char>(0x80 | (code_point >> shift & 0x3F)); };
    if (code_point < 0x80) {
      bytes[0] = static_cast<char>(code_point);
      return 1;
    }
    if (code_point < 0x800) {
      bytes[0] = static_cast<char>(0xC0 | code_point >> 6);
      bytes[1] = low(0);
      return 2;
    }
    if (code_point < 0x10000) {
      bytes[0] = static_cast<char>(0xE0 | code_point >> 12);
      bytes[1] = low(6);
      bytes[2] = low(0);
      return 3;
    }
    bytes[0] = static_cast<char>(0xF0 | (code_point >> 18 & 7));
    bytes[1] = low(12);
    bytes[2] = low(6);
    bytes[3] = low(0);
    return 4;
  }

 private:
  const char* at_;
  const char* end_;
  int index_ = 0;
  int size_ = 0;
  char bytes_[4];
};

bool HasEscape(absl::string_view inside) {
  return !inside.empty() && std::memchr(inside.data(), '\\', inside.size()) != nullptr;
}

// A number's value is its digits, with a point behind `whole`, times ten to the power of `exponent`.
struct Number {
  bool negative = false;
  absl::string_view whole, fraction;
  std::int64_t exponent = 0;  // held within ±10^17, which no text's length can make up for

  std::size_t size() const { return whole.size() + fraction.size(); }
  int digit(std::size_t i) const { return (i < whole.size() ? whole[i] : fraction[i - whole.size()]) - '0'; }
};

std::optional<Number> ReadNumber(absl::string_view text) {
  const char* const end = End(text);
  if (text.empty() || internal::ScanNumber(text.data(), end).end != end) return std::nullopt;
  Number number;
  const char* at = text.data();
  const auto digits = [&at, end] {
    const char* const begin = at;
    while (at != end && *at >= '0' && *at <= '9') ++at;
    return Between(begin, at);
  };
  number.negative = *at == '-';
  if (number.negative) ++at;
  number.whole = digits();
  if (at != end && *at == '.') {
    ++at;
    number.fraction = digits();
  }
  if (at == end) return number;
  const bool small = *++at == '-';
  if (small || *at == '+') ++at;
  constexpr std::int64_t kExponentMax = 100'000'000'000'000'000;
  for (const char c : digits()) number.exponent = std::min(number.exponent * 10 + (c - '0'), kExponentMax);
  if (small) number.exponent = -number.exponent;
  return number;
}

// The digits before and behind which only zeros stand, and how many zeros follow them up to the point.
struct Significant {
  std::size_t begin = 0;
  std::size_t end = 0;     // begin == end: the number is 0
  std::int64_t zeros = 0;  // negative: there is a fraction
};

Significant FindSignificant(const Number& number) {
  Significant found;
  found.end = number.size();
  while (found.begin < found.end && number.digit(found.begin) == 0) ++found.begin;
  while (found.end > found.begin && number.digit(found.end - 1) == 0) --found.end;
  found.zeros = number.exponent + static_cast<std::int64_t>(number.whole.size()) - static_cast<std::int64_t>(found.end);
  return found;
}

}  // namespace

JsonError ValidateJson(absl::string_view text) {
  const char* const end = End(text);
  const Scanned value = internal::ScanValue(internal::SkipSpace(text.data(), end), end, kNestingMax);
  if (value.end == nullptr) return value.error;
  return internal::SkipSpace(value.end, end) == end ? JsonError::kNone : JsonError::kSyntax;
}

bool ForEachMember(absl::string_view text, absl::FunctionRef<bool(const JsonMember&)> visit) {
  const char* const end = End(text);
  bool stopped = false;
  const Scanned scanned =
      internal::ScanMembers(internal::SkipSpace(text.data(), end), end, [&](absl::string_view key, const char* at) {
        const Scanned value = internal::ScanValue(at, end, kNestingMax - 1);
        if (value.end == nullptr || visit({key, Between(at, value.end)})) return value;
        stopped = true;
        return Scanned{nullptr, JsonError::kNone};
      });
  return stopped || (scanned.end != nullptr && internal::SkipSpace(scanned.end, end) == end);
}

bool JsonStringIs(absl::string_view inside, absl::string_view expected) {
  if (!HasEscape(inside)) return inside == expected;
  StringBytes bytes(inside);
  char byte;
  for (const char c : expected) {
    if (!bytes.Next(&byte) || byte != c) return false;
  }
  return !bytes.Next(&byte);
}

bool JsonStringsEqual(absl::string_view inside, absl::string_view other_inside) {
  if (!HasEscape(inside)) return JsonStringIs(other_inside, inside);
  if (!HasEscape(other_inside)) return JsonStringIs(inside, other_inside);
  StringBytes bytes(inside);
  StringBytes other_bytes(other_inside);
  for (;;) {
    char byte = 0, other = 0;
    const bool more = bytes.Next(&byte);
    if (more != other_bytes.Next(&other)) return false;
    if (!more) return true;
    if (byte != other) return false;
  }
}

std::optional<absl::string_view> FindMember(absl::string_view text, absl::string_view key) {
  const char* const at = internal::SkipSpace(text.data(), End(text));
  if (internal::CharAt(at, End(text)) != '{') return std::nullopt;
  std::optional<absl::string_view> found;
  ForEachMember(text, [&](const JsonMember& member) {
    if (JsonStringIs(member.key, key)) found = member.value;
    return true;
  });
  return found;
}

std::optional<std::string> StringValue(absl::string_view text) {
  const char* const end = End(text);
  if (text.empty() || text[0] != '"' || internal::ScanString(text.data(), end).end != end) return std::nullopt;
  std::string value;
  const char* at = text.data() + 1;
  const char* const quote = end - 1;
  while (at != quote) {
    const void* const found = std::memchr(at, '\\', static_cast<std::size_t>(quote - at));
    const char* const escape = found == nullptr ? quote : static_cast<const char*>(found);
    value.append(at, escape);
    at = escape;
    if (at == quote) break;
    const std::uint32_t code_point = TakeEscape(&at, quote);
    if (IsHighSurrogate(code_point) || IsLowSurrogate(code_point)) {
      value.append(kReplacement.data(), kReplacement.size());
    } else {
      char bytes[4];
      value.append(bytes, static_cast<std::size_t>(StringBytes::Encode(code_point, bytes)));
    }
  }
  return value;
}

bool IsIntegral(absl::string_view text) {
  const std::optional<Number> number = ReadNumber(text);
  if (!number) return false;
  const Significant significant = FindSignificant(*number);
  return significant.begin == significant.end || significant.zeros >= 0;
}

std::optional<std::int64_t> IntegerValue(absl::string_view text) {
  const std::optional<Number> number = ReadNumber(text);
  if (!number) return std::nullopt;
  const Significant significant = FindSignificant(*number);
  if (significant.begin == significant.end) return 0;
  constexpr std::int64_t kDigitsMax = 19;  // of the largest
  if (significant.zeros < 0 || significant.zeros > kDigitsMax) return std::nullopt;
  // Negative, because the smallest has no positive counterpart.
  std::int64_t value = 0;
  const auto append = [&value](int digit) {
    return !__builtin_mul_overflow(value, 10, &value) && !__builtin_sub_overflow(value, digit, &value);
  };
  for (std::size_t i = significant.begin; i != significant.end; ++i) {
    if (!append(number->digit(i))) return std::nullopt;
  }
  for (std::int64_t i = 0; i != significant.zeros; ++i) {
    if (!append(0)) return std::nullopt;
  }
  if (number->negative) return value;
  if (value == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
  return -value;
}

std::optional<double> NumberValue(absl::string_view text) {
  const char* const end = End(text);
  if (text.empty() || internal::ScanNumber(text.data(), end).end != end) return std::nullopt;
  double value = 0;
  const absl::from_chars_result result = absl::from_chars(text.data(), end, value);
  // What is too small is out of range too, and is the nearest double: zero, or the smallest.
  if (result.ec == std::errc::result_out_of_range && (value > 1 || value < -1)) return std::nullopt;
  return value;
}

std::string QuoteJson(absl::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string quoted;
  quoted.reserve(text.size() + 2);
  quoted += '"';
  const char* const end = End(text);
  for (const char* at = text.data(); at != end;) {
    const char* const plain = internal::SkipPlain(at, end);
    quoted.append(at, plain);
    at = plain;
    if (at == end) break;
    const auto byte = static_cast<unsigned char>(*at);
    if (byte == '"' || byte == '\\') {
      quoted += {'\\', *at++};
    } else if (byte < 0x20) {
      quoted += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
      ++at;
    } else if (const int length = internal::Utf8Length(at, end); length > 0) {
      quoted.append(at, static_cast<std::size_t>(length));
      at += length;
    } else {
      quoted.append(kReplacement.data(), kReplacement.size());
      ++at;
    }
  }
  quoted += '"';
  return quoted;
}

}  // namespace bulkhead::jsonrpc
