// The portable backend: POSIX alone, for systems of which Bulkhead knows no more. Tier C. Called through the table of
// backend.cc; selectable on Linux with PlanOptions::backend.
//
// The server is the host's own child, leader of a session and a process group, which is killed before its leader is
// reaped. No process of ours stands beside it: when the host is killed, the server only sees the end of its stdin.
// What this backend can't enforce and a policy asks for is refused; what tier C never promises is in the report.
#ifndef BULKHEAD_LAUNCHER_POSIX_POSIX_H_
#define BULKHEAD_LAUNCHER_POSIX_POSIX_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "asio/any_io_executor.hpp"
#include "bulkhead/launcher/features.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/process.h"

namespace bulkhead::launcher {

// The contracts are those of BuildLaunchPlan, Launch, BecomeKeeper, DetectKernelFeatures and RunDoctor, with this
// difference: RunPosix does not turn into another program; it stays beside the server, and ends with the server's code.
absl::StatusOr<LaunchPlan> BuildPosixPlan(const policy::Policy& policy, const policy::ValidatedCommand& command,
                                          const KernelFeatures& features, const PlanOptions& options);
// FailedPrecondition where the host ignores SIGCHLD: the kernel then reaps, and the group's number may become
// another's.
absl::StatusOr<Process> LaunchPosix(const LaunchPlan& plan, asio::any_io_executor executor,
                                    const LaunchOptions& options);
absl::Status RunPosix(const LaunchPlan& plan, const std::string& report_path);
KernelFeatures DetectPosixFeatures();
DoctorReport RunPosixDoctor();

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_POSIX_POSIX_H_
