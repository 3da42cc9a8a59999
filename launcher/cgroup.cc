#include "bulkhead/launcher/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {
namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
constexpr char kDelegate[] =
    "start the host in a group of its own that the user may divide, such as systemd-run --user --scope COMMAND";

// The kernel makes these files, and they are small; nothing when there is none.
std::optional<std::string> Read(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return std::nullopt;
  char text[4096];
  const ssize_t bytes = read(fd.get(), text, sizeof text);
  if (bytes < 0) return std::nullopt;
  return std::string(text, static_cast<std::size_t>(bytes));
}

bool Lists(absl::string_view words, absl::string_view word) {
  return absl::c_linear_search(absl::StrSplit(words, absl::ByAnyChar(" \n")), word);
}

// The own limit of a group, "max" or a number.
std::uint64_t Limit(const std::string& path) {
  std::uint64_t value = 0;
  const std::optional<std::string> text = Read(path);
  return text.has_value() && absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &value) ? value : kNoLimit;
}

// The path of the group in the line of v2, "0::/path".
std::optional<std::string> OwnPath(absl::string_view own) {
  for (absl::string_view line : absl::StrSplit(own, '\n')) {
    if (line.substr(0, 3) == "0::") return std::string(line.substr(3));
  }
  return std::nullopt;
}

bool IsOwnedAndWritable(const std::string& path, uid_t uid) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 && info.st_uid == uid && (info.st_mode & S_IWUSR) != 0 &&
         faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

CgroupPlace Nowhere(std::string why, std::string remedy) {
  CgroupPlace place;
  place.why_not = std::move(why);
  place.remedy = std::move(remedy);
  return place;
}

std::string MissingWords(const CgroupPlace& place) {
  return !place.memory && !place.pids ? "neither memory nor pids" : place.memory ? "no pids" : "no memory";
}

}  // namespace

CgroupPlace ChooseCgroup(const std::string& root, absl::string_view own, uid_t uid) {
  std::string mount = root;
  std::optional<std::string> controllers = Read(absl::StrCat(mount, "/cgroup.controllers"));
  if (!controllers.has_value()) {
    mount = absl::StrCat(root, "/unified");
    controllers = Read(absl::StrCat(mount, "/cgroup.controllers"));
  }
  const char kUseV2[] = "start the machine with cgroup v2 alone (systemd.unified_cgroup_hierarchy=1)";
  if (!controllers.has_value()) return Nowhere(absl::StrCat("no cgroup v2 is mounted at ", root), kUseV2);
  if (!Lists(*controllers, "memory") && !Lists(*controllers, "pids")) {
    return Nowhere(absl::StrCat("cgroup v2 at ", mount, " has no controllers for memory and processes"), kUseV2);
  }
  const std::optional<std::string> path = OwnPath(own);
  if (!path.has_value()) return Nowhere("/proc/self/cgroup names no group of cgroup v2", "mount /proc");
  if (path->empty() || path->front() != '/' || absl::c_linear_search(absl::StrSplit(*path, '/'), "..")) {
    return Nowhere("this process's cgroup lies outside of its cgroup namespace", kDelegate);
  }
  if (*path == "/") {
    return Nowhere(absl::StrCat("this process is in the root group of ", mount, ", beside which there is none"),
                   kDelegate);
  }
  const std::string group = absl::StrCat(mount, *path);
  CgroupPlace place;
  place.mount = mount;
  place.folder = group.substr(0, group.rfind('/'));
  // Of threads, or in a state in which its groups can hold no process; the root has no type.
  const std::string type = Read(absl::StrCat(place.folder, "/cgroup.type")).value_or("domain");
  if (absl::StripAsciiWhitespace(type) != "domain") {
    return Nowhere(absl::StrCat("the cgroup ", place.folder, " is \"", absl::StripAsciiWhitespace(type),
                                "\", and its groups hold threads"),
                   kDelegate);
  }
  // Of the user, as a delegated folder is: the keeper of root gives up the right to change others' before it removes
  // the group. Whoever moves a process needs the right to cgroup.procs of the common ancestor, too.
  for (const std::string& file : {place.folder, absl::StrCat(place.folder, "/cgroup.procs")}) {
    if (!IsOwnedAndWritable(file, uid)) {
      return Nowhere(absl::StrCat("uid ", uid, " may not make a cgroup in ", place.folder), kDelegate);
    }
  }
  const std::string enabled = Read(absl::StrCat(place.folder, "/cgroup.subtree_control")).value_or("");
  place.memory = Lists(enabled, "memory");
  place.pids = Lists(enabled, "pids");
  if (!place.memory || !place.pids) {
    place.why_not = absl::StrCat(place.folder, "/cgroup.subtree_control has ", MissingWords(place));
    place.remedy = absl::StrCat("let who manages ", place.folder, " write \"+memory +pids\" to that file");
  }
  if (!place.memory && !place.pids) return Nowhere(place.why_not, place.remedy);
  // What the group's own manager set binds the server as before, though not together with the host.
  place.memory_max = Limit(absl::StrCat(group, "/memory.max"));
  place.pids_max = Limit(absl::StrCat(group, "/pids.max"));
  place.swap = Read(absl::StrCat(group, "/memory.swap.max")).has_value();
  return place;
}

CgroupPlace FindCgroup() {
  const char kRoot[] = "/sys/fs/cgroup";
  return ChooseCgroup(kRoot, Read("/proc/self/cgroup").value_or(""), geteuid());
}

void SweepCgroups(const std::string& folder) {
  struct stat space;
  if (stat("/proc/self/ns/pid", &space) != 0) return;
  DIR* const listing = opendir(folder.c_str());
  if (listing == nullptr) return;
  const std::string ours =
      absl::StrCat(kCgroupPrefix, absl::Hex(static_cast<std::uint32_t>(space.st_ino), absl::kZeroPad8));
  while (const dirent* entry = readdir(listing)) {
    absl::string_view name = entry->d_name;
    std::uint32_t pid = 0;
    absl::ConsumeSuffix(&name, kInitCgroupSuffix);
    if (!absl::ConsumePrefix(&name, ours) || name.size() != 8 || !absl::SimpleHexAtoi(name, &pid) || pid == 0) continue;
    // Nobody else has that number: who has it, living or not reaped, may be the keeper.
    if (kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH) continue;
    unlinkat(dirfd(listing), entry->d_name, AT_REMOVEDIR);
  }
  closedir(listing);
}

}  // namespace bulkhead::launcher
