#include "bulkhead/cli/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

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
  for (const absl::string_view line : absl::StrSplit(message, '\n')) absl::StrAppend(&text, "bulkhead: ", line, "\n");
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

std::string Quote(absl::string_view word) {
  if (IsPlain(word)) return std::string(word);
  // U+0080 to U+009F are control characters too (ECMA-48), which Utf8SafeCHexEscape lets through.
  for (std::size_t i = 0; i + 1 < word.size(); ++i) {
    const auto next = static_cast<unsigned char>(word[i + 1]);
    if (word[i] == '\xc2' && next >= 0x80 && next <= 0x9f) return absl::StrCat("\"", absl::CHexEscape(word), "\"");
  }
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(word), "\"");
}

std::string EscapeControls(absl::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool is_c1 = c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (is_c1 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      absl::StrAppend(&out, "\\x", absl::BytesToHexString(text.substr(i, is_c1 ? 2 : 1)));
      if (is_c1) ++i;
    } else {
      out += text[i];
    }
  }
  return out;
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
