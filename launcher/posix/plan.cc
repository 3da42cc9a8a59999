#include "bulkhead/launcher/posix/plan.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/grants.h"
#include "bulkhead/launcher/posix/posix.h"
#include "bulkhead/launcher/program.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

using policy::PolicyFields;

constexpr absl::Duration kRunTermGrace = absl::Seconds(1);  // SDK hosts kill two seconds after SIGTERM

// Elsewhere RLIMIT_DATA doesn't count what is mapped, which is where malloc has its memory from.
#ifdef __linux__
constexpr bool kLimitsMemory = true;
#else
constexpr bool kLimitsMemory = false;
#endif

// What can't be enforced here and is more than tier C leaves out anyway.
absl::Status RefuseWhatIsNotEnforced(const PolicyFields& policy) {
  const auto refuse = [&policy](absl::string_view field, absl::string_view why, absl::string_view remedy) {
    return absl::FailedPreconditionError(
        absl::StrCat(policy.name, ": ", field, ": the portable backend ", why, "; ", remedy));
  };
  if (policy.require != policy::Tier::kC) {
    return refuse("/require", absl::StrCat("can't give tier ", policy::TierName(policy.require)),
                  "set \"require\": \"C\" or use --require C to run with what tier C leaves out");
  }
  if (policy.network != policy::NetworkMode::kHost) {
    return refuse("/network/mode", "can't keep a server from the network",
                  "grant it with \"mode\": \"host\" or --network host");
  }
  if (!policy.filesystem.protect.empty()) return refuse("/filesystem/protect", "can't protect a path", "take it out");
  if (!policy.filesystem.hide.empty()) return refuse("/filesystem/hide", "can't hide a path", "take it out");
  if (!policy.command.sha256.empty()) return refuse("/command/sha256", "doesn't check contents yet", "take it out");
  if (!policy.env.secret.empty()) {
    return refuse("/env/secret", "doesn't pass secrets yet", "pass the variable with \"inherit\"");
  }
  if (policy.syscall_profile != policy::SyscallProfile::kBaseline) {
    return refuse("/syscalls/profile", "has no system call filter", "use \"baseline\", which tier C may leave out");
  }
  if (!policy.syscalls_deny.empty()) {
    return refuse("/syscalls/deny", "has no system call filter", "take it out");
  }
  if (policy.limits.memory_bytes != 0 && !kLimitsMemory) {
    return refuse("/limits/memory", "can't limit the memory on this system", "take it out");
  }
#ifndef RLIMIT_NPROC
  if (policy.limits.processes != 0) {
    return refuse("/limits/processes", "can't limit processes on this system", "take it out");
  }
#endif
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Account>> ChooseAccount(const PolicyFields& policy, bool is_root) {
  if (policy.user == "auto") {
    if (!is_root) return std::optional<Account>();
    return absl::FailedPreconditionError(
        absl::StrCat(policy.name,
                     ": /user: the portable backend has no user of its own for a server started by root; name an "
                     "account, or start as an ordinary user"));
  }
  const std::optional<Account> account = FindAccount(policy.user);
  if (!account.has_value()) {
    return absl::PermissionDeniedError(absl::StrCat("/user: there is no account ", policy::Quote(policy.user),
                                                    " in /etc/passwd; make it, or use \"auto\""));
  }
  if (account->uid == 0) {
    return absl::FailedPreconditionError(absl::StrCat(policy.name, ": /user: root is possible in tier A only"));
  }
  if (is_root) return account;
  if (account->uid == geteuid()) return std::optional<Account>();
  return absl::PermissionDeniedError(absl::StrCat("/user: only root can run a server as ", policy::Quote(policy.user),
                                                  "; use \"auto\", or start as that user"));
}

std::string EnvValue(const policy::ValidatedCommand& command, absl::string_view name) {
  for (const policy::EnvEntry& entry : command.env) {
    if (entry.name == name) return entry.value;
  }
  return "";
}

// A bare name is not taken from where a grant lets the server write: it may be its own work.
absl::StatusOr<Program> FindPosixProgram(const PolicyFields& policy, const policy::ValidatedCommand& command) {
  const std::vector<std::string> writable = FoldersForWriting(policy.filesystem, EnvValue(command, "HOME"));
  const auto may_write = [&writable](const std::string& real) {
    const auto holds = [&real](const std::string& folder) { return IsWithin(real, folder); };
    return std::any_of(writable.begin(), writable.end(), holds) && access(real.c_str(), W_OK) == 0;
  };
  return FindProgram(command.argv[0], command.look_up, EnvValue(command, "PATH"), may_write, /*look_at_elf=*/nullptr);
}

absl::Status CheckGrants(const PolicyFields& policy, std::vector<FolderToMake>& to_make,
                         const std::optional<Account>& account) {
  const policy::FilesystemRules& files = policy.filesystem;
  for (const auto* list : {&files.rx, &files.ro, &files.rw}) {
    for (const policy::PathGrant& grant : *list) {
      if (grant.path == ":runtime") continue;
      // The policy's own ${cache}: ours to make.
      if (list == &files.rw && !policy.cache_key.empty() &&
          absl::EndsWith(grant.beneath, absl::StrCat("/", policy.cache_key))) {
        FolderToMake folder{grant.path};
        if (account.has_value()) folder.owner = {account->uid, account->gid};
        to_make.push_back(std::move(folder));
      }
    }
  }
  for (const auto* list : {&files.rx, &files.ro, &files.rw}) {
    for (const policy::PathGrant& grant : *list) {
      if (grant.path == ":runtime") continue;
      const absl::StatusOr<ResolvedPath> resolved = ResolveGrant(grant);
      if (resolved.ok()) {
        const absl::Status status = CheckGrantedType(grant, *resolved);
        if (!status.ok()) return status;
        continue;
      }
      const auto is_this = [&grant](const FolderToMake& folder) { return folder.path == grant.path; };
      const bool made = std::any_of(to_make.begin(), to_make.end(), is_this);
      if (absl::IsNotFound(resolved.status()) && (grant.optional || made)) continue;
      return RefuseGrant(grant, resolved.status());
    }
  }
  return absl::OkStatus();
}

std::vector<PosixPlan::Limit> MakeLimits(const policy::Limits& limits) {
  std::vector<PosixPlan::Limit> list = {{RLIMIT_CORE, 0}};
  if (limits.open_files != 0) list.push_back({RLIMIT_NOFILE, static_cast<rlim_t>(limits.open_files)});
#ifdef RLIMIT_NPROC
  if (limits.processes != 0) list.push_back({RLIMIT_NPROC, static_cast<rlim_t>(limits.processes)});
#endif
  if (limits.memory_bytes != 0) list.push_back({RLIMIT_DATA, static_cast<rlim_t>(limits.memory_bytes)});
  if (limits.file_size_bytes != 0) list.push_back({RLIMIT_FSIZE, static_cast<rlim_t>(limits.file_size_bytes)});
  if (limits.cpu_time > absl::ZeroDuration()) {
    list.push_back({RLIMIT_CPU, static_cast<rlim_t>(absl::ToInt64Seconds(limits.cpu_time))});
  }
  return list;
}

LayerReport LimitsReport(const policy::Limits& limits) {
  LayerReport layer{"rlimits", LayerState::kPartial,
                    absl::StrCat(limits.open_files, " open files a process, no core dumps"),
                    "they bind each process, not the tree"};
  if (limits.memory_bytes == 0) absl::StrAppend(&layer.does_not, "; memory is not limited");
  if (limits.processes != 0) {
    absl::StrAppend(&layer.does, ", ", limits.processes, " processes of the server's user, others of his counted");
  }
  if (limits.memory_bytes != 0) {
    absl::StrAppend(&layer.does, ", ", limits.memory_bytes, " bytes of memory a process");
    absl::StrAppend(&layer.does_not, "; memory that processes share is not counted");
  }
  if (limits.file_size_bytes != 0) {
    absl::StrAppend(&layer.does, ", files of at most ", limits.file_size_bytes, " bytes");
  }
  if (limits.cpu_time > absl::ZeroDuration()) {
    absl::StrAppend(&layer.does, ", ", absl::ToInt64Seconds(limits.cpu_time), " s of CPU time a process");
  }
  return layer;
}

EnforcementReport MakeReport(const PolicyFields& policy, bool run_mode) {
  EnforcementReport report;
  report.tier = policy::Tier::kC;
  report.network = "host";
  report.layers = {
      {"files", LayerState::kNone, "", "every file that the user can open is open to the server, whatever is granted"},
      {"processes", LayerState::kNone, "", "the server can see and end the user's other processes"},
      {"network", LayerState::kNone, "", "the network is the host's, its loopback services included"},
      {"system calls", LayerState::kNone, "", "none is refused"},
      {"setuid programs", LayerState::kNone, "", "they give the server the rights that they give the user"},
      LimitsReport(policy.limits),
      {"process group", LayerState::kPartial, "the server's process group is killed before its leader is reaped",
       run_mode ? "a process that leaves the group lives on; so does the tree when bulkhead itself is killed"
                : "a process that leaves the group lives on; when the host is killed, the server only sees the end of "
                  "its stdin"}};
  report.weakened = {"the host's network is granted", "tier C instead of A"};
  return report;
}

}  // namespace

class PosixPlanMaker {
 public:
  static absl::StatusOr<LaunchPlan> Make(const PolicyFields& policy, const policy::ValidatedCommand& command,
                                         const KernelFeatures& features, const PlanOptions& options) {
    absl::Status status = RefuseWhatIsNotEnforced(policy);
    if (!status.ok()) return status;
    if (options.only_tier.has_value() && *options.only_tier != policy::Tier::kC) {
      return absl::FailedPreconditionError("the portable backend has tier C alone");
    }
    absl::StatusOr<std::optional<Account>> account = ChooseAccount(policy, features.is_root);
    if (!account.ok()) return account.status();
    const absl::StatusOr<Program> program = FindPosixProgram(policy, command);
    if (!program.ok()) return program.status();

    LaunchPlan plan;
    status = CheckGrants(policy, plan.folders_to_make_, *account);
    if (!status.ok()) return status;
    auto posix = std::make_shared<PosixPlan>();
    posix->account = *account;
    posix->limits = MakeLimits(policy.limits);
    posix->private_home = policy.filesystem.home == policy::HomeMode::kPrivate;
    posix->private_tmp = policy.filesystem.tmp == policy::TmpMode::kPrivate;
    for (const policy::EnvEntry& entry : command.env) {
      if ((posix->private_home && entry.name == "HOME") || (posix->private_tmp && entry.name == "TMPDIR")) continue;
      posix->env.push_back(absl::StrCat(entry.name, "=", entry.value));
    }
    posix->stdin_grace = policy.timeouts.stdin_grace;
    posix->term_grace =
        options.run_mode && !policy.timeouts.term_grace_was_set ? kRunTermGrace : policy.timeouts.term_grace;
    posix->run_mode = options.run_mode;
    const absl::StatusOr<ResolvedPath> cwd = ResolvePath(command.cwd);
    if (cwd.ok() && cwd->is_folder()) {
      posix->cwd = command.cwd;
    } else if (command.cwd_asked_for) {
      return RefuseWorkingFolder(command.cwd, cwd);
    }

    PlanVariant variant;
    variant.report = MakeReport(policy, options.run_mode);
    if (options.describe_steps) Describe(*posix, variant.steps);
    plan.variants_.push_back(std::move(variant));
    plan.backend_ = BackendName::kPosix;
    plan.program_ = program->path;
    plan.command_ = command;
    plan.stderr_rules_ = policy.stderr_rules;
    plan.term_grace_ = posix->term_grace;
    plan.posix_ = std::move(posix);
    return plan;
  }

 private:
  static void Describe(const PosixPlan& posix, std::vector<StepDescription>& steps) {
    steps.push_back({"server", "session", "a session and a process group of its own", ""});
    if (posix.account.has_value()) {
      steps.push_back({"server", "user", absl::StrCat("become uid ", posix.account->uid), "/user"});
    }
    steps.push_back({"server", "rlimits", absl::StrCat(posix.limits.size(), " limits"), "/limits"});
    steps.push_back({"server", "cwd", absl::StrCat("start in ", posix.cwd.empty() ? "its own folder" : posix.cwd), ""});
    steps.push_back({"server", "descriptors", "close all but 0, 1 and 2", ""});
  }
};

absl::StatusOr<LaunchPlan> BuildPosixPlan(const policy::Policy& policy, const policy::ValidatedCommand& command,
                                          const KernelFeatures& features, const PlanOptions& options) {
  return PosixPlanMaker::Make(*policy, command, features, options);
}

}  // namespace bulkhead::launcher
