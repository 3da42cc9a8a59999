// What a policy's paths are on this machine's disk, for the backends of systems with POSIX paths.
#ifndef BULKHEAD_LAUNCHER_GRANTS_H_
#define BULKHEAD_LAUNCHER_GRANTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bulkhead/launcher/resolved_path.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::launcher {

// What the grant names, which lies in the folder of its variable and in those of the ceilings. Errors are those of
// ResolvePathBeneath: NotFound is not yet a refusal, since the grant may be optional, or ours to make.
absl::StatusOr<ResolvedPath> ResolveGrant(const policy::PathGrant& grant);

// PermissionDenied, with the grant's place in the policy and what would help.
absl::Status RefuseGrant(const policy::PathGrant& grant, const absl::Status& why);

// Refuses devices and FIFOs.
absl::Status CheckGrantedType(const policy::PathGrant& grant, const ResolvedPath& path);

// The real paths in and below which the policy lets the server write; `protect` and `hide` not counted.
// `home` is the server's HOME, or empty.
std::vector<std::string> FoldersForWriting(const policy::FilesystemRules& files, const std::string& home);

// Why a working folder that was asked for can't be used: `resolved` is what became of it, and is no folder.
absl::Status RefuseWorkingFolder(const std::string& cwd, const absl::StatusOr<ResolvedPath>& resolved);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_GRANTS_H_
