// A Policy says what one kind of server may have: commands, environment, files, network, system calls, limits. It is a
// value: strings go in, a checked value or an error comes out. Holding a Policy proves that every rule of the file
// format was kept; whoever takes a `const Policy&` checks nothing again.
//
// This header opens no file, starts nothing and asks the kernel nothing (see policy/load.h for reading files). It does
// not decide what a kernel can enforce: see launcher/plan.h.
//
// Operator configuration only: never build a policy from a model's output or a server's answers.
#ifndef BULKHEAD_POLICY_POLICY_H_
#define BULKHEAD_POLICY_POLICY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace bulkhead::policy {

// The weakest set of layers that is acceptable (DESIGN.md, "Tiers"). Smaller is stronger.
enum class Tier { kA, kB, kC };

// Which system's rules for file names, environments and command lines apply; a parameter, so that all of them are
// tested everywhere.
enum class Platform { kPosix, kWindows };

enum class NetworkMode { kNone, kAllowlist, kHost };
enum class SyscallProfile { kBaseline, kStrict };
enum class BatchFiles { kRefuse, kChecked };
enum class HomeMode { kPrivate, kNone, kReadOnly, kReadWrite };
enum class TmpMode { kPrivate, kHost };
enum class StderrMode { kInherit, kDiscard, kFile };

// One path of a `filesystem` list. `path` is absolute and lexically normal (no "." or ".." components), or the word
// ":runtime" (only in `rx`).
struct PathGrant {
  std::string path;
  // A missing path is left out instead of being an error. Never true for `protect` and `hide`.
  bool optional = false;
  // When the grant began with a variable such as ${workspace}: that folder. The path is opened beneath it and a link
  // that leads out of it is refused (openat2(2), RESOLVE_BENEATH). Empty otherwise.
  std::string beneath;
  // Folders of ceilings' grants, each above `path`, outermost first: the path is opened beneath each of these too, so
  // that a link can't lead out of what a ceiling grants. `beneath` and these lie one in the other. Empty without
  // ceilings.
  std::vector<std::string> also_beneath;
  // Where the grant comes from, for people: "files.json:7", "preset:node:12", "--rw". Never a value of the environment.
  std::string origin;

  friend bool operator==(const PathGrant& a, const PathGrant& b) {
    return a.path == b.path && a.optional == b.optional && a.beneath == b.beneath && a.also_beneath == b.also_beneath;
  }
};

// Where a secret's bytes come from. Exactly one is set. The policy never holds the bytes.
struct SecretSource {
  std::optional<std::string> env;   // a variable of the host's environment
  std::optional<std::string> file;  // an absolute path
  std::optional<int> fd;            // a descriptor of the host
  // Whether symbolic links on the way to `file` may be followed: not where its path was made from a variable or a
  // ceiling is in force, since whoever can put a link there would choose what is read.
  bool follow_links = true;
};

struct CommandRules {
  // Absent: whatever the one who starts it asks for. An entry with '/' is exactly that file; a bare name is found on
  // the server's own PATH.
  std::optional<std::vector<std::string>> allow;
  std::map<std::string, std::string> sha256;  // absolute path -> 64 lower-case hex digits
  std::uint32_t args_max = 256;
  std::vector<std::string> args_deny;           // globs; a guard rail, no boundary
  std::vector<std::string> args_allow = {"*"};  // globs
  BatchFiles batch_files = BatchFiles::kRefuse;
};

struct EnvRules {
  std::vector<std::string> inherit;            // names or globs such as LC_*
  std::map<std::string, std::string> set;      // wins over inherit
  std::map<std::string, SecretSource> secret;  // wins over set
};

struct FilesystemRules {
  std::vector<PathGrant> rx;       // read and execute
  std::vector<PathGrant> ro;       // read
  std::vector<PathGrant> rw;       // read and write
  std::vector<PathGrant> protect;  // inside a granted tree, read-only after all
  std::vector<PathGrant> hide;     // inside a granted tree, there but empty and unreadable
  HomeMode home = HomeMode::kPrivate;
  TmpMode tmp = TmpMode::kPrivate;
};

// Zero means "no limit of ours".
struct Limits {
  std::uint64_t memory_bytes = 0;  // of each process, what it writes and doesn't share: RLIMIT_DATA, getrlimit(2)
  std::uint64_t processes = 0;
  std::uint64_t open_files = 4096;
  std::uint64_t file_size_bytes = 0;
  absl::Duration cpu_time = absl::ZeroDuration();
};

struct MessageLimits {
  std::uint64_t max_message_bytes = 8u << 20;
  std::uint64_t max_junk_lines = 10;
  std::uint64_t max_queued_bytes = 16u << 20;
};

struct Timeouts {
  absl::Duration probe = absl::Seconds(3);
  absl::Duration start = absl::Seconds(60);
  absl::Duration request = absl::Seconds(30);
  absl::Duration stdin_grace = absl::Seconds(2);
  absl::Duration term_grace = absl::Seconds(2);
  bool term_grace_was_set = false;  // `bulkhead run` uses 1 s unless the policy says otherwise
};

struct RestartRules {
  std::uint32_t max_in_a_row = 5;
  absl::Duration backoff_initial = absl::Milliseconds(500);
  absl::Duration backoff_max = absl::Seconds(30);
  absl::Duration healthy_after = absl::Seconds(60);
};

struct StderrRules {
  StderrMode mode = StderrMode::kInherit;
  std::string file;  // absolute, when mode is kFile; appended to
};

// Everything a policy says, after `extends`, `without`, additions, variables and ceilings were applied.
struct PolicyFields {
  std::string name;  // for people: the file's path as given, or "preset:node"
  // What its ${cache} folder is called: stable for one policy, safe as one path component.
  std::string cache_key;
  Tier require = Tier::kA;
  // Started as root: "auto" is an unprivileged uid of its own; else a name; "root" is kernel uid 0, tier A only.
  std::string user = "auto";
  CommandRules command;
  std::string cwd_default;             // absolute; empty: the folder of the one who starts it
  std::vector<std::string> cwd_allow;  // absolute folders; the cwd is one of them or lies beneath one; empty: any
  EnvRules env;
  FilesystemRules filesystem;
  NetworkMode network = NetworkMode::kNone;
  std::vector<std::string> network_allow;  // "host:port"
  SyscallProfile syscall_profile = SyscallProfile::kBaseline;
  std::vector<std::string> syscalls_allow, syscalls_deny;
  Limits limits;
  MessageLimits messages;
  Timeouts timeouts;
  RestartRules restart;
  StderrRules stderr_rules;
  // Where each field was said: "/limits/processes" -> "files.json:6", "--network", or the ceiling that narrowed it.
  // Entries of lists and maps by their text: "/env/inherit/LC_*". What is not here has its default. Only with
  // ParseOptions::record_origins; for explain and Warnings().
  std::map<std::string, std::string> origins;
  bool narrowed = false;              // by a ceiling: nothing is granted that the lists above don't name
  std::vector<std::string> warnings;  // e.g. an optional entry left out because its variable is unset
};

// Only ParsePolicy and its kin make one.
class Policy {
 public:
  const PolicyFields& operator*() const { return fields_; }
  const PolicyFields* operator->() const { return &fields_; }

 private:
  friend class PolicyMaker;
  explicit Policy(PolicyFields fields) : fields_(std::move(fields)) {}
  PolicyFields fields_;
};

// What ${...} stands for. An unset variable is an error where it is used, except in a grant marked optional.
struct Variables {
  std::optional<std::string> workspace;
  std::optional<std::string> home;
  std::optional<std::string> tmp;
  // The folder below which each policy has its own: ${cache} is <cache_root>/<cache_key>.
  std::optional<std::string> cache_root;
  std::map<std::string, std::string> env;  // the host's environment, for ${env:NAME}
  std::map<std::string, std::string> var;  // --var NAME=VALUE, for ${var:NAME}
};

// What the one who starts the server adds on the command line. Applied before the ceilings, which still narrow it.
struct Additions {
  std::vector<std::string> ro, rw;  // absolute paths
  std::optional<NetworkMode> network;
  std::map<std::string, std::string> env;
  std::vector<std::string> inherit;  // names, no patterns; held to the rules of env.inherit, and taken out of env.set
  std::optional<Tier> require;
  std::optional<StderrRules> stderr_rules;
};

// One policy text and the name that errors use for it.
struct PolicyText {
  std::string name;
  std::string text;
};

struct ParseOptions {
  Variables variables;
  Additions additions;
  std::vector<PolicyText> ceilings;  // each can only narrow
  // Where the server will run: what `env.inherit` is when it is absent, and what is enforced there.
  Platform platform = Platform::kPosix;
  bool record_origins = false;  // fills PolicyFields::origins
  // The absolute folder that relative names (of the policy, of ceilings) start from. Needed when such a file extends a
  // file, and for a ${cache} that does not depend on how the policy was named. Empty: names are taken as they are.
  std::string folder;
  // Gives the text of a file that `extends` names: called with the absolute, lexically normal path. Presets need no
  // reader. Absent: `extends` of a file is an error.
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;
};

// Limits of the file format.
inline constexpr std::size_t kPolicyBytesMax = 1u << 20;  // of one file
inline constexpr int kPolicyNestingMax = 32;
inline constexpr int kExtendsDepthMax = 8;

// Parses, checks and composes one policy. Errors are InvalidArgument; the message holds every mistake found, one a
// line: `files.json:7:12: /filesystem/ro/2: "../data" is not absolute; write the full path or start it with
// ${workspace}`. A field that is known but has no mechanism yet is refused with "not enforced yet".
absl::StatusOr<Policy> ParsePolicy(const PolicyText& text, const ParseOptions& options);

// "A", "B", "C".
absl::string_view TierName(Tier tier);

// The built-in policies, in the order of their names.
std::vector<std::string> PresetNames();
// The commented text of one, or NotFound naming the ones there are.
absl::StatusOr<std::string> PresetText(absl::string_view name);
// Why no server can be started by this preset, with what to do instead; empty for all but "docker", which is there to
// say so: the client of a container engine only asks a daemon to start the server, outside of any jail around the
// client.
std::string WhyPresetIsRefused(absl::string_view name);
// The preset that fits a command such as "/usr/bin/npx": by the name's last component; "default" if none fits.
std::string PresetForCommand(absl::string_view command);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_POLICY_H_
