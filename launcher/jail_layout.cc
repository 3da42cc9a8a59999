#include "bulkhead/launcher/jail_layout.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bulkhead/launcher/grants.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

class Maker {
 public:
  explicit Maker(const LayoutRequest& request) : request_(request), policy_(request.policy) {}

  absl::StatusOr<JailLayout> Make() {
    const policy::FilesystemRules& files = policy_.filesystem;
    absl::Status status = AddAll(files.rx, {false, true});
    if (status.ok()) status = AddAll(files.ro, {false, false});
    if (status.ok()) status = AddAll(files.rw, {true, false});
    if (status.ok()) status = AddHomeAndTmp();
    if (!status.ok()) return status;
    for (const Granted& program : request_.program) {
      if (Granted* above = Covering(program)) {
        above->optional = false;
      } else {
        Put(program);
      }
    }
    DropRedundant();
    for (auto& [path, granted] : grants_) layout_.grants.push_back(std::move(granted));
    status = TakeAway(files.protect, Covered::How::kProtect);
    if (status.ok()) status = TakeAway(files.hide, Covered::How::kHide);
    if (!status.ok()) return status;
    for (auto& [path, covered] : covered_) layout_.covered.push_back(std::move(covered));
    AddLinks();
    return std::move(layout_);
  }

 private:
  absl::Status AddAll(const std::vector<policy::PathGrant>& grants, Access access) {
    for (const policy::PathGrant& grant : grants) {
      if (grant.path == ":runtime") {
        AddRuntime(grant.origin);
        continue;
      }
      const absl::Status status = Add(grant, access);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  void AddRuntime(const std::string& origin) {
    for (const RuntimePath& path : RuntimePaths(policy_.network)) {
      absl::StatusOr<ResolvedPath> resolved = ResolvePath(path.path);
      if (!resolved.ok()) continue;  // not every system has each
      Put({*std::move(resolved), {false, path.execute}, origin, /*runtime=*/true, false, /*optional=*/true});
    }
  }

  absl::Status Add(const policy::PathGrant& grant, Access access) {
    absl::StatusOr<ResolvedPath> resolved = ResolveGrant(grant);
    bool to_be_made = false;
    if (absl::IsNotFound(resolved.status())) {
      const auto found = std::find_if(request_.make_now.begin(), request_.make_now.end(),
                                      [&grant](const FolderToMake& folder) { return folder.path == grant.path; });
      to_be_made = found != request_.make_now.end();
      if (to_be_made) {
        resolved = ResolveFuture(grant.path);
        if (resolved.ok()) SetOwner(found->owner, &resolved->info);
      } else if (grant.optional) {
        return absl::OkStatus();
      }
    }
    if (!resolved.ok()) return RefuseGrant(grant, resolved.status());
    const absl::Status status = CheckGrantedType(grant, *resolved);
    if (!status.ok()) return status;
    Put({*std::move(resolved), access, grant.origin, false, to_be_made, grant.optional});
    return absl::OkStatus();
  }

  // A folder that will be made just before the start, by us, with ordinary folders above it.
  static absl::StatusOr<ResolvedPath> ResolveFuture(const std::string& path) {
    std::string above = path, below;
    for (;;) {
      const std::size_t slash = above.rfind('/');
      below = above.substr(slash) + below;
      above.erase(slash);
      absl::StatusOr<ResolvedPath> resolved = ResolvePath(above.empty() ? "/" : above);
      if (absl::IsNotFound(resolved.status()) && !above.empty()) continue;
      if (!resolved.ok()) return resolved;
      resolved->asked_for = path;
      resolved->real = (resolved->real == "/" ? "" : resolved->real) + below;
      resolved->info.st_mode = S_IFDIR | 0700;
      resolved->info.st_ino = 0;
      return resolved;
    }
  }

  static void SetOwner(const std::optional<FolderToMake::Owner>& owner, struct stat* info) {
    info->st_uid = owner.has_value() ? owner->uid : geteuid();
    info->st_gid = owner.has_value() ? owner->gid : getegid();
  }

  void Put(Granted granted) {
    auto [at, is_new] = grants_.try_emplace(granted.path.real, granted);
    for (const SymlinkOnPath& link : granted.path.links) links_[link.at] = link.text;
    if (is_new) return;
    at->second.access.write |= granted.access.write;
    at->second.access.execute |= granted.access.execute;
    if (!granted.runtime) at->second.origin = granted.origin;
    at->second.runtime &= granted.runtime;
    at->second.optional &= granted.optional;
  }

  Granted* Covering(const Granted& granted) {
    for (auto& [path, other] : grants_) {
      if (IsWithin(granted.path.real, path) && Covers(other.access, granted.access)) return &other;
    }
    return nullptr;
  }

  absl::Status AddHomeAndTmp() {
    const policy::FilesystemRules& files = policy_.filesystem;
    if (files.tmp == policy::TmpMode::kHost) {
      const absl::Status status = Add({"/tmp", false, "", {}, "/filesystem/tmp"}, {true, false});
      if (!status.ok()) return status;
    } else {
      AddPrivate("/tmp", "1777", "/filesystem/tmp");
    }
    AddPrivate("/dev/shm", "1777", "");
    if (request_.home.empty() || request_.home == "/") return absl::OkStatus();
    switch (files.home) {
      case policy::HomeMode::kNone:
        return absl::OkStatus();
      case policy::HomeMode::kReadOnly:
        return Add({request_.home, false, "", {}, "/filesystem/home"}, {false, false});
      case policy::HomeMode::kReadWrite:
        return Add({request_.home, false, "", {}, "/filesystem/home"}, {true, false});
      case policy::HomeMode::kPrivate:
        break;
    }
    layout_.home = AddPrivate(request_.home, "0700", "/filesystem/home");
    return absl::OkStatus();
  }

  // The real path, or empty when it can't be had there.
  std::string AddPrivate(const std::string& path, const char* mode, const std::string& origin) {
    absl::StatusOr<ResolvedPath> resolved = ResolvePath(path);
    if (absl::IsNotFound(resolved.status())) resolved = ResolveFuture(path);
    if (!resolved.ok() || !resolved->is_folder() || resolved->real == "/") return "";
    for (const SymlinkOnPath& link : resolved->links) links_[link.at] = link.text;
    if (grants_.count(resolved->real) != 0) {
      layout_.warnings.push_back(absl::StrCat(policy::Quote(path), " is granted as it is (",
                                              grants_[resolved->real].origin, "), so the server has no private one"));
      return "";
    }
    layout_.folders.push_back({resolved->real, mode, origin});
    std::sort(layout_.folders.begin(), layout_.folders.end(),
              [](const PrivateFolder& a, const PrivateFolder& b) { return PathLess()(a.path, b.path); });
    return resolved->real;
  }

  // What lies in a granted folder with the same rights adds nothing, unless a private folder lies between.
  void DropRedundant() {
    for (auto it = grants_.begin(); it != grants_.end();) {
      Granted* above = nullptr;
      for (auto& [path, other] : grants_) {
        if (path == it->first || !IsWithin(it->first, path)) continue;
        // Rights only add: what is granted on a folder holds in all of it.
        it->second.access.write |= other.access.write;
        it->second.access.execute |= other.access.execute;
        above = &other;  // the innermost, since they are sorted
      }
      bool hidden = false;
      for (const PrivateFolder& folder : layout_.folders) {
        hidden |= above != nullptr && IsWithin(it->first, folder.path) && IsWithin(folder.path, above->path.real);
      }
      const bool redundant = above != nullptr && !hidden && Covers(above->access, it->second.access);
      if (redundant) above->optional &= it->second.optional;  // it stands for both
      it = redundant ? grants_.erase(it) : std::next(it);
    }
  }

  absl::Status TakeAway(const std::vector<policy::PathGrant>& paths, Covered::How how) {
    for (const policy::PathGrant& path : paths) {
      const absl::Status status = TakeAway(path, how);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status TakeAway(const policy::PathGrant& path, Covered::How how) {
    absl::StatusOr<ResolvedPath> resolved = ResolveGrant(path);
    if (!resolved.ok()) {
      const char* help = !absl::IsNotFound(resolved.status()) ? ""
                         : how == Covered::How::kProtect
                             ? "; make it first: what isn't there can't be protected, and the server could make it"
                             : "; make it first, or take it out of \"hide\"";
      return absl::PermissionDeniedError(absl::StrCat(path.origin, ": ", resolved.status().message(), help));
    }
    const std::string real = resolved->real;
    const auto inside = [&real](const Granted& granted) { return IsWithin(granted.path.real, real); };
    if (how == Covered::How::kHide) {
      layout_.grants.erase(std::remove_if(layout_.grants.begin(), layout_.grants.end(), inside), layout_.grants.end());
      covered_.erase(covered_.lower_bound(real), EndOf(real));
    }
    for (Granted& granted : layout_.grants) granted.access.write &= !inside(granted);

    const Granted* writable = OutermostWritable(real);
    const bool to_be_covered = how == Covered::How::kProtect ? writable != nullptr : layout_.GrantFor(real) != nullptr;
    if (!to_be_covered) return absl::OkStatus();
    const std::string other_name = WhyReachedOtherwise(*resolved, how);
    if (!other_name.empty()) return absl::PermissionDeniedError(absl::StrCat(path.origin, ": ", other_name));
    if (writable != nullptr) {
      const absl::Status status = PinFoldersBetween(writable->path.real, real, path.origin);
      if (!status.ok()) return status;
    }
    covered_[real] = {*std::move(resolved), how, path.origin};
    return absl::OkStatus();
  }

  // Behind all that lies in `folder`.
  std::map<std::string, Covered, PathLess>::iterator EndOf(const std::string& folder) {
    auto at = covered_.lower_bound(folder);
    while (at != covered_.end() && IsWithin(at->first, folder)) ++at;
    return at;
  }

  // The outermost grant to write that shows the host's `real`, with no private folder in between.
  const Granted* OutermostWritable(const std::string& real) const {
    for (const Granted& granted : layout_.grants) {
      if (!granted.access.write || !IsWithin(real, granted.path.real)) continue;
      const auto between = [&](const PrivateFolder& folder) {
        return IsWithin(real, folder.path) && IsWithin(folder.path, granted.path.real);
      };
      if (absl::c_none_of(layout_.folders, between)) return &granted;
    }
    return nullptr;
  }

  // Why a mount over the path would not be enough, or empty.
  std::string WhyReachedOtherwise(const ResolvedPath& path, Covered::How how) const {
    const absl::string_view verb = how == Covered::How::kProtect ? "protect" : "hide";
    const mode_t type = path.info.st_mode & S_IFMT;
    if (type != S_IFDIR && type != S_IFREG && (type != S_IFSOCK || how == Covered::How::kProtect)) {
      return absl::StrCat("cannot ", verb, " ", policy::Quote(path.asked_for), ": it is neither a file nor a folder");
    }
    if (type != S_IFDIR && path.info.st_nlink > 1) {
      return absl::StrCat("cannot ", verb, " ", policy::Quote(path.asked_for), ": it has ", path.info.st_nlink,
                          " names (hard links), and the server may reach it by another; make a copy of it and put that "
                          "in its place");
    }
    if (how == Covered::How::kHide) return "";  // what a link then leads to is the server's own
    for (const SymlinkOnPath& link : path.links) {
      if (OutermostWritable(link.at.substr(0, link.at.rfind('/'))) == nullptr) continue;
      return absl::StrCat("cannot protect ", policy::Quote(path.asked_for), ": ", policy::Quote(link.at),
                          " is a link, which the server could replace by another; protect the real path, ",
                          policy::Quote(path.real), ", or put that in the link's place");
    }
    return "";
  }

  absl::Status PinFoldersBetween(const std::string& grant, const std::string& real, const std::string& origin) {
    for (std::size_t end = real.rfind('/'); end != std::string::npos && end > grant.size();
         end = real.rfind('/', end - 1)) {
      const std::string folder = real.substr(0, end);
      const auto is_mount = [&folder](const Granted& granted) { return granted.path.real == folder; };
      if (covered_.count(folder) != 0 || absl::c_any_of(layout_.grants, is_mount)) continue;
      absl::StatusOr<ResolvedPath> resolved = ResolvePath(folder);
      if (!resolved.ok()) return absl::PermissionDeniedError(absl::StrCat(origin, ": ", resolved.status().message()));
      if (resolved->real != folder) {
        return absl::PermissionDeniedError(
            absl::StrCat(origin, ": ", policy::Quote(folder), " changes while it is looked at"));
      }
      covered_[folder] = {*std::move(resolved), Covered::How::kPin, origin};
    }
    return absl::OkStatus();
  }

  // Links inside a granted tree are there already.
  void AddLinks() {
    for (const auto& [at, text] : links_) {
      if (layout_.GrantFor(at) == nullptr) layout_.links.push_back({at, text});
    }
  }

  const LayoutRequest& request_;
  const policy::PolicyFields& policy_;
  std::map<std::string, Granted, PathLess> grants_;
  std::map<std::string, std::string, PathLess> links_;
  std::map<std::string, Covered, PathLess> covered_;
  JailLayout layout_;
};

}  // namespace

bool PathLess::operator()(const std::string& a, const std::string& b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
    return rank(x) < rank(y);
  });
}

const Granted* JailLayout::GrantFor(const std::string& real) const {
  const Granted* found = nullptr;
  for (const Granted& granted : grants) {
    if (IsWithin(real, granted.path.real)) found = &granted;  // sorted: the innermost comes last
  }
  for (const PrivateFolder& folder : folders) {
    if (found != nullptr && IsWithin(real, folder.path) && IsWithin(folder.path, found->path.real)) return nullptr;
  }
  return found;
}

bool JailLayout::IsVisible(const std::string& real) const {
  if (GrantFor(real) != nullptr) return true;
  for (const PrivateFolder& folder : folders) {
    if (real == folder.path) return true;
  }
  return false;
}

absl::StatusOr<JailLayout> MakeJailLayout(const LayoutRequest& request) { return Maker(request).Make(); }

const std::vector<RuntimePath>& RuntimePaths(policy::NetworkMode network) {
  // Programs and libraries; what the dynamic loader, TLS, time zones, locales and fonts are configured with. No
  // accounts, no host names, no secrets: /etc/passwd, /etc/hosts and their kin are made up for the jail.
  static const auto* const kBase = new std::vector<RuntimePath>{
      {"/usr", true},
      {"/bin", true},
      {"/sbin", true},
      {"/lib", true},
      {"/lib32", true},
      {"/lib64", true},
      {"/libx32", true},
      {"/nix/store", true},
      {"/gnu/store", true},
      {"/etc/alternatives", false},
      {"/etc/ca-certificates", false},
      {"/etc/crypto-policies", false},
      {"/etc/fonts", false},
      {"/etc/ld.so.cache", false},
      {"/etc/localtime", false},
      {"/etc/mime.types", false},
      {"/etc/os-release", false},
      {"/etc/pki", false},
      {"/etc/protocols", false},
      {"/etc/services", false},
      {"/etc/ssl", false},
      {"/etc/timezone", false},
  };
  static const auto* const kWithNetwork = [] {
    auto* paths = new std::vector<RuntimePath>(*kBase);
    paths->insert(paths->end(), {{"/etc/gai.conf", false},
                                 {"/etc/host.conf", false},
                                 {"/etc/hosts", false},
                                 {"/etc/nsswitch.conf", false},
                                 {"/etc/resolv.conf", false}});
    return paths;
  }();
  return network == policy::NetworkMode::kNone ? *kBase : *kWithNetwork;
}

}  // namespace bulkhead::launcher
