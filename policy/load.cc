#include "bulkhead/policy/load.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <utility>
#ifdef _WIN32
#include <filesystem>
#endif

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/policy/paths.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::policy {
namespace {

#ifdef _WIN32
// The C runtime's own stat and open take a path in the code page of the machine.
using FileStatus = struct _stat64;
int Look(const std::string& path, FileStatus* status) {
  return _wstat64(std::filesystem::u8path(path).c_str(), status);
}
int LookAtLink(const std::string& path, FileStatus* status) { return Look(path, status); }
int Look(int fd, FileStatus* status) { return _fstat64(fd, status); }
int Open(const std::string& path) {
  return _wopen(std::filesystem::u8path(path).c_str(), _O_RDONLY | _O_BINARY | _O_NOINHERIT);
}
#else
using FileStatus = struct stat;
int Look(const std::string& path, FileStatus* status) { return stat(path.c_str(), status); }
int LookAtLink(const std::string& path, FileStatus* status) { return lstat(path.c_str(), status); }
int Look(int fd, FileStatus* status) { return fstat(fd, status); }
int Open(const std::string& path) { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }
#endif

class OwnedFd {
 public:
  explicit OwnedFd(int fd) : fd_(fd) {}
  ~OwnedFd() {
    if (fd_ >= 0) close(fd_);
  }
  OwnedFd(const OwnedFd&) = delete;
  OwnedFd& operator=(const OwnedFd&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

absl::Status CantRead(const std::string& path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("can't read ", Quote(path), ": ", why));
}

absl::Status CantRead(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
      if (absl::StartsWith(path.substr(path.rfind('/') + 1), "preset:")) {
        return CantRead(path, "there is no such file; name a built-in policy by --preset, or under \"extends\"");
      }
      return CantRead(path, "there is no such file; check the path");
    case EACCES:
      return CantRead(path, "permission denied; let the user who starts the server read it");
    case ENOTDIR:
      return CantRead(path, "a part of the path is not a folder; check the path");
    default:
      return CantRead(path, strerror(error));
  }
}

// lstat: a link that leads nowhere is there, and so can't be read; its folder's, too, which may lead to what isn't
// mounted yet. Any other error than "not there" is one as well.
bool IsThere(const std::string& path) {
  FileStatus status;
  if (LookAtLink(path, &status) == 0 || (errno != ENOENT && errno != ENOTDIR)) return true;
  const std::string folder = path.substr(0, path.find_last_of("/\\"));
  return LookAtLink(folder, &status) == 0 && Look(folder, &status) != 0;
}

// Empty if `mode` is a regular file's.
absl::string_view WhyNotAFile(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "it is a folder; name the policy file in it";
  if (S_ISFIFO(mode)) return "it is a pipe; write the policy to a file";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "it is a device; write the policy to a file";
#ifdef S_ISSOCK
  if (S_ISSOCK(mode)) return "it is a socket; write the policy to a file";
#endif
  return "it is not a file";
}

std::string CurrentFolder() {
#ifdef _WIN32
  std::error_code error;
  return std::filesystem::current_path(error).u8string();
#else
  char buffer[PATH_MAX];
  // getcwd(2) may give "(unreachable)..." for a folder outside our root.
  return getcwd(buffer, sizeof buffer) != nullptr && buffer[0] == '/' ? buffer : "";
#endif
}

absl::StatusOr<Policy> Parse(const PolicyText& text, ParseOptions options, absl::string_view system_ceiling) {
  absl::StatusOr<std::vector<PolicyText>> ceilings = LoadCeilings({}, system_ceiling);
  if (!ceilings.ok()) return ceilings.status();
  options.ceilings.insert(options.ceilings.begin(), std::make_move_iterator(ceilings->begin()),
                          std::make_move_iterator(ceilings->end()));
  if (!options.read_file) options.read_file = ReadPolicyFile;
  if (options.folder.empty()) options.folder = CurrentFolder();
  return ParsePolicy(text, options);
}

}  // namespace

absl::StatusOr<std::string> ReadPolicyFile(const std::string& path) {
  if (absl::StrContains(path, '\0')) return CantRead(path, "the path has a NUL in it");
  // Looked at before it is opened, since opening a device can do something; and again after, since it may be another by
  // then. O_NONBLOCK: opening a pipe would wait for a writer (open(2)).
  FileStatus status;
  if (Look(path, &status) != 0) return CantRead(path, errno);
  if (const absl::string_view why = WhyNotAFile(status.st_mode); !why.empty()) return CantRead(path, why);
  const OwnedFd fd(Open(path));
  if (fd.get() < 0 || Look(fd.get(), &status) != 0) return CantRead(path, errno);
  if (const absl::string_view why = WhyNotAFile(status.st_mode); !why.empty()) return CantRead(path, why);
  // Not by the size alone: files of /proc say 0, others may grow meanwhile.
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(status.st_size), kPolicyBytesMax) + 1, '\0');
  std::size_t size = 0;
  while (true) {
    const ssize_t got = read(fd.get(), &text[size], text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CantRead(path, errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
    if (size > kPolicyBytesMax) {
      return CantRead(path, absl::StrCat("it is longer than ", kPolicyBytesMax, " bytes; is it the right file?"));
    }
    if (size == text.size()) text.resize(std::min(text.size() * 2, kPolicyBytesMax + 1));
  }
  text.resize(size);
  return text;
}

absl::StatusOr<std::vector<PolicyText>> LoadCeilings(const std::vector<std::string>& paths,
                                                     absl::string_view system_path) {
  std::vector<std::string> all;
  const std::string system(system_path);
  if (!system.empty() && IsThere(system)) all.push_back(system);
  all.insert(all.end(), paths.begin(), paths.end());
  std::vector<PolicyText> ceilings;
  for (const std::string& path : all) {
    absl::StatusOr<std::string> text = ReadPolicyFile(path);
    if (!text.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("nothing is started without its ceiling: ", text.status().message()));
    }
    ceilings.push_back({PolicyFileName(path), *std::move(text)});
  }
  return ceilings;
}

absl::StatusOr<Policy> LoadPolicy(const std::string& path, ParseOptions options, absl::string_view system_ceiling) {
  absl::StatusOr<std::string> text = ReadPolicyFile(path);
  if (!text.ok()) return text.status();
  return Parse({PolicyFileName(path), *std::move(text)}, std::move(options), system_ceiling);
}

absl::StatusOr<Policy> LoadPreset(absl::string_view name, ParseOptions options, absl::string_view system_ceiling) {
  absl::StatusOr<std::string> text = PresetText(name);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  return Parse({absl::StrCat("preset:", name), *std::move(text)}, std::move(options), system_ceiling);
}

}  // namespace bulkhead::policy
