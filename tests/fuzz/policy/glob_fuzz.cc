// Two globs and a text, one a line: a glob that covers another matches what that matches, and an intersection nothing
// more than both.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/policy/glob.h"
#include "tests/fuzz/policy/fuzz.h"

using namespace bulkhead::policy;  // NOLINT(google-build-using-namespace): a program of one function

namespace {

// By the definition, in time that only short ones allow.
bool Matches(absl::string_view glob, absl::string_view text) {
  if (glob.empty()) return text.empty();
  if (glob[0] == '*') return Matches(glob.substr(1), text) || (!text.empty() && Matches(glob, text.substr(1)));
  return !text.empty() && (glob[0] == '?' || glob[0] == text[0]) && Matches(glob.substr(1), text.substr(1));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> lines = Lines(data, size);
  lines.resize(3);
  const std::string &a = lines[0], &b = lines[1], &text = lines[2];
  const bool by_a = GlobMatches(a, text), by_b = GlobMatches(b, text);
  if (a.size() <= 10 && text.size() <= 16) Demand(by_a == Matches(a, text), "a glob matches by its definition");
  Demand(!GlobCovers(a, b) || !by_b || by_a, "what covers matches more");
  Demand(!AnyGlobMatches(IntersectGlobs({a}, {b}), text) || (by_a && by_b), "an intersection is in both");
  return 0;
}
