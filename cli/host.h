// What the process that started us handed down: environment, current folder, home. Read once, then plain values.
#ifndef BULKHEAD_CLI_HOST_H_
#define BULKHEAD_CLI_HOST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::cli {

#ifdef _WIN32
inline constexpr policy::Platform kPlatform = policy::Platform::kWindows;
#else
inline constexpr policy::Platform kPlatform = policy::Platform::kPosix;
#endif

struct Host {
  std::map<std::string, std::string> env;
  std::string cwd;           // absolute and free of links; empty when it can't be determined
  int cwd_errno = 0;         // why, then
  std::string home;          // $HOME when absolute, else from /etc/passwd; empty: unknown
  std::string home_on_disk;  // the same with links resolved; empty when it does not exist
  bool is_root = false;
};

Host ReadHost();

#ifdef _WIN32
// What is no UTF-16 - half of a pair of surrogates - becomes a text that is no UTF-8, which neither a command nor a
// file has.
std::string ToUtf8(const wchar_t* text);
#endif

// Opens /dev/null on each of 0, 1 and 2 that is closed, so that no file opened later takes its place. The first thing
// main does. False when that fails.
bool OpenStandardDescriptors();

// The home folder of `uid` in the text of /etc/passwd (passwd(5)), if it is an absolute path. Read by ourselves:
// getpwuid loads NSS modules, which a static program can't.
std::optional<std::string> HomeFromPasswd(absl::string_view passwd, std::uint32_t uid);

// Whether `folder` may stand for ${workspace} without being named: not /, not the home folder, not above it. Hosts with
// a window often start in one of these.
bool IsWorkspace(absl::string_view folder, const Host& host);

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_HOST_H_
