#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "bulkhead/cli/explain.h"
#include "bulkhead/cli/words.h"
#include "nlohmann/json.hpp"

namespace bulkhead::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Text(absl::string_view word) { return std::string(word); }

// 0 is "no limit of ours".
Json LimitOrNull(std::uint64_t limit) { return limit == 0 ? Json(nullptr) : Json(limit); }

Json EnvironmentJson(const Prepared& prepared) {
  Json list = Json::array();
  for (const policy::EnvEntry& entry : prepared.plan.command().env) {
    Json item;
    item["name"] = entry.name;
    item["secret"] = entry.source == policy::EnvEntry::Source::kSecret;
    item["from"] = EnvOrigin(entry, *prepared.policy);
    list.push_back(std::move(item));
  }
  return list;
}

void AppendGrants(const char* access, const std::vector<policy::PathGrant>& grants, Json* list) {
  for (const policy::PathGrant& grant : grants) {
    Json item;
    item["access"] = access;
    item["path"] = grant.path;
    item["optional"] = grant.optional;
    item["origin"] = grant.origin;
    list->push_back(std::move(item));
  }
}

Json FilesJson(const Prepared& prepared) {
  const policy::FilesystemRules& files = prepared.policy->filesystem;
  Json json;
  Json grants = Json::array();
  AppendGrants("rx", files.rx, &grants);
  AppendGrants("ro", files.ro, &grants);
  AppendGrants("rw", files.rw, &grants);
  AppendGrants("protect", files.protect, &grants);
  AppendGrants("hide", files.hide, &grants);
  json["grants"] = std::move(grants);
  json["home"] = Text(HomeWord(files.home));
  json["tmp"] = Text(TmpWord(files.tmp));
  json["made_when_it_starts"] = Json::array();
  for (const launcher::FolderToMake& folder : prepared.plan.folders_to_make()) {
    json["made_when_it_starts"].push_back(folder.path);
  }
  return json;
}

Json LimitsJson(const policy::Limits& limits) {
  Json json;
  json["memory_bytes"] = LimitOrNull(limits.memory_bytes);
  json["processes"] = LimitOrNull(limits.processes);
  json["open_files"] = LimitOrNull(limits.open_files);
  json["file_size_bytes"] = LimitOrNull(limits.file_size_bytes);
  json["cpu_time_ms"] = LimitOrNull(static_cast<std::uint64_t>(absl::ToInt64Milliseconds(limits.cpu_time)));
  return json;
}

Json SyscallsJson(const Prepared& prepared) {
  const policy::PolicyFields& policy = *prepared.policy;
  Json json;
  json["profile"] = Text(ProfileWord(policy.syscall_profile));
  json["allow"] = policy.syscalls_allow;
  json["deny"] = policy.syscalls_deny;
  json["denied"] = Json::object();
  for (const launcher::DeniedCalls& denied : DeniedInEveryTier(prepared.plan)) {
    Json& calls = json["denied"][denied.error];
    for (const std::string& call : denied.calls) calls.push_back(call);
  }
  return json;
}

Json VariantJson(const launcher::PlanVariant& variant) {
  Json json;
  json["tier"] = Text(policy::TierName(variant.report.tier));
  json["network"] = variant.report.network;
  json["layers"] = Json::array();
  for (const launcher::LayerReport& layer : variant.report.layers) {
    Json item;
    item["name"] = layer.name;
    item["state"] = Text(LayerStateWord(layer.state));
    item["does"] = layer.does;
    item["does_not"] = layer.does_not;
    json["layers"].push_back(std::move(item));
  }
  json["weakened"] = variant.report.weakened;
  json["denied"] = Json::array();
  for (const launcher::DeniedCalls& denied : variant.denied) {
    Json item;
    item["error"] = denied.error;
    item["by"] = denied.by;
    item["calls"] = denied.calls;
    json["denied"].push_back(std::move(item));
  }
  json["steps"] = Json::array();
  for (const launcher::StepDescription& step : variant.steps) {
    Json item;
    item["phase"] = step.phase;
    item["kind"] = step.kind;
    item["text"] = step.text;
    item["origin"] = step.origin;
    json["steps"].push_back(std::move(item));
  }
  return json;
}

Json StderrJson(const policy::StderrRules& rules) {
  Json json;
  json["mode"] = Text(StderrWord(rules.mode));
  if (rules.mode == policy::StderrMode::kFile) json["file"] = rules.file;
  return json;
}

}  // namespace

std::string ExplainJson(const Prepared& prepared) {
  const policy::PolicyFields& policy = *prepared.policy;
  const launcher::LaunchPlan& plan = prepared.plan;
  Json json;
  json["explain_version"] = kExplainVersion;
  json["program"] = plan.program();
  json["argv"] = plan.command().argv;
  if (!plan.command_line().empty()) json["command_line"] = plan.command_line();
  json["cwd"] = plan.command().cwd;
  json["policy"] = policy.name;
  json["require"] = Text(policy::TierName(policy.require));
  json["user"] = policy.user;
  json["stderr"] = StderrJson(plan.stderr_rules());
  json["environment"] = EnvironmentJson(prepared);
  json["environment_dropped"] = plan.command().env_dropped;
  json["files"] = FilesJson(prepared);
  json["network"]["mode"] = Text(NetworkWord(policy.network));
  json["network"]["allow"] = policy.network_allow;
  json["limits"] = LimitsJson(policy.limits);
  json["timeouts"]["stdin_grace_ms"] = absl::ToInt64Milliseconds(policy.timeouts.stdin_grace);
  if (plan.term_grace().has_value()) {
    json["timeouts"]["term_grace_ms"] = absl::ToInt64Milliseconds(*plan.term_grace());
    json["timeouts"]["term_grace_from"] = policy.timeouts.term_grace_was_set ? "policy" : "run";
  }
  json["not_for_run"] = {"messages", "restart", "timeouts.probe", "timeouts.start", "timeouts.request"};
  json["syscalls"] = SyscallsJson(prepared);
  json["origins"] = policy.origins;
  json["tiers"] = Json::array();
  for (const launcher::PlanVariant& variant : plan.variants()) json["tiers"].push_back(VariantJson(variant));
  json["warnings"] = policy.warnings;
  json["hints"] = plan.hints();
  // A file's name need not be UTF-8; JSON must be.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bulkhead::cli
