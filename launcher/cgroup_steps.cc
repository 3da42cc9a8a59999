// The steps that put a server, with all that it starts, into a cgroup of its own.
#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/cgroup.h"
#include "bulkhead/launcher/plan_context.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

using wire::StepKind;

// The tighter of the policy's limit (0: none) and that of the host's own group. 0: neither.
std::uint64_t Tighter(std::uint64_t of_policy, std::uint64_t of_host) {
  if (of_policy == 0) return of_host == UINT64_MAX ? 0 : of_host;
  return std::min(of_policy, of_host);
}

void AddEnter(int slot, const char* what, void (StepsMaker::*list)(wire::Step, StepsMaker::About), StepsMaker& steps) {
  wire::Step step = MakeStep(StepKind::kEnterCgroup);
  step.words[0] = static_cast<std::uint64_t>(slot);
  (steps.*list)(step, {"cgroup", absl::StrCat("enter the cgroup of ", what), "/limits", {}, false});
}

}  // namespace

CgroupUse UseOfCgroup(const PlanContext& context, const VariantKind& kind) {
  const policy::Limits& limits = context.policy.limits;
  const CgroupPlace& place = context.features.cgroup;
  CgroupUse use;
  if (limits.memory_bytes == 0 && limits.processes == 0) return use;
  if (place.folder.empty()) {
    use.why_not = place.why_not;
    return use;
  }
  if (!kind.namespaces && !kind.landlock && !context.identity.other_than_caller()) {
    use.why_not = "in this tier the server could write the files of its own group";
    return use;
  }
  for (const Granted& granted : context.layout.grants) {
    const std::string& real = granted.path.real;
    if (!granted.access.write || (!IsWithin(place.mount, real) && !IsWithin(real, place.mount))) continue;
    use.why_not =
        absl::StrCat("the policy lets the server write ", policy::Quote(real), ", and so its own group's files");
    return use;
  }
  use.used = true;
  if (place.memory && limits.memory_bytes != 0) use.memory_bytes = Tighter(limits.memory_bytes, place.memory_max);
  if (place.pids && limits.processes != 0) use.processes = Tighter(limits.processes, place.pids_max);
  const bool lacks = (limits.memory_bytes != 0 && !place.memory) || (limits.processes != 0 && !place.pids);
  if (lacks) use.why_not = place.why_not;
  return use;
}

CgroupPaths AddCgroupSteps(const PlanContext& context, const VariantKind& kind, const CgroupUse& use,
                           const std::function<wire::Offset(const char* end)>& path, StepsMaker& steps) {
  const CgroupPlace& place = context.features.cgroup;
  PlanWriter& writer = steps.writer();
  std::string words;
  std::vector<wire::CgroupFile> files;
  const auto file = [&](const char* name, const std::string& text) {
    files.push_back({writer.Text(name), writer.Text(text)});
    absl::StrAppend(&words, words.empty() ? ": " : ", ", name, " ", text);
  };
  const std::uint64_t memory = place.memory ? Tighter(use.memory_bytes, place.memory_max) : 0;
  const std::uint64_t processes = place.pids ? Tighter(use.processes, place.pids_max) : 0;
  if (memory != 0) {
    file("memory.max", absl::StrCat(memory));
    if (use.memory_bytes != 0 && place.swap) file("memory.swap.max", "0");
    // All of the tree, not the process that happens to be the largest: what is left would not be the server.
    file("memory.oom.group", "1");
  }
  if (processes != 0) file("pids.max", absl::StrCat(processes));
  const auto make = [&](wire::Offset folder, int slot, const char* what) {
    wire::Step step = MakeStep(StepKind::kMakeCgroup);
    step.cgroup = {folder, files.empty() ? 0 : writer.Array(files), static_cast<std::uint32_t>(files.size()),
                   static_cast<std::uint32_t>(slot)};
    const std::string text = absl::StrCat("make a cgroup in ", policy::Quote(place.folder), " for ", what);
    const std::string cannot = absl::StrCat("cannot ", text);
    steps.Keeper(step,
                 {"cgroup",
                  absl::StrCat(text, words),
                  "/limits",
                  {{EAGAIN, 125, cannot, ": cgroup.max.descendants or cgroup.max.depth of a group above is reached"},
                   {ENOENT, 125, cannot, ": it was removed, or has lost its controllers; start again"},
                   {0, 125, cannot}},
                  false});
  };
  CgroupPaths paths;
  paths.server = path("");
  make(paths.server, wire::kCgroupSlot, "the server");
  AddEnter(wire::kCgroupSlot, "the server", &StepsMaker::Server, steps);
  if (kind.namespaces) return paths;
  files.clear();
  words.clear();
  paths.init = path(kInitCgroupSuffix);
  make(paths.init, wire::kInitCgroupSlot, "the jail init");
  AddEnter(wire::kInitCgroupSlot, "the jail init", &StepsMaker::Init, steps);
  return paths;
}

}  // namespace bulkhead::launcher
