// What happens in the server's own process between the fork and its program.
#include <sys/resource.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/landlock.h"
#include "bulkhead/launcher/plan_context.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

using wire::StepKind;

// A limit can be lowered, not raised (setrlimit(2)): the host's own stays where it is tighter.
void AddLimit(StepsMaker& steps, __rlimit_resource resource, std::uint64_t value, const std::string& what) {
  struct rlimit now;
  if (getrlimit(resource, &now) == 0 && now.rlim_max != RLIM_INFINITY)
    value = std::min<std::uint64_t>(value, now.rlim_max);
  wire::Step step = MakeStep(StepKind::kLimit);
  step.limit = {static_cast<std::uint32_t>(resource), 0, value, value};
  steps.Server(step, {"limit", absl::StrCat("limit ", what, " to ", value), "/limits", {}, false});
}

constexpr std::uint64_t kQueuedSignalsMax = 4096;  // more than programs use, less than the machine gives a user

// A limit of processes counts the user's, or those of the jail with its init: the cgroup counts the server's alone.
void AddLimits(const policy::Limits& limits, bool cgroup_counts, StepsMaker& steps) {
  AddLimit(steps, RLIMIT_CORE, 0, "core dumps");
  // In tier A too they count with those of the one who started us, and what is used up others can't have.
  AddLimit(steps, RLIMIT_SIGPENDING, kQueuedSignalsMax, "queued signals and timers");
  if (limits.open_files != 0) AddLimit(steps, RLIMIT_NOFILE, limits.open_files, "open files");
  if (limits.processes != 0 && !cgroup_counts) AddLimit(steps, RLIMIT_NPROC, limits.processes, "processes");
  // Not RLIMIT_AS: JavaScript and Go reserve many gigabytes of addresses that they never write to.
  if (limits.memory_bytes != 0) AddLimit(steps, RLIMIT_DATA, limits.memory_bytes, "memory");
  if (limits.file_size_bytes != 0) AddLimit(steps, RLIMIT_FSIZE, limits.file_size_bytes, "file size");
  if (limits.cpu_time > absl::ZeroDuration()) {
    AddLimit(steps, RLIMIT_CPU, static_cast<std::uint64_t>(absl::ToInt64Seconds(limits.cpu_time)), "CPU seconds");
  }
}

wire::Step LandlockStep(const PlanContext& context, const VariantKind& kind,
                        const std::vector<wire::LandlockRule>& rules, PlanWriter& writer) {
  const int abi = context.features.landlock_abi;
  wire::Step step = MakeStep(StepKind::kLandlock);
  step.landlock.handled_fs = landlock::HandledFs(abi);
  // The jail's own network is empty, and its loopback is the server's to use.
  if (!kind.namespaces && context.policy.network == policy::NetworkMode::kNone) {
    step.landlock.handled_net = landlock::HandledNet(abi);
  }
  if (abi >= 6) step.landlock.scoped = landlock::kScopeAbstractUnixSocket | landlock::kScopeSignal;
  step.landlock.attribute_bytes = landlock::AttributeBytes(abi);
  step.landlock.rules = writer.Array(rules);
  step.landlock.rule_count = static_cast<std::uint32_t>(rules.size());
  return step;
}

std::vector<FailureText> UnreachableGrants(const PlanContext& context, const VariantKind& kind) {
  for (const Granted& granted : context.layout.grants) {
    if (granted.optional) continue;
    const std::string why = WhyUnreachable(context, kind, granted.path.real);
    if (why.empty()) continue;
    return {{EACCES, 126,
             absl::StrCat(granted.origin, ": ", why, "; grant another place, or open that folder (chmod o+x)")}};
  }
  return {};
}

std::vector<FailureText> LandlockFailures(const PlanContext& context, const VariantKind& kind) {
  std::vector<FailureText> failures = UnreachableGrants(context, kind);
  failures.push_back(
      {ENOSYS, 125,
       "cannot enforce landlock: this kernel has it, but a system call that it takes is missing (ENOSYS): "
       "landlock_add_rule, landlock_restrict_self, openat2 or statx; let a container's system call filter pass them"});
  failures.push_back({EOPNOTSUPP, 125,
                      "cannot enforce landlock: it is switched off at boot (lsm=); set \"require\": \"C\" to run "
                      "without it"});
  failures.push_back(
      {ENOENT, 125, "cannot enforce landlock: a granted path was removed since it was checked; start again"});
  failures.push_back(
      {ESTALE, 125, "cannot enforce landlock: a granted path was replaced since it was checked; start again"});
  failures.push_back({ELOOP, 125, "cannot enforce landlock: a link took the place of a granted path; start again"});
  failures.push_back({0, 125, "cannot enforce landlock"});
  return failures;
}

void AddFileCheck(const PinnedFile& pinned, StepsMaker& steps) {
  wire::Step step = MakeStep(StepKind::kCheckFile);
  wire::FileState& state = step.file_state;
  state.path = steps.writer().Text(pinned.path);
  state.dev_major = major(pinned.info.st_dev);
  state.dev_minor = minor(pinned.info.st_dev);
  state.inode = pinned.info.st_ino;
  state.bytes = static_cast<std::uint64_t>(pinned.info.st_size);
  state.ctime_seconds = pinned.info.st_ctim.tv_sec;
  state.ctime_nanoseconds = static_cast<std::uint32_t>(pinned.info.st_ctim.tv_nsec);
  const std::string what = policy::Quote(pinned.path);
  steps.Server(step, {"sha256",
                      absl::StrCat("check that ", what, " is still what its pin was compared with"),
                      "/command/sha256",
                      {{ESTALE, 126, what, " has changed since its content was checked; start again"},
                       {ENOENT, 126, what, ", whose content is pinned, can't be seen by the server; grant it"},
                       {0, 126, "cannot look at ", what, " again, whose content is pinned"}},
                      false});
}

}  // namespace

std::string WhyUnreachable(const PlanContext& context, const VariantKind& kind, const std::string& path, Reach reach) {
  const Identity& identity = context.identity;
  if (kind.namespaces || !identity.other_than_caller()) return "";
  const bool fixed = identity.run_as == wire::RunAs::kFixed;  // else a uid that nothing belongs to
  const std::string closed =
      ClosedFolderAbove(absl::StrCat(path, reach == Reach::kFolder ? "/" : ""), fixed ? identity.run_uid : UINT32_MAX,
                        fixed ? identity.run_gid : UINT32_MAX);
  if (closed.empty()) return "";
  return absl::StrCat("the server's user can't reach ", policy::Quote(path), ", because ", policy::Quote(closed),
                      " is closed to it");
}

std::vector<wire::LandlockRule> LandlockRules(const PlanContext& context, const VariantKind& kind,
                                              const std::vector<wire::Offset>& private_folders, PlanWriter& writer) {
  std::vector<wire::LandlockRule> rules;
  const auto add = [&](const std::string& path, std::uint64_t access) {
    rules.push_back({{writer.Text(path), 0, 0, 0, 0}, access, 0, 0});
  };
  if (kind.namespaces) {
    // Nothing is in the jail's tree that may not be read; what may be written or executed is said below.
    add("/", landlock::kRead | landlock::kResolveUnix);
    add("/dev", landlock::kRead | landlock::kWriteFile);
    if (context.writes_id_maps()) add("/proc", landlock::kRead | landlock::kWriteFile);
    for (const PrivateFolder& folder : context.layout.folders) add(folder.path, landlock::kRead | landlock::kWrite);
  } else {
    for (const char* path : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}) {
      if (ResolvePath(path).ok()) add(path, landlock::kReadFile | landlock::kWriteFile);
    }
    for (const char* path : {"/etc/passwd", "/etc/group"}) {
      if (ResolvePath(path).ok()) add(path, landlock::kReadFile);
    }
    add("/proc", landlock::kRead);
    for (const wire::Offset folder : private_folders) {
      rules.push_back({{folder, 0, 0, 1, 0}, landlock::kRead | landlock::kWrite, 0, 0});
    }
  }
  for (const Granted& granted : context.layout.grants) {
    if (kind.namespaces && !granted.access.write && !granted.access.execute) continue;
    if (granted.optional && !WhyUnreachable(context, kind, granted.path.real).empty()) continue;  // as if missing
    std::uint64_t rights = landlock::RightsFor(granted.access);
    if (!granted.path.is_folder()) rights &= landlock::kOfFiles;
    rules.push_back({Pin(granted.path, writer), rights, 1, 0});
  }
  for (wire::LandlockRule& rule : rules) rule.access &= landlock::HandledFs(context.features.landlock_abi);
  return rules;
}

void AddServerSteps(const PlanContext& context, const VariantKind& kind, const ServerSteps& server, StepsMaker& steps) {
  PlanWriter& writer = steps.writer();
  const auto plain = [&](StepKind step_kind, StepsMaker::About about) {
    steps.Server(MakeStep(step_kind), std::move(about));
  };
  plain(StepKind::kSession, {"session", "give the server a session of its own", "", {}, false});
  if (context.identity.other_than_caller() && !kind.namespaces) {
    plain(StepKind::kIds, {"ids", "become the server's unprivileged user", "", {}, false});
  }
  AddLimits(context.policy.limits, server.cgroup.processes != 0, steps);
  plain(StepKind::kNoNewPrivs, {"no_new_privs", "take the power from setuid programs", "", {}, false});

  wire::Step folder = MakeStep(StepKind::kWorkingFolder);
  folder.path_text.path = server.cwd;
  std::vector<FailureText> cwd_failures = {{0, 126, "cannot enter the working folder"}};
  if (const std::string why = WhyUnreachable(context, kind, context.cwd, Reach::kFolder); !why.empty()) {
    cwd_failures.insert(cwd_failures.begin(),
                        {EACCES, 126,
                         absl::StrCat("cannot enter the working folder: ", why,
                                      "; choose another with --cwd, or open that folder (chmod o+x)")});
  }
  steps.Server(folder, {"cwd", "enter the working folder", "", std::move(cwd_failures), false});

  if (context.run_mode && context.policy.stderr_rules.mode != policy::StderrMode::kInherit) {
    plain(StepKind::kStderr, {"stderr", "put the server's stderr where the policy says", "", {}, false});
  }
  plain(StepKind::kCloseDescriptors, {"descriptors",
                                      "close every descriptor but stdin, stdout and stderr",
                                      "",
                                      {{ENOSYS, 125,
                                        "cannot close inherited descriptors: this kernel has no close_range "
                                        "(Linux 5.9)"},
                                       {0, 125, "cannot close inherited descriptors"}},
                                      false});
  if (kind.landlock) {
    steps.Server(LandlockStep(context, kind, server.landlock_rules, writer),
                 {"landlock",
                  absl::StrCat("allow reading, writing and executing only where granted (Landlock ABI ",
                               context.features.landlock_abi, ")"),
                  "", LandlockFailures(context, kind), false});
  }
  wire::Step seccomp = MakeStep(StepKind::kSeccomp);
  seccomp.seccomp = {server.filter.at, server.filter.count};
  steps.Server(seccomp, {"seccomp",
                         absl::StrCat("refuse system calls: ", server.filter.words),
                         "",
                         {{0, 125, "cannot enforce the system call filter"}},
                         false});
  for (const PinnedFile& pinned : context.pinned) AddFileCheck(pinned, steps);
  const std::string& program = context.program.path;
  wire::Step exec = MakeStep(StepKind::kExec);
  exec.path_text.path = writer.Text(program);
  const std::string loader =
      context.program.interpreter.empty()
          ? ""
          : absl::StrCat(", or ", policy::Quote(context.program.interpreter), ", which runs it,");
  steps.Server(exec, {"exec",
                      absl::StrCat("run ", policy::Quote(program)),
                      "",
                      {{ENOENT, 127,
                        absl::StrCat("cannot run ", policy::Quote(program), ": it", loader,
                                     " can't be seen by the server; grant it under \"rx\" in the policy")},
                       {EACCES, 126,
                        absl::StrCat("cannot run ", policy::Quote(program), ": the server may not execute it",
                                     loader.empty() ? "" : loader.substr(0, loader.size() - 1),
                                     "; grant it under \"rx\" in the policy, and check its mode")},
                       {EAGAIN, 126,
                        absl::StrCat("cannot run ", policy::Quote(program),
                                     ": limits.processes is reached already; it "
                                     "counts all processes of the user here, so raise it")},
                       {0, 126, absl::StrCat("cannot run ", policy::Quote(program))}},
                      false});
}

}  // namespace bulkhead::launcher
