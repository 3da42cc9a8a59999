// Writing for people and scripts. stdout is for results, stderr for what Bulkhead itself has to say; plain write(2),
// because `run` starts faster without iostreams.
#ifndef BULKHEAD_CLI_OUTPUT_H_
#define BULKHEAD_CLI_OUTPUT_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace bulkhead::cli {

// INTERFACE: what `bulkhead` itself exits with. The server's own codes pass through unchanged.
inline constexpr int kExitCheckFailed = 1;  // check, doctor: the answer is no
inline constexpr int kExitUsage = 64;
inline constexpr int kExitFailed = 125;
inline constexpr int kExitRefused = 126;

// Every line of `message` on stderr, each after "bulkhead: ", with what a terminal wouldn't show as itself written out
// (policy/text.h). A stderr that can't be written is ignored.
void Complain(absl::string_view message);
// The status's message, then `exit_code`, to be returned from main.
int Fail(const absl::Status& status, int exit_code);
// A usage error: the message and where to read more, then kExitUsage. `command` may be empty.
int FailUsage(const absl::Status& status, absl::string_view command);

// The whole result on stdout. Returns 0, or complains and returns kExitFailed.
int PrintResult(absl::string_view text);

// The same for people: what a terminal wouldn't show as itself is written out, all but line breaks.
int PrintText(absl::string_view text);

// `word` as it is when it is plain; else in double quotes, escaped as policy::Quote does, and never cut.
std::string Quote(absl::string_view word);

// Appends `left`, then `text` broken into lines at its spaces; the later ones begin below `text`, at `indent`, which is
// how many columns `left` takes.
void AppendWrapped(std::string* out, absl::string_view left, std::size_t indent, absl::string_view text);

// Escape sequences, or nothing when they aren't wanted.
class Style {
 public:
  // Colours only when stdout is a terminal that has them and NO_COLOR is not set (https://no-color.org).
  static Style ForStdout();
  static Style None() { return Style(false); }

  std::string Bold(absl::string_view text) const { return Wrap("1", text); }
  std::string Good(absl::string_view text) const { return Wrap("32", text); }
  std::string Weak(absl::string_view text) const { return Wrap("33", text); }
  std::string Bad(absl::string_view text) const { return Wrap("31", text); }

 private:
  explicit Style(bool colours) : colours_(colours) {}
  std::string Wrap(absl::string_view code, absl::string_view text) const;
  bool colours_;
};

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_OUTPUT_H_
