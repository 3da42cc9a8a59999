#include <windows.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/windows/text.h"
#include "bulkhead/launcher/windows/windows.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

using policy::PolicyFields;

constexpr std::uint64_t kPageBytes = 4096;

// What can't be enforced here and is more than tier C leaves out anyway.
absl::Status RefuseWhatIsNotEnforced(const PolicyFields& policy) {
  const auto refuse = [&policy](absl::string_view field, absl::string_view why, absl::string_view remedy) {
    return absl::FailedPreconditionError(
        absl::StrCat(policy.name, ": ", field, ": on Windows Bulkhead ", why, "; ", remedy));
  };
  if (policy.require != policy::Tier::kC) {
    return refuse("/require", absl::StrCat("can't give tier ", policy::TierName(policy.require)),
                  "set \"require\": \"C\" or use --require C to run with what tier C leaves out");
  }
  if (policy.network != policy::NetworkMode::kHost) {
    return refuse("/network/mode", "can't keep a server from the network",
                  "grant it with \"mode\": \"host\" or --network host");
  }
  if (policy.user != "auto") return refuse("/user", "starts servers as the caller only", "use \"auto\"");
  if (!policy.filesystem.protect.empty()) return refuse("/filesystem/protect", "can't protect a path", "take it out");
  if (!policy.filesystem.hide.empty()) return refuse("/filesystem/hide", "can't hide a path", "take it out");
  if (!policy.command.sha256.empty()) return refuse("/command/sha256", "doesn't check contents yet", "take it out");
  if (!policy.env.secret.empty()) {
    return refuse("/env/secret", "doesn't pass secrets yet", "pass the variable with \"inherit\"");
  }
  if (policy.syscall_profile != policy::SyscallProfile::kBaseline || !policy.syscalls_deny.empty()) {
    return refuse("/syscalls", "has no system call filter", "take it out");
  }
  const policy::Limits& limits = policy.limits;
  if (limits.memory_bytes != 0 && limits.memory_bytes < kPageBytes) {
    return refuse("/limits/memory", "limits whole pages of 4 KiB", "raise it");
  }
  if (limits.file_size_bytes != 0) return refuse("/limits/file_size", "can't limit files", "take it out");
  return absl::OkStatus();
}

// A grant is no wall here, but one that names nothing is a mistake all the same.
absl::Status CheckGrants(const PolicyFields& policy) {
  const policy::FilesystemRules& files = policy.filesystem;
  for (const auto* list : {&files.rx, &files.ro, &files.rw}) {
    for (const policy::PathGrant& grant : *list) {
      // The policy's own ${cache} is made by who writes there.
      if (grant.path == ":runtime" || grant.optional ||
          (!policy.cache_key.empty() && absl::EndsWith(grant.beneath, absl::StrCat("\\", policy.cache_key)))) {
        continue;
      }
      if (GetFileAttributesW(ToWide(grant.path).c_str()) != INVALID_FILE_ATTRIBUTES) continue;
      return absl::PermissionDeniedError(absl::StrCat(grant.origin, ": cannot grant ", policy::Quote(grant.path),
                                                      ": error ", GetLastError(),
                                                      " of Windows; correct the path, or mark it \"optional\": true"));
    }
  }
  return absl::OkStatus();
}

bool IsFile(const std::string& path) {
  const DWORD attributes = GetFileAttributesW(ToWide(path).c_str());
  return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) == 0;
}

std::string ValueOf(const policy::ValidatedCommand& command, absl::string_view name) {
  for (const policy::EnvEntry& entry : command.env) {
    if (absl::EqualsIgnoreCase(entry.name, name)) return entry.value;
  }
  return "";
}

absl::StatusOr<std::string> FindWindowsProgram(const policy::ValidatedCommand& command) {
  const std::string& name = command.argv[0];
  if (!command.look_up) {
    if (IsFile(name)) return name;
    return absl::NotFoundError(absl::StrCat("cannot run ", policy::Quote(name), ": there is no such file"));
  }
  const std::vector<std::string> names = policy::WindowsFileNames(name, ValueOf(command, "PATHEXT"));
  std::string looked_in;
  for (const policy::LookUpFolder& folder : command.look_up_folders) {
    absl::StrAppend(&looked_in, looked_in.empty() ? "" : ";", folder.path);
    if (folder.granted_for_writing) continue;  // what is there may be the server's own work
    for (const std::string& file : names) {
      const std::string path = absl::StrCat(folder.path, absl::EndsWith(folder.path, "\\") ? "" : "\\", file);
      if (IsFile(path)) return path;
    }
  }
  return absl::NotFoundError(absl::StrCat("the command ", policy::Quote(name), " is not in ",
                                          looked_in.empty() ? "the server's PATH, which is empty" : looked_in,
                                          "; give its full path, or add its folder to PATH"));
}

// CreateProcessW: sorted by name, without regard to case, in the order of Unicode.
std::u16string EnvironmentBlock(const policy::ValidatedCommand& command) {
  std::vector<std::pair<std::wstring, std::wstring>> entries;
  for (const policy::EnvEntry& entry : command.env) entries.emplace_back(ToWide(entry.name), ToWide(entry.value));
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return CompareStringOrdinal(a.first.c_str(), -1, b.first.c_str(), -1, TRUE) == CSTR_LESS_THAN;
  });
  std::wstring block;
  for (const auto& [name, value] : entries) block += name + L"=" + value + L'\0';
  if (entries.empty()) block += L'\0';
  block += L'\0';
  return std::u16string(block.begin(), block.end());
}

LayerReport LimitsReport(const policy::Limits& limits) {
  LayerReport layer{"limits", LayerState::kNone, "", "open files are not limited"};
  if (limits.memory_bytes != 0) {
    absl::StrAppend(&layer.does, "memory of the whole job: ", limits.memory_bytes / kPageBytes * kPageBytes, " bytes");
  }
  if (limits.processes != 0) {
    absl::StrAppend(&layer.does, layer.does.empty() ? "" : ", ", limits.processes, " processes in the job");
  }
  if (limits.cpu_time > absl::ZeroDuration()) {
    absl::StrAppend(&layer.does, layer.does.empty() ? "" : ", ", absl::ToInt64Seconds(limits.cpu_time),
                    " s of time of all processes of the job together, in user mode");
  }
  if (!layer.does.empty()) layer.state = LayerState::kPartial;
  return layer;
}

EnforcementReport MakeReport(const policy::Limits& limits) {
  EnforcementReport report;
  report.tier = policy::Tier::kC;
  report.network = "host";
  report.layers = {
      {"files", LayerState::kNone, "", "every file that the user can open is open to the server, whatever is granted"},
      {"home", LayerState::kNone, "", "the user's own folder and TEMP are the server's, too"},
      {"processes", LayerState::kNone, "", "the server can see and end the user's other processes"},
      {"network", LayerState::kNone, "", "the network is the host's, its loopback services included"},
      LimitsReport(limits),
      {"token", LayerState::kPartial, "no privilege but SeChangeNotify, and not an administrator, whoever starts it",
       "what is the user's is the server's: no restricting groups, no integrity level of its own, no AppContainer"},
      {"job object", LayerState::kFull, "the whole tree ends with the server, and with bulkhead", ""}};
  report.weakened = {"the host's network is granted", "tier C instead of A"};
  return report;
}

std::string SystemFolder() {
  wchar_t folder[MAX_PATH];
  const UINT length = GetSystemDirectoryW(folder, MAX_PATH);
  return ToUtf8(std::wstring(folder, length < MAX_PATH ? length : 0));
}

}  // namespace

class WindowsPlanMaker {
 public:
  static absl::StatusOr<LaunchPlan> Make(const PolicyFields& policy, const policy::ValidatedCommand& command,
                                         const PlanOptions& options) {
    absl::Status status = RefuseWhatIsNotEnforced(policy);
    if (status.ok()) status = CheckGrants(policy);
    if (!status.ok()) return status;
    absl::StatusOr<std::string> program = FindWindowsProgram(command);
    if (!program.ok()) return program.status();
    const std::string system = SystemFolder();
    if (system.empty()) return absl::InternalError("cannot find Windows' system folder");
    absl::StatusOr<policy::WindowsStart> start =
        policy::MakeWindowsStart(*program, command.argv, policy.command.batch_files, system);
    if (!start.ok()) return start.status();
    const DWORD attributes = GetFileAttributesW(ToWide(command.cwd).c_str());
    if (attributes == INVALID_FILE_ATTRIBUTES || (attributes & FILE_ATTRIBUTE_DIRECTORY) == 0) {
      return absl::PermissionDeniedError(
          absl::StrCat("cannot use the working folder: ", policy::Quote(command.cwd), " is not a folder"));
    }
    auto windows = std::make_shared<WindowsPlan>();
    windows->start = *std::move(start);
    windows->environment = EnvironmentBlock(command);
    windows->cwd = command.cwd;
    windows->stdin_grace = policy.timeouts.stdin_grace;
    windows->cpu_time = policy.limits.cpu_time;
    windows->memory_bytes = policy.limits.memory_bytes / kPageBytes * kPageBytes;
    windows->processes = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(policy.limits.processes, std::numeric_limits<std::uint32_t>::max()));
    LaunchPlan plan;
    plan.backend_ = BackendName::kWindows;
    plan.program_ = *std::move(program);
    plan.command_ = command;
    plan.stderr_rules_ = policy.stderr_rules;
    plan.command_line_ = windows->start.command_line;
    PlanVariant variant;
    variant.report = MakeReport(policy.limits);
    if (options.describe_steps) {
      variant.steps = {{"server", "start", absl::StrCat("suspended: ", windows->start.application), ""},
                       {"server", "handles", "inherit stdio and nothing else", ""},
                       {"server", "token", "without the user's privileges; Administrators only denies", ""},
                       {"server", "job object", "put it into its job, which ends with bulkhead, and let it go", ""}};
    }
    plan.variants_.push_back(std::move(variant));
    plan.windows_ = std::move(windows);
    return plan;
  }
};

absl::StatusOr<LaunchPlan> BuildWindowsPlan(const policy::Policy& policy, const policy::ValidatedCommand& command,
                                            const KernelFeatures&, const PlanOptions& options) {
  return WindowsPlanMaker::Make(*policy, command, options);
}

KernelFeatures DetectWindowsFeatures() { return {}; }

DoctorReport RunWindowsDoctor() {
  DoctorReport report;
  report.checks = {{"tier A", false, "Windows doesn't have it", "use Linux"},
                   {"tier B", false, "Windows doesn't have it", "use Linux"},
                   {"tier C", true, "a job object around the server; not tried here", ""}};
  report.any_tier = true;
  return report;
}

}  // namespace bulkhead::launcher
