// The plan for one command, as text for people and as JSON for scripts. Names of environment variables only, never
// their values.
#ifndef BULKHEAD_CLI_EXPLAIN_H_
#define BULKHEAD_CLI_EXPLAIN_H_

#include <string>
#include <vector>

#include "bulkhead/cli/output.h"
#include "bulkhead/cli/prepare.h"

namespace bulkhead::cli {

// "explain_version" in the JSON: raised when a field changes its meaning or goes away; new fields may come at any time.
inline constexpr int kExplainVersion = 1;

// `steps`: also every step of every tier's plan.
std::string ExplainText(const Prepared& prepared, bool steps, const Style& style);
std::string ExplainJson(const Prepared& prepared);

// Where the field is said: "files.json:7", "preset:node:12", "--network"; "default" when nowhere.
std::string OriginOf(const policy::PolicyFields& policy, const std::string& pointer);

// The denied calls that all tiers of the plan have in common, and what `variant` has besides.
std::vector<launcher::DeniedCalls> DeniedInEveryTier(const launcher::LaunchPlan& plan);
std::vector<launcher::DeniedCalls> DeniedOnlyThere(const launcher::LaunchPlan& plan,
                                                   const launcher::PlanVariant& variant);

// Where a variable of the server's environment comes from: "the host (preset:node:60)", "--env", "files.json:7", or of
// a secret "the host's variable GITHUB_TOKEN (files.json:7)", "the file ...", "descriptor 5 ...".
std::string EnvOrigin(const policy::EnvEntry& entry, const policy::PolicyFields& policy);

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_EXPLAIN_H_
