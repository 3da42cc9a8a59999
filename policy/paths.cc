#include "bulkhead/policy/paths.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace bulkhead::policy {

PathProblem NormalisePath(absl::string_view path, std::string* normal) {
  normal->clear();
  if (path.empty()) return PathProblem::kEmpty;
  if (HasControlCharacter(path)) return PathProblem::kControlCharacter;
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
  }
  return "";
}

bool HasDotDot(absl::string_view path) {
  for (const absl::string_view component : absl::StrSplit(path, '/')) {
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
  return absl::StartsWith(path, folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

absl::string_view FolderOf(absl::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string JoinPath(absl::string_view folder, absl::string_view path) {
  const std::string joined = absl::StartsWith(path, "/") ? std::string(path) : absl::StrCat(folder, "/", path);
  const bool absolute = absl::StartsWith(joined, "/");
  std::vector<absl::string_view> components;
  for (const absl::string_view component : absl::StrSplit(joined, '/')) {
    if (component.empty() || component == ".") continue;
    if (component != ".." || (!absolute && (components.empty() || components.back() == ".."))) {
      components.push_back(component);
    } else if (!components.empty()) {
      components.pop_back();
    }
  }
  return absl::StrCat(absolute ? "/" : "", absl::StrJoin(components, "/"));
}

}  // namespace bulkhead::policy
