// The Linux backend: tiers A, B and C, with a keeper. Called through the table of backend.cc.
#ifndef BULKHEAD_LAUNCHER_LINUX_H_
#define BULKHEAD_LAUNCHER_LINUX_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "asio/any_io_executor.hpp"
#include "bulkhead/launcher/features.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/process.h"

namespace bulkhead::launcher {

// The contracts are those of BuildLaunchPlan, Launch, BecomeKeeper, DetectKernelFeatures and RunDoctor.
absl::StatusOr<LaunchPlan> BuildLinuxPlan(const policy::Policy& policy, const policy::ValidatedCommand& command,
                                          const KernelFeatures& features, const PlanOptions& options);
absl::StatusOr<Process> LaunchWithKeeper(const LaunchPlan& plan, asio::any_io_executor executor,
                                         const LaunchOptions& options);
absl::Status BecomeLinuxKeeper(const LaunchPlan& plan, const std::string& report_path);
KernelFeatures DetectLinuxFeatures();
DoctorReport RunLinuxDoctor();

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_LINUX_H_
