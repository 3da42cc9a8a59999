// What a keeper's {phase, step, error} means, in the plan's own words.
#ifndef BULKHEAD_LAUNCHER_FAILURE_H_
#define BULKHEAD_LAUNCHER_FAILURE_H_

#include <string>

#include "absl/status/status.h"
#include "bulkhead/launcher/plan_format.h"

namespace bulkhead::launcher {

// NotFound and PermissionDenied where the plan says 127 and 126; FailedPrecondition when this machine can't give the
// tier; else Internal. A plan or a message that makes no sense gives Internal too, never a read outside `plan_bytes`.
absl::Status StatusOfFailure(const std::string& plan_bytes, const wire::Message& message);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_FAILURE_H_
