// The mistakes found in policy texts. Reading goes on after each, so that a person sees all of them at once.
#ifndef BULKHEAD_POLICY_MISTAKES_H_
#define BULKHEAD_POLICY_MISTAKES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace bulkhead::policy {

// How many are reported, and of how many bytes together; the rest is counted. The first is reported whatever its
// length.
inline constexpr std::size_t kMistakesMax = 200;
inline constexpr std::size_t kMistakeBytesMax = 48u << 10;

// Where something stands in a file. Both count from 1; a column is a character, as editors count.
struct Place {
  int line = 1;
  int column = 1;
};

class Mistakes {
 public:
  // `what` is "what is wrong; what would help". The empty pointer, which stands for the whole file, is shown as "/".
  void Add(absl::string_view file, Place place, absl::string_view pointer, absl::string_view what);
  // A mistake outside any file, such as on the command line: "--ro: what".
  void Add(absl::string_view where, absl::string_view what);

  bool empty() const { return lines_.empty(); }
  // How often something was added: grows with every mistake, also one that is reported already.
  std::size_t count() const { return count_; }
  // OK, or InvalidArgument with one line for each mistake.
  absl::Status ToStatus() const;

 private:
  std::vector<std::string> lines_;
  std::size_t bytes_ = 0;  // of lines_
  std::size_t count_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_MISTAKES_H_
