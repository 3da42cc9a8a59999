#include "bulkhead/cli/suggest.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace bulkhead::cli {
namespace {

// Longer words are no slip of the finger, and the table below stays small.
constexpr std::size_t kWordBytesMax = 64;

// Optimal string alignment: edits that turn `a` into `b`.
std::size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, changed});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string Suggest(absl::string_view word, const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kWordBytesMax) return "";
  std::string nearest, begins_with;
  std::size_t nearest_distance = kWordBytesMax;
  int beginning = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = Distance(word, candidate);
    if (distance <= std::max<std::size_t>(1, candidate.size() / 3) && distance < nearest_distance) {
      nearest = candidate;
      nearest_distance = distance;
    }
    const bool lengthened = candidate.size() >= 3 && absl::StartsWith(word, candidate);
    if (lengthened || absl::StartsWith(candidate, word)) {
      begins_with = candidate;
      ++beginning;
    }
  }
  if (!nearest.empty()) return nearest;
  return beginning == 1 ? begins_with : "";
}

std::string DidYouMean(absl::string_view word, const std::vector<std::string>& candidates) {
  const std::string suggestion = Suggest(word, candidates);
  return suggestion.empty() ? "" : absl::StrCat("; did you mean \"", suggestion, "\"?");
}

}  // namespace bulkhead::cli
