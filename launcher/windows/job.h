// A server in its job object: started, waited for, ended. What `bulkhead run` and the library share.
#ifndef BULKHEAD_LAUNCHER_WINDOWS_JOB_H_
#define BULKHEAD_LAUNCHER_WINDOWS_JOB_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/process.h"
#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {

// What becomes the server's stdio. Inheritable.
struct WindowsStdio {
  UniqueFd in, out, err;
};

// `what`, with GetLastError().
absl::Status WindowsError(absl::string_view what);

// A copy that a child may inherit; NUL in place of a closed one. Empty on failure.
UniqueFd Inheritable(NativeFd source);
// What the policy says of stderr, where "inherit" is this process's own.
absl::StatusOr<UniqueFd> OpenWindowsStderr(const policy::StderrRules& rules);

struct ServerInJob {
  UniqueFd job;     // the only handle: all that is in the job ends when it is closed, also when this process is killed
  UniqueFd server;  // the process
};
// FailedPrecondition where the system does not take the limits of the job.
//
// Starts the server, which is in its job before its first instruction. Errors as in Launch.
absl::StatusOr<ServerInJob> StartInJob(const LaunchPlan& plan, const WindowsStdio& stdio);

// Ends what is left of the job, and returns when nothing is, in a second at most. How the server ended, and what the
// job used.
ExitStatus EndJob(const ServerInJob& server);

// The code of a server that did not end by itself.
inline constexpr unsigned kTerminatedCode = 137;

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_WINDOWS_JOB_H_
