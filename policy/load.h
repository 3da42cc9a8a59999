// Policies from files: the one place of policy/ that looks at the disk. What is refused is refused before it is read: a
// folder, a pipe, a device, a file over kPolicyBytesMax.
#ifndef BULKHEAD_POLICY_LOAD_H_
#define BULKHEAD_POLICY_LOAD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

// The ceiling of the whole machine: applied whenever it is there, and no flag takes it away.
#ifdef _WIN32
inline constexpr absl::string_view kSystemCeilingPath = "C:\\ProgramData\\bulkhead\\ceiling.json";
#else
inline constexpr absl::string_view kSystemCeilingPath = "/etc/bulkhead/ceiling.json";
#endif

// The text of a policy file. FailedPrecondition when it is missing or is not a readable file, saying which of these.
absl::StatusOr<std::string> ReadPolicyFile(const std::string& path);

// The ceilings named, and before them the one at `system_path` if anything is there. One that can't be read is an
// error: no start without it. FailedPrecondition, as above.
absl::StatusOr<std::vector<PolicyText>> LoadCeilings(const std::vector<std::string>& paths,
                                                     absl::string_view system_path = kSystemCeilingPath);

// Reads and parses the policy at `path`, under the ceiling at `system_ceiling` if it is there and the ones in
// `options.ceilings`; read_file and folder are filled in where absent. Relative paths start from the current folder.
// FailedPrecondition when a file can't be read, InvalidArgument as of ParsePolicy. A change of the process's current
// folder at the same time can mislead it; otherwise any thread may call.
absl::StatusOr<Policy> LoadPolicy(const std::string& path, ParseOptions options = {},
                                  absl::string_view system_ceiling = kSystemCeilingPath);

// The same for a built-in policy: "node". InvalidArgument if there is none of that name.
absl::StatusOr<Policy> LoadPreset(absl::string_view name, ParseOptions options = {},
                                  absl::string_view system_ceiling = kSystemCeilingPath);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_LOAD_H_
