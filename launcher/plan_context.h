// What the makers of a plan's steps share: everything that was found out before the first step is written.
#ifndef BULKHEAD_LAUNCHER_PLAN_CONTEXT_H_
#define BULKHEAD_LAUNCHER_PLAN_CONTEXT_H_

#include <sys/stat.h>

#include <functional>
#include <string>
#include <vector>

#include "bulkhead/launcher/features.h"
#include "bulkhead/launcher/jail_layout.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/program.h"
#include "bulkhead/launcher/report.h"
#include "bulkhead/launcher/steps.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::launcher {

struct Identity {
  wire::RunAs run_as = wire::RunAs::kCaller;
  std::uint32_t run_uid = 0, run_gid = 0;        // kCaller and kFixed
  std::uint32_t inside_uid = 0, inside_gid = 0;  // what the server sees in tier A
  bool other_than_caller() const { return run_as != wire::RunAs::kCaller; }
};

// A file of command.sha256 that this start runs or names.
struct PinnedFile {
  std::string path;  // as it will be opened
  struct stat info;  // when its content was read
};

struct PlanContext {
  const policy::PolicyFields& policy;
  const policy::ValidatedCommand& command;
  const KernelFeatures& features;
  bool run_mode;
  Identity identity;
  Program program;
  JailLayout layout;
  std::vector<PinnedFile> pinned;
  std::string home;  // the server's $HOME as it is passed, or empty
  std::string cwd;   // the folder to start in; empty: the server's private home, or /

  // Whether the policy allows user namespaces, whose maps are written in /proc. Never for the kernel's root: in /proc,
  // it may write whatever isn't read-only.
  bool writes_id_maps() const;
};

// The private folder of tiers B and C; the digits are written by the keeper.
inline constexpr char kPrivateFolderPrefix[] = "/tmp/bulkhead-";

// Whether and for what this variant has a cgroup: where the policy limits memory or processes, a place is to be had,
// and the server can't change the group's files.
CgroupUse UseOfCgroup(const PlanContext& context, const VariantKind& kind);
// The keeper's step that makes the server's group, and a second one for the jail init where no kernel ends the tree
// with it (tiers B and C): what kills the host's group as a whole must not kill keeper and init at once, and what fills
// the server's must not reach the init. Gives the two paths, as texts in the plan.
struct CgroupPaths {
  wire::Offset server = 0, init = 0;
};
CgroupPaths AddCgroupSteps(const PlanContext& context, const VariantKind& kind, const CgroupUse& use,
                           const std::function<wire::Offset(const char* end)>& path, StepsMaker& steps);

// Steps of the keeper and the init that build a jail (tier A).
void AddJailSteps(const PlanContext& context, const VariantKind& kind, StepsMaker& steps);

// Steps of the server's process, for any tier.
struct PlacedFilter {
  std::string words;  // what it refuses
  wire::Offset at;
  std::uint32_t count;
};
struct ServerSteps {
  CgroupUse cgroup;
  PlacedFilter filter;
  wire::Offset cwd;                                // as text in the plan
  std::vector<wire::LandlockRule> landlock_rules;  // empty with kind.landlock false
};
void AddServerSteps(const PlanContext& context, const VariantKind& kind, const ServerSteps& server, StepsMaker& steps);

// Tiers B and C show the host's own tree, in which another user may be kept from what is granted. Why the server's user
// can't reach `path`, or can't enter that folder; or empty.
enum class Reach { kPath, kFolder };
std::string WhyUnreachable(const PlanContext& context, const VariantKind& kind, const std::string& path,
                           Reach reach = Reach::kPath);

// The paths' rights for Landlock; `private_folders` are offsets of texts of further folders to read and write.
std::vector<wire::LandlockRule> LandlockRules(const PlanContext& context, const VariantKind& kind,
                                              const std::vector<wire::Offset>& private_folders, PlanWriter& writer);

wire::Pinned Pin(const ResolvedPath& path, PlanWriter& writer);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_PLAN_CONTEXT_H_
