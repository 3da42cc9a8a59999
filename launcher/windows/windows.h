// The Windows backend: a job object around the server, and nothing that keeps files or the network from it. Tier C.
// Called through the table of backend.cc. What it can't enforce and a policy asks for is refused; what tier C never
// promises is in the report. docs/platforms.md says what of it was tried, and where.
#ifndef BULKHEAD_LAUNCHER_WINDOWS_WINDOWS_H_
#define BULKHEAD_LAUNCHER_WINDOWS_WINDOWS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "asio/any_io_executor.hpp"
#include "bulkhead/launcher/features.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/process.h"
#include "bulkhead/policy/windows_command.h"

namespace bulkhead::launcher {

struct WindowsPlan {
  policy::WindowsStart start;  // what CreateProcessW is given
  std::u16string environment;  // "NAME=value" and a NUL for each, sorted without regard to case, and one more NUL
  std::string cwd;
  absl::Duration stdin_grace;
  // Of the whole job; 0: no limit. Memory is what is committed (JOB_OBJECT_LIMIT_JOB_MEMORY), in whole pages.
  std::uint64_t memory_bytes = 0;
  std::uint32_t processes = 0;
  absl::Duration cpu_time;  // in user mode, of all processes that ever were in the job
};

// The contracts are those of BuildLaunchPlan, Launch, BecomeKeeper, DetectKernelFeatures and RunDoctor, with this
// difference: RunWindows stays beside the server and ends with its code.
absl::StatusOr<LaunchPlan> BuildWindowsPlan(const policy::Policy& policy, const policy::ValidatedCommand& command,
                                            const KernelFeatures& features, const PlanOptions& options);
absl::StatusOr<Process> LaunchWindows(const LaunchPlan& plan, asio::any_io_executor executor,
                                      const LaunchOptions& options);
absl::Status RunWindows(const LaunchPlan& plan, const std::string& report_path);
KernelFeatures DetectWindowsFeatures();
DoctorReport RunWindowsDoctor();

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_WINDOWS_WINDOWS_H_
