// ValidateCommand applies a policy's rules for argv, environment and working folder to one request to start a server.
// Pure: no file is looked at. Whether the program exists, and what it is, is found out by launcher/plan.h.
#ifndef BULKHEAD_POLICY_COMMAND_H_
#define BULKHEAD_POLICY_COMMAND_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

// What the host asks for. The operator's configuration only: never a command, a folder or a variable that a model or a
// server's answer named.
struct CommandRequest {
  std::vector<std::string> argv;  // argv[0] is the program: an absolute path, a relative path with '/', or a bare name
  std::string cwd;                // absolute; empty: the policy's default, else `host_cwd`
  std::string host_cwd;           // where the host itself is; absolute
  std::map<std::string, std::string> host_env;  // the host's environment, of which the policy lets names pass
  Platform platform = Platform::kPosix;
};

// A variable of the server's environment and why it is there. Its value is never printed.
struct EnvEntry {
  enum class Source { kInherited, kSet, kSecret };
  std::string name;
  std::string value;  // empty for kSecret: see `secret`
  Source source = Source::kInherited;
  SecretSource secret;
  std::string let_in_by;  // kInherited: the entry of env.inherit that names it
};

// A folder of the server's PATH in which a bare name may be looked for.
struct LookUpFolder {
  std::string path;  // absolute, normal
  // A grant lets the server write there, as far as text tells (links are not looked at). If it then really can - file
  // modes have a say - what is found there may be its own work, and must not be started in the name of the policy.
  bool granted_for_writing = false;
};

// A command that the policy allows. Made by ValidateCommand only.
struct ValidatedCommand {
  // True: argv[0] is a bare name, to be looked up in `look_up_folders`, in this order.
  bool look_up = false;
  // The absolute entries of the `PATH` of `env`, each once: never the current folder, in no guise. On Windows,
  // `PATHEXT` says what the file may be called: see windows_command.h.
  std::vector<LookUpFolder> look_up_folders;
  std::vector<std::string> argv;  // argv[0] as asked for; a relative path was made absolute against `cwd`'s host folder
  std::vector<EnvEntry> env;      // sorted by name, each name once
  std::string cwd;                // absolute, lexically normal
  // True when the request or the policy names the cwd: it must then be there and visible to the server. Otherwise it is
  // just where the host happens to be, and a server that can't see it starts elsewhere.
  bool cwd_asked_for = false;
  // Names of the host's environment that did not pass although `inherit` names them, with the reason, for explain.
  std::vector<std::string> env_dropped;
};

// Limits. The kernel's own are wider (execve(2): 128 KiB a string, a quarter of the stack in all).
inline constexpr std::size_t kArgumentBytesMax = 128 * 1024 - 1;
inline constexpr std::size_t kEnvironmentBytesMax = 1024 * 1024;

// Errors: PermissionDenied when the policy refuses (exit code 126), InvalidArgument when the request itself is wrong:
// an empty command, a NUL in an argument, whitespace in a bare command name ("arguments belong in argv").
// The message never holds an environment value.
absl::StatusOr<ValidatedCommand> ValidateCommand(const Policy& policy, const CommandRequest& request);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_COMMAND_H_
