#include <string>

#include "absl/strings/str_cat.h"
#include "bulkhead/cli/commands.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/cli/prepare.h"
#include "bulkhead/cli/words.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/process.h"

namespace bulkhead::cli {
namespace {

// -v: what was resolved, before the start. `explain` says the same at length.
void SayWhatWasResolved(const Prepared& prepared) {
  const launcher::LaunchPlan& plan = prepared.plan;
  std::string text = absl::StrCat("program: ", Quote(plan.program()), "\npolicy: ", Quote(prepared.policy->name));
  for (const std::string& warning : prepared.policy->warnings) absl::StrAppend(&text, "\nnote: ", warning);
  absl::StrAppend(&text, "\nfolder: ", Quote(plan.command().cwd),
                  "\ntier asked for: ", policy::TierName(prepared.policy->require), " or stronger");
  for (const launcher::PlanVariant& variant : plan.variants()) {
    absl::StrAppend(&text, "\ntier ", policy::TierName(variant.report.tier),
                    &variant == &plan.variants().front() ? "" : ", if that can't be had", ": network ",
                    variant.report.network);
    for (const launcher::LayerReport& layer : variant.report.layers) {
      absl::StrAppend(&text, ", ", layer.name, " ", LayerStateWord(layer.state));
    }
    for (const std::string& weakened : variant.report.weakened) absl::StrAppend(&text, "\nweakened: ", weakened);
  }
  for (const std::string& hint : plan.hints()) absl::StrAppend(&text, "\nhint: ", hint);
  Complain(text);
}

}  // namespace

int RunCommand(const Flags& flags) {
  std::optional<Prepared> prepared;
  if (const int code = Prepare(Command::kRun, flags, &prepared); code != 0) return code;
  if (flags.verbose) SayWhatWasResolved(*prepared);
  const absl::Status status = launcher::BecomeKeeper(prepared->plan, prepared->request.report_path);
  // InvalidArgument would be 64, and nothing about the usage was wrong.
  return Fail(status, absl::IsInvalidArgument(status) ? kExitFailed : launcher::ExitCodeForStatus(status));
}

}  // namespace bulkhead::cli
