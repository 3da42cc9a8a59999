#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "bulkhead/cli/explain.h"
#include "bulkhead/cli/words.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// A heading, and below it rows of columns, or `none` when there are none. Each is what a terminal may be shown.
class Page {
 public:
  explicit Page(const Style& style) : style_(style) {}

  void Section(absl::string_view heading, Rows rows, absl::string_view none = "none") {
    absl::StrAppend(&text_, text_.empty() ? "" : "\n", style_.Bold(policy::Visible(heading)), "\n");
    for (std::vector<std::string>& row : rows) {
      for (std::string& cell : row) cell = policy::Visible(cell);
    }
    if (rows.empty()) absl::StrAppend(&text_, "  ", none, "\n");
    std::vector<std::size_t> columns;
    for (const std::vector<std::string>& row : rows) {
      columns.resize(std::max(columns.size(), row.size()));
      // What is wrapped takes no room from the rows that have one more column.
      for (std::size_t i = 0; i + 1 < row.size(); ++i) columns[i] = std::max(columns[i], row[i].size());
    }
    for (const std::vector<std::string>& row : rows) AppendRow(row, columns);
  }

  std::string Take() { return std::move(text_); }

 private:
  // The last column is wrapped.
  void AppendRow(const std::vector<std::string>& row, const std::vector<std::size_t>& columns) {
    std::string line = "  ";
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      absl::StrAppend(&line, row[i], std::string(columns[i] - row[i].size() + 2, ' '));
    }
    AppendWrapped(&text_, line, line.size(), row.back());
  }

  const Style& style_;
  std::string text_;
};

Rows CommandRows(const Prepared& prepared) {
  const policy::ValidatedCommand& command = prepared.plan.command();
  Rows rows;
  rows.push_back({"program", command.look_up ? absl::StrCat(Quote(prepared.plan.program()), " (",
                                                            Quote(command.argv[0]), " on the server's PATH)")
                                             : Quote(prepared.plan.program())});
  std::vector<std::string> arguments;
  for (std::size_t i = 1; i < command.argv.size(); ++i) arguments.push_back(Quote(command.argv[i]));
  rows.push_back({"arguments", arguments.empty() ? "none" : absl::StrJoin(arguments, " ")});
  if (!prepared.plan.command_line().empty()) {
    rows.push_back({"line", prepared.plan.command_line()});
  }
  rows.push_back({"folder", Quote(command.cwd)});
  rows.push_back({"policy", Quote(prepared.policy->name)});
  const policy::PolicyFields& policy = *prepared.policy;
  rows.push_back(
      {"tier", absl::StrCat(policy::TierName(policy.require), policy.require == policy::Tier::kA ? "" : " or stronger",
                            ", ", OriginOf(policy, "/require"))});
  rows.push_back(
      {"user", absl::StrCat(Quote(policy.user), " (counts only when started as root), ", OriginOf(policy, "/user"))});
  switch (prepared.plan.stderr_rules().mode) {
    case policy::StderrMode::kInherit:
    case policy::StderrMode::kDiscard:
      rows.push_back({"stderr", std::string(StderrWord(prepared.plan.stderr_rules().mode))});
      break;
    case policy::StderrMode::kFile:
      rows.push_back({"stderr", absl::StrCat("appended to ", Quote(prepared.plan.stderr_rules().file))});
      break;
  }
  return rows;
}

Rows EnvironmentRows(const Prepared& prepared) {
  Rows rows;
  for (const policy::EnvEntry& entry : prepared.plan.command().env) {
    rows.push_back({Quote(entry.name), absl::StrCat(entry.source == policy::EnvEntry::Source::kSecret ? "secret, " : "",
                                                    "from ", EnvOrigin(entry, *prepared.policy))});
  }
  for (const std::string& dropped : prepared.plan.command().env_dropped) rows.push_back({"not passed", dropped});
  return rows;
}

void AppendGrants(const char* access, const std::vector<policy::PathGrant>& grants, Rows* rows) {
  for (const policy::PathGrant& grant : grants) {
    rows->push_back(
        {access, Quote(grant.path), absl::StrCat(grant.origin, grant.optional ? " (left out if missing)" : "")});
  }
}

Rows FileRows(const Prepared& prepared) {
  const policy::FilesystemRules& files = prepared.policy->filesystem;
  Rows rows;
  AppendGrants("read, execute", files.rx, &rows);
  AppendGrants("read", files.ro, &rows);
  AppendGrants("read, write", files.rw, &rows);
  AppendGrants("read-only after all", files.protect, &rows);
  AppendGrants("there but unreadable", files.hide, &rows);
  rows.push_back({"home", std::string(HomeWord(files.home)), OriginOf(*prepared.policy, "/filesystem/home")});
  rows.push_back({"tmp", std::string(TmpWord(files.tmp)), OriginOf(*prepared.policy, "/filesystem/tmp")});
  for (const launcher::FolderToMake& folder : prepared.plan.folders_to_make()) {
    rows.push_back({"made when it starts", Quote(folder.path),
                    folder.owner.has_value() ? absl::StrCat("for uid ", folder.owner->uid) : ""});
  }
  return rows;
}

Rows LimitRows(const policy::PolicyFields& policy) {
  const policy::Limits& limits = policy.limits;
  const auto size = [](std::uint64_t bytes) { return bytes == 0 ? "no limit of ours" : SizeWords(bytes); };
  const auto number = [](std::uint64_t n) { return n == 0 ? "no limit of ours" : absl::StrCat(n); };
  const auto row = [&policy](const char* name, std::string words) {
    return std::vector<std::string>{name, std::move(words), OriginOf(policy, absl::StrCat("/limits/", name))};
  };
  return {row("memory", size(limits.memory_bytes)), row("processes", number(limits.processes)),
          row("open_files", number(limits.open_files)), row("file_size", size(limits.file_size_bytes)),
          row("cpu_time",
              limits.cpu_time == absl::ZeroDuration() ? "no limit of ours" : absl::FormatDuration(limits.cpu_time))};
}

Rows EndingRows(const Prepared& prepared) {
  const policy::PolicyFields& policy = *prepared.policy;
  const policy::Timeouts& timeouts = policy.timeouts;
  const std::optional<absl::Duration> term_grace = prepared.plan.term_grace();
  return {{"stdin_grace",
           absl::StrCat(absl::FormatDuration(timeouts.stdin_grace), ", ", OriginOf(policy, "/timeouts/stdin_grace"))},
          {"term_grace", !term_grace.has_value()
                             ? "none: this system has no SIGTERM"
                             : absl::StrCat(absl::FormatDuration(*term_grace), ", ",
                                            timeouts.term_grace_was_set ? OriginOf(policy, "/timeouts/term_grace")
                                                                        : "run's own, as the policy sets none")},
          {"not for run",
           "the timeouts probe, start and request, and all of messages and restart: run passes stdio "
           "straight through and starts the server once"}};
}

// How a call that the policy allows is refused all the same, by a guard or by what the policy denies: "EPERM for
// chmod(mode & 06000)". Empty when it isn't.
std::string StillDenied(const std::string& name, const std::vector<launcher::DeniedCalls>& all) {
  for (const launcher::DeniedCalls& denied : all) {
    for (const std::string& call : denied.calls) {
      if (call == name || absl::StartsWith(call, absl::StrCat(name, "("))) {
        return absl::StrCat(denied.error, " for ", call);
      }
    }
  }
  return "";
}

std::string ListWords(const std::string& list) { return absl::StrCat(list, " (built in)"); }

Rows SyscallRows(const Prepared& prepared) {
  const policy::PolicyFields& policy = *prepared.policy;
  Rows rows;
  const std::vector<launcher::DeniedCalls> all = DeniedInEveryTier(prepared.plan);
  for (const launcher::DeniedCalls& denied : all) {
    if (denied.by != "policy") {
      rows.push_back({denied.error, ListWords(denied.by), absl::StrJoin(denied.calls, ", ")});
      continue;
    }
    for (const std::string& call : denied.calls) {
      rows.push_back({denied.error, OriginOf(policy, absl::StrCat("/syscalls/deny/", call)), call});
    }
  }
  for (const std::string& name : policy.syscalls_allow) {
    const std::string origin = OriginOf(policy, absl::StrCat("/syscalls/allow/", name));
    const std::string still = StillDenied(name, all);
    rows.push_back({"allowed after all", name,
                    still.empty() ? origin : absl::StrCat(origin, ", but refused all the same: ", still)});
  }
  return rows;
}

const char* FilesHeading(const launcher::LaunchPlan& plan) {
  const auto is_c = [](const launcher::PlanVariant& variant) { return variant.report.tier == policy::Tier::kC; };
  if (is_c(plan.variants().front())) return "files (granted; tier C keeps the server from no others)";
  if (is_c(plan.variants().back())) return "files (nothing else exists or can be opened, but in tier C everything)";
  return "files (nothing else exists or can be opened)";
}

void AppendVariant(const launcher::LaunchPlan& plan, const launcher::PlanVariant& variant, bool steps, Page* page) {
  const bool first = &variant == &plan.variants().front();
  Rows rows;
  for (const launcher::LayerReport& layer : variant.report.layers) {
    rows.push_back({layer.name, std::string(LayerStateWord(layer.state)), layer.does});
    if (!layer.does_not.empty()) rows.push_back({"", "", absl::StrCat("does not: ", layer.does_not)});
  }
  for (const launcher::DeniedCalls& denied : DeniedOnlyThere(plan, variant)) {
    rows.push_back({denied.error, ListWords(denied.by), absl::StrJoin(denied.calls, ", ")});
  }
  for (const std::string& weakened : variant.report.weakened) rows.push_back({"weakened", "", weakened});
  const absl::string_view tier = policy::TierName(variant.report.tier);
  page->Section(absl::StrCat("tier ", tier, first ? "" : " (only if the ones above can't be had here)"), rows);
  if (!steps) return;
  Rows step_rows;
  for (const launcher::StepDescription& step : variant.steps) {
    step_rows.push_back(
        {step.phase, step.kind, step.origin.empty() ? step.text : absl::StrCat(step.text, " (", step.origin, ")")});
  }
  page->Section(absl::StrCat("steps of tier ", tier), step_rows);
}

}  // namespace

std::vector<launcher::DeniedCalls> DeniedInEveryTier(const launcher::LaunchPlan& plan) {
  std::vector<launcher::DeniedCalls> common = plan.variants().front().denied;
  for (const launcher::PlanVariant& variant : plan.variants()) {
    common.erase(std::remove_if(common.begin(), common.end(),
                                [&](const auto& denied) { return !absl::c_linear_search(variant.denied, denied); }),
                 common.end());
  }
  return common;
}

std::vector<launcher::DeniedCalls> DeniedOnlyThere(const launcher::LaunchPlan& plan,
                                                   const launcher::PlanVariant& variant) {
  const std::vector<launcher::DeniedCalls> common = DeniedInEveryTier(plan);
  std::vector<launcher::DeniedCalls> rest;
  absl::c_copy_if(variant.denied, std::back_inserter(rest),
                  [&](const auto& denied) { return !absl::c_linear_search(common, denied); });
  return rest;
}

std::string ExplainText(const Prepared& prepared, bool steps, const Style& style) {
  const policy::PolicyFields& policy = *prepared.policy;
  Page page(style);
  page.Section("command", CommandRows(prepared));
  page.Section("environment (values are never shown)", EnvironmentRows(prepared));
  page.Section(FilesHeading(prepared.plan), FileRows(prepared));
  Rows network = {{std::string(NetworkWord(policy.network)), OriginOf(policy, "/network/mode")}};
  if (policy.network == policy::NetworkMode::kAllowlist) {
    for (const std::string& allowed : policy.network_allow)
      network.push_back({Quote(allowed), OriginOf(policy, absl::StrCat("/network/allow/", allowed))});
  }
  page.Section("network", network);
  page.Section("limits", LimitRows(policy));
  page.Section("ending", EndingRows(prepared));
  page.Section(absl::StrCat("system calls denied (", ProfileWord(policy.syscall_profile), ", ",
                            OriginOf(policy, "/syscalls/profile"), ")"),
               SyscallRows(prepared), "none: there is no filter here");
  for (const launcher::PlanVariant& variant : prepared.plan.variants()) {
    AppendVariant(prepared.plan, variant, steps, &page);
  }
  Rows notes;
  for (const std::string& warning : policy.warnings) notes.push_back({warning});
  for (const std::string& hint : prepared.plan.hints()) notes.push_back({hint});
  if (!notes.empty()) page.Section("notes", notes);
  return page.Take();
}

}  // namespace bulkhead::cli
