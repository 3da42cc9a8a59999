// Errors of ours, which are nobody else's fault.
#ifndef BULKHEAD_LAUNCHER_ERRORS_H_
#define BULKHEAD_LAUNCHER_ERRORS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace bulkhead::launcher {

// The kernel's word for `error`, and what helps where that is known.
std::string ErrorText(int error);

// "<what>: <ErrorText(error)>", as ResourceExhausted where resources ran out, else Internal.
absl::Status OurError(absl::string_view what, int error);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_ERRORS_H_
