// ${workspace}, ${home}, ${tmp}, ${cache}, ${env:NAME} and ${var:NAME} in a policy's paths and values. Expanded once:
// what a variable stands for is never looked at for further ones.
#ifndef BULKHEAD_POLICY_VARIABLES_H_
#define BULKHEAD_POLICY_VARIABLES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

bool HasVariable(absl::string_view text);

// Whether every "${" of `text` begins a known variable. Empty if so, else "what is wrong; what would help".
std::string CheckVariables(absl::string_view text);

struct Expanded {
  std::string text;
  // What the variable that the text begins with stands for.
  std::optional<std::string> leading_value;
  // The names that were read from the host's environment, each once.
  std::vector<std::string> env_names;
  // The first variable that is not set, as written: "${workspace}". The text is of no use then.
  std::string unset;
  // With what its variables stand for it is longer than kArgumentBytesMax (command.h). The text is of no use then.
  bool too_long = false;
};

// `text` has passed CheckVariables. `cache` is what ${cache} stands for. With `empty_is_unset`, as in paths, an empty
// value counts as none.
Expanded Expand(absl::string_view text, const Variables& variables, const std::optional<std::string>& cache,
                bool empty_is_unset);

// How to set `variable` (as written): "start with --workspace DIR".
std::string HowToSet(absl::string_view variable);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_VARIABLES_H_
