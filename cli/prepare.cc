#include "bulkhead/cli/prepare.h"

#include <utility>

#include "bulkhead/cli/host.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/launcher/features.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/load.h"

namespace bulkhead::cli {
namespace {

absl::StatusOr<policy::Policy> LoadRequested(Request* request) {
  absl::Status status = policy::LoadCeilings(request->ceiling_paths, &request->options);
  if (!status.ok()) return status;
  if (!request->policy_path.empty()) return policy::LoadPolicy(request->policy_path, request->options);
  absl::StatusOr<std::string> text = policy::PresetText(request->preset);
  if (!text.ok()) return text.status();
  return policy::ParsePolicy({"preset:" + request->preset, *std::move(text)}, request->options);
}

// A ceiling that refuses is a refusal; a policy that is missing or wrong is our failure, never "command not found".
int ExitCodeForPolicyError(const absl::Status& status) {
  return absl::IsPermissionDenied(status) ? kExitRefused : kExitFailed;
}

int FailWith(Command command, const absl::Status& status, int exit_code) {
  return exit_code == kExitUsage ? FailUsage(status, CommandName(command)) : Fail(status, exit_code);
}

}  // namespace

int Prepare(Command command, const Flags& flags, std::optional<Prepared>* prepared) {
  absl::StatusOr<Request> request = MakeRequest(flags, ReadHost());
  if (!request.ok()) return FailWith(command, request.status(), ExitCodeForRequestError(request.status()));
  absl::StatusOr<policy::Policy> policy = LoadRequested(&*request);
  if (!policy.ok()) return Fail(policy.status(), ExitCodeForPolicyError(policy.status()));
  const absl::StatusOr<policy::ValidatedCommand> valid = policy::ValidateCommand(*policy, request->command);
  if (!valid.ok()) return FailWith(command, valid.status(), launcher::ExitCodeForStatus(valid.status()));
  launcher::PlanOptions options;
  options.run_mode = true;
  absl::StatusOr<launcher::LaunchPlan> plan =
      launcher::BuildLaunchPlan(*policy, *valid, launcher::DetectKernelFeatures(), options);
  if (!plan.ok()) return FailWith(command, plan.status(), launcher::ExitCodeForStatus(plan.status()));
  prepared->emplace(Prepared{*std::move(request), *std::move(policy), *std::move(plan)});
  return 0;
}

}  // namespace bulkhead::cli
