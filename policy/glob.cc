#include "bulkhead/policy/glob.h"

#include <algorithm>
#include <cstddef>

namespace bulkhead::policy {
namespace {

// Goes back only to the last '*', which is enough: an earlier one could not do better. With `text_is_glob`, a '*' in
// `text` is taken only by a '*', and a '?' only by a '*' or '?', so that a match holds whatever they stand for.
bool Match(absl::string_view glob, absl::string_view text, bool text_is_glob) {
  std::size_t g = 0, t = 0, star = absl::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      star_text = t;
    } else if (g < glob.size() &&
               ((glob[g] == '?' && !(text_is_glob && text[t] == '*')) || (glob[g] == text[t] && glob[g] != '?'))) {
      ++g;
      ++t;
    } else if (star != absl::string_view::npos) {
      g = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

void AddOnce(std::vector<std::string>& list, const std::string& entry) {
  if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(entry);
}

}  // namespace

bool IsGlob(absl::string_view text) { return text.find_first_of("*?") != absl::string_view::npos; }

bool GlobMatches(absl::string_view glob, absl::string_view text) { return Match(glob, text, false); }

bool GlobCovers(absl::string_view wide, absl::string_view narrow) { return Match(wide, narrow, true); }

bool AnyGlobMatches(const std::vector<std::string>& globs, absl::string_view text) {
  return std::any_of(globs.begin(), globs.end(), [text](const std::string& glob) { return GlobMatches(glob, text); });
}

std::vector<std::string> IntersectGlobs(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> both;
  for (const std::string& of_a : a) {
    for (const std::string& of_b : b) {
      if (GlobCovers(of_b, of_a)) {
        AddOnce(both, of_a);
      } else if (GlobCovers(of_a, of_b)) {
        AddOnce(both, of_b);
      }
    }
  }
  return both;
}

}  // namespace bulkhead::policy
