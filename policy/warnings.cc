#include "bulkhead/policy/warnings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bulkhead/policy/paths.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::policy {
namespace {

// Who can talk to one of these can start anything, outside.
constexpr absl::string_view kDoors[] = {"/run/docker.sock",
                                        "/run/buildkit",
                                        "/run/containerd/containerd.sock",
                                        "/run/crio/crio.sock",
                                        "/run/dbus/system_bus_socket",
                                        "/run/incus",
                                        "/run/libvirt",
                                        "/run/podman/podman.sock",
                                        "/run/snapd.socket",
                                        "/run/systemd/private",
                                        "/run/user",  // the session's bus, engines without root, Wayland
                                        "/run/WSL",
                                        "/tmp/.X11-unix",  // any client types into any window
                                        "/var/lib/incus/unix.socket",
                                        "/var/lib/lxd/unix.socket",
                                        "/var/snap/lxd/common/lxd/unix.socket"};
// What is said about the system's own folders goes for all in them.
constexpr absl::string_view kSystem[] = {"/bin",  "/boot", "/dev",  "/etc", "/lib",     "/lib64",    "/proc",
                                         "/sbin", "/sys",  "/root", "/usr", "/var/lib", "/var/spool"};
constexpr absl::string_view kShowsProcesses[] = {"/proc", "/sys", "/dev"};
// Below the home folder: keys and tokens.
constexpr absl::string_view kKeys[] = {".Xauthority",
                                       ".aws",
                                       ".azure",
                                       ".cargo/credentials.toml",
                                       ".config/chromium",
                                       ".config/gcloud",
                                       ".config/gh",
                                       ".config/google-chrome",
                                       ".docker",
                                       ".git-credentials",
                                       ".gnupg",
                                       ".kube",
                                       ".local/share/keyrings",
                                       ".m2/settings.xml",
                                       ".mozilla",
                                       ".netrc",
                                       ".npmrc",
                                       ".password-store",
                                       ".pgpass",
                                       ".pypirc",
                                       ".ssh",
                                       ".vault-token"};
// Below the home folder: what runs by itself, at a login or the next command, and what says which programs are started.
constexpr absl::string_view kRunsByItself[] = {
    ".bash_aliases", ".bash_login", ".bash_logout", ".bash_profile", ".bashrc",  ".cache/pip", ".cache/uv",
    ".cargo",        ".claude",     ".claude.json", ".config",       ".cursor",  ".emacs",     ".emacs.d",
    ".gitconfig",    ".local/bin",  ".local/lib",   ".local/share",  ".npm",     ".npmrc",     ".nvm",
    ".profile",      ".pyenv",      ".ssh",         ".tmux.conf",    ".vim",     ".vimrc",     ".vscode",
    ".xinitrc",      ".xprofile",   ".xsession",    ".zlogin",       ".zlogout", ".zprofile",  ".zshenv",
    ".zshrc",        "bin",         "go/bin"};
// System calls, by what is wrong with allowing them.
constexpr absl::string_view kMakesNamespaces[] = {"clone", "clone3", "setns", "unshare"};
constexpr absl::string_view kAttacksUse[] = {
    "add_key",           "bpf",       "chroot",         "fanotify_init",   "fanotify_mark", "finit_module",
    "fsconfig",          "fsmount",   "fsopen",         "fspick",          "init_module",   "kexec_file_load",
    "kexec_load",        "keyctl",    "memfd_secret",   "mount",           "mount_setattr", "move_mount",
    "open_by_handle_at", "open_tree", "open_tree_attr", "perf_event_open", "personality",   "pivot_root",
    "request_key",       "umount2",   "userfaultfd",    "vmsplice"};
constexpr absl::string_view kReachesProcesses[] = {
    "kcmp", "pidfd_getfd", "process_madvise", "process_vm_readv", "process_vm_writev", "ptrace"};
// Parts of names of variables that hold secrets.
constexpr absl::string_view kSecretWords[] = {"TOKEN",  "SECRET",     "PASSW",      "API_KEY",
                                              "APIKEY", "CREDENTIAL", "PRIVATE_KEY"};

bool Touches(absl::string_view a, absl::string_view b) { return IsWithin(a, b) || IsWithin(b, a); }

bool LooksSecret(absl::string_view name) {
  const std::string upper = absl::AsciiStrToUpper(name);
  return std::any_of(std::begin(kSecretWords), std::end(kSecretWords),
                     [&upper](absl::string_view word) { return absl::StrContains(upper, word); });
}

class Warner {
 public:
  Warner(const PolicyFields& policy, const WarningContext& context) : policy_(policy), context_(context) {}

  std::vector<std::string> Warn() {
    if (policy_.require == Tier::kC) {
      Add("/require", "in tier C files are not kept apart at all; write \"B\" or \"A\"");
    }
    for (const std::string& name : policy_.syscalls_allow) LookAtAllowed(name);
    if (policy_.user == "root") Add("/user", "root has rights in the jail that not every layer binds; write \"auto\"");
    if (!policy_.command.args_deny.empty() || policy_.command.args_allow != std::vector<std::string>{"*"}) {
      Add("/command/args",
          "patterns catch mistakes and are no boundary: most programs have another way to say the same; "
          "rely on what files and network are granted");
    }
    const FilesystemRules& files = policy_.filesystem;
    for (const PathGrant& grant : files.rx) LookAt("/filesystem/rx", grant, /*writes=*/false);
    for (const PathGrant& grant : files.ro) LookAt("/filesystem/ro", grant, /*writes=*/false);
    for (const PathGrant& grant : files.rw) LookAt("/filesystem/rw", grant, /*writes=*/true);
    LookAtStderr();
    LookAtHome();
    if (files.tmp == TmpMode::kHost) {
      Add("/filesystem/tmp", "the machine's /tmp holds other programs' files and sockets; write \"private\"");
    }
    LookAtNetwork();
    return std::move(warnings_);
  }

 private:
  void LookAtAllowed(const std::string& name) {
    const std::string pointer = absl::StrCat("/syscalls/allow/", name);
    // Whoever names preset:browser means it.
    const auto origin = policy_.origins.find(pointer);
    if (origin != policy_.origins.end() && absl::StartsWith(origin->second, "preset:")) return;
    for (const absl::string_view one : kMakesNamespaces) {
      if (name != one) continue;
      return Add(pointer,
                 "with namespaces of its own the server can try much more of the kernel; only a browser needs it");
    }
    for (const absl::string_view one : kAttacksUse) {
      if (name == one) return Add(pointer, "is what attacks on the kernel use; no usual server needs it");
    }
    for (const absl::string_view one : kReachesProcesses) {
      if (name == one) return Add(pointer, "reads and changes other processes; only a debugger needs it");
    }
  }

  void Add(absl::string_view pointer, absl::string_view what) { AddAt(policy_.name, pointer, what); }
  void Add(absl::string_view pointer, const PathGrant& grant, absl::string_view what) {
    AddAt(grant.origin, pointer, absl::StrCat(Quote(grant.path), " ", what));
  }
  void AddAt(absl::string_view place, absl::string_view pointer, absl::string_view what) {
    warnings_.push_back(absl::StrCat(place, ": ", pointer, ": ", what));
  }

  std::string InHome(absl::string_view name) const { return absl::StrCat(*context_.home, "/", name); }

  // One warning for a grant: the worst.
  void LookAt(absl::string_view pointer, const PathGrant& grant, bool writes) {
    const std::string& path = grant.path;
    if (absl::StartsWith(path, ":")) return;
    if (path == "/") return Add(pointer, grant, "is the whole disk; name the folders that are needed");
    // /var/run is a link to /run.
    const std::string run = IsWithin(path, "/var/run") ? path.substr(4) : path;
    for (const absl::string_view door : kDoors) {
      if (!Touches(door, run) && !IsWithin(absl::StrCat("/var", door), path)) continue;
      return Add(pointer, grant,
                 absl::StrCat("leads to ", Quote(door),
                              ", by which programs are started outside of the "
                              "jail; take it out"));
    }
    if (writes && LookAtWriting(pointer, grant)) return;
    for (const absl::string_view folder : kShowsProcesses) {
      if (IsWithin(path, folder)) {
        return Add(pointer, grant, "shows other processes or devices of the machine; the jail has its own");
      }
    }
    if (!context_.home.has_value()) return;
    if (IsWithin(*context_.home, path)) {
      return Add(pointer, grant, "holds the home folder, with its keys and tokens; name the folders that are needed");
    }
    for (const absl::string_view name : kKeys) {
      if (Touches(InHome(name), path)) {
        return Add(pointer, grant,
                   absl::StrCat("holds keys or tokens (", Quote(absl::StrCat("~/", name)), "); take it out"));
      }
    }
  }

  bool LookAtWriting(absl::string_view pointer, const PathGrant& grant) {
    const std::string& path = grant.path;
    for (const std::string& file : context_.policy_files) {
      if (!IsWithin(file, path)) continue;
      Add(pointer, grant,
          absl::StrCat("lets the server rewrite ", Quote(file),
                       ", by which it is ruled; keep policies "
                       "elsewhere"));
      return true;
    }
    for (const absl::string_view folder : absl::StrSplit(context_.path_list, ':')) {
      std::string normal;
      if (NormalisePath(folder, &normal) != PathProblem::kNone || !Touches(normal, path)) continue;
      Add(pointer, grant,
          absl::StrCat("lets the server put programs into ", Quote(normal),
                       ", which is on your PATH; grant "
                       "a folder that is not"));
      return true;
    }
    for (const absl::string_view folder : kSystem) {
      if (!IsWithin(path, folder)) continue;
      Add(pointer, grant, "is the system's own; no server should write there");
      return true;
    }
    if (!context_.home.has_value() || IsWithin(*context_.home, path)) return false;
    for (const absl::string_view name : kRunsByItself) {
      if (!Touches(InHome(name), path)) continue;
      Add(pointer, grant,
          absl::StrCat("lets the server change ", Quote(absl::StrCat("~/", name)),
                       ", from which your own "
                       "programs are started or set up; take it out"));
      return true;
    }
    return false;
  }

  // What the server writes there is appended: it is a grant to write.
  void LookAtStderr() {
    if (policy_.stderr_rules.mode != StderrMode::kFile) return;
    PathGrant grant;
    grant.path = policy_.stderr_rules.file;
    const auto origin = policy_.origins.find("/stderr/file");
    grant.origin = origin != policy_.origins.end() ? origin->second : policy_.name;
    LookAt("/stderr/file", grant, /*writes=*/true);
  }

  void LookAtHome() {
    if (policy_.filesystem.home == HomeMode::kReadWrite) {
      Add("/filesystem/home",
          "\"rw\" lets the server change what runs at your next login; write \"private\" and grant "
          "folders");
    } else if (policy_.filesystem.home == HomeMode::kReadOnly) {
      Add("/filesystem/home", "\"ro\" shows the server your keys and tokens; write \"private\" and grant folders");
    }
  }

  void LookAtNetwork() {
    if (policy_.network != NetworkMode::kHost) return;
    std::vector<std::string> names;
    for (const auto& [name, source] : policy_.env.secret) names.push_back(Quote(name));
    for (const std::string& name : policy_.env.inherit) {
      if (LooksSecret(name)) names.push_back(Quote(name));
    }
    for (const auto& [name, value] : policy_.env.set) {
      if (LooksSecret(name)) names.push_back(Quote(name));
    }
    if (names.empty()) return;
    Add("/network/mode", absl::StrCat("with \"host\" the server can send ", names.front(),
                                      names.size() > 1 ? absl::StrCat(" and ", names.size() - 1, " more") : "",
                                      " anywhere; give it a token of its own that can do little"));
  }

  const PolicyFields& policy_;
  const WarningContext& context_;
  std::vector<std::string> warnings_;
};

}  // namespace

std::vector<std::string> Warnings(const Policy& policy, const WarningContext& context) {
  return Warner(*policy, context).Warn();
}

}  // namespace bulkhead::policy
