#include "bulkhead/jsonrpc/json_scan.h"

#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace bulkhead::jsonrpc::internal {
namespace {

constexpr Scanned Wrong(JsonError error) { return {nullptr, error}; }
constexpr Scanned Right(const char* end) { return {end, JsonError::kNone}; }

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Bytes that mean themselves inside a string: ASCII without controls, quote and backslash.
bool IsPlain(char c) { return static_cast<signed char>(c) >= 0x20 && c != '"' && c != '\\'; }

// Inlined where each nanosecond counts: most strings are shorter than a block.
inline const char* SkipPlainInline(const char* at, const char* end) {
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i space = _mm_set1_epi8(0x20);
  for (; end - at >= 16; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    // Signed: what is not ASCII is less than a space too.
    const __m128i special = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                                         _mm_cmplt_epi8(bytes, space));
    const int mask = _mm_movemask_epi8(special);
    if (mask != 0) return at + __builtin_ctz(static_cast<unsigned>(mask));
  }
#elif defined(__aarch64__)
  for (; end - at >= 16; at += 16) {
    const int8x16_t bytes = vld1q_s8(reinterpret_cast<const signed char*>(at));
    const uint8x16_t special = vorrq_u8(vorrq_u8(vceqq_s8(bytes, vdupq_n_s8('"')), vceqq_s8(bytes, vdupq_n_s8('\\'))),
                                        vcltq_s8(bytes, vdupq_n_s8(0x20)));
    if (vmaxvq_u8(special) != 0) break;
  }
#endif
  while (at != end && IsPlain(*at)) ++at;
  return at;
}

inline int Utf8LengthInline(const char* at, const char* end) {
  const auto byte = [at](int i) { return static_cast<unsigned char>(at[i]); };
  const auto continues = [&byte](int i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned char first = byte(0);
  const std::ptrdiff_t left = end - at;
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;  // a continuation, or an overlong form
  if (first < 0xE0) return left >= 2 && continues(1) ? 2 : 0;
  if (first < 0xF0) {
    if (left < 3 || !continues(1) || !continues(2)) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;   // overlong
    if (first == 0xED && byte(1) >= 0xA0) return 0;  // a surrogate
    return 3;
  }
  if (first > 0xF4 || left < 4 || !continues(1) || !continues(2) || !continues(3)) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;   // overlong
  if (first == 0xF4 && byte(1) >= 0x90) return 0;  // above U+10FFFF
  return 4;
}

// `at` is behind the backslash.
const char* SkipEscape(const char* at, const char* end) {
  switch (CharAt(at, end)) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
      return at + 1;
    case 'u':
      if (end - at < 5) return nullptr;
      for (int i = 1; i <= 4; ++i) {
        if (!IsHexDigit(at[i])) return nullptr;
      }
      return at + 5;
    default:
      return nullptr;
  }
}

const char* SkipDigits(const char* at, const char* end) {
  while (at != end && IsDigit(*at)) ++at;
  return at;
}

Scanned ScanLiteral(const char* at, const char* end, absl::string_view literal) {
  if (static_cast<std::size_t>(end - at) < literal.size() || std::memcmp(at, literal.data(), literal.size()) != 0) {
    return Wrong(JsonError::kSyntax);
  }
  return Right(at + literal.size());
}

Scanned ScanScalar(const char* at, const char* end) {
  switch (CharAt(at, end)) {
    case '"':
      return ScanString(at, end);
    case 't':
      return ScanLiteral(at, end, "true");
    case 'f':
      return ScanLiteral(at, end, "false");
    case 'n':
      return ScanLiteral(at, end, "null");
    default:
      return ScanNumber(at, end);
  }
}

// A key and its colon: the end is where the value begins. `inside`, unless null, becomes the key without its quotes.
Scanned ScanKey(const char* at, const char* end, absl::string_view* inside) {
  if (CharAt(at, end) != '"') return Wrong(JsonError::kSyntax);
  const Scanned key = ScanString(at, end);
  if (key.end == nullptr) return key;
  if (inside != nullptr) *inside = absl::string_view(at + 1, static_cast<std::size_t>(key.end - at) - 2);
  at = SkipSpace(key.end, end);
  if (CharAt(at, end) != ':') return Wrong(JsonError::kSyntax);
  return Right(SkipSpace(at + 1, end));
}

// Which of the values around the current one are objects: a bit for each.
class Nesting {
 public:
  explicit Nesting(int max) : max_(max) {}  // at most kNestingMax
  bool Push(bool is_object) {
    if (depth_ == max_) return false;
    const std::uint64_t bit = std::uint64_t{1} << (depth_ % 64);
    std::uint64_t& word = words_[depth_ / 64];
    if (bit == 1) word = 0;  // its first use
    word = is_object ? word | bit : word & ~bit;
    ++depth_;
    return true;
  }
  void Pop() { --depth_; }
  bool Empty() const { return depth_ == 0; }
  bool InObject() const { return (words_[(depth_ - 1) / 64] >> ((depth_ - 1) % 64) & 1) != 0; }

 private:
  const int max_;
  int depth_ = 0;
  std::uint64_t words_[kNestingMax / 64];  // only those below depth_ mean anything
};

}  // namespace

int Utf8Length(const char* at, const char* end) { return Utf8LengthInline(at, end); }

const char* SkipPlain(const char* at, const char* end) { return SkipPlainInline(at, end); }

Scanned ScanString(const char* at, const char* end) {
  ++at;
  for (;;) {
    at = SkipPlainInline(at, end);
    if (at == end) return Wrong(JsonError::kSyntax);
    if (*at == '"') return Right(at + 1);
    if (*at == '\\') {
      at = SkipEscape(at + 1, end);
      if (at == nullptr) return Wrong(JsonError::kSyntax);
      continue;
    }
    if (static_cast<unsigned char>(*at) < 0x20) return Wrong(JsonError::kSyntax);
    do {
      const int length = Utf8LengthInline(at, end);
      if (length == 0) return Wrong(JsonError::kUtf8);
      at += length;
    } while (at != end && static_cast<unsigned char>(*at) >= 0x80);
  }
}

Scanned ScanNumber(const char* at, const char* end) {
  if (CharAt(at, end) == '-') ++at;
  if (!IsDigit(CharAt(at, end))) return Wrong(JsonError::kSyntax);
  at = *at == '0' ? at + 1 : SkipDigits(at, end);
  if (CharAt(at, end) == '.') {
    if (!IsDigit(CharAt(++at, end))) return Wrong(JsonError::kSyntax);
    at = SkipDigits(at, end);
  }
  if (const char c = CharAt(at, end); c == 'e' || c == 'E') {
    ++at;
    if (const char sign = CharAt(at, end); sign == '+' || sign == '-') ++at;
    if (!IsDigit(CharAt(at, end))) return Wrong(JsonError::kSyntax);
    at = SkipDigits(at, end);
  }
  return Right(at);
}

Scanned ScanValue(const char* at, const char* end, int nesting_max) {
  Nesting nesting(nesting_max);
  for (;;) {
    // A value begins here.
    const char open = CharAt(at, end);
    bool ended = true;
    if (open == '{' || open == '[') {
      const bool is_object = open == '{';
      if (!nesting.Push(is_object)) return Wrong(JsonError::kTooDeep);
      at = SkipSpace(at + 1, end);
      ended = CharAt(at, end) == (is_object ? '}' : ']');
      if (ended) {
        ++at;
        nesting.Pop();
      } else if (is_object) {
        const Scanned key = ScanKey(at, end, nullptr);
        if (key.end == nullptr) return key;
        at = key.end;
      }
    } else {
      const Scanned scalar = ScanScalar(at, end);
      if (scalar.end == nullptr) return scalar;
      at = scalar.end;
    }
    // It has ended: so may those around it.
    while (ended) {
      if (nesting.Empty()) return Right(at);
      at = SkipSpace(at, end);
      const char next = CharAt(at, end);
      const bool in_object = nesting.InObject();
      if (next == ',') {
        at = SkipSpace(at + 1, end);
        if (in_object) {
          const Scanned key = ScanKey(at, end, nullptr);
          if (key.end == nullptr) return key;
          at = key.end;
        }
        ended = false;
      } else if (next == (in_object ? '}' : ']')) {
        ++at;
        nesting.Pop();
      } else {
        return Wrong(JsonError::kSyntax);
      }
    }
  }
}

Scanned ScanMembers(const char* at, const char* end,
                    absl::FunctionRef<Scanned(absl::string_view key, const char* at)> scan_value) {
  const char open = CharAt(at, end);
  if (open != '{' && open != '[') return Wrong(JsonError::kSyntax);
  const char close = open == '{' ? '}' : ']';
  at = SkipSpace(at + 1, end);
  if (CharAt(at, end) == close) return Right(at + 1);
  for (;;) {
    absl::string_view key;
    if (open == '{') {
      const Scanned scanned = ScanKey(at, end, &key);
      if (scanned.end == nullptr) return scanned;
      at = scanned.end;
    }
    const Scanned value = scan_value(key, at);
    if (value.end == nullptr) return value;
    at = SkipSpace(value.end, end);
    const char next = CharAt(at, end);
    if (next == close) return Right(at + 1);
    if (next != ',') return Wrong(JsonError::kSyntax);
    at = SkipSpace(at + 1, end);
  }
}

bool IsUtf8(absl::string_view text) {
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at != end;) {
    const int length = Utf8Length(at, end);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

}  // namespace bulkhead::jsonrpc::internal
