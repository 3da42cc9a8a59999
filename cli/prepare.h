// What all commands that start a server share: from flags to a policy, and to a finished plan. Starts nothing and
// writes nothing.
#ifndef BULKHEAD_CLI_PREPARE_H_
#define BULKHEAD_CLI_PREPARE_H_

#include <optional>

#include "absl/status/status.h"
#include "bulkhead/cli/flags.h"
#include "bulkhead/cli/request.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::cli {

struct Prepared {
  Request request;
  policy::Policy policy;
  launcher::LaunchPlan plan;
};

// The part of it before the plan: which command, under which policy.
struct Loaded {
  Request request;
  policy::Policy policy;
};
int Load(Command command, const Flags& flags, std::optional<Loaded>* loaded);

// An error of ValidateCommand, BuildLaunchPlan or Launch: complains, and returns the exit code.
int FailLaunch(Command command, const absl::Status& status);

// Fills `prepared` and returns 0, or complains and returns the exit code.
int Prepare(Command command, const Flags& flags, std::optional<Prepared>* prepared);

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_PREPARE_H_
