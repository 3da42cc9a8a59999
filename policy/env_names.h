// Names of environment variables: which are names at all, and which never pass from the host's environment because they
// make a loader, an interpreter or a tool run other code.
#ifndef BULKHEAD_POLICY_ENV_NAMES_H_
#define BULKHEAD_POLICY_ENV_NAMES_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

inline constexpr std::size_t kEnvNameBytesMax = 255;

// Printable ASCII without spaces, '=', '$', '{', '}', quotes, '*' and '?'; Windows has names such as
// "ProgramFiles(x86)".
bool IsEnvName(absl::string_view name);

// `name` as the system compares it: on Windows case makes no difference, so all of it in capitals. Also for a glob.
std::string FoldEnvName(absl::string_view name, Platform platform);

// Why `name` never passes by `inherit`, neither by its name nor by a glob: "makes other programs run other code". Empty
// if it may. A policy can still give such a variable a value of its own under /env/set.
absl::string_view WhyNeverInherited(absl::string_view name, bool ignore_case);

// The same for a value: where packages come from is passed on, but not with a user and a password in the address. Never
// repeats the value.
absl::string_view WhyValueNeverInherited(absl::string_view name, absl::string_view value);

// An exported function of bash (CVE-2014-6271 and its kin): by name, and by value. Never passes at all.
bool IsFunctionName(absl::string_view name);
bool IsFunctionValue(absl::string_view value);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_ENV_NAMES_H_
