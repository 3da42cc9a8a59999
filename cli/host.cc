#include "bulkhead/cli/host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace bulkhead::cli {
namespace {

constexpr std::size_t kPasswdBytesMax = 1u << 20;

// The file's text, cut at kPasswdBytesMax; empty when it can't be read.
std::string ReadPasswd() {
  std::string text;
  const int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return text;
  char buffer[8192];
  while (text.size() < kPasswdBytesMax) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  close(fd);
  return text;
}

// Whether `folder` is `inner` or lies above it. Both absolute, without a slash at the end.
bool IsOrIsAbove(absl::string_view folder, absl::string_view inner) {
  return folder == inner || absl::StartsWith(inner, absl::StrCat(folder, "/"));
}

}  // namespace

bool OpenStandardDescriptors() {
  for (const int fd : {0, 1, 2}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free descriptor is this one, because the ones below it are open.
    if (open("/dev/null", O_RDWR) != fd) return false;
  }
  return true;
}

std::optional<std::string> HomeFromPasswd(absl::string_view passwd, std::uint32_t uid) {
  for (const absl::string_view line : absl::StrSplit(passwd, '\n')) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ':');
    std::uint32_t line_uid = 0;
    if (fields.size() < 7 || !absl::SimpleAtoi(fields[2], &line_uid) || line_uid != uid) continue;
    if (absl::StartsWith(fields[5], "/")) return std::string(fields[5]);
    return std::nullopt;
  }
  return std::nullopt;
}

bool IsWorkspace(absl::string_view folder, const Host& host) {
  if (folder.empty() || folder == "/") return false;
  if (!host.home.empty() && IsOrIsAbove(folder, host.home)) return false;
  return host.home_on_disk.empty() || !IsOrIsAbove(folder, host.home_on_disk);
}

Host ReadHost() {
  Host host;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == absl::string_view::npos || equals == 0) continue;
    host.env.emplace(std::string(text.substr(0, equals)),
                     std::string(text.substr(equals + 1)));  // the first, as getenv
  }
  char buffer[PATH_MAX];
  // getcwd(2) may give "(unreachable)..." for a folder outside our root.
  if (getcwd(buffer, sizeof buffer) == nullptr) {
    host.cwd_errno = errno;
  } else if (buffer[0] != '/') {
    host.cwd_errno = ENOENT;
  } else {
    host.cwd = buffer;
  }
  const auto home = host.env.find("HOME");
  if (home != host.env.end() && absl::StartsWith(home->second, "/")) {
    host.home = home->second;
  } else {
    host.home = HomeFromPasswd(ReadPasswd(), getuid()).value_or("");
  }
  while (host.home.size() > 1 && host.home.back() == '/') host.home.pop_back();
  if (!host.home.empty() && realpath(host.home.c_str(), buffer) != nullptr) host.home_on_disk = buffer;
  host.is_root = geteuid() == 0;
  return host;
}

}  // namespace bulkhead::cli
