// What a policy file may say, as one table: keys, forms, ranges. Checking, composing (compose.h) and reading (fields.h)
// all follow it. A new field is a line here, a line in fields.cc and a line in ceiling.cc.
#ifndef BULKHEAD_POLICY_GRAMMAR_H_
#define BULKHEAD_POLICY_GRAMMAR_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bulkhead/policy/forms.h"
#include "bulkhead/policy/json.h"
#include "bulkhead/policy/mistakes.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

// How many entries a list or a map may have, also after composing.
inline constexpr std::size_t kEntriesMax = 256;

// How values of a field compose.
enum class Shape {
  kScalar,  // replaces; may be an object, as in {"path": ..., "optional": true}, that is replaced whole
  kList,    // adds
  kMap,     // adds, entry by entry; an entry of the same name replaces
  kObject,  // composes field by field
};

struct Field {
  absl::string_view key;
  Shape shape = Shape::kScalar;
  Form form = Form::kChoice;                      // of the scalar, of each item, of each entry
  absl::Span<const absl::string_view> choices{};  // kChoice
  std::uint64_t min = 0, max = 0;                 // kCount; kSize in bytes; kDuration in milliseconds
  Form key_form = Form::kEnvName;                 // kMap: of the entries' names
  // kObject: what it holds. kScalar and the items of a kList: what an object in the place of the text may hold.
  absl::Span<const Field> fields{};
};

// A policy's fields, without version, extends and without.
absl::Span<const Field> PolicyFieldTable();

// Whether a field that has no mechanism yet, on the system where the server will run, is a mistake. No only in tests of
// what follows.
enum class Unenforced { kRefuse, kAccept };

// Adds every mistake in one file's tree to `mistakes`, and tells each value where it stands.
void CheckGrammar(JsonValue& root, Platform platform, Unenforced unenforced, Mistakes& mistakes);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_GRAMMAR_H_
