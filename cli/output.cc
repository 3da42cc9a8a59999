#include "bulkhead/cli/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::cli {
namespace {

constexpr std::size_t kColumnsMax = 110;

// Returns 0 or an errno.
int WriteAll(int fd, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

bool IsPlain(absl::string_view word) {
  for (const char c : word) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_@%+=:,./-~*{}$[]", c);
    if (!plain) return false;
  }
  return !word.empty();
}

}  // namespace

void Complain(absl::string_view message) {
  while (absl::EndsWith(message, "\n")) message.remove_suffix(1);
  std::string text;
  for (const absl::string_view line : absl::StrSplit(message, '\n'))
    absl::StrAppend(&text, "bulkhead: ", policy::Visible(line, "\t"), "\n");
  WriteAll(STDERR_FILENO, text);
}

int Fail(const absl::Status& status, int exit_code) {
  Complain(status.message());
  return exit_code;
}

int FailUsage(const absl::Status& status, absl::string_view command) {
  Complain(status.message());
  Complain(absl::StrCat("see: bulkhead ", command, command.empty() ? "" : " ", "--help"));
  return kExitUsage;
}

int PrintResult(absl::string_view text) {
  const int error = WriteAll(STDOUT_FILENO, text);
  if (error == 0) return 0;
  Complain(absl::StrCat("cannot write the result to stdout: ", strerror(error)));
  return kExitFailed;
}

int PrintText(absl::string_view text) { return PrintResult(policy::Visible(text, "\n")); }

std::string Quote(absl::string_view word) {
  return IsPlain(word) ? std::string(word) : policy::Quote(word, absl::string_view::npos);
}

void AppendWrapped(std::string* out, absl::string_view left, std::size_t indent, absl::string_view text) {
  absl::StrAppend(out, left);
  std::size_t column = indent;
  bool first = true;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!first && column + 1 + word.size() > kColumnsMax) {
      absl::StrAppend(out, "\n", std::string(indent, ' '));
      column = indent;
    } else if (!first) {
      absl::StrAppend(out, " ");
      ++column;
    }
    absl::StrAppend(out, word);
    column += word.size();
    first = false;
  }
  while (absl::EndsWith(*out, " ")) out->pop_back();
  absl::StrAppend(out, "\n");
}

Style Style::ForStdout() {
  const char* no_color = getenv("NO_COLOR");
  const char* term = getenv("TERM");
  const bool wanted = no_color == nullptr || no_color[0] == '\0';
  const bool able = term != nullptr && absl::string_view(term) != "dumb" && isatty(STDOUT_FILENO) == 1;
  return Style(wanted && able);
}

std::string Style::Wrap(absl::string_view code, absl::string_view text) const {
  if (!colours_) return std::string(text);
  return absl::StrCat("\x1b[", code, "m", text, "\x1b[0m");
}

}  // namespace bulkhead::cli
