#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "asio/system_executor.hpp"
#include "bulkhead/launcher/posix/posix.h"

namespace bulkhead::launcher {
namespace {

constexpr char kPolicy[] =
    R"({"version": 1, "require": "C", "network": {"mode": "host"}, "filesystem": {"rx": [":runtime"]}})";

// One real launch of a program that does nothing.
absl::Status TryLaunch(const std::string& program) {
  const absl::StatusOr<policy::Policy> policy = policy::ParsePolicy({"doctor", kPolicy}, {});
  if (!policy.ok()) return policy.status();
  policy::CommandRequest request;
  request.argv = {program};
  request.cwd = request.host_cwd = "/";
  const absl::StatusOr<policy::ValidatedCommand> command = policy::ValidateCommand(*policy, request);
  if (!command.ok()) return command.status();
  const absl::StatusOr<LaunchPlan> plan = BuildPosixPlan(*policy, *command, DetectPosixFeatures(), {});
  if (!plan.ok()) return plan.status();
  absl::StatusOr<Process> process = LaunchPosix(*plan, asio::system_executor(), {});
  if (!process.ok()) return process.status();
  const ExitStatus status = process->Wait();
  if (status.kind == ExitStatus::Kind::kExited && status.code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(program, " ", status.ToString()));
}

}  // namespace

KernelFeatures DetectPosixFeatures() {
  KernelFeatures features;
  features.is_root = geteuid() == 0;
  return features;
}

DoctorReport RunPosixDoctor() {
  const std::string program = access("/bin/true", X_OK) == 0 ? "/bin/true" : "/usr/bin/true";
  const absl::Status status = TryLaunch(program);
  DoctorReport report;
  report.checks = {{"tier A", false, "the portable backend doesn't have it", "use Linux"},
                   {"tier B", false, "the portable backend doesn't have it", "use Linux"},
                   {"tier C", status.ok(),
                    status.ok() ? absl::StrCat("a launch of ", program, " succeeded") : std::string(status.message()),
                    status.ok() ? "" : "start as an ordinary user"}};
  report.any_tier = status.ok();
  return report;
}

}  // namespace bulkhead::launcher
