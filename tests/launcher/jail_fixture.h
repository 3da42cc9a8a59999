// What the tests of real jails share: a person's files on the host, servers started from policy text, and the same
// probe started outside, as the control.
//
// Started as root, the person is an account of its own ("nobody"), so that the outside control and the jail have the
// same rights; the server runs under a uid of its own unless a jail names the user.
#ifndef BULKHEAD_TESTS_LAUNCHER_JAIL_FIXTURE_H_
#define BULKHEAD_TESTS_LAUNCHER_JAIL_FIXTURE_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bulkhead/launcher/features.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/plan_format.h"
#include "bulkhead/launcher/process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::launcher {

using Words = std::vector<std::string>;

inline constexpr uid_t kNobody = 65534;

// Files on the host, removed at the end. Everything belongs to the person.
class Host {
 public:
  Host();
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  uid_t person() const { return person_; }
  const std::string& folder() const { return folder_; }
  std::string operator/(const std::string& name) const { return folder_ + "/" + name; }
  const std::string& home() const { return home_; }    // holds .ssh/id_test
  const std::string& probe() const { return probe_; }  // tools/probe
  std::string key() const { return home_ + "/.ssh/id_test"; }

  // In folder(); give the full path back. Folders above are made.
  std::string Folder(const std::string& name, mode_t mode = 0755) const;
  std::string File(const std::string& name, const std::string& text, mode_t mode = 0644) const;
  std::string Link(const std::string& target, const std::string& name) const;
  void GiveTo(const std::string& path, uid_t owner) const;  // root only

 private:
  uid_t person_;
  std::string folder_, home_, probe_;
};

bool IsRoot();
std::string ReadFile(const std::string& path);
// What a command of ours left there, without the line by which a sanitizer built into it misses /proc.
std::string ReadStderr(const std::string& path);
bool Exists(const std::string& path);
std::string NewToken();
// `name` as Bazel gave it to the test: "tests/programs/probe".
std::string TestData(const std::string& name);

// How one command went.
struct Outcome {
  absl::Status launched;  // not OK: nothing was started
  std::string out;        // the server's stdout
  ExitStatus end;
  EnforcementReport report;
  friend std::ostream& operator<<(std::ostream& stream, const Outcome& outcome);
};

// What a jail of these tests is made from; becomes the text of a policy.
struct Jail {
  policy::Tier tier = policy::Tier::kA;
  Words rx, ro, rw, protect, hide;
  std::string network = "none";
  std::string limits;  // members of "limits", as JSON
  std::string user = "auto";
  std::map<std::string, std::string> env;  // of the host, beside HOME and PATH
  std::string workspace;                   // what ${workspace} stands for
  std::string cwd;
  std::string more;                    // further members of the policy, as JSON: ",\"cwd\":{}"
  int landlock_abi = -1;               // at most; -1: what there is
  std::optional<int> pretended_abi;    // of Landlock, also a later one than there is: for plans that are not run
  CgroupPlace cgroup;                  // none, so that rlimits bind
  std::optional<bool> is_root;         // else what we are
  std::optional<BackendName> backend;  // else this system's own
  bool run_mode = false;
};

// What a test that both backends have to pass is run with.
enum class Way { kTierA, kTierB, kPortable };
std::string NameOf(Way way);
// With that backend, in its tier, and what it has to be granted. As root the portable one needs an account.
Jail JailFor(Way way);

absl::StatusOr<LaunchPlan> MakePlan(const Host& host, const Jail& jail, const Words& command);
// Starts it and reads its stdout to the end. `edit` may change the plan before.
using Edit = std::function<void(LaunchPlan&)>;
Outcome RunPlan(absl::StatusOr<LaunchPlan> plan, const Edit& edit = nullptr);
// The probe with these words, in the jail.
Outcome RunInJail(const Host& host, const Jail& jail, Words words, const Edit& edit = nullptr);
// Any other command.
Outcome RunCommand(const Host& host, const Jail& jail, const Words& command, const Edit& edit = nullptr);
// The probe outside, as the person.
Outcome RunOutside(const Host& host, Words words);

// A probe that lives outside, as the person, until the end of the block: "listen-tcp", "wait" ...
class HostProcess {
 public:
  HostProcess(const Host& host, Words words, std::map<std::string, std::string> env = {});
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;
  pid_t pid() const { return pid_; }
  const std::string& ready() const { return ready_; }  // its first line
  std::string port() const { return ready_.substr(ready_.find("port=") + 5); }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  std::string ready_;
};

// probe said "ok"; SaysOk also looks at what followed.
testing::Matcher<const Outcome&> Succeeded();
testing::Matcher<const Outcome&> SaysOk(const testing::Matcher<std::string>& text);
// probe said "error" with the name of this errno.
testing::Matcher<const Outcome&> DeniedWith(int error);
testing::Matcher<const Outcome&> DeniedWithAnyOf(std::vector<int> errors);
// Nothing was started, with these words.
testing::Matcher<const Outcome&> RefusedSaying(const std::string& words);

// ---- Plans with a step less

// Reads and changes the bytes of a plan.
class PlanEditor {
 public:
  explicit PlanEditor(LaunchPlan& plan) : bytes_(plan.mutable_bytes_for_test()) {}

  using StepPredicate = std::function<bool(const wire::Step&)>;
  // Makes every such step of all variants do nothing; fails the test when there is none.
  void Drop(wire::StepKind kind, const StepPredicate& which = nullptr);
  void DropNamespace(std::uint32_t flag);
  // Takes MOUNT_ATTR_* from every bind mount at or below `path`.
  void DropMountAttribute(const std::string& path, std::uint64_t attribute);
  // Only this variant is tried.
  void KeepVariant(std::size_t index);
  void ForEachStep(const std::function<void(wire::Step&)>& f);
  void ForEachVariant(const std::function<void(wire::Variant&)>& f);
  // Puts these bytes at the end, aligned for anything. Steps that were at hand are elsewhere afterwards.
  wire::Offset Append(const void* data, std::size_t bytes);
  std::string Text(wire::Offset at) const { return bytes_.c_str() + at; }

  template <typename T>
  T* At(wire::Offset at) {
    return reinterpret_cast<T*>(bytes_.data() + at);
  }

 private:
  std::string& bytes_;
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_TESTS_LAUNCHER_JAIL_FIXTURE_H_
