// Tier A: the steps that make the jail's file tree.
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/file_system.h"
#include "bulkhead/launcher/plan_context.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {

wire::Pinned Pin(const ResolvedPath& path, PlanWriter& writer) {
  wire::Pinned pinned = {};
  pinned.path = writer.Text(path.real);
  pinned.dev_major = major(path.info.st_dev);
  pinned.dev_minor = minor(path.info.st_dev);
  pinned.inode = path.info.st_ino;
  pinned.is_folder = path.is_folder();
  return pinned;
}

namespace {

using wire::StepKind;

// Of each private folder; they are memory. As many inodes as pages, as the kernel gives a tmpfs that is as large as may
// be (tmpfs(5)): an empty file takes a kilobyte of the kernel's, which no size counts.
constexpr char kTmpSize[] = "512m", kTmpInodes[] = "128k";
constexpr const char* kDevices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};

std::string AccessWords(Access access) {
  return access.write ? (access.execute ? "read, write and execute" : "read and write")
                      : (access.execute ? "read and execute" : "read");
}

// `cannot`: "cannot grant \"".
std::vector<FailureText> ChangedSince(const char* cannot, const std::string& path) {
  return {{ENOENT, 125, cannot, path, "\": it was removed since it was checked; start again"},
          {ESTALE, 125, cannot, path, "\": it was replaced since it was checked; start again"},
          {ELOOP, 125, cannot, path, "\": a link took its place since it was checked; start again"},
          {0, 125, cannot, path, "\""}};
}

std::vector<FailureText> GrantFailures(const std::string& path) {
  const char kCannot[] = "cannot grant \"";
  std::vector<FailureText> failures = ChangedSince(kCannot, path);
  failures.insert(failures.begin(),
                  {EINVAL, 125, kCannot, path,
                   "\": its file system can't be mounted for another user (as overlayfs can't); name the owner of the "
                   "files as \"user\" in the policy"});
  return failures;
}

class JailMaker {
 public:
  JailMaker(const PlanContext& context, StepsMaker& steps)
      : context_(context), layout_(context.layout), steps_(steps), writer_(steps.writer()) {}

  void Make() {
    Init(StepKind::kSeal, {"seal", "keep the server from reading the memory of its jail init", "", {}, false});
    Text(StepKind::kHostname, "", "bulkhead", {"hostname", "set the jail's host name", "", {}, true});
    if (context_.policy.network == policy::NetworkMode::kNone) {
      Init(StepKind::kLoopback, {"loopback", "bring up the jail's own loopback", "", {}, true});
    }
    Init(StepKind::kRoot, {"mount", "make the jail's empty root", "", {}, true});
    EmptyFile();
    GrantsAndPrivateFolders();
    Devices();  // over what a grant of /dev or / shows there
    Folder("/proc", 0555);
    Proc();
    MadeUpFiles();
    for (const SymlinkOnPath& link : layout_.links) Symlink(link.at, link.text);
    for (const Covered& covered : layout_.covered) Cover(covered);
    Init(StepKind::kPivot, {"pivot_root", "leave the host's file tree", "", {}, true});
    if (layout_.GrantFor("/") == nullptr) {
      Init(StepKind::kReadOnlyRoot, {"mount", "make the jail's root read-only", "", {}, true});
    }
    Init(StepKind::kDropCapabilities, {"capabilities", "drop all capabilities", "", {}, false});
  }

 private:
  void Init(StepKind kind, StepsMaker::About about) { steps_.Init(wire::Step{kind, 0, 0, {}}, std::move(about)); }

  void Text(StepKind kind, const std::string& path, const std::string& text, StepsMaker::About about) {
    wire::Step step = MakeStep(kind);
    if (!path.empty()) step.path_text.path = writer_.Text(path);
    step.path_text.text = writer_.Text(text);
    steps_.Init(step, std::move(about));
  }

  // Inside a granted tree everything is there already: its paths in the jail are those of the host.
  bool IsThere(const std::string& path) const {
    // A private folder inside a granted one is mounted over what the host has there.
    const auto is_it = [&path](const PrivateFolder& folder) { return folder.path == path; };
    return made_.count(path) != 0 || path.empty() || path == "/" || layout_.GrantFor(path) != nullptr ||
           absl::c_any_of(layout_.folders, is_it);
  }

  void Folder(const std::string& path, std::uint32_t mode = 0755) {
    if (IsThere(path)) return;
    Folder(path.substr(0, path.rfind('/')));
    made_.insert(path);
    wire::Step step = MakeStep(StepKind::kFolder);
    step.path_mode = {writer_.Text(path), mode};
    steps_.Init(step, {"folder", absl::StrCat("make the folder ", policy::Quote(path), " in the jail"), "", {}, false});
  }

  void File(const std::string& path, const std::string& content, const std::string& why) {
    if (IsThere(path)) return;
    Folder(path.substr(0, path.rfind('/')));
    made_.insert(path);
    wire::Step step = MakeStep(StepKind::kFile);
    step.file = {writer_.Text(path), 0644, writer_.Text(content), static_cast<std::uint32_t>(content.size())};
    steps_.Init(step,
                {"file", absl::StrCat("make the file ", policy::Quote(path), " in the jail", why), "", {}, false});
  }

  void Symlink(const std::string& path, const std::string& text) {
    if (IsThere(path)) return;
    Folder(path.substr(0, path.rfind('/')));
    made_.insert(path);
    Text(StepKind::kSymlink, path, text,
         {"link", absl::StrCat("link ", policy::Quote(path), " to ", policy::Quote(text)), "", {}, false});
  }

  // The folder or empty file that is mounted on. Its place may lie in a granted tree (then it is there) or not; what
  // is granted at `path` itself does not count yet.
  void MountPoint(const std::string& path, bool is_folder) {
    if (path == "/") return;
    const std::string above = path.substr(0, path.rfind('/'));
    const bool in_granted_tree = layout_.GrantFor(above.empty() ? "/" : above) != nullptr;
    if (in_granted_tree || made_.count(path) != 0) return;
    Folder(above);
    made_.insert(path);
    wire::Step step = MakeStep(is_folder ? StepKind::kFolder : StepKind::kFile);
    if (is_folder) {
      step.path_mode = {writer_.Text(path), 0755};
    } else {
      step.file = {writer_.Text(path), 0644, 0, 0};
    }
    steps_.Init(
        step,
        {is_folder ? "folder" : "file", absl::StrCat("make a mount point for ", policy::Quote(path)), "", {}, false});
  }

  void Mount(const Granted& granted, std::uint64_t attributes, StepsMaker::About about) {
    MountPoint(granted.path.real, granted.path.is_folder());
    wire::Step step = MakeStep(StepKind::kBind);
    step.bind.source = Pin(granted.path, writer_);
    step.bind.target = writer_.Text(granted.path.real);
    step.bind.mount_attributes = attributes;
    step.bind.slot = -1;
    // Under another uid the init may not be able to reach a person's folders, and sees strange owners there: the keeper
    // opens them while it is still root, and maps their owner to the server's uid.
    if (context_.identity.other_than_caller() && !granted.runtime)
      step.bind.slot = OpenAsRoot(granted, step.bind, about);
    steps_.Init(step, std::move(about));
  }

  std::int32_t OpenAsRoot(const Granted& granted, const wire::Bind& bind, const StepsMaker::About& about) {
    wire::Step step = MakeStep(StepKind::kOpenTree);
    step.tree.source = bind.source;
    step.tree.mount_attributes = bind.mount_attributes;
    step.tree.owner_slot = OwnerSlot(granted);
    step.tree.slot = next_slot_++;
    steps_.Keeper(step, {"open", absl::StrCat("open ", policy::Quote(granted.path.real), " for the jail"), about.origin,
                         GrantFailures(granted.path.asked_for), false});
    return static_cast<std::int32_t>(step.tree.slot);
  }

  std::int32_t OwnerSlot(const Granted& granted) {
    const Identity& identity = context_.identity;
    const std::pair<uid_t, gid_t> owner(granted.path.info.st_uid, granted.path.info.st_gid);
    if (identity.run_as == wire::RunAs::kFixed && (identity.run_uid == owner.first || identity.run_uid == 0)) return -1;
    // A file that everyone may use as it is granted needs no owner; making the namespace for one costs a process.
    const mode_t needed = S_IROTH | (granted.access.execute ? S_IXOTH : 0u);
    if (!granted.path.is_folder() && !granted.access.write && (granted.path.info.st_mode & needed) == needed) return -1;
    if (!MayMapOwners(granted.path.real)) return -1;
    auto [at, is_new] = owner_slots_.try_emplace(owner, static_cast<std::int32_t>(next_slot_));
    if (!is_new) return at->second;
    wire::Step step = MakeStep(StepKind::kOwnerNamespace);
    step.owner = {owner.first, owner.second, next_slot_++};
    steps_.Keeper(step,
                  {"map owner", absl::StrCat("show files of uid ", owner.first, " as the server's own"), "", {}, true});
    return at->second;
  }

  void Devices() {
    for (const char* path : kDevices) {
      absl::StatusOr<ResolvedPath> device = ResolvePath(path);
      if (!device.ok()) continue;  // the server then misses it; nothing is opened by that
      Granted granted{*std::move(device), {true, false}, "", /*runtime=*/true};
      Mount(granted, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, {"bind", absl::StrCat("show ", path), "", {}, false});
    }
    const std::pair<const char*, const char*> links[] = {{"/dev/fd", "/proc/self/fd"},
                                                         {"/dev/stdin", "/proc/self/fd/0"},
                                                         {"/dev/stdout", "/proc/self/fd/1"},
                                                         {"/dev/stderr", "/proc/self/fd/2"}};
    for (const auto& [path, text] : links) Symlink(path, text);
  }

  // In the order of their paths: what lies in a folder is mounted after it, be it granted or private.
  void GrantsAndPrivateFolders() {
    std::map<std::string, std::pair<const Granted*, const PrivateFolder*>, PathLess> mounts;
    for (const Granted& granted : layout_.grants) mounts[granted.path.real].first = &granted;
    for (const PrivateFolder& folder : layout_.folders) mounts[folder.path].second = &folder;
    for (const auto& [path, mount] : mounts) {
      if (mount.second != nullptr) Private(*mount.second);
      if (mount.first != nullptr) Grant(*mount.first);
    }
  }

  void Private(const PrivateFolder& folder) {
    MountPoint(folder.path, true);
    Text(StepKind::kTmpfs, folder.path,
         absl::StrCat("mode=", folder.mode, ",size=", kTmpSize, ",nr_inodes=", kTmpInodes),
         {"tmpfs",
          absl::StrCat("mount a private ", policy::Quote(folder.path), " (", kTmpSize, " at most)"),
          folder.origin,
          {},
          true});
  }

  void Grant(const Granted& granted) {
    std::uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (!granted.access.write) attributes |= MOUNT_ATTR_RDONLY;
    if (!granted.access.execute) attributes |= MOUNT_ATTR_NOEXEC;
    Mount(granted, attributes,
          {"bind", absl::StrCat("grant ", policy::Quote(granted.path.real), ": ", AccessWords(granted.access)),
           granted.origin, GrantFailures(granted.path.asked_for), false});
  }

  void EmptyFile() {
    const auto needs_it = [](const Covered& covered) {
      return covered.how == Covered::How::kHide && !covered.path.is_folder();
    };
    if (!absl::c_any_of(layout_.covered, needs_it)) return;
    // In a folder that is mounted over later, so that it shows only where it covers a file. (A file that was removed
    // can't be mounted.)
    wire::Step folder = MakeStep(StepKind::kFolder);
    folder.path_mode = {writer_.Text("/proc"), 0555};
    steps_.Init(folder, {"folder", "make the folder \"/proc\" in the jail", "", {}, false});
    made_.insert("/proc");
    Text(StepKind::kEmptyFile, "/proc/empty", "", {"file", "make the empty file that hidden files show", "", {}, true});
  }

  void Proc() {
    wire::Step proc = MakeStep(StepKind::kProc);
    proc.proc = {writer_.Text("/proc"), MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC};
    if (!context_.writes_id_maps()) {
      steps_.Init(proc, {"mount", "mount the jail's own /proc, read-only", "", {}, true});
      return;
    }
    proc.proc.flags &= ~std::uint32_t{MS_RDONLY};
    steps_.Init(proc, {"mount", "mount the jail's own /proc", "", {}, true});
    Text(StepKind::kReadOnlyProcSys, "/proc/sys", "", {"mount", "make /proc/sys read-only", "", {}, true});
  }

  // In the order of their paths, so that each lies over what is there already.
  void Cover(const Covered& covered) {
    wire::Step step = MakeStep(StepKind::kCover);
    step.cover.where = Pin(covered.path, writer_);
    const std::string& path = covered.path.real;
    switch (covered.how) {
      case Covered::How::kPin:
        step.cover.how = wire::CoverKind::kPin;
        steps_.Init(step, {"pin", absl::StrCat("keep ", policy::Quote(path), " from being renamed"), covered.origin,
                           ChangedSince("cannot pin \"", path), false});
        return;
      case Covered::How::kProtect:
        step.cover.how = wire::CoverKind::kProtect;
        steps_.Init(step, {"protect", absl::StrCat("protect ", policy::Quote(path), ": read-only after all"),
                           covered.origin, ChangedSince("cannot protect \"", path), false});
        return;
      case Covered::How::kHide:
        step.cover.how = wire::CoverKind::kHide;
        steps_.Init(step, {"hide", absl::StrCat("hide ", policy::Quote(path), ": there, but empty and unreadable"),
                           covered.origin, ChangedSince("cannot hide \"", path), false});
        return;
    }
  }

  // No account of the host and no host name is shown; programs still find what they ask for.
  void MadeUpFiles() {
    const Identity& identity = context_.identity;
    const std::string home = context_.home.empty() ? "/" : context_.home;
    File("/etc/passwd",
         absl::StrCat(identity.inside_uid == 0 ? "" : "root:x:0:0:root:/:/bin/sh\n", "server:x:", identity.inside_uid,
                      ":", identity.inside_gid, ":server:", home, ":/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"),
         ", with the server's account alone");
    File("/etc/group", absl::StrCat("root:x:0:\nserver:x:", identity.inside_gid, ":\nnogroup:x:65534:\n"),
         ", with the server's group alone");
    File("/etc/hosts", "127.0.0.1 localhost bulkhead\n::1 localhost\n", "");
    File("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n", "");
  }

  const PlanContext& context_;
  const JailLayout& layout_;
  StepsMaker& steps_;
  PlanWriter& writer_;
  std::set<std::string> made_;
  std::map<std::pair<uid_t, gid_t>, std::int32_t> owner_slots_;
  std::uint32_t next_slot_ = 0;
};

}  // namespace

bool PlanContext::writes_id_maps() const {
  if (identity.run_as != wire::RunAs::kPerLaunch && identity.run_uid == 0) return false;
  return absl::c_any_of(policy.syscalls_allow,
                        [](const std::string& name) { return name == "clone" || name == "unshare"; });
}

void AddJailSteps(const PlanContext& context, const VariantKind&, StepsMaker& steps) {
  JailMaker(context, steps).Make();
}

}  // namespace bulkhead::launcher
