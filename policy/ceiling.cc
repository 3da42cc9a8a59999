#include "bulkhead/policy/ceiling.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bulkhead/policy/env_names.h"
#include "bulkhead/policy/glob.h"
#include "bulkhead/policy/paths.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::policy {
namespace {

constexpr absl::string_view kRuntime = ":runtime";

using GrantList = std::vector<PathGrant> FilesystemRules::*;
constexpr GrantList kGrantLists[] = {&FilesystemRules::rx, &FilesystemRules::ro, &FilesystemRules::rw};

template <typename T>
bool Has(const std::vector<T>& list, const T& entry) {
  return std::find(list.begin(), list.end(), entry) != list.end();
}

template <typename T>
void AddOnce(std::vector<T>& list, const T& entry) {
  if (!Has(list, entry)) list.push_back(entry);
}

// IsWithin, and ":runtime", which is parts of "/".
bool Lies(absl::string_view path, absl::string_view folder) {
  return path == folder || IsWithin(path, folder) || (path == kRuntime && folder == "/");
}

// Zero is no limit.
template <typename T>
T LowerLimit(T a, T b) {
  if (a == T() || b == T()) return std::max(a, b);
  return std::min(a, b);
}

// From the least to the most that it shows of the host.
int Rank(HomeMode mode) {
  switch (mode) {
    case HomeMode::kNone:
      return 0;
    case HomeMode::kPrivate:
      return 1;
    case HomeMode::kReadOnly:
      return 2;
    case HomeMode::kReadWrite:
      return 3;
  }
  return 0;
}

bool SameSource(const SecretSource& a, const SecretSource& b) {
  return a.env == b.env && a.file == b.file && a.fd == b.fd;
}

void AddPath(std::vector<PathGrant>& grants, const PathGrant& grant) {
  const auto same = [&grant](const PathGrant& other) { return other.path == grant.path; };
  if (std::none_of(grants.begin(), grants.end(), same)) grants.push_back(grant);
}

// The lists of `files`, without what lies in a hidden folder, and read-only where it lies in a protected one of
// `masks`.
FilesystemRules Masked(const FilesystemRules& files, const FilesystemRules& masks) {
  const auto lies_in = [](const std::vector<PathGrant>& folders, const PathGrant& grant) {
    return std::any_of(folders.begin(), folders.end(),
                       [&grant](const PathGrant& folder) { return IsWithin(grant.path, folder.path); });
  };
  FilesystemRules masked;
  for (const GrantList list : kGrantLists) {
    for (const PathGrant& grant : files.*list) {
      if (lies_in(masks.hide, grant)) continue;
      const bool read_only = list == &FilesystemRules::rw && lies_in(masks.protect, grant);
      AddPath(read_only ? masked.ro : masked.*list, grant);
    }
  }
  return masked;
}

// The paths of `filesystem`, narrowed list by list.
class PathNarrower {
 public:
  explicit PathNarrower(FilesystemRules ceiling) : ceiling_(std::move(ceiling)) {
    for (const GrantList list : kGrantLists) {
      for (const PathGrant& grant : ceiling_.*list) readable_.push_back(grant);
    }
  }

  // Adds what is left of `grant`, of a policy's list `from`, to the lists of `out`. False if nothing is.
  bool Narrow(const PathGrant& grant, GrantList from, FilesystemRules& out) const {
    constexpr auto kRo = &FilesystemRules::ro;
    const std::vector<PathGrant>& same_list = from == kRo ? readable_ : ceiling_.*from;
    if (const PathGrant* whole = Covering(same_list, grant.path)) {
      Emit(Constrained(grant, *whole), out.*from);
      return true;
    }
    bool anything = false;
    const PathGrant* reading = grant.path == kRuntime ? nullptr : Covering(readable_, grant.path);
    if (reading != nullptr) {
      Emit(Constrained(grant, *reading), out.ro);
      anything = true;
    }
    // The ceiling's own folders beneath it.
    anything |= EmitBeneath(grant, same_list, {}, out.*from, from == &FilesystemRules::rx);
    if (reading == nullptr && from != kRo) anything |= EmitBeneath(grant, readable_, same_list, out.ro, false);
    return anything;
  }

 private:
  // The widest one of `grants` that `path` lies in: any one is reason enough, and this one binds least.
  static const PathGrant* Covering(const std::vector<PathGrant>& grants, absl::string_view path) {
    const PathGrant* widest = nullptr;
    for (const PathGrant& grant : grants) {
      if (Lies(path, grant.path) && (widest == nullptr || grant.path.size() < widest->path.size())) widest = &grant;
    }
    return widest;
  }

  // Adds what `ceilings` grant beneath `grant` to `out`, but for what lies in one of `done`.
  static bool EmitBeneath(const PathGrant& grant, const std::vector<PathGrant>& ceilings,
                          const std::vector<PathGrant>& done, std::vector<PathGrant>& out, bool runtime_too) {
    bool anything = false;
    for (const PathGrant& ceiling : ceilings) {
      if (!Lies(ceiling.path, grant.path) || Covering(ceilings, ceiling.path)->path != ceiling.path) continue;
      if ((ceiling.path == kRuntime && !runtime_too) || Covering(done, ceiling.path) != nullptr) continue;
      PathGrant both = grant;
      both.path = ceiling.path;
      both.optional = true;  // a ceiling permits, it does not ask for anything to be there
      both.origin = absl::StrCat(grant.origin, ", ", ceiling.origin);
      both = Constrained(std::move(both), grant);
      Emit(Constrained(std::move(both), ceiling), out);
      anything = true;
    }
    return anything;
  }

  // `grant`, opened beneath all that `by` is opened beneath, and beneath `by` itself.
  static PathGrant Constrained(PathGrant grant, const PathGrant& by) {
    if (grant.path == kRuntime) {
      grant.beneath.clear();
      grant.also_beneath.clear();
      return grant;
    }
    std::vector<std::string>& folders = grant.also_beneath;
    folders.insert(folders.end(), by.also_beneath.begin(), by.also_beneath.end());
    folders.push_back(by.beneath);
    folders.push_back(by.path);
    const auto says_nothing = [&grant](const std::string& folder) {
      return folder.empty() || folder == grant.path || folder == grant.beneath;
    };
    folders.erase(std::remove_if(folders.begin(), folders.end(), says_nothing), folders.end());
    // All are above the path, so one in the other; the outermost is the shortest.
    std::sort(folders.begin(), folders.end(),
              [](const auto& a, const auto& b) { return a.size() < b.size() || (a.size() == b.size() && a < b); });
    folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
    return grant;
  }

  static void Emit(PathGrant grant, std::vector<PathGrant>& out) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const PathGrant& g) { return g.path == grant.path; });
    if (same == out.end()) {
      out.push_back(std::move(grant));
    } else {
      same->optional = same->optional && grant.optional;
    }
  }

  const FilesystemRules ceiling_;
  std::vector<PathGrant> readable_;
};

class Narrower {
 public:
  Narrower(const Draft& ceiling, Draft& draft, Mistakes& mistakes)
      : from_(ceiling), ceiling_(ceiling.fields), draft_(draft), fields_(draft.fields), mistakes_(mistakes) {}

  void Narrow() {
    NarrowTier();
    NarrowCommand();
    NarrowCwd();
    NarrowStderr();  // looks at the ceiling's folders, so no matter when
    NarrowEnv();
    NarrowPaths();
    NarrowPlaces();
    NarrowNetwork();
    NarrowSyscalls();
    NarrowLimits();
    NarrowForClient();
    fields_.warnings.insert(fields_.warnings.end(), ceiling_.warnings.begin(), ceiling_.warnings.end());
  }

 private:
  void Warn(absl::string_view what) {
    const std::string warning = absl::StrCat(ceiling_.name, ": ", what);
    AddOnce(fields_.warnings, warning);
  }

  // Whether the ceiling lets `name` of the host's environment be read.
  bool Passes(const std::string& name) const {
    const std::string folded = FoldEnvName(name, from_.platform);
    return AnyGlobMatches(ceiling_.env.inherit, folded) && WhyNeverInherited(folded, /*ignore_case=*/false).empty();
  }
  bool AllPass(const std::map<std::string, std::vector<std::string>>& names_of, const std::string& key) const {
    const auto found = names_of.find(key);
    return found == names_of.end() || std::all_of(found->second.begin(), found->second.end(),
                                                  [this](const std::string& name) { return Passes(name); });
  }

  // The entry of a ceiling's map for a variable's name.
  template <typename T>
  const T* Find(const std::map<std::string, T>& map, const std::string& name) const {
    for (const auto& [key, value] : map) {
      if (FoldEnvName(key, from_.platform) == FoldEnvName(name, from_.platform)) return &value;
    }
    return nullptr;
  }

  void NarrowTier() {
    if (ceiling_.require < fields_.require) {
      Warn(absl::StrCat("accepts no tier weaker than ", TierName(ceiling_.require), " where the policy accepts ",
                        TierName(fields_.require)));
      fields_.require = ceiling_.require;
    }
    if (fields_.user != ceiling_.user && fields_.user != "auto") {
      Warn(absl::StrCat("does not grant the user ", Quote(fields_.user)));
      fields_.user = "auto";
    }
  }

  void NarrowCommand() {
    CommandRules& command = fields_.command;
    if (!command.allow.has_value()) {
      command.allow = ceiling_.command.allow;
    } else if (ceiling_.command.allow.has_value()) {
      auto& allow = *command.allow;
      allow.erase(std::remove_if(allow.begin(), allow.end(),
                                 [this](const auto& entry) { return !Has(*ceiling_.command.allow, entry); }),
                  allow.end());
    }
    for (const auto& [path, digest] : ceiling_.command.sha256) {
      if (command.sha256.emplace(path, digest).first->second == digest) continue;
      mistakes_.Add(absl::StrCat(from_.sha256_origin, ": /command/sha256/", PointerToken(path)),
                    "pins another content than the policy does; let both pin the same");
    }
    command.args_max = std::min(command.args_max, ceiling_.command.args_max);
    for (const std::string& glob : ceiling_.command.args_deny) AddOnce(command.args_deny, glob);
    command.args_allow = IntersectGlobs(command.args_allow, ceiling_.command.args_allow);
    if (ceiling_.command.batch_files == BatchFiles::kRefuse) command.batch_files = BatchFiles::kRefuse;
  }

  // Empty is any folder, in both.
  void NarrowCwd() {
    if (ceiling_.cwd_allow.empty()) return;
    if (fields_.cwd_allow.empty()) {
      fields_.cwd_allow = ceiling_.cwd_allow;
      return;
    }
    std::vector<std::string> both;
    for (const std::string& folder : fields_.cwd_allow) {
      for (const std::string& other : ceiling_.cwd_allow) {
        if (IsWithin(folder, other)) {
          AddOnce(both, folder);
        } else if (IsWithin(other, folder)) {
          AddOnce(both, other);
        }
      }
    }
    if (both.empty()) {
      mistakes_.Add(absl::StrCat(from_.cwd_allow_origin, ": /cwd/allow"),
                    "has no folder that the policy allows too; let one of both name a folder of the other");
    }
    fields_.cwd_allow = std::move(both);
  }

  void NarrowStderr() {
    StderrRules& rules = fields_.stderr_rules;
    const StderrRules& ceiling = ceiling_.stderr_rules;
    if (rules.mode == StderrMode::kFile) {
      const auto holds_it = [&rules](const PathGrant& grant) { return IsWithin(rules.file, grant.path); };
      const bool granted = (ceiling.mode == StderrMode::kFile && ceiling.file == rules.file) ||
                           std::any_of(ceiling_.filesystem.rw.begin(), ceiling_.filesystem.rw.end(), holds_it);
      if (!granted || !AllPass(draft_.env_names_of_file, rules.file)) {
        Warn("does not grant the file for stderr");
        rules = StderrRules();
      }
    }
    if (ceiling.mode == StderrMode::kDiscard) rules = ceiling;
  }

  void NarrowEnv() {
    EnvRules& env = fields_.env;
    std::vector<std::string> both = IntersectGlobs(env.inherit, ceiling_.env.inherit);
    std::vector<std::string> lost;
    for (const std::string& name : env.inherit) {
      if (!Has(both, name)) lost.push_back(name);
    }
    env.inherit = std::move(both);
    for (auto entry = env.set.begin(); entry != env.set.end();) {
      const std::string& name = entry->first;
      const std::string* same = Find(ceiling_.env.set, name);
      const bool may =
          (Passes(name) || (same != nullptr && *same == entry->second)) && AllPass(draft_.env_names_of_set, name);
      if (!may) lost.push_back(name);
      entry = may ? std::next(entry) : env.set.erase(entry);
    }
    for (auto entry = env.secret.begin(); entry != env.secret.end();) {
      const bool may = GrantsSecret(entry->first, entry->second);
      entry->second.follow_links = false;
      if (!may) lost.push_back(entry->first);
      entry = may ? std::next(entry) : env.secret.erase(entry);
    }
    if (!lost.empty()) Warn(absl::StrCat("does not grant in the environment: ", absl::StrJoin(lost, ", ")));
  }

  bool GrantsSecret(const std::string& name, const SecretSource& source) const {
    const SecretSource* same = Find(ceiling_.env.secret, name);
    if (same != nullptr && SameSource(*same, source)) return true;
    if (!Passes(name)) return false;
    if (source.env.has_value()) return Passes(*source.env);
    if (!source.file.has_value()) return false;  // a descriptor's number says nothing about what it is
    const auto holds_it = [&source](const PathGrant& grant) { return IsWithin(*source.file, grant.path); };
    const FilesystemRules& files = ceiling_.filesystem;
    return AllPass(draft_.env_names_of_file, *source.file) &&
           (std::any_of(files.ro.begin(), files.ro.end(), holds_it) ||
            std::any_of(files.rx.begin(), files.rx.end(), holds_it) ||
            std::any_of(files.rw.begin(), files.rw.end(), holds_it));
  }

  // protect and hide take away, so that those of both hold, for what either grants.
  void NarrowPaths() {
    FilesystemRules& files = fields_.filesystem;
    for (const PathGrant& mask : ceiling_.filesystem.protect) AddPath(files.protect, mask);
    for (const PathGrant& mask : ceiling_.filesystem.hide) AddPath(files.hide, mask);
    const FilesystemRules asked = Masked(files, files);
    const PathNarrower narrower(Masked(ceiling_.filesystem, files));
    FilesystemRules narrowed;
    std::vector<std::string> granted;
    for (const GrantList list : kGrantLists) {
      for (const PathGrant& grant : asked.*list) {
        if (AllPass(draft_.env_names_of_grant, grant.path) && narrower.Narrow(grant, list, narrowed)) {
          granted.push_back(grant.path);
        } else {
          Warn(absl::StrCat("does not grant what ", grant.origin, " names"));
        }
      }
    }
    for (const GrantList list : kGrantLists) files.*list = std::move(narrowed.*list);
    RenewEnvNames(granted);
  }

  // What is left was made from the same variables as what it is left of: `granted`, the paths that were.
  void RenewEnvNames(const std::vector<std::string>& granted) {
    const std::map<std::string, std::vector<std::string>> before = std::move(draft_.env_names_of_grant);
    draft_.env_names_of_grant.clear();
    for (const std::string& wide : granted) {
      const auto names = before.find(wide);
      if (names == before.end()) continue;
      for (const GrantList list : kGrantLists) {
        for (const PathGrant& grant : fields_.filesystem.*list) {
          if (!Lies(grant.path, wide)) continue;
          for (const std::string& name : names->second) AddOnce(draft_.env_names_of_grant[grant.path], name);
        }
      }
    }
  }

  void NarrowPlaces() {
    FilesystemRules& files = fields_.filesystem;
    if (Rank(ceiling_.filesystem.home) < Rank(files.home)) {
      if (Rank(files.home) > Rank(HomeMode::kPrivate)) Warn("does not grant the home folder");
      files.home = ceiling_.filesystem.home;
    }
    if (ceiling_.filesystem.tmp == TmpMode::kPrivate && files.tmp == TmpMode::kHost) {
      Warn("does not grant the host's /tmp");
      files.tmp = TmpMode::kPrivate;
    }
  }

  void NarrowNetwork() {
    if (fields_.network == NetworkMode::kNone) return;
    if (ceiling_.network == NetworkMode::kNone) {
      Warn("does not grant the network");
      fields_.network = NetworkMode::kNone;
    } else if (ceiling_.network == NetworkMode::kAllowlist) {
      if (fields_.network == NetworkMode::kHost) {
        Warn("grants its own list of hosts instead of the host's network");
        fields_.network = NetworkMode::kAllowlist;
        fields_.network_allow = ceiling_.network_allow;
        return;
      }
      auto& allow = fields_.network_allow;
      allow.erase(std::remove_if(allow.begin(), allow.end(),
                                 [this](const auto& entry) { return !Has(ceiling_.network_allow, entry); }),
                  allow.end());
    }
  }

  void NarrowSyscalls() {
    if (ceiling_.syscall_profile == SyscallProfile::kStrict) fields_.syscall_profile = SyscallProfile::kStrict;
    std::vector<std::string> kept, lost;
    for (std::string& name : fields_.syscalls_allow) {
      (Has(ceiling_.syscalls_allow, name) ? kept : lost).push_back(std::move(name));
    }
    fields_.syscalls_allow = std::move(kept);
    if (!lost.empty()) Warn(absl::StrCat("does not allow the system calls ", absl::StrJoin(lost, ", ")));
    for (const std::string& name : ceiling_.syscalls_deny) AddOnce(fields_.syscalls_deny, name);
  }

  void NarrowLimits() {
    Limits& limits = fields_.limits;
    limits.memory_bytes = LowerLimit(limits.memory_bytes, ceiling_.limits.memory_bytes);
    limits.processes = LowerLimit(limits.processes, ceiling_.limits.processes);
    limits.open_files = LowerLimit(limits.open_files, ceiling_.limits.open_files);
    limits.file_size_bytes = LowerLimit(limits.file_size_bytes, ceiling_.limits.file_size_bytes);
    limits.cpu_time = LowerLimit(limits.cpu_time, ceiling_.limits.cpu_time);
  }

  // Less to hold, less to wait, fewer and slower restarts.
  void NarrowForClient() {
    const auto lower = [](auto& mine, const auto& theirs) { mine = std::min(mine, theirs); };
    const auto higher = [](auto& mine, const auto& theirs) { mine = std::max(mine, theirs); };
    lower(fields_.messages.max_message_bytes, ceiling_.messages.max_message_bytes);
    lower(fields_.messages.max_junk_lines, ceiling_.messages.max_junk_lines);
    lower(fields_.messages.max_queued_bytes, ceiling_.messages.max_queued_bytes);
    Timeouts& timeouts = fields_.timeouts;
    lower(timeouts.probe, ceiling_.timeouts.probe);
    lower(timeouts.start, ceiling_.timeouts.start);
    lower(timeouts.request, ceiling_.timeouts.request);
    lower(timeouts.stdin_grace, ceiling_.timeouts.stdin_grace);
    if (ceiling_.timeouts.term_grace < timeouts.term_grace) {
      timeouts.term_grace = ceiling_.timeouts.term_grace;
      timeouts.term_grace_was_set = true;
    }
    RestartRules& restart = fields_.restart;
    lower(restart.max_in_a_row, ceiling_.restart.max_in_a_row);
    higher(restart.backoff_initial, ceiling_.restart.backoff_initial);
    higher(restart.backoff_max, ceiling_.restart.backoff_max);
    higher(restart.backoff_max, restart.backoff_initial);
    higher(restart.healthy_after, ceiling_.restart.healthy_after);
  }

  const Draft& from_;
  const PolicyFields& ceiling_;
  Draft& draft_;
  PolicyFields& fields_;
  Mistakes& mistakes_;
};

}  // namespace

void NarrowTo(const Draft& ceiling, Draft& draft, Mistakes& mistakes) { Narrower(ceiling, draft, mistakes).Narrow(); }

}  // namespace bulkhead::policy
