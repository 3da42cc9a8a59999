// Choosing a backend: all that differs from system to system lies behind this table. With BULKHEAD_PORTABLE_ALONE,
// which is for tests, it is that of a system that Bulkhead knows no more of.
#include <string>
#include <utility>

#include "asio/system_executor.hpp"
#include "bulkhead/launcher/features.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/process.h"
#if defined(__linux__) && !defined(BULKHEAD_PORTABLE_ALONE)
#define BULKHEAD_HAS_LINUX
#include "bulkhead/launcher/linux.h"
#endif
#ifdef _WIN32
#include "bulkhead/launcher/windows/windows.h"
#else
#include "bulkhead/launcher/posix/posix.h"
#endif

namespace bulkhead::launcher {
namespace {

struct Backend {
  BackendName name;
  absl::StatusOr<LaunchPlan> (*build_plan)(const policy::Policy&, const policy::ValidatedCommand&,
                                           const KernelFeatures&, const PlanOptions&);
  absl::StatusOr<Process> (*launch)(const LaunchPlan&, asio::any_io_executor, const LaunchOptions&);
  absl::Status (*become_keeper)(const LaunchPlan&, const std::string& report_path);
  KernelFeatures (*detect_features)();
  DoctorReport (*run_doctor)();
};

// The system's own comes first.
constexpr Backend kBackends[] = {
#ifdef BULKHEAD_HAS_LINUX
    {BackendName::kLinux, BuildLinuxPlan, LaunchWithKeeper, BecomeLinuxKeeper, DetectLinuxFeatures, RunLinuxDoctor},
#endif
#ifdef _WIN32
    {BackendName::kWindows, BuildWindowsPlan, LaunchWindows, RunWindows, DetectWindowsFeatures, RunWindowsDoctor},
#else
    {BackendName::kPosix, BuildPosixPlan, LaunchPosix, RunPosix, DetectPosixFeatures, RunPosixDoctor},
#endif
};

const Backend* Find(BackendName name) {
  for (const Backend& backend : kBackends) {
    if (backend.name == name) return &backend;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<LaunchPlan> BuildLaunchPlan(const policy::Policy& policy, const policy::ValidatedCommand& command,
                                           const KernelFeatures& features, const PlanOptions& options) {
  const Backend* const backend = Find(options.backend.value_or(kBackends[0].name));
  if (backend == nullptr) return absl::InvalidArgumentError("this system doesn't have the backend that was asked for");
  return backend->build_plan(policy, command, features, options);
}

absl::StatusOr<Process> Launch(const LaunchPlan& plan, asio::any_io_executor executor, const LaunchOptions& options) {
  return Find(plan.backend())->launch(plan, std::move(executor), options);
}

absl::StatusOr<Process> Launch(const LaunchPlan& plan, const LaunchOptions& options) {
  return Launch(plan, asio::system_executor(), options);
}

absl::Status BecomeKeeper(const LaunchPlan& plan, const std::string& report_path) {
  return Find(plan.backend())->become_keeper(plan, report_path);
}

KernelFeatures DetectKernelFeatures() { return kBackends[0].detect_features(); }

DoctorReport RunDoctor() { return kBackends[0].run_doctor(); }

int ExitCodeForStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return 127;
    case absl::StatusCode::kPermissionDenied:
      return 126;
    case absl::StatusCode::kInvalidArgument:
      return 64;
    default:
      return 125;
  }
}

}  // namespace bulkhead::launcher
