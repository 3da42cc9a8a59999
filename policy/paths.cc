#include "bulkhead/policy/paths.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace bulkhead::policy {
namespace {

// "Naming Files, Paths, and Namespaces": what may not be in a name.
constexpr absl::string_view kNotInWindowsNames = "<>:\"|?*";
constexpr absl::string_view kDevices[] = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"};
// These end with a digit; a superscript one counts as one.
constexpr absl::string_view kNumberedDevices[] = {"COM", "LPT"};

// Whether Windows may give this component another meaning than that of a file with this name.
bool IsOtherNameOnWindows(absl::string_view component) {
  if (component.back() == '.' || component.back() == ' ') return true;
  if (component.find_first_of(kNotInWindowsNames) != absl::string_view::npos) return true;
  // What follows the first dot doesn't count, nor do spaces before it.
  const absl::string_view stem = absl::StripTrailingAsciiWhitespace(component.substr(0, component.find('.')));
  for (const absl::string_view device : kDevices) {
    if (absl::EqualsIgnoreCase(stem, device)) return true;
  }
  for (const absl::string_view device : kNumberedDevices) {
    if (!absl::StartsWithIgnoreCase(stem, device)) continue;
    const absl::string_view number = stem.substr(device.size());
    if (number == "\u00b9" || number == "\u00b2" || number == "\u00b3") return true;
    if (number.size() == 1 && absl::ascii_isdigit(static_cast<unsigned char>(number[0]))) return true;
  }
  return false;
}

PathProblem NormaliseWindowsPath(absl::string_view path, std::string* normal) {
  if (!BeginsWithDrive(path)) return PathProblem::kNoDrive;
  *normal = absl::StrCat(path.substr(0, 2));
  absl::AsciiStrToUpper(normal);
  for (const absl::string_view component : absl::StrSplit(path.substr(2), absl::ByAnyChar("/\\"))) {
    if (component.empty() || component == ".") continue;
    if (component == "..") return PathProblem::kDotDot;
    if (IsOtherNameOnWindows(component)) return PathProblem::kOtherName;
    absl::StrAppend(normal, "\\", component);
  }
  if (normal->size() == 2) normal->push_back('\\');
  return normal->size() > kPathBytesMax ? PathProblem::kTooLong : PathProblem::kNone;
}

}  // namespace

PathProblem NormalisePath(absl::string_view path, std::string* normal, Platform platform) {
  normal->clear();
  if (path.empty()) return PathProblem::kEmpty;
  if (HasControlCharacter(path)) return PathProblem::kControlCharacter;
  if (platform == Platform::kWindows) return NormaliseWindowsPath(path, normal);
  if (path.front() != '/') return PathProblem::kNotAbsolute;
  for (const absl::string_view component : absl::StrSplit(path, '/')) {
    if (component.empty() || component == ".") continue;
    if (component == "..") return PathProblem::kDotDot;
    absl::StrAppend(normal, "/", component);
  }
  if (normal->empty()) *normal = "/";
  return normal->size() > kPathBytesMax ? PathProblem::kTooLong : PathProblem::kNone;
}

absl::string_view PathProblemText(PathProblem problem) {
  switch (problem) {
    case PathProblem::kNone:
      return "is a path";
    case PathProblem::kEmpty:
      return "is empty";
    case PathProblem::kNotAbsolute:
      return "is not absolute";
    case PathProblem::kDotDot:
      return "has a \"..\" component";
    case PathProblem::kControlCharacter:
      return "has a control character";
    case PathProblem::kTooLong:
      return "is longer than 4095 bytes";
    case PathProblem::kNoDrive:
      return "does not begin with a drive, as \"C:\\\\data\" does";
    case PathProblem::kOtherName:
      return "has a name in it that Windows takes for another one, for a device or for a stream";
  }
  return "";
}

bool BeginsWithDrive(absl::string_view path) {
  return path.size() >= 3 && absl::ascii_isalpha(static_cast<unsigned char>(path[0])) && path[1] == ':' &&
         (path[2] == '/' || path[2] == '\\');
}

bool HasSlash(absl::string_view text, Platform platform) {
  return text.find_first_of(platform == Platform::kWindows ? "/\\" : "/") != absl::string_view::npos;
}

bool HasDotDot(absl::string_view path) {
  if (!absl::StrContains(path, "..")) return false;
  const bool windows = BeginsWithDrive(path);
  for (const absl::string_view component : absl::StrSplit(path, absl::ByAnyChar(windows ? "/\\" : "/"))) {
    if (component == "..") return true;
  }
  return false;
}

bool HasControlCharacter(absl::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (absl::ascii_iscntrl(byte)) return true;
    if (byte == 0xC2 && i + 1 < text.size() && (text[i + 1] & 0xE0) == 0x80) return true;  // U+0080 to U+009F
  }
  return false;
}

bool IsWithin(absl::string_view path, absl::string_view folder) {
  if (folder == "/") return absl::StartsWith(path, "/");
  if (!absl::StartsWith(path, folder)) return false;
  if (BeginsWithDrive(folder)) return folder.size() == 3 || path.size() == folder.size() || path[folder.size()] == '\\';
  return path.size() == folder.size() || path[folder.size()] == '/';
}

std::string FolderOf(absl::string_view path, Platform platform) {
  const std::size_t slash = path.find_last_of(platform == Platform::kWindows ? "/\\" : "/");
  if (slash == absl::string_view::npos) return ".";
  const bool is_root = slash == 0 || (platform == Platform::kWindows && slash == 2 && path[1] == ':');
  return std::string(path.substr(0, is_root ? slash + 1 : slash));
}

std::string JoinPath(absl::string_view folder, absl::string_view path, Platform platform) {
  const bool windows = platform == Platform::kWindows;
  const auto is_absolute = [windows](absl::string_view text) {
    return absl::StartsWith(text, "/") || (windows && (BeginsWithDrive(text) || absl::StartsWith(text, "\\")));
  };
  std::string joined = is_absolute(path) ? std::string(path) : absl::StrCat(folder, "/", path);
  const bool absolute = is_absolute(joined);
  if (windows) std::replace(joined.begin(), joined.end(), '\\', '/');
  std::vector<absl::string_view> components;
  absl::string_view rest = joined;
  std::string root = absolute ? "/" : "";
  if (windows && BeginsWithDrive(joined)) {
    root = joined.substr(0, 3);
    rest.remove_prefix(3);
  } else if (windows && absl::StartsWith(joined, "//")) {
    root = "//";
  }
  for (const absl::string_view component : absl::StrSplit(rest, '/')) {
    if (component.empty() || component == ".") continue;
    if (component != ".." || (!absolute && (components.empty() || components.back() == ".."))) {
      components.push_back(component);
    } else if (!components.empty()) {
      components.pop_back();
    }
  }
  return absl::StrCat(root, absl::StrJoin(components, "/"));
}

std::string PolicyFileName(const std::string& path) {
  return absl::StartsWith(path, "preset:") ? absl::StrCat("./", path) : path;
}

}  // namespace bulkhead::policy
