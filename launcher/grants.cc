#include "bulkhead/launcher/grants.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {

absl::StatusOr<ResolvedPath> ResolveGrant(const policy::PathGrant& grant) {
  absl::StatusOr<ResolvedPath> resolved =
      grant.beneath.empty() ? ResolvePath(grant.path) : ResolvePathBeneath(grant.path, grant.beneath);
  for (const std::string& folder : grant.also_beneath) {
    if (resolved.ok()) resolved = ResolvePathBeneath(grant.path, folder);
  }
  return resolved;
}

absl::Status RefuseGrant(const policy::PathGrant& grant, const absl::Status& why) {
  std::string help;
  if (absl::IsNotFound(why)) help = "; make it, correct the path, or mark the grant \"optional\"";
  return absl::PermissionDeniedError(absl::StrCat(grant.origin, ": ", why.message(), help));
}

absl::Status CheckGrantedType(const policy::PathGrant& grant, const ResolvedPath& path) {
  const mode_t type = path.info.st_mode & S_IFMT;
  if (type == S_IFDIR || type == S_IFREG || type == S_IFSOCK) return absl::OkStatus();
  return RefuseGrant(
      grant, absl::PermissionDeniedError(absl::StrCat(
                 policy::Quote(grant.path), " is a device or a FIFO; only files, folders and sockets can be granted")));
}

std::vector<std::string> FoldersForWriting(const policy::FilesystemRules& files, const std::string& home) {
  std::vector<std::string> real;
  const auto add = [&real](const std::string& path) {
    const absl::StatusOr<ResolvedPath> resolved = ResolvePath(path);
    if (resolved.ok()) real.push_back(resolved->real);
  };
  for (const policy::PathGrant& grant : files.rw) add(grant.path);
  if (files.home == policy::HomeMode::kReadWrite) add(home);
  if (files.tmp == policy::TmpMode::kHost) add("/tmp");
  return real;
}

absl::Status RefuseWorkingFolder(const std::string& cwd, const absl::StatusOr<ResolvedPath>& resolved) {
  return absl::PermissionDeniedError(
      absl::StrCat("cannot use the working folder: ",
                   resolved.ok() ? absl::StrCat(policy::Quote(cwd), " is not a folder") : resolved.status().message()));
}

}  // namespace bulkhead::launcher
