#include "bulkhead/launcher/resolved_path.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

absl::Status CantUse(absl::string_view path, absl::string_view at, int error) {
  const std::string where = at == path ? "" : absl::StrCat(" at ", policy::Quote(at));
  if (error == ENOENT)
    return absl::NotFoundError(
        absl::StrCat(policy::Quote(path), " does not exist", where.empty() ? "" : ": nothing", where));
  return absl::PermissionDeniedError(
      absl::StrCat("can't look at ", policy::Quote(path), where, ": ", std::strerror(error)));
}

// Walks `path` link by link. Fills `resolved` as far as it gets. Looks at each component once: this is most of what a
// plan costs in system calls.
absl::Status Walk(absl::string_view path, ResolvedPath& resolved) {
  std::string at;          // "" is "/"
  std::string todo(path);  // what is left to walk, from `next` on
  std::size_t next = 0;
  bool is_known_folder = true;  // instead of what resolved.info says, which is of another path then
  int links = 0;
  for (;;) {
    next = todo.find_first_not_of('/', next);
    if (next == std::string::npos) break;
    const std::size_t end = std::min(todo.find('/', next), todo.size());
    const absl::string_view part = absl::string_view(todo).substr(next, end - next);
    next = end;
    if (part == ".") continue;
    if (!is_known_folder && !S_ISDIR(resolved.info.st_mode)) return CantUse(path, at, ENOTDIR);
    if (part == "..") {
      at.erase(at.rfind('/') == std::string::npos ? 0 : at.rfind('/'));
      is_known_folder = true;
      continue;
    }
    const std::size_t above = at.size();
    absl::StrAppend(&at, "/", part);
    if (lstat(at.c_str(), &resolved.info) != 0) return CantUse(path, at, errno);
    is_known_folder = false;
    if (!S_ISLNK(resolved.info.st_mode)) continue;
    if (++links > kSymlinksMax) return CantUse(path, at, ELOOP);
    char text[PATH_MAX + 1];
    const ssize_t bytes = readlink(at.c_str(), text, PATH_MAX);
    if (bytes <= 0) return CantUse(path, at, bytes < 0 ? errno : ENOENT);
    const absl::string_view target(text, static_cast<std::size_t>(bytes));
    resolved.links.push_back({at, std::string(target)});
    at.erase(text[0] == '/' ? 0 : above);
    is_known_folder = true;
    todo = absl::StrCat(target, "/", todo.substr(next));
    next = 0;
  }
  if (is_known_folder && lstat(at.empty() ? "/" : at.c_str(), &resolved.info) != 0) return CantUse(path, at, errno);
  resolved.real = at.empty() ? "/" : std::move(at);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResolvedPath> ResolvePath(absl::string_view path) {
  ResolvedPath resolved;
  resolved.asked_for = std::string(path);
  const absl::Status status = Walk(path, resolved);
  if (!status.ok()) return status;
  return resolved;
}

absl::StatusOr<ResolvedPath> ResolvePathBeneath(absl::string_view path, absl::string_view beneath) {
  absl::StatusOr<ResolvedPath> resolved = ResolvePath(path);
  if (!resolved.ok()) return resolved;
  const absl::StatusOr<ResolvedPath> folder = ResolvePath(beneath);
  if (!folder.ok()) return folder.status();
  if (IsWithin(resolved->real, folder->real)) return resolved;
  return absl::PermissionDeniedError(absl::StrCat(policy::Quote(path), " leads out of ", policy::Quote(beneath),
                                                  " through a link, to ", policy::Quote(resolved->real),
                                                  "; name the real path in the policy if that is what you want"));
}

bool IsWithin(absl::string_view path, absl::string_view folder) {
  if (folder == "/") return true;
  return path.substr(0, folder.size()) == folder && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace bulkhead::launcher
