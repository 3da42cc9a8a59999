#include "bulkhead/policy/mistakes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::policy {

void Mistakes::Add(absl::string_view file, Place place, absl::string_view pointer, absl::string_view what) {
  Add(absl::StrCat(Visible(file), ":", place.line, ":", place.column, ": ", pointer.empty() ? "/" : pointer), what);
}

void Mistakes::Add(absl::string_view where, absl::string_view what) {
  ++count_;
  std::string line = absl::StrCat(where, ": ", what);
  // A file that is extended twice has its mistakes once.
  if (std::find(lines_.begin(), lines_.end(), line) != lines_.end()) return;
  const bool fits = lines_.size() < kMistakesMax && bytes_ + line.size() <= kMistakeBytesMax;
  if (lines_.empty() || (fits && left_out_ == 0)) {
    bytes_ += line.size();
    lines_.push_back(std::move(line));
  } else {
    ++left_out_;
  }
}

absl::Status Mistakes::ToStatus() const {
  if (lines_.empty()) return absl::OkStatus();
  std::string message = absl::StrJoin(lines_, "\n");
  if (left_out_ > 0) absl::StrAppend(&message, "\n(", left_out_, " more mistakes are not shown)");
  return absl::InvalidArgumentError(message);
}

}  // namespace bulkhead::policy
