// Programs and command lines by Windows' rules, as functions of text, so that all of them are tested on every system:
// what a name is, where a bare one is looked for, what counts as a batch file, and the one string that CreateProcessW
// is given. Text is UTF-8 here; lengths are in UTF-16 units, as Windows counts.
//
// Windows has no argv: each program takes its command line apart by itself. Nearly all do it by the rules of
// CommandLineToArgvW and the C runtime ("Parsing C command-line arguments"), which can be quoted for exactly. A batch
// file is run by cmd.exe, which has other rules and none that can be quoted for: CVE-2024-24576, CVE-2024-27980. So it
// is refused, or started only with arguments that both rules read alike.
#ifndef BULKHEAD_POLICY_WINDOWS_COMMAND_H_
#define BULKHEAD_POLICY_WINDOWS_COMMAND_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

// CreateProcessW, lpCommandLine: 32,767 with the NUL at the end.
inline constexpr std::size_t kWindowsCommandLineUnitsMax = 32766;
// cmd.exe reads no longer line ("Command prompt line string limitation").
inline constexpr std::size_t kBatchCommandLineUnitsMax = 8191;

// "C:\x" or "\\server\share". "\x" and "C:x" depend on a current drive or folder.
bool IsWindowsAbsolute(absl::string_view path);

// What keeps `program` - absolute, relative or a bare name - from being the name of one file, whatever the current
// drive is: "names a stream of a file". Empty if nothing does.
absl::string_view WhyNoWindowsProgram(absl::string_view program);

// Whether Windows would give `name` to cmd.exe, whatever hides it: case, a path, trailing dots and spaces, which
// Windows drops, and streams ("x.bat:s", "x.bat::$DATA", "x.txt:y.cmd").
bool IsBatchFile(absl::string_view name);

// Why `text`, an argument, can't be passed through cmd.exe unchanged, whatever the batch file does with it: "has a '%'
// in it". Empty if it can, in quotes. Of the text it repeats that one character at most.
std::string WhyNotThroughCmd(absl::string_view text);

// The folders of a PATH in which a bare name is looked for: absolute ones, without the quotes that some have. Never the
// current folder, in no guise.
std::vector<std::string> WindowsSearchFolders(absl::string_view path_list);

// What the file of a bare `name` may be called, in order; look for all of them in one folder before the next. A name
// that ends with one of PATHEXT is meant as it is. Of PATHEXT only .com, .exe, .bat and .cmd count: all else is a
// document, which the shell would open. Empty `pathext`: these four.
std::vector<std::string> WindowsFileNames(absl::string_view name, absl::string_view pathext);

// What CreateProcessW is given. `application` is absolute, so that Windows searches for nothing and guesses nothing.
struct WindowsStart {
  std::string application;
  std::string command_line;
};

// `program` is the file that was found, absolute; `argv` as in ValidatedCommand (its [0] is not used); `system_folder`
// what GetSystemDirectoryW says, never %COMSPEC%. A batch file is given to cmd.exe, the whole line wrapped once, if
// `batch_files` says checked. Errors: PermissionDenied when that is refused, or an argument or the batch file's name is
// not safe; InvalidArgument when a text is not UTF-8, holds a NUL, or the line is too long.
absl::StatusOr<WindowsStart> MakeWindowsStart(const std::string& program, const std::vector<std::string>& argv,
                                              BatchFiles batch_files, absl::string_view system_folder);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_WINDOWS_COMMAND_H_
