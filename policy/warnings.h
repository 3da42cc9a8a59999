// Grants that a policy may make and that defeat the jail, or come close to it: said to people by `bulkhead check`, and
// mistakes there with --strict. What is not listed is not thereby safe.
#ifndef BULKHEAD_POLICY_WARNINGS_H_
#define BULKHEAD_POLICY_WARNINGS_H_

#include <optional>
#include <string>
#include <vector>

#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

// What is known of the machine. All paths absolute and normal; what is not known is not warned of.
struct WarningContext {
  std::optional<std::string> home;
  std::string path_list;                  // the host's PATH
  std::vector<std::string> policy_files;  // the policy and the ceilings, wherever they were read from
};

// One text for each, in the order of the file: "files.json:7: /filesystem/rw: lets ...; what would help", or without
// the line for what is no path. Paths are compared as text: links are not looked at. Never an environment value.
std::vector<std::string> Warnings(const Policy& policy, const WarningContext& context);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_WARNINGS_H_
