// What run and explain share: from flags to a finished plan. Starts nothing and writes nothing.
#ifndef BULKHEAD_CLI_PREPARE_H_
#define BULKHEAD_CLI_PREPARE_H_

#include <optional>

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

// Fills `prepared` and returns 0, or complains and returns the exit code.
int Prepare(Command command, const Flags& flags, std::optional<Prepared>* prepared);

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_PREPARE_H_
