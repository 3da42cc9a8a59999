// JSON as text: is it valid, what are an object's members, what does a string say. Nothing here builds a document: what
// a server sent is handed on as the bytes it came in, because the parsers on offer refuse what is valid by RFC 8259 and
// real servers send (lone surrogate escapes, integers of 40 digits, 1e400).
//
// All functions are pure and iterative; ValidateJson and the readers allocate nothing.
#ifndef BULKHEAD_JSONRPC_JSON_TEXT_H_
#define BULKHEAD_JSONRPC_JSON_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace bulkhead::jsonrpc {

// Objects and arrays inside one another. The specification has no number; 126 was too few in the field.
inline constexpr int kNestingMax = 1024;

enum class JsonError {
  kNone,
  kSyntax,        // not RFC 8259
  kUtf8,          // a string that is not UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF)
  kTooDeep,       // more than kNestingMax
  kDuplicateKey,  // only by readers that say so
};

// Whether `text` is one JSON value, with nothing but white space around it.
JsonError ValidateJson(absl::string_view text);

// A member of an object, or an element of an array (whose key is empty).
struct JsonMember {
  absl::string_view key;    // as written, without its quotes; see JsonStringIs
  absl::string_view value;  // as written, without white space around it
};

// Calls `visit` for each member, or element, in order, until it returns false. False if `text` is not one object or
// array, as far as it was read: some members may have been visited.
bool ForEachMember(absl::string_view text, absl::FunctionRef<bool(const JsonMember&)> visit);

// Whether a key, or a string's inside, as written, means `expected`: "\u0069d" is "id".
bool JsonStringIs(absl::string_view inside, absl::string_view expected);
// Whether two of them, both as written, mean the same.
bool JsonStringsEqual(absl::string_view inside, absl::string_view other_inside);

// The value of member `key` of the valid object `text`; absent if there is none or `text` is no object. Of several the
// last one, as nearly every parser does.
std::optional<absl::string_view> FindMember(absl::string_view text, absl::string_view key);

// What the string value `text`, quotes included, says, as UTF-8; a lone surrogate becomes U+FFFD. Absent if it is no
// string.
std::optional<std::string> StringValue(absl::string_view text);
// Whether the value `text` is a number without a fraction, however large: 7, 7.0, 70e-1, 1e400.
bool IsIntegral(absl::string_view text);
// The integer that the value `text` is: 7, 7.0 and 70e-1 are 7. Absent if it is no integer or does not fit.
std::optional<std::int64_t> IntegerValue(absl::string_view text);
// The number that the value `text` is, the nearest double. Absent if it is no number or too large.
std::optional<double> NumberValue(absl::string_view text);
// `text` as a JSON string, quotes included, in ASCII escapes only where RFC 8259 demands them. What is not UTF-8
// becomes U+FFFD.
std::string QuoteJson(absl::string_view text);

}  // namespace bulkhead::jsonrpc

#endif  // BULKHEAD_JSONRPC_JSON_TEXT_H_
