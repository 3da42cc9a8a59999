// One policy text with all that it extends, made into one tree: lists add, scalars replace, and `without` takes away
// from what was extended. The tree has passed CheckGrammar; each value still knows its file, line and pointer.
#ifndef BULKHEAD_POLICY_COMPOSE_H_
#define BULKHEAD_POLICY_COMPOSE_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "bulkhead/policy/grammar.h"
#include "bulkhead/policy/json.h"
#include "bulkhead/policy/mistakes.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

// How many texts one policy may be made of, however they extend each other.
inline constexpr std::size_t kExtendsFilesMax = 64;

struct ComposeOptions {
  std::string folder;                                                             // as in ParseOptions
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;  // as in ParseOptions
  Platform platform = Platform::kPosix;
  Unenforced unenforced = Unenforced::kRefuse;
};

// An object without version, extends and without; or nothing, and then `mistakes` has grown. `file_names` owns the
// names that the tree's values point to.
std::optional<JsonValue> Compose(const PolicyText& text, const ComposeOptions& options,
                                 std::deque<std::string>& file_names, Mistakes& mistakes);

// What tells a policy from all others: its absolute path, or "preset:NAME".
std::string PolicyIdentity(const std::string& name, const std::string& folder, Platform platform = Platform::kPosix);

// The path of a grant, which is text or an object; and whether it is marked optional.
const std::string& GrantPath(const JsonValue& grant);
bool GrantIsOptional(const JsonValue& grant);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_COMPOSE_H_
