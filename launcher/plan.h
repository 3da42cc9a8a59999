// A LaunchPlan is everything that happens between the host's call and the server's first instruction, fixed in
// advance: flat lists of steps for the keeper, the jail init and the server, once for each tier that the policy
// accepts. It is built and checked in the host, which is the last place that allocates; the keeper only carries it out
// and reports a failure as {step, errno}. It does not decide what is allowed: see policy/policy.h. Policy and command
// are the operator's configuration: never build them from a model's output or a server's answers.
#ifndef BULKHEAD_LAUNCHER_PLAN_H_
#define BULKHEAD_LAUNCHER_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "bulkhead/launcher/features.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::launcher {

// How much of what was asked a layer gives.
enum class LayerState { kFull, kPartial, kNone };

struct LayerReport {
  std::string name;  // the kernel's word
  LayerState state = LayerState::kFull;
  std::string does;
  std::string does_not;  // empty when nothing is left to say
};

// What one tier of the plan enforces, and what it doesn't.
struct EnforcementReport {
  policy::Tier tier = policy::Tier::kA;
  std::string network;  // "none" or "host"
  std::vector<LayerReport> layers;
  std::vector<std::string> weakened;  // e.g. "the host's network is granted"
};

// One step, for explain and for tests: "mount /srv/data read-write", with where it comes from.
struct StepDescription {
  std::string phase;   // "keeper", "init" or "server"
  std::string kind;    // e.g. "bind", "landlock", "seccomp"
  std::string text;    // one line for people
  std::string origin;  // "files.json:7", or empty for what every plan has
};

// The system calls that one list refuses with one errno.
struct DeniedCalls {
  std::string error;               // "EPERM"
  std::string by;                  // "baseline", "setid_guard" …; "policy" for /syscalls/deny
  std::vector<std::string> calls;  // sorted; a rule on arguments is written out: "ioctl(TIOCSTI)"

  friend bool operator==(const DeniedCalls& a, const DeniedCalls& b) {
    return a.error == b.error && a.by == b.by && a.calls == b.calls;
  }
};

struct PlanVariant {
  EnforcementReport report;
  // Both empty without PlanOptions::describe_steps; what is denied also where there is no filter.
  std::vector<StepDescription> steps;
  std::vector<DeniedCalls> denied;  // each call once, by errno and list
};

// Who makes and starts a plan. The table is in backend.cc.
enum class BackendName { kLinux, kPosix, kWindows };

struct PlanOptions {
  // Another than this system's own: the portable one can be tried on Linux.
  std::optional<BackendName> backend;
  // `bulkhead run`: stdio passes straight through and the caller becomes the keeper by exec. Otherwise the library's
  // way: pipes and a control socket.
  bool run_mode = false;
  // Leaves all other tiers out, and is an error where the policy doesn't accept this one. For doctor and for tests.
  std::optional<policy::Tier> only_tier;
  // Whether the variants' steps are described, too. What only starts the server does without.
  bool describe_steps = true;
};

// A folder of the host that Launch makes on first use, closed to all but its owner.
struct FolderToMake {
  std::string path;
  // Whose it becomes when root makes it for a named user; else it stays the caller's.
  struct Owner {
    std::uint32_t uid, gid;
  };
  std::optional<Owner> owner = std::nullopt;
};

struct PosixPlan;    // launcher/posix/plan.h
struct WindowsPlan;  // launcher/windows/windows.h

class LaunchPlan {
 public:
  LaunchPlan(LaunchPlan&&) = default;
  LaunchPlan& operator=(LaunchPlan&&) = default;
  LaunchPlan(const LaunchPlan&) = default;
  LaunchPlan& operator=(const LaunchPlan&) = default;

  // Strongest first. The launch tries them in order; the next one is tried only when a step that makes namespaces
  // fails, never when a grant or the program does.
  const std::vector<PlanVariant>& variants() const { return variants_; }
  const std::string& program() const { return program_; }  // as resolved: absolute
  const policy::ValidatedCommand& command() const { return command_; }
  // The plan as the keeper reads it (launcher/plan_format.h); empty where there is no keeper.
  const std::string& bytes() const { return bytes_; }
  std::string& mutable_bytes_for_test() { return bytes_; }
  // In which the launch makes cgroups; empty: in none.
  const std::string& cgroup_folder() const { return cgroup_folder_; }
  // ${cache}, where the policy grants it.
  const std::vector<FolderToMake>& folders_to_make() const { return folders_to_make_; }
  const policy::StderrRules& stderr_rules() const { return stderr_rules_; }
  // What a person should know and no report line says, e.g. that an argument names a file the jail does not show.
  const std::vector<std::string>& hints() const { return hints_; }
  // What the server gets in place of argv where a system has none; else empty.
  const std::string& command_line() const { return command_line_; }
  // Between SIGTERM and SIGKILL: the policy's, or in run mode a second where it sets none. Nothing where there is no
  // SIGTERM.
  std::optional<absl::Duration> term_grace() const { return term_grace_; }
  BackendName backend() const { return backend_; }
  // What the portable backend adds; null in a plan of another one.
  const PosixPlan* posix() const { return posix_.get(); }
  // The same for Windows'.
  const WindowsPlan* windows() const { return windows_.get(); }

 private:
  friend class PlanMaker;
  friend class PosixPlanMaker;
  friend class WindowsPlanMaker;
  LaunchPlan() = default;
  BackendName backend_ = BackendName::kLinux;
  std::shared_ptr<const PosixPlan> posix_;
  std::shared_ptr<const WindowsPlan> windows_;
  std::string bytes_;
  std::vector<PlanVariant> variants_;
  std::string program_;
  std::string cgroup_folder_;
  policy::ValidatedCommand command_;
  std::vector<FolderToMake> folders_to_make_;
  policy::StderrRules stderr_rules_;
  std::vector<std::string> hints_;
  std::string command_line_;
  std::optional<absl::Duration> term_grace_;
};

// Errors (the message says what was tried, on what, why not, and what would help):
//   NotFound          the program is not there (exit code 127)
//   PermissionDenied  not executable, a directory, missing interpreter or ELF loader, cwd or a grant refused (126)
//   FailedPrecondition  this kernel can't give the tier that the policy requires (125)
//   anything else     we failed (125)
// Not thread-safe against changes of the process's working folder; otherwise any thread may call.
absl::StatusOr<LaunchPlan> BuildLaunchPlan(const policy::Policy& policy, const policy::ValidatedCommand& command,
                                           const KernelFeatures& features, const PlanOptions& options = {});

// The exit code of INTERFACE.md for an error of ours: 127 NotFound, 126 PermissionDenied, 64 InvalidArgument, else 125.
int ExitCodeForStatus(const absl::Status& status);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_PLAN_H_
