// The JSON of a policy as a tree in which every value knows its place. Comments are allowed, duplicate keys are not.
// It knows nothing of what a policy may say: see grammar.h.
#ifndef BULKHEAD_POLICY_JSON_H_
#define BULKHEAD_POLICY_JSON_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "bulkhead/policy/mistakes.h"

namespace bulkhead::policy {

// How many values one file may hold, members and items, lists and objects included: more than a person reviews. A value
// takes up to 600 bytes until it is in the policy, and its text as few as three, so that this alone bounds what a text
// of short entries takes (DESIGN.md, decision 32).
inline constexpr std::size_t kPolicyValuesMax = 400;

struct JsonValue {
  enum class Type : std::uint8_t { kNull, kBoolean, kInteger, kNumber, kString, kArray, kObject };

  const JsonValue* Member(absl::string_view name) const;
  JsonValue* Member(absl::string_view name);
  // Where it stands in its file, as a JSON pointer: put together when a message asks. CheckGrammar has seen the tree.
  std::string Pointer() const;

  Type type = Type::kNull;
  bool boolean = false;
  Place place;
  Place key_place;  // of a member
  int index = -1;   // of an item in its list
  std::string key;
  // kInteger, which is never negative; all other numbers are kNumber, and no policy uses them.
  std::uint64_t integer = 0;
  std::string string;
  std::vector<JsonValue> children;    // items, or members in the order of the text
  const std::string* file = nullptr;  // the name given to ParseJson
  // The JSON pointer of the list or object that it stands in, shared by all in there; filled in by CheckGrammar.
  std::shared_ptr<const std::string> within;
};

// "an object", "text", ...
absl::string_view TypeName(JsonValue::Type type);

// Nothing if the text is not JSON, is longer than kPolicyBytesMax, nests deeper than kPolicyNestingMax or holds more
// values than kPolicyValuesMax; `mistakes` then says why. A duplicate key or a NUL in a string is a mistake too, but
// the tree is given, so that the rest of it can be checked. `file` must outlive the tree.
std::optional<JsonValue> ParseJson(const std::string& file, absl::string_view text, Mistakes& mistakes);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_JSON_H_
