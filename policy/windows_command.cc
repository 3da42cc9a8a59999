#include "bulkhead/policy/windows_command.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::policy {
namespace {

// What CreateProcessW can start by itself or through cmd.exe, and PATHEXT's first four when Windows is new.
constexpr absl::string_view kExtensions[] = {".com", ".exe", ".bat", ".cmd"};
constexpr absl::string_view kBatchExtensions[] = {".bat", ".cmd"};

bool IsSlash(char c) { return c == '/' || c == '\\'; }

template <std::size_t N>
bool EndsWithOneOf(absl::string_view text, const absl::string_view (&endings)[N]) {
  return std::any_of(std::begin(endings), std::end(endings),
                     [text](absl::string_view ending) { return absl::EndsWithIgnoreCase(text, ending); });
}

absl::string_view LastComponent(absl::string_view path) { return path.substr(path.find_last_of("/\\") + 1); }

// "\\?\" and "\\.\": names that go past Windows' own rules for names, on which those above build.
bool IsDevicePath(absl::string_view path) {
  return path.size() > 3 && IsSlash(path[0]) && IsSlash(path[1]) && (path[2] == '?' || path[2] == '.') &&
         IsSlash(path[3]);
}

// `argument` in quotes, as CommandLineToArgvW and the C runtime read it: backslashes are themselves, but before a quote
// two stand for one and one more makes the quote a character.
void AppendQuoted(absl::string_view argument, std::string* line) {
  std::size_t backslashes = 0;
  line->push_back('"');
  for (const char c : argument) {
    if (c == '"') line->append(backslashes + 1, '\\');
    backslashes = c == '\\' ? backslashes + 1 : 0;
    line->push_back(c);
  }
  line->append(backslashes, '\\');  // before the closing quote
  line->push_back('"');
}

void AppendArgument(absl::string_view argument, std::string* line) {
  if (!argument.empty() && argument.find_first_of(" \t\n\v\"") == absl::string_view::npos) {
    absl::StrAppend(line, argument);
  } else {
    AppendQuoted(argument, line);
  }
}

// `text` is valid UTF-8. What needs four bytes there needs two units, all else one.
std::size_t Utf16Units(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }) +
         std::count_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xF0; });
}

absl::Status CheckText(absl::string_view which, absl::string_view text) {
  if (absl::StrContains(text, '\0')) {
    return absl::InvalidArgumentError(absl::StrCat(which, " has a NUL in it, which no program can be given"));
  }
  if (FindInvalidUtf8(text) != absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(which, " is not UTF-8, of which Windows' UTF-16 is made"));
  }
  return absl::OkStatus();
}

absl::Status CheckLength(absl::string_view program, absl::string_view line, std::size_t units_max) {
  const std::size_t units = Utf16Units(line);
  if (units <= units_max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the command line for ", Quote(program), " is ", units,
                                                 " characters long, of at most ", units_max, "; pass a file instead"));
}

// The quote ends quoting for cmd.exe, however it is escaped; "%" counts in quotes, too; "!" is for those that turn on
// delayed expansion.
constexpr char kNotInBatchPaths[] = "\"%^&|<>!";

// As WhyNotThroughCmd.
std::string HasOneOf(absl::string_view characters, absl::string_view text) {
  const std::size_t at = text.find_first_of(characters);
  if (at != absl::string_view::npos) return absl::StrCat("has a '", text.substr(at, 1), "' in it");
  const bool breaks = std::any_of(
      text.begin(), text.end(), [](char c) { return c != '\t' && absl::ascii_iscntrl(static_cast<unsigned char>(c)); });
  return breaks ? "has a line break or another control character in it" : "";
}

absl::StatusOr<WindowsStart> MakeBatchStart(const std::string& program, const std::vector<std::string>& argv,
                                            BatchFiles batch_files, absl::string_view system_folder) {
  const std::string quoted = Quote(program);
  if (batch_files == BatchFiles::kRefuse) {
    return absl::PermissionDeniedError(absl::StrCat(quoted,
                                                    " is a batch file, whose arguments can't be passed "
                                                    "safely; start the program that it starts"));
  }
  if (IsDevicePath(program) || !EndsWithOneOf(program, kBatchExtensions)) {
    return absl::PermissionDeniedError(
        absl::StrCat(quoted, " is a batch file in disguise; name it plainly, as in \"C:\\folder\\name.cmd\""));
  }
  std::string why = HasOneOf(kNotInBatchPaths, program);  // "C:\\Program Files (x86)" is a folder of many
  if (!why.empty()) {
    return absl::PermissionDeniedError(absl::StrCat("the batch file ", quoted, " ", why, "; move it elsewhere"));
  }
  // /d: nothing of the registry's AutoRun. /e:on, /v:off: what the registry or the host's own cmd.exe says about
  // extensions and "!" doesn't count. /s: the first and the last quote after /c are taken away, and nothing else is
  // guessed. A slash would begin an option of cmd.exe.
  std::string line = "cmd.exe /d /e:on /v:off /s /c \"";
  std::string script = program;
  std::replace(script.begin(), script.end(), '/', '\\');
  AppendQuoted(script, &line);
  for (std::size_t i = 1; i < argv.size(); ++i) {
    why = WhyNotThroughCmd(argv[i]);
    if (!why.empty()) {
      return absl::PermissionDeniedError(absl::StrCat("argument ", i, " ", why,
                                                      ", which can't be passed to the batch "
                                                      "file ",
                                                      quoted, "; start the program that it starts"));
    }
    line.push_back(' ');
    AppendQuoted(argv[i], &line);
  }
  line.push_back('"');
  absl::Status status = CheckLength(program, line, kBatchCommandLineUnitsMax);
  if (!status.ok()) return status;
  return WindowsStart{absl::StrCat(absl::StripSuffix(system_folder, "\\"), "\\cmd.exe"), std::move(line)};
}

}  // namespace

bool IsWindowsAbsolute(absl::string_view path) {
  if (path.size() < 3) return false;
  const bool has_drive = absl::ascii_isalpha(static_cast<unsigned char>(path[0])) && path[1] == ':' && IsSlash(path[2]);
  return has_drive || (IsSlash(path[0]) && IsSlash(path[1]));
}

absl::string_view WhyNoWindowsProgram(absl::string_view program) {
  if (IsDevicePath(program)) return "";  // "\\?\C:\x" has a colon of its own
  const bool is_absolute = IsWindowsAbsolute(program);
  if (!is_absolute && !program.empty() && IsSlash(program[0])) return "depends on the current drive";
  // A drive's colon is the second character; any other begins a stream's name.
  const std::size_t colon = program.find(':', is_absolute ? 2 : 0);
  if (colon == absl::string_view::npos) return "";
  return colon == 1 ? "depends on the current folder of a drive" : "names a stream of a file";
}

bool IsBatchFile(absl::string_view name) {
  for (absl::string_view piece : absl::StrSplit(LastComponent(name), ':')) {
    while (!piece.empty() && (piece.back() == '.' || absl::ascii_isspace(static_cast<unsigned char>(piece.back())))) {
      piece.remove_suffix(1);
    }
    if (EndsWithOneOf(piece, kBatchExtensions)) return true;
  }
  return false;
}

std::string WhyNotThroughCmd(absl::string_view text) {
  // In quotes these would be harmless if every batch file kept the quotes, and they don't: "%~1" takes them off. A
  // parenthesis then ends the block that the line is in, and what follows is a command.
  return HasOneOf(kNotInBatchPaths + std::string("()"), text);
}

std::vector<std::string> WindowsSearchFolders(absl::string_view path_list) {
  std::vector<std::string> folders;
  std::string folder;
  bool quoted = false;  // a ';' in quotes is part of a folder's name
  const auto end_folder = [&] {
    if (IsWindowsAbsolute(folder)) folders.push_back(folder);
    folder.clear();
  };
  for (const char c : path_list) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ';' && !quoted) {
      end_folder();
    } else {
      folder.push_back(c);
    }
  }
  end_folder();
  return folders;
}

std::vector<std::string> WindowsFileNames(absl::string_view name, absl::string_view pathext) {
  std::vector<std::string> extensions;
  for (absl::string_view word : absl::StrSplit(pathext, ';')) {
    const std::string extension = absl::AsciiStrToLower(absl::StripAsciiWhitespace(word));
    if (std::find(std::begin(kExtensions), std::end(kExtensions), extension) == std::end(kExtensions)) continue;
    if (std::find(extensions.begin(), extensions.end(), extension) == extensions.end()) extensions.push_back(extension);
  }
  if (pathext.empty()) {
    for (const absl::string_view extension : kExtensions) extensions.emplace_back(extension);
  }
  std::vector<std::string> names;
  for (const std::string& extension : extensions) {
    if (absl::EndsWithIgnoreCase(name, extension)) return {std::string(name)};
    names.push_back(absl::StrCat(name, extension));
  }
  return names;
}

absl::StatusOr<WindowsStart> MakeWindowsStart(const std::string& program, const std::vector<std::string>& argv,
                                              BatchFiles batch_files, absl::string_view system_folder) {
  absl::Status status = CheckText("the program's name", program);
  for (std::size_t i = 1; status.ok() && i < argv.size(); ++i)
    status = CheckText(absl::StrCat("argument ", i), argv[i]);
  if (!status.ok()) return status;
  // A quote, which no file's name has, could not be told from the end of the name: the first word knows no backslashes.
  if (!IsWindowsAbsolute(program) || absl::StrContains(program, '"')) {
    return absl::InvalidArgumentError(absl::StrCat(Quote(program), " is not the full path of a file"));
  }
  if (IsBatchFile(program)) return MakeBatchStart(program, argv, batch_files, system_folder);
  if (const absl::string_view why = WhyNoWindowsProgram(program); !why.empty()) {
    return absl::PermissionDeniedError(absl::StrCat(Quote(program), " ", why, "; name a file"));
  }
  WindowsStart start{program, absl::StrCat("\"", program, "\"")};
  for (std::size_t i = 1; i < argv.size(); ++i) {
    start.command_line.push_back(' ');
    AppendArgument(argv[i], &start.command_line);
  }
  status = CheckLength(program, start.command_line, kWindowsCommandLineUnitsMax);
  if (!status.ok()) return status;
  return start;
}

}  // namespace bulkhead::policy
