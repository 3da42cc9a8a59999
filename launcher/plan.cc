#include "bulkhead/launcher/plan.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/account.h"
#include "bulkhead/launcher/cgroup.h"
#include "bulkhead/launcher/content.h"
#include "bulkhead/launcher/elf_program.h"
#include "bulkhead/launcher/file_system.h"
#include "bulkhead/launcher/grants.h"
#include "bulkhead/launcher/linux.h"
#include "bulkhead/launcher/other_user.h"
#include "bulkhead/launcher/plan_context.h"
#include "bulkhead/launcher/report_json.h"
#include "bulkhead/launcher/seccomp/filters.h"
#include "bulkhead/launcher/seccomp/policy_filters.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

using policy::NetworkMode;
using policy::Tier;

constexpr std::uint32_t kInsideId =
    1000;  // what a server started by root sees itself as; never 65534, which strangers' files show
constexpr absl::Duration kRunTermGrace = absl::Seconds(1);  // SDK hosts kill two seconds after SIGTERM
constexpr int kLandlockAbiMin = 1;
constexpr int kSignalScopeAbi = 6;
constexpr int kUnixSocketAbi = 9;

std::string EnvValue(const policy::ValidatedCommand& command, absl::string_view name) {
  for (const policy::EnvEntry& entry : command.env) {
    if (entry.name == name) return entry.value;
  }
  return "";
}

absl::StatusOr<Identity> ChooseIdentity(const policy::PolicyFields& policy, const KernelFeatures& features) {
  Identity identity;
  identity.run_uid = identity.inside_uid = geteuid();
  identity.run_gid = identity.inside_gid = getegid();
  if (policy.user == "auto") {
    if (features.is_root) {
      identity.run_as = wire::RunAs::kPerLaunch;
      identity.inside_uid = identity.inside_gid = kInsideId;
    }
    return identity;
  }
  const std::optional<Account> account = FindAccount(policy.user);
  if (!account.has_value()) {
    return absl::PermissionDeniedError(absl::StrCat("/user: there is no account ", policy::Quote(policy.user),
                                                    " in /etc/passwd; make it, or use \"auto\""));
  }
  if (!features.is_root) {
    if (account->uid == geteuid()) return identity;
    return absl::PermissionDeniedError(absl::StrCat("/user: only root can run a server as ", policy::Quote(policy.user),
                                                    "; use \"auto\", or start as that user"));
  }
  identity.run_as = wire::RunAs::kFixed;
  identity.run_uid = identity.inside_uid = account->uid;
  identity.run_gid = identity.inside_gid = account->gid;
  return identity;
}

// Landlock can't deny inside what it allows; only mounts can.
bool NeedsMounts(const policy::PolicyFields& policy) {
  return !policy.filesystem.protect.empty() || !policy.filesystem.hide.empty();
}

// The tiers to try, strongest first.
absl::StatusOr<std::vector<VariantKind>> ChooseVariants(const policy::PolicyFields& policy,
                                                        const KernelFeatures& features) {
  const bool landlock = features.landlock_abi >= kLandlockAbiMin;
  const Tier weakest = policy.user == "root" ? Tier::kA : policy.require;
  if (!landlock && weakest != Tier::kC) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot enforce landlock: this kernel has none or it is switched off (Linux 5.13 with "
                     "\"landlock\" in lsm= has it), and tier ",
                     std::string(policy::TierName(weakest)),
                     " needs it; set \"require\": \"C\" or use --require C to run without it"));
  }
  std::vector<VariantKind> variants = {{landlock ? Tier::kA : Tier::kC, true, landlock}};
  if (weakest == Tier::kA || NeedsMounts(policy)) return variants;
  variants.push_back({landlock ? Tier::kB : Tier::kC, false, landlock});
  return variants;
}

constexpr char kNoTmp[] = "cannot make the server's private folder: /tmp";
constexpr char kNoTmpRemedy[] =
    "; tiers B and C need one that can be written: mount a tmpfs there, or in a jail of ours grant it (--rw /tmp)";

std::vector<FailureText> NamespaceFailures(const std::string& remedy) {
  const std::string what = "cannot make the jail's namespaces, which tier A needs";
  return {
      {EINTR, 125, "the launch was interrupted before the server ran"},
      {EPERM, 125,
       absl::StrCat(what,
                    " (EPERM): user namespaces are forbidden here, by the distribution's hardening or "
                    "by the container's, or this is a chroot; \"bulkhead doctor\" says which; ",
                    remedy)},
      {EACCES, 125,
       absl::StrCat(what,
                    " (EACCES): user namespaces are forbidden here by a security module; \"bulkhead doctor\" says "
                    "which; ",
                    remedy)},
      {EROFS, 125,
       absl::StrCat(what, " (EROFS): /proc is read-only here, as in some containers, and so are the id maps in it; ",
                    remedy)},
      {ENOENT, 125, absl::StrCat(what, " (ENOENT): /proc is not mounted here; mount it; ", remedy)},
      {ENOSPC, 125,
       absl::StrCat(what, " (ENOSPC): the limit in /proc/sys/user/max_user_namespaces is reached; raise it; ", remedy)},
      {EUSERS, 125, absl::StrCat(what, " (EUSERS): namespaces are nested too deeply; ", remedy)},
      {EINVAL, 125, absl::StrCat(what, " (EINVAL): this kernel is built without some of them; ", remedy)},
      {ENOSYS, 125, absl::StrCat(what, " (ENOSYS): this kernel doesn't have them; ", remedy)},
      {0, 125, what}};
}

// CLONE_NEW*, from linux/sched.h, which can't be included beside sched.h.
constexpr std::uint32_t kNewMount = 0x00020000, kNewCgroup = 0x02000000, kNewUts = 0x04000000, kNewIpc = 0x08000000,
                        kNewUser = 0x10000000, kNewPid = 0x20000000, kNewNet = 0x40000000;

}  // namespace

constexpr char kTheCommand[] = "the command itself";  // where its grant comes from

class PlanMaker {
 public:
  PlanMaker(const policy::Policy& policy, const policy::ValidatedCommand& command, const KernelFeatures& features,
            const PlanOptions& options)
      : context_{*policy, command, features, options.run_mode, {}, {}, {}, {}, {}, {}},
        only_tier_(options.only_tier),
        describe_steps_(options.describe_steps) {}

  absl::StatusOr<LaunchPlan> Make() {
    const policy::PolicyFields& policy = context_.policy;
    absl::StatusOr<Identity> identity = ChooseIdentity(policy, context_.features);
    if (!identity.ok()) return identity.status();
    context_.identity = *identity;
    if (identity->other_than_caller()) {
      absl::Status can = CanBecomeOtherUser(identity->run_as == wire::RunAs::kPerLaunch);
      if (!can.ok()) return can;
    }
    absl::StatusOr<std::vector<VariantKind>> kinds = ChooseVariants(policy, context_.features);
    if (!kinds.ok()) return kinds.status();
    absl::Status status = LookAtProgram();
    if (status.ok()) status = LayOut();
    if (status.ok()) status = RefusePrivilegedFiles();
    if (status.ok()) status = ChooseWorkingFolder();
    if (status.ok()) status = CheckProgramIsVisible();
    if (!status.ok()) return status;
    AddHints();
    if (only_tier_.has_value()) {
      kinds->erase(
          std::remove_if(kinds->begin(), kinds->end(), [this](const VariantKind& k) { return k.tier != *only_tier_; }),
          kinds->end());
    }
    status = CheckOwners(/*namespaces=*/true);
    if (!status.ok()) return status;
    const absl::Status without = CheckOwners(/*namespaces=*/false);
    tier_remedy_ = NeedsMounts(policy) ? "\"protect\" and \"hide\" can't be enforced without them"
                   : kinds->size() == 1
                       ? "to accept less: --require B, or \"require\": \"B\" in the policy"
                       : absl::StrCat("and tier B is not possible either: ", std::string(without.message()));
    std::vector<wire::Variant> variants;
    for (const VariantKind& kind : *kinds) {
      if (kind.namespaces || without.ok()) variants.push_back(MakeVariant(kind));
    }
    if (variants.empty() && !without.ok()) return without;
    if (variants.empty())
      return absl::FailedPreconditionError("the policy does not accept the tier that was asked for alone");
    return Finish(variants);
  }

 private:
  absl::Status LookAtProgram() {
    absl::StatusOr<Program> program = FindProgram(
        context_.command.argv[0], context_.command.look_up, EnvValue(context_.command, "PATH"),
        [this](const std::string& real) { return ServerMayWrite(real); }, LookAtElfProgram);
    if (!program.ok()) return program.status();
    context_.program = *std::move(program);
    return CheckPins();
  }

  // Whether `real`, a path without links, lies where the server may write. Asked before there is a layout, since what
  // the command is decides about that.
  bool ServerMayWrite(const std::string& real) {
    if (!writable_.has_value()) {
      const policy::FilesystemRules& files = context_.policy.filesystem;
      writable_ = FoldersForWriting(files, EnvValue(context_.command, "HOME"));
      for (const policy::PathGrant& path : files.protect) AddReal(path.path, covered_);
      for (const policy::PathGrant& path : files.hide) AddReal(path.path, covered_);
    }
    const auto holds = [&real](const std::string& folder) { return IsWithin(real, folder); };
    if (absl::c_none_of(*writable_, holds) || absl::c_any_of(covered_, holds)) return false;
    struct stat info;
    if (lstat(real.c_str(), &info) != 0) return true;
    if (!context_.identity.other_than_caller()) return access(real.c_str(), W_OK) == 0;
    // Shown as the server's own, so that what counts is the owner's right; see OwnerSlot.
    return MayWrite(info) || ((info.st_mode & S_IWUSR) != 0 && MayMapOwners(real));
  }

  static void AddReal(const std::string& path, std::vector<std::string>& list) {
    const absl::StatusOr<ResolvedPath> resolved = ResolvePath(path);
    if (resolved.ok()) list.push_back(resolved->real);
  }

  // The pins of what this start runs: the program, what the kernel runs it with, and files that arguments name.
  absl::Status CheckPins() {
    const std::map<std::string, std::string>& pins = context_.policy.command.sha256;
    if (pins.empty()) return absl::OkStatus();
    std::vector<std::string> files = {context_.program.path};
    if (!context_.program.interpreter.empty()) files.push_back(context_.program.interpreter);
    for (std::size_t i = 1; i < context_.command.argv.size(); ++i) {
      const std::string& argument = context_.command.argv[i];
      if (argument.empty() || argument[0] == '-') continue;
      files.push_back(argument[0] == '/' ? argument : absl::StrCat(context_.command.cwd, "/", argument));
    }
    for (const std::string& file : files) {
      const absl::StatusOr<ResolvedPath> resolved = ResolvePath(file);
      if (!resolved.ok()) continue;
      for (const auto& [pinned, digest] : pins) {
        const absl::StatusOr<ResolvedPath> pin = ResolvePath(pinned);
        if (!pin.ok() || pin->real != resolved->real) continue;
        const absl::Status status = CheckPin(file, pinned, digest);
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckPin(const std::string& file, const std::string& pinned, const std::string& digest) {
    const absl::StatusOr<Content> content = ReadContent(file);
    if (!content.ok()) return content.status();
    if (content->sha256 != digest) {
      return absl::PermissionDeniedError(absl::StrCat(context_.policy.name, ": the content of ", policy::Quote(file),
                                                      " is not what /command/sha256 has for ", policy::Quote(pinned),
                                                      "; its SHA-256 is ", content->sha256,
                                                      "; install the pinned version, or pin this one if you trust it"));
    }
    context_.pinned.push_back({file, content->info});
    return absl::OkStatus();
  }

  absl::Status LayOut() {
    const policy::PolicyFields& policy = context_.policy;
    context_.home = EnvValue(context_.command, "HOME");
    if (context_.home.empty() || context_.home[0] != '/') context_.home.clear();
    for (const policy::PathGrant& grant : policy.filesystem.rw) {
      // The policy's own ${cache}: ours to make.
      if (!policy.cache_key.empty() && absl::EndsWith(grant.beneath, absl::StrCat("/", policy.cache_key))) {
        FolderToMake folder{grant.path};
        const Identity& identity = context_.identity;
        if (identity.run_as == wire::RunAs::kFixed) folder.owner = {identity.run_uid, identity.run_gid};
        plan_.folders_to_make_.push_back(std::move(folder));
      }
    }
    LayoutRequest request{policy, context_.home, {}, plan_.folders_to_make_};
    // Whoever asks for a command asks for that file, too; but a ceiling is there to narrow just that.
    if (!policy.narrowed) request.program.push_back({context_.program.file, {false, true}, kTheCommand});
    absl::StatusOr<JailLayout> layout = MakeJailLayout(request);
    if (!layout.ok()) return layout.status();
    context_.layout = *std::move(layout);
    const std::size_t granted = static_cast<std::size_t>(std::count_if(
        context_.layout.grants.begin(), context_.layout.grants.end(), [](const Granted& g) { return !g.runtime; }));
    if (context_.identity.other_than_caller() && 2 * granted > wire::kTreeSlotsMax) {
      return absl::PermissionDeniedError(
          absl::StrCat("the policy has ", granted, " grants; for a server started by root at most ",
                       wire::kTreeSlotsMax / 2, " are possible: grant folders instead of files"));
    }
    return absl::OkStatus();
  }

  absl::Status ChooseWorkingFolder() {
    const std::string& cwd = context_.command.cwd;
    const bool asked_for = context_.command.cwd_asked_for;
    const absl::StatusOr<ResolvedPath> resolved = ResolvePath(cwd);
    const bool is_folder = resolved.ok() && resolved->is_folder();
    if (is_folder && context_.layout.IsVisible(resolved->real)) {
      context_.cwd = cwd;
      return absl::OkStatus();
    }
    if (asked_for && !is_folder) return RefuseWorkingFolder(cwd, resolved);
    if (asked_for) {
      return absl::PermissionDeniedError(absl::StrCat("cannot use the working folder ", policy::Quote(cwd),
                                                      ": the policy doesn't grant it; "
                                                      "add --ro ",
                                                      cwd, " or a grant, or choose another with --cwd"));
    }
    plan_.hints_.push_back(absl::StrCat("the current folder ", policy::Quote(cwd),
                                        " is not granted; the server starts in ",
                                        context_.layout.home.empty() ? "/" : context_.layout.home));
    return absl::OkStatus();
  }

  absl::Status CheckProgramIsVisible() {
    const Granted* granted = context_.layout.GrantFor(context_.program.file.real);
    if (granted == nullptr || !granted->access.execute) {
      return absl::PermissionDeniedError(absl::StrCat("the command ", policy::Quote(context_.program.path), " (",
                                                      context_.program.file.real,
                                                      ") is not granted; add its folder to \"rx\" in the policy"));
    }
    const std::string& interpreter = context_.program.interpreter;
    if (interpreter.empty()) return absl::OkStatus();
    const absl::StatusOr<ResolvedPath> file = ResolvePath(interpreter);
    granted = file.ok() ? context_.layout.GrantFor(file->real) : nullptr;
    if (granted != nullptr && granted->access.execute) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat(policy::Quote(interpreter), ", which runs ",
                                                    policy::Quote(context_.program.path),
                                                    ", is not granted; add its folder to \"rx\" in the policy"));
  }

  // Through an idmapped mount the server is the owner of root's files on disk. It can make no setuid file, but could
  // rewrite one that is there through a shared mapping, which keeps the bit, and the file capabilities. That gains
  // nothing where only root could run it.
  absl::Status RefusePrivilegedFiles() {
    if (!context_.identity.other_than_caller()) return absl::OkStatus();
    for (const Granted& granted : context_.layout.grants) {
      if (!granted.access.write || granted.to_be_made || OnlyRootReaches(granted.path.real)) continue;
      bool complete = true;
      const PrivilegedFile found = FindPrivilegedFile(granted.path.real, complete);
      if (!found.path.empty()) {
        return absl::PermissionDeniedError(
            absl::StrCat(granted.origin, ": ", policy::Quote(granted.path.asked_for), " holds a ",
                         found.by_capabilities ? "file with capabilities, " : "setuid or setgid file, ",
                         policy::Quote(found.path), ", which a server started by root could rewrite; take ",
                         found.by_capabilities ? "them away (setcap -r)" : "the bit away (chmod ug-s)",
                         ", or grant another folder"));
      }
      if (!complete) {
        context_.layout.warnings.push_back(absl::StrCat(policy::Quote(granted.path.asked_for),
                                                        " can't be searched for setuid files as a whole (at most ",
                                                        kPrivilegedSearchMax, " entries are)"));
      }
    }
    return absl::OkStatus();
  }

  bool MayWrite(const struct stat& info) const {
    const Identity& identity = context_.identity;
    if (identity.run_as != wire::RunAs::kFixed) return (info.st_mode & S_IWOTH) != 0;
    return identity.run_uid == 0 || info.st_uid == identity.run_uid || (info.st_mode & S_IWOTH) != 0 ||
           (info.st_gid == identity.run_gid && (info.st_mode & S_IWGRP) != 0);
  }

  // A grant to write that would grant nothing: without mounts, and on some file systems, files can't be shown under
  // another owner.
  absl::Status CheckOwners(bool namespaces) const {
    if (!context_.identity.other_than_caller()) return absl::OkStatus();
    for (const Granted& granted : context_.layout.grants) {
      if (!granted.access.write || MayWrite(granted.path.info)) continue;
      if (namespaces && MayMapOwners(granted.path.real)) continue;
      const std::uint32_t owner = granted.path.info.st_uid;
      return absl::PermissionDeniedError(absl::StrCat(
          granted.origin, ": ", namespaces ? "" : "tier B ", "can't give a server started by root write access to ",
          policy::Quote(granted.path.real), ", which uid ", owner, " owns",
          namespaces ? " on a file system that can't be mounted for another user (as overlayfs can't)" : "", "; ",
          granted.to_be_made ? "name an account as \"user\" in the policy, and it is made for that account"
          : owner == 0       ? "give it to an account of its own (chown), and name that as \"user\" in the policy"
                             : "name that owner as \"user\" in the policy"));
    }
    return absl::OkStatus();
  }

  // Arguments that name files the server will not see are the most common mistake, and servers report it badly.
  void AddHints() {
    const std::vector<std::string>& argv = context_.command.argv;
    for (std::size_t i = 1; i < argv.size(); ++i) {
      if (argv[i].empty() || argv[i].find('/') == std::string::npos || argv[i][0] == '-') continue;
      const std::string path = argv[i][0] == '/' ? argv[i] : absl::StrCat(context_.command.cwd, "/", argv[i]);
      const absl::StatusOr<ResolvedPath> resolved = ResolvePath(path);
      if (!resolved.ok() || context_.layout.IsVisible(resolved->real)) continue;
      plan_.hints_.push_back(absl::StrCat("the argument ", policy::Quote(argv[i]),
                                          " names a file that the server can't see; if it needs it, add --ro ",
                                          policy::Visible(resolved->real), " (or --rw)"));
    }
    // The program is granted by being started, the one file. Many have more beside them.
    const std::string& program = context_.program.file.real;
    std::string folder = program.substr(0, program.rfind('/'));
    const Granted* granted = context_.layout.GrantFor(program);
    if (!folder.empty() && granted != nullptr && granted->origin == kTheCommand) {
      const std::string above = folder.substr(0, folder.rfind('/'));
      if (absl::EndsWith(folder, "/bin") && !above.empty() && !IsWithin(context_.home, above)) folder = above;
      plan_.hints_.push_back(absl::StrCat("of ", policy::Quote(folder), " the server sees ", policy::Quote(program),
                                          " alone; if that needs more of it, add the folder to \"rx\" in the policy"));
    }
    for (const std::string& warning : context_.layout.warnings) plan_.hints_.push_back(warning);
  }

  // Root's own folders are closed to the server's user, who in tier B is given no way around that.
  void AddReachHints(const VariantKind& kind, bool enters_cwd) {
    if (!enters_cwd && !context_.cwd.empty()) {
      plan_.hints_.push_back(absl::StrCat("in tier B the server starts in its private home: ",
                                          WhyUnreachable(context_, kind, context_.cwd, Reach::kFolder)));
    }
    for (const Granted& granted : context_.layout.grants) {
      const std::string why = granted.optional ? WhyUnreachable(context_, kind, granted.path.real) : "";
      if (why.empty()) continue;
      plan_.hints_.push_back(absl::StrCat("in tier B ", granted.origin, " is left out, since it is optional: ", why));
    }
  }

  std::vector<DeniedCalls> Denied(FilterSet set) const {
    const policy::PolicyFields& policy = context_.policy;
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> by_error_and_list;
    for (DeniedCall& denied : PolicyFilter(set, policy.syscalls_allow, policy.syscalls_deny).Describe()) {
      by_error_and_list[{denied.error, denied.by}].push_back(std::move(denied.call));
    }
    std::vector<DeniedCalls> all;
    for (auto& [key, calls] : by_error_and_list) {
      std::sort(calls.begin(), calls.end());
      all.push_back({key.first, key.second, std::move(calls)});
    }
    return all;
  }

  PlacedFilter Place(FilterSet set, std::string words) {
    const policy::PolicyFields& policy = context_.policy;
    if (policy.syscalls_allow.empty() && policy.syscalls_deny.empty()) {
      return Place(BuiltInFilter(set), std::move(words));
    }
    if (!policy.syscalls_deny.empty()) absl::StrAppend(&words, "; what the policy denies");
    const auto compiled = PolicyFilter(set, policy.syscalls_allow, policy.syscalls_deny).Compile();
    return Place({compiled.data(), compiled.size()}, std::move(words));
  }

  PlacedFilter Place(FilterView view, std::string words) {
    const wire::Offset at = writer_.Append(view.instructions, view.count * sizeof(BpfInstruction), 8);
    for (std::size_t i = 0; i < view.count; ++i) {
      const auto k = static_cast<wire::Offset>(at + i * sizeof(BpfInstruction) + offsetof(BpfInstruction, k));
      switch (view.instructions[i].k) {
        case kKeeperPidPlaceholder:
          patches_.push_back({wire::PatchKind::kKeeperPid, k});
          break;
        case kKeeperGroupPlaceholder:
          patches_.push_back({wire::PatchKind::kKeeperGroup, k});
          break;
        case kInitPidPlaceholder:
          patches_.push_back({wire::PatchKind::kInitPid, k});
          break;
        case kInitGroupPlaceholder:
          patches_.push_back({wire::PatchKind::kInitGroup, k});
          break;
        default:
          break;
      }
    }
    return {std::move(words), at, static_cast<std::uint32_t>(view.count)};
  }

  struct FilterParts {
    FilterSet set = 0;
    std::string words;
  };
  // What is installed as one filter, since installing each costs as much as a few hundred system calls.
  FilterParts FilterPartsOf(const VariantKind& kind) const {
    FilterParts parts;
    const auto add = [&parts](FilterName name, absl::string_view word) {
      parts.set |= SetOf(name);
      absl::StrAppend(&parts.words, parts.words.empty() ? "" : "; ", word);
    };
    const int abi = kind.landlock ? context_.features.landlock_abi : 0;
    add(FilterName::kBaseline, "the baseline list");
    if (context_.policy.syscall_profile == policy::SyscallProfile::kStrict) {
      add(FilterName::kStrict, "all that is not on the strict list");
    }
    if (context_.identity.other_than_caller()) add(FilterName::kSetidGuard, "making setuid and setgid files");
    if (!kind.namespaces) {
      if (context_.policy.network == NetworkMode::kNone) {
        add(FilterName::kSocketsNone, "all sockets");
      } else if (abi < kUnixSocketAbi) {
        add(FilterName::kSocketsNoUnix, "sockets of this machine");
      }
      add(FilterName::kSupervisorGuard, "limits and priorities of other processes");
      if (abi < kSignalScopeAbi) add(FilterName::kSignalGuard, "signals to the keeper and the jail init");
    }
    return parts;
  }

  // A folder of its own, since the host's /tmp and $HOME can't be covered in these tiers.
  struct PrivateFolders {
    wire::Offset home = 0, tmp = 0;  // the second lies in the first: one folder less to make and to remove
  };
  wire::Offset PatchedText(wire::PatchKind kind, const std::string& before, const std::string& prefix,
                           const std::string& after) {
    const std::string start = absl::StrCat(before, prefix);
    const wire::Offset text = writer_.OwnText(absl::StrCat(start, std::string(wire::kLaunchIdDigits, 'x'), after));
    patches_.push_back({kind, static_cast<wire::Offset>(text + start.size())});
    return text;
  }
  wire::Offset LaunchText(const std::string& before, const std::string& prefix, const std::string& after) {
    return PatchedText(wire::PatchKind::kLaunchId, before, prefix, after);
  }
  std::string CgroupPrefix() const { return absl::StrCat(context_.features.cgroup.folder, "/", kCgroupPrefix); }
  PrivateFolders MakePrivateFolders(StepsMaker& steps) {
    PrivateFolders folders;
    folders.home = LaunchText("", kPrivateFolderPrefix, "");
    folders.tmp = LaunchText("", kPrivateFolderPrefix, "/tmp");
    for (const wire::Offset path : {folders.home, folders.tmp}) {
      wire::Step step = MakeStep(wire::StepKind::kPrivateFolder);
      step.path_mode = {path, 0700};
      steps.Keeper(step, {"private folder",
                          "make the server's private folder in /tmp",
                          "/filesystem",
                          {{ESTALE, 125,
                            "cannot make the server's private folder: other users may replace what lies in /tmp, which "
                            "has no sticky bit; set it (chmod +t /tmp)"},
                           {EROFS, 125, kNoTmp, " is read-only (EROFS)", kNoTmpRemedy},
                           {EACCES, 125, kNoTmp, " is closed to us (EACCES)", kNoTmpRemedy},
                           {ENOENT, 125, kNoTmp, " isn't there (ENOENT)", kNoTmpRemedy},
                           {0, 125, "cannot make the server's private folder in /tmp"}},
                          false});
    }
    return folders;
  }

  wire::Offset Environment(const PrivateFolders& folders) {
    std::vector<std::uint64_t> words;
    const bool private_home = folders.home != 0 && context_.policy.filesystem.home == policy::HomeMode::kPrivate;
    const bool private_tmp = folders.home != 0 && context_.policy.filesystem.tmp == policy::TmpMode::kPrivate;
    std::uint64_t secrets = 0;
    for (const policy::EnvEntry& entry : context_.command.env) {
      const bool is_secret = entry.source == policy::EnvEntry::Source::kSecret;
      const std::uint64_t secret = wire::kSecretMark + (is_secret ? secrets++ : 0);
      if ((private_home && entry.name == "HOME") || (private_tmp && entry.name == "TMPDIR")) continue;
      if (is_secret) {
        words.push_back(secret);
        continue;
      }
      words.push_back(writer_.Text(absl::StrCat(entry.name, "=", entry.value)));
    }
    if (private_home) words.push_back(LaunchText("HOME=", kPrivateFolderPrefix, ""));
    if (private_tmp) words.push_back(LaunchText("TMPDIR=", kPrivateFolderPrefix, "/tmp"));
    words.push_back(0);
    return writer_.Array(words);
  }

  wire::Variant MakeVariant(const VariantKind& kind) {
    wire::Variant variant = {};
    variant.tier = static_cast<unsigned char>(policy::TierName(kind.tier)[0]);
    StepsMaker steps(writer_, tier_remedy_, describe_steps_);
    PrivateFolders folders;
    ServerSteps server;
    server.cgroup = UseOfCgroup(context_, kind);
    if (server.cgroup.used) {
      plan_.cgroup_folder_ = context_.features.cgroup.folder;
      const auto path = [this](const char* end) {
        return PatchedText(wire::PatchKind::kKeeperName, "", CgroupPrefix(), end);
      };
      const CgroupPaths paths = AddCgroupSteps(context_, kind, server.cgroup, path, steps);
      variant.cgroup = paths.server;
      variant.init_cgroup = paths.init;
    }
    if (kind.namespaces) {
      variant.namespaces = kNewUser | kNewMount | kNewPid | kNewIpc | kNewUts | kNewCgroup;
      if (context_.policy.network == NetworkMode::kNone) variant.namespaces |= kNewNet;
      AddJailSteps(context_, kind, steps);
    } else {
      folders = MakePrivateFolders(steps);
      variant.private_folder = folders.home;
      AddInitStepsWithoutJail(steps);
    }
    const FilterParts filter = FilterPartsOf(kind);
    server.filter = Place(filter.set, filter.words);
    if (kind.landlock) {
      const std::vector<wire::Offset> private_folders =
          folders.home != 0 ? std::vector<wire::Offset>{folders.home} : std::vector<wire::Offset>{};
      server.landlock_rules = LandlockRules(context_, kind, private_folders, writer_);
    }
    const std::string fallback = context_.layout.home.empty() ? "/" : context_.layout.home;
    const bool enters_cwd =
        !context_.cwd.empty() &&
        (context_.command.cwd_asked_for || WhyUnreachable(context_, kind, context_.cwd, Reach::kFolder).empty());
    server.cwd = enters_cwd ? writer_.Text(context_.cwd) : folders.home != 0 ? folders.home : writer_.Text(fallback);
    AddServerSteps(context_, kind, server, steps);
    if (kind.tier == Tier::kB) AddReachHints(kind, enters_cwd);

    variant.argv = writer_.Pointers(context_.command.argv);
    variant.envp = Environment(folders);
    variant.clone_failures =
        steps.Failures(kind.namespaces ? NamespaceFailures(tier_remedy_)
                                       : std::vector<FailureText>{{0, 125, "cannot start the jail init"}});
    variant.start_failures = steps.Failures({{0, 125, "cannot start a process for the server"}});
    PlanVariant described;
    described.report = MakeReport(kind, context_.policy, context_.layout, context_.features, server.cgroup);
    described.steps = steps.Finish(variant);
    if (describe_steps_) described.denied = Denied(filter.set);
    const std::string head = ReportJsonHead(described.report, context_.program.path);
    variant.report = writer_.Text(head);
    variant.report_bytes = static_cast<std::uint32_t>(head.size());
    plan_.variants_.push_back(std::move(described));
    return variant;
  }

  void AddInitStepsWithoutJail(StepsMaker& steps) {
    steps.Init(MakeStep(wire::StepKind::kSeal),
               {"seal", "keep the server from reading the memory of keeper and jail init", "", {}, false});
    steps.Init(MakeStep(wire::StepKind::kChildren),
               {"children",
                "find the list of a process's children",
                "",
                {{ENOENT, 125,
                  "cannot end what a server leaves behind: /proc is not mounted here, or this kernel doesn't list the "
                  "children of a process in it (CONFIG_PROC_CHILDREN); mount it, or use tier A"},
                 {0, 125, "cannot end what a server leaves behind: its processes can't be listed"}},
                false});
    wire::Step drop = MakeStep(wire::StepKind::kDropCapabilities);
    // CAP_KILL, CAP_SETGID, CAP_SETUID: to end a server of another uid, and to become it.
    if (context_.identity.other_than_caller()) drop.words[0] = 1u << 5 | 1u << 6 | 1u << 7;
    steps.Init(drop, {"capabilities", "drop capabilities", "", {}, false});
  }

  absl::StatusOr<LaunchPlan> Finish(const std::vector<wire::Variant>& variants) {
    const policy::Timeouts& timeouts = context_.policy.timeouts;
    const absl::Duration term_grace =
        context_.run_mode && !timeouts.term_grace_was_set ? kRunTermGrace : timeouts.term_grace;
    wire::Plan plan = {};
    plan.flags = context_.run_mode ? static_cast<std::uint32_t>(wire::kRunMode) : 0;
    plan.stdin_grace_ms = static_cast<std::uint32_t>(absl::ToInt64Milliseconds(timeouts.stdin_grace));
    plan.term_grace_ms = static_cast<std::uint32_t>(absl::ToInt64Milliseconds(term_grace));
    plan.run_as = context_.identity.run_as;
    plan.run_uid = context_.identity.run_uid;
    plan.run_gid = context_.identity.run_gid;
    plan.inside_uid = context_.identity.inside_uid;
    plan.inside_gid = context_.identity.inside_gid;
    plan.variant_count = static_cast<std::uint32_t>(variants.size());
    plan.variants = writer_.Array(variants);
    plan.secret_count = static_cast<std::uint32_t>(absl::c_count_if(
        context_.command.env, [](const auto& entry) { return entry.source == policy::EnvEntry::Source::kSecret; }));
    plan.patch_count = static_cast<std::uint32_t>(patches_.size());
    plan.patches = writer_.Array(patches_);
    if (!plan_.hints_.empty()) {
      std::string text;
      for (const std::string& hint : plan_.hints_) absl::StrAppend(&text, "bulkhead: note: ", hint, "\n");
      plan.hint = writer_.Text(text);
    }
    if (writer_.size() > wire::kPlanBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat("arguments and environment take ", writer_.size(),
                                                     " bytes; at most ", wire::kPlanBytesMax, " are possible"));
    }
    plan_.program_ = context_.program.path;
    plan_.command_ = context_.command;
    plan_.stderr_rules_ = context_.policy.stderr_rules;
    plan_.term_grace_ = term_grace;
    plan_.bytes_ = writer_.Finish(plan);
    return std::move(plan_);
  }

  PlanContext context_;
  std::optional<Tier> only_tier_;
  bool describe_steps_;
  std::optional<std::vector<std::string>> writable_;  // folders that the policy lets the server write, without links
  std::vector<std::string> covered_;                  // and what it takes away from them
  std::string tier_remedy_;                           // when namespaces can't be had
  PlanWriter writer_;
  std::vector<wire::Patch> patches_;
  LaunchPlan plan_;
};

absl::StatusOr<LaunchPlan> BuildLinuxPlan(const policy::Policy& policy, const policy::ValidatedCommand& command,
                                          const KernelFeatures& features, const PlanOptions& options) {
  return PlanMaker(policy, command, features, options).Make();
}

}  // namespace bulkhead::launcher
