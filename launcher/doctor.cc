#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "asio/system_executor.hpp"
#include "bulkhead/launcher/features.h"
#include "bulkhead/launcher/linux.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/process.h"
#include "bulkhead/policy/command.h"

namespace bulkhead::launcher {
namespace {

using policy::Tier;

constexpr char kProgram[] = "/bin/true";

std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool InContainer() {
  return access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0 ||
         access("/var/run/secrets/kubernetes.io", F_OK) == 0;
}

// The known reasons for which namespaces can't be made, by what each leaves to see.
std::string NamespaceRemedy() {
  if (FirstLine("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1") {
    return "AppArmor lets only named programs make user namespaces (Ubuntu 23.10 and later): install a profile for "
           "bulkhead with \"userns,\" in it, or set kernel.apparmor_restrict_unprivileged_userns=0";
  }
  if (FirstLine("/proc/sys/kernel/unprivileged_userns_clone") == "0") {
    return "set kernel.unprivileged_userns_clone=1 (sysctl)";
  }
  if (FirstLine("/proc/sys/user/max_user_namespaces") == "0") return "set user.max_user_namespaces above 0 (sysctl)";
  if (InContainer()) {
    return "this is a container, whose system call filter or masked /proc forbids it: accept tier B (--require B), or "
           "start the container with a profile that allows user namespaces";
  }
  return "accept tier B (--require B)";
}

// One real launch of a program that does nothing.
absl::Status TryTier(Tier tier, const KernelFeatures& features) {
  absl::StatusOr<policy::Policy> policy = policy::ParsePolicy(
      {"doctor", absl::StrCat("{\"version\": 1, \"require\": \"", std::string(policy::TierName(tier)),
                              "\", \"filesystem\": {\"rx\": [\":runtime\"]}",
                              // So that a cgroup is made where one can be had.
                              features.cgroup.folder.empty() ? "" : ", \"limits\": {\"memory\": \"1GiB\"}", "}")},
      {});
  if (!policy.ok()) return policy.status();
  policy::CommandRequest request;
  request.argv = {kProgram};
  request.cwd = request.host_cwd = "/";
  absl::StatusOr<policy::ValidatedCommand> command = policy::ValidateCommand(*policy, request);
  if (!command.ok()) return command.status();
  command->cwd_asked_for = false;
  PlanOptions options;
  options.only_tier = tier;
  absl::StatusOr<LaunchPlan> plan = BuildLinuxPlan(*policy, *command, features, options);
  if (!plan.ok()) return plan.status();
  absl::StatusOr<Process> process = LaunchWithKeeper(*plan, asio::system_executor(), {});
  if (!process.ok()) return process.status();
  const ExitStatus status = process->Wait();
  if (status.kind == ExitStatus::Kind::kExited && status.code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(kProgram, " ", status.ToString()));
}

FeatureCheck CheckTier(Tier tier, const KernelFeatures& features, const std::string& remedy) {
  const absl::Status status = TryTier(tier, features);
  FeatureCheck check;
  check.name = absl::StrCat("tier ", std::string(policy::TierName(tier)));
  check.available = status.ok();
  check.detail = status.ok() ? absl::StrCat("a launch of ", kProgram, " succeeded") : std::string(status.message());
  if (!status.ok()) check.remedy = remedy;
  return check;
}

FeatureCheck CheckMemfd() {
  const std::string noexec = FirstLine("/proc/sys/vm/memfd_noexec");
  FeatureCheck check{"memfd exec", noexec != "2",
                     absl::StrCat("vm.memfd_noexec is ", noexec.empty() ? "absent" : noexec), ""};
  if (!check.available) check.remedy = "install the keeper as /usr/lib/bulkhead/keeper, owned by root";
  return check;
}

FeatureCheck CheckCgroup(const CgroupPlace& place) {
  FeatureCheck check{"cgroup v2", !place.folder.empty(), place.why_not, place.remedy};
  if (!check.available) {
    absl::StrAppend(&check.detail, ", so limits.memory and limits.processes are limits of a process or a user");
    return check;
  }
  const std::string found = absl::StrCat("a launch makes a group in ", place.folder, place.memory ? " for memory" : "",
                                         place.memory && place.pids ? " and" : "", place.pids ? " for processes" : "");
  check.detail = place.why_not.empty() ? found : absl::StrCat(found, "; ", place.why_not);
  return check;
}

}  // namespace

DoctorReport RunLinuxDoctor() {
  const KernelFeatures features = DetectLinuxFeatures();
  DoctorReport report;
  FeatureCheck landlock{"landlock", features.landlock_abi > 0, absl::StrCat("ABI ", features.landlock_abi), ""};
  if (!landlock.available) {
    landlock.detail = "this kernel has none, or it is not in the lsm= list of the kernel's command line";
    landlock.remedy = "use Linux 5.13 or later and add \"landlock\" to lsm=";
  }
  report.checks.push_back(landlock);
  report.checks.push_back(CheckMemfd());
  report.checks.push_back(CheckCgroup(features.cgroup));
  const std::string no_landlock = landlock.available ? "" : landlock.remedy;
  const auto add_tier = [&](Tier tier, const std::string& remedy) {
    report.checks.push_back(CheckTier(tier, features, remedy));
    if (!report.checks.back().available || report.any_tier) return;
    report.any_tier = true;
    report.tier = tier;
  };
  add_tier(Tier::kA, landlock.available ? NamespaceRemedy() : no_landlock);
  add_tier(Tier::kB, no_landlock);
  // Where Landlock works, a launch never falls back to the system call filter alone.
  if (!landlock.available) add_tier(Tier::kC, "");
  return report;
}

}  // namespace bulkhead::launcher
