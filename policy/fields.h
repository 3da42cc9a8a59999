// From a composed tree to the fields of a policy: variables are expanded, paths made normal, defaults filled in.
#ifndef BULKHEAD_POLICY_FIELDS_H_
#define BULKHEAD_POLICY_FIELDS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bulkhead/policy/json.h"
#include "bulkhead/policy/mistakes.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

// A policy on its way, with what only ceilings ask for.
struct Draft {
  PolicyFields fields;
  Platform platform = Platform::kPosix;
  // The names of the host's environment that a grant's path, another file's path (stderr, a secret), or a value under
  // env.set was made from.
  std::map<std::string, std::vector<std::string>> env_names_of_grant;
  std::map<std::string, std::vector<std::string>> env_names_of_file;
  std::map<std::string, std::vector<std::string>> env_names_of_set;
  // Where these are said, for messages: "ceiling.json:7:3".
  std::string cwd_allow_origin, sha256_origin;
};

// What an absent field means. It is the same for both but for pure limits, where a ceiling's silence is no limit.
enum class Purpose { kPolicy, kCeiling };

struct ReadOptions {
  Purpose purpose = Purpose::kPolicy;
  Platform platform = Platform::kPosix;
  const Variables* variables = nullptr;
  std::optional<std::string> cache;  // what ${cache} stands for
};

// `tree` comes from Compose. If `mistakes` has grown, the draft is of no use.
Draft ReadFields(const JsonValue& tree, const ReadOptions& options, Mistakes& mistakes);

// What is added on the command line.
void Add(const Additions& additions, Draft& draft, Mistakes& mistakes);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_FIELDS_H_
