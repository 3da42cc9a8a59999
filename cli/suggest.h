// "Did you mean": the known word nearest to a mistyped one.
#ifndef BULKHEAD_CLI_SUGGEST_H_
#define BULKHEAD_CLI_SUGGEST_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace bulkhead::cli {

// The candidate that a typing mistake would turn into `word`: at most one edit (a letter added, left out, changed, or
// two neighbours swapped) for every three letters, or the only candidate that begins with `word`. Empty if none is
// near.
std::string Suggest(absl::string_view word, const std::vector<std::string>& candidates);

// `; did you mean "X"?`, or nothing.
std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates);

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_SUGGEST_H_
