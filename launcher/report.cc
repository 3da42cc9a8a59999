#include "bulkhead/launcher/report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace bulkhead::launcher {
namespace {

constexpr int kLandlockAbiKnown = 10;

LayerReport Namespaces(bool have, const policy::PolicyFields& policy) {
  if (!have) {
    return {
        "namespaces", LayerState::kNone, "",
        "other processes, host names and all files' names and owners can be seen; /tmp and $HOME are folders of the "
        "host that are removed at the end"};
  }
  LayerReport layer{"namespaces", LayerState::kFull,
                    "a file tree of its own with nothing but what is granted, its own process table, IPC and host name",
                    ""};
  if (policy.network == policy::NetworkMode::kHost) {
    layer.state = LayerState::kPartial;
    layer.does_not = "the network is the host's, its loopback services included";
  } else {
    layer.does += ", and an empty network";
  }
  return layer;
}

LayerReport Landlock(bool have, int abi, bool namespaces) {
  if (!have) return {"landlock", LayerState::kNone, "", "this kernel has no Landlock, or it is switched off"};
  LayerReport layer{"landlock", LayerState::kFull,
                    absl::StrCat("files can be read, written and executed only where granted (ABI ", abi, ")"), ""};
  std::vector<std::string> gaps;
  if (abi < 2) gaps.push_back("files can't be moved between folders (ABI 2)");
  if (abi < 3) gaps.push_back("truncating is not covered (ABI 3)");
  if (abi < 6) gaps.push_back("signals and abstract sockets are not covered (ABI 6)");
  if (!namespaces) {
    gaps.push_back(
        "names, sizes, owners and times of files that are not granted can be looked up, and changed (chmod, "
        "utimes) where the user owns them");
  }
  for (const std::string& gap : gaps) {
    layer.state = LayerState::kPartial;
    absl::StrAppend(&layer.does_not, layer.does_not.empty() ? "" : "; ", gap);
  }
  return layer;
}

LayerReport SystemCalls(bool namespaces, const policy::PolicyFields& policy) {
  LayerReport layer{"seccomp", LayerState::kFull, "the system calls of the baseline list are refused", ""};
  if (policy.syscall_profile == policy::SyscallProfile::kStrict) {
    absl::StrAppend(&layer.does, ", and all that are not on the strict list");
  }
  if (!policy.syscalls_deny.empty()) {
    absl::StrAppend(&layer.does, ", and ", absl::StrJoin(policy.syscalls_deny, ", "));
  }
  if (!namespaces && policy.network != policy::NetworkMode::kHost) absl::StrAppend(&layer.does, ", and every socket");
  if (!policy.syscalls_allow.empty()) {
    layer.state = LayerState::kPartial;
    layer.does_not = absl::StrCat("the policy allows ", absl::StrJoin(policy.syscalls_allow, ", "));
  }
  return layer;
}

LayerReport Cgroup(const CgroupUse& use, bool swap) {
  LayerReport layer{"cgroup", use.used ? LayerState::kFull : LayerState::kNone, "", use.why_not};
  if (!use.used) return layer;
  layer.does = "all processes of the tree together";
  if (use.memory_bytes != 0) {
    absl::StrAppend(&layer.does, ": ", use.memory_bytes, " bytes of memory", swap ? ", none of it swapped out" : "");
  }
  if (use.processes != 0) {
    absl::StrAppend(&layer.does, use.memory_bytes != 0 ? ", " : ": ", use.processes, " processes");
  }
  absl::StrAppend(&layer.does, "; ended at once (cgroup.kill)");
  const auto lacks = [&layer](absl::string_view what) {
    absl::StrAppend(&layer.does_not, layer.does_not.empty() ? "" : "; ", what);
  };
  if (use.memory_bytes != 0 && !swap) lacks("memory that is swapped out is not counted");
  lacks("the group lies beside the host's: what limits that one's CPU time and I/O does not bind the server");
  if (!use.why_not.empty() || (use.memory_bytes != 0 && !swap)) layer.state = LayerState::kPartial;
  return layer;
}

LayerReport Limits(const policy::PolicyFields& policy, bool namespaces, bool root, const CgroupUse& cgroup) {
  LayerReport layer{"rlimits", LayerState::kPartial, "", "they bind each process, not the tree"};
  const policy::Limits& limits = policy.limits;
  absl::StrAppend(&layer.does, limits.open_files, " open files a process, no core dumps");
  if (limits.processes != 0 && cgroup.processes == 0) {
    absl::StrAppend(&layer.does, ", ", limits.processes, " processes ",
                    namespaces ? "in the jail"
                    : root     ? "of the server's user"
                               : "of this user, others of his counted");
    if (namespaces && policy.user == "root")
      absl::StrAppend(&layer.does_not, "; root is exempt from the process limit");
  }
  if (limits.memory_bytes != 0) {
    absl::StrAppend(&layer.does, ", ", limits.memory_bytes, " bytes of memory a process");
    if (cgroup.memory_bytes == 0) absl::StrAppend(&layer.does_not, "; memory that processes share is not counted");
  } else if (cgroup.memory_bytes == 0) {
    absl::StrAppend(&layer.does_not, "; memory is not limited");
  }
  if (limits.file_size_bytes != 0)
    absl::StrAppend(&layer.does, ", files of at most ", limits.file_size_bytes, " bytes");
  if (limits.cpu_time > absl::ZeroDuration()) {
    absl::StrAppend(&layer.does, ", ", absl::ToInt64Seconds(limits.cpu_time), " s of CPU time a process");
  }
  return layer;
}

}  // namespace

EnforcementReport MakeReport(const VariantKind& kind, const policy::PolicyFields& policy, const JailLayout& layout,
                             const KernelFeatures& features, const CgroupUse& cgroup) {
  EnforcementReport report;
  report.tier = kind.tier;
  report.network = policy.network == policy::NetworkMode::kHost ? "host" : "none";
  const int abi = std::min(features.landlock_abi, kLandlockAbiKnown);
  report.layers.push_back(Namespaces(kind.namespaces, policy));
  report.layers.push_back(Landlock(kind.landlock, abi, kind.namespaces));
  report.layers.push_back(SystemCalls(kind.namespaces, policy));
  if (cgroup.used || !cgroup.why_not.empty()) report.layers.push_back(Cgroup(cgroup, features.cgroup.swap));
  report.layers.push_back(Limits(policy, kind.namespaces, features.is_root, cgroup));
  report.layers.push_back(
      {"no_new_privs", LayerState::kFull, "setuid programs and file capabilities give nothing", ""});
  report.layers.push_back(
      kind.namespaces
          ? LayerReport{"process tree", LayerState::kFull, "the kernel ends the whole tree with the jail's PID 1", ""}
          : LayerReport{"process tree", LayerState::kPartial, "keeper and jail init each end the whole tree",
                        "both killed at once leave it alive"});
  if (policy.network == policy::NetworkMode::kHost) report.weakened.push_back("the host's network is granted");
  if (kind.tier != policy::Tier::kA) {
    report.weakened.push_back(absl::StrCat("tier ", std::string(policy::TierName(kind.tier)), " instead of A"));
  }
  if (features.is_root && policy.user == "root") {
    report.weakened.push_back(
        "the server runs as kernel uid 0: file owners, the process limit and setuid files bind less");
  }
  if (policy.filesystem.home == policy::HomeMode::kReadWrite)
    report.weakened.push_back("the home folder can be written");
  if (policy.filesystem.home == policy::HomeMode::kReadOnly) report.weakened.push_back("the home folder can be read");
  if (policy.filesystem.tmp == policy::TmpMode::kHost) report.weakened.push_back("the host's /tmp is shared");
  for (const Granted& granted : layout.grants) {
    if (granted.path.real == "/") report.weakened.push_back("all of / is granted");
  }
  return report;
}

}  // namespace bulkhead::launcher
