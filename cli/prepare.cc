#include "bulkhead/cli/prepare.h"

#include <utility>
#include <vector>

#include "bulkhead/cli/host.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/launcher/features.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/load.h"

namespace bulkhead::cli {
namespace {

absl::StatusOr<policy::Policy> LoadRequested(const Request& request, const policy::ParseOptions& options) {
  // The machine's own ceiling is among the options' already.
  constexpr absl::string_view kNoFurtherCeiling;
  if (request.policy_path.empty()) return policy::LoadPreset(request.preset, options, kNoFurtherCeiling);
  return policy::LoadPolicy(request.policy_path, options, kNoFurtherCeiling);
}

// A policy that is missing or wrong is our failure, never "command not found". When it would be fine without its
// ceilings, one of these is wrong, or leaves nothing: a refusal.
int ExitCodeForPolicyError(const Request& request) {
  if (request.options.ceilings.empty()) return kExitFailed;
  policy::ParseOptions without_ceilings = request.options;
  without_ceilings.ceilings.clear();
  return LoadRequested(request, without_ceilings).ok() ? kExitRefused : kExitFailed;
}

int FailWith(Command command, const absl::Status& status, int exit_code) {
  return exit_code == kExitUsage ? FailUsage(status, CommandName(command)) : Fail(status, exit_code);
}

}  // namespace

int Load(Command command, const Flags& flags, std::optional<Loaded>* loaded) {
  absl::StatusOr<Request> request = MakeRequest(flags, ReadHost());
  if (!request.ok()) return FailWith(command, request.status(), ExitCodeForRequestError(request.status()));
  absl::StatusOr<std::vector<policy::PolicyText>> ceilings = policy::LoadCeilings(request->ceiling_paths);
  if (!ceilings.ok()) return Fail(ceilings.status(), kExitRefused);
  request->options.ceilings = *std::move(ceilings);
  request->options.record_origins = command == Command::kExplain;
  if (request->policy_path.empty()) {
    const std::string refused = policy::WhyPresetIsRefused(request->preset);
    if (!refused.empty()) return Fail(absl::PermissionDeniedError(refused), kExitRefused);
  }
  absl::StatusOr<policy::Policy> policy = LoadRequested(*request, request->options);
  if (!policy.ok()) return Fail(policy.status(), ExitCodeForPolicyError(*request));
  loaded->emplace(Loaded{*std::move(request), *std::move(policy)});
  return 0;
}

int FailLaunch(Command command, const absl::Status& status) {
  return FailWith(command, status, launcher::ExitCodeForStatus(status));
}

int Prepare(Command command, const Flags& flags, std::optional<Prepared>* prepared) {
  std::optional<Loaded> loaded;
  if (const int code = Load(command, flags, &loaded); code != 0) return code;
  const absl::StatusOr<policy::ValidatedCommand> valid =
      policy::ValidateCommand(loaded->policy, loaded->request.command);
  if (!valid.ok()) return FailLaunch(command, valid.status());
  launcher::PlanOptions options;
  options.run_mode = true;
  options.describe_steps = command == Command::kExplain;
  absl::StatusOr<launcher::LaunchPlan> plan =
      launcher::BuildLaunchPlan(loaded->policy, *valid, launcher::DetectKernelFeatures(), options);
  if (!plan.ok()) return FailLaunch(command, plan.status());
  prepared->emplace(Prepared{std::move(loaded->request), std::move(loaded->policy), *std::move(plan)});
  return 0;
}

}  // namespace bulkhead::cli
