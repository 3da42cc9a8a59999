#include "bulkhead/policy/fields.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/compose.h"
#include "bulkhead/policy/env_names.h"
#include "bulkhead/policy/forms.h"
#include "bulkhead/policy/paths.h"
#include "bulkhead/policy/text.h"
#include "bulkhead/policy/variables.h"

namespace bulkhead::policy {
namespace {

// POSIX.1-2017, XBD 8.3 "Other environment variables", the ones that every login has; what MCP's SDKs pass too.
constexpr const char* kDefaultInherit[] = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"};

// What Windows programs don't start without - sockets need SYSTEMROOT - and what MCP's SDKs pass there, with COMSPEC.
constexpr const char* kDefaultInheritWindows[] = {"APPDATA",     "COMSPEC",      "HOMEDRIVE",
                                                  "HOMEPATH",    "LOCALAPPDATA", "PATH",
                                                  "PATHEXT",     "PROGRAMFILES", "PROCESSOR_ARCHITECTURE",
                                                  "SYSTEMDRIVE", "SYSTEMROOT",   "TEMP",
                                                  "USERNAME",    "USERPROFILE"};

constexpr absl::string_view kRuntime = ":runtime";

template <typename T>
struct Word {
  absl::string_view text;
  T value;
};
constexpr Word<Tier> kTiers[] = {{"A", Tier::kA}, {"B", Tier::kB}, {"C", Tier::kC}};
constexpr Word<BatchFiles> kBatchFiles[] = {{"refuse", BatchFiles::kRefuse}, {"checked", BatchFiles::kChecked}};
constexpr Word<HomeMode> kHomes[] = {{"private", HomeMode::kPrivate},
                                     {"none", HomeMode::kNone},
                                     {"ro", HomeMode::kReadOnly},
                                     {"rw", HomeMode::kReadWrite}};
constexpr Word<TmpMode> kTmps[] = {{"private", TmpMode::kPrivate}, {"host", TmpMode::kHost}};
constexpr Word<NetworkMode> kNetworkModes[] = {
    {"none", NetworkMode::kNone}, {"allowlist", NetworkMode::kAllowlist}, {"host", NetworkMode::kHost}};
constexpr Word<SyscallProfile> kProfiles[] = {{"baseline", SyscallProfile::kBaseline},
                                              {"strict", SyscallProfile::kStrict}};

// Makes one entry of what were two for the same path; it may be missing only if both said so.
void Unite(PathGrant& there, const PathGrant& grant) {
  there.optional = there.optional && grant.optional;
  // Opened beneath the folder of the one that names one.
  if (there.beneath.empty()) there.beneath = grant.beneath;
}

// Grants of a list, each path once.
class GrantList {
 public:
  // At most `more` will be added.
  GrantList(std::vector<PathGrant>& grants, std::size_t more) : grants_(grants) {
    grants_.reserve(grants_.size() + more);
    places_.reserve(grants_.size() + more);
    for (std::size_t i = 0; i < grants_.size(); ++i) places_.emplace(grants_[i].path, i);
  }

  void Add(PathGrant&& grant) {
    grants_.push_back(std::move(grant));
    const auto [there, is_new] = places_.emplace(grants_.back().path, grants_.size() - 1);
    if (is_new) return;
    Unite(grants_[there->second], grants_.back());
    grants_.pop_back();
  }

 private:
  std::vector<PathGrant>& grants_;
  absl::flat_hash_map<absl::string_view, std::size_t> places_;  // by path; grants_ never moves, as there is room
};

using EnvNames = std::map<std::string, std::vector<std::string>>;

// A ceiling's silence about a limit is no limit; about a grant, no grant.
void SetDefaults(Purpose purpose, PolicyFields& fields) {
  if (purpose == Purpose::kPolicy) return;
  fields.command.args_max = std::numeric_limits<std::uint32_t>::max();
  fields.limits = {0, 0, 0, 0, absl::ZeroDuration()};
  constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  fields.messages = {kNoLimit, kNoLimit, kNoLimit};
  const absl::Duration forever = absl::InfiniteDuration();
  fields.timeouts = {forever, forever, forever, forever, forever, false};
  fields.restart = {std::numeric_limits<std::uint32_t>::max(), absl::ZeroDuration(), absl::ZeroDuration(),
                    absl::ZeroDuration()};
}

class Reader {
 public:
  Reader(const JsonValue& tree, const ReadOptions& options, Mistakes& mistakes)
      : tree_(tree), options_(options), mistakes_(mistakes) {}

  Draft Read() {
    draft_.platform = options_.platform;
    SetDefaults(options_.purpose, fields_);
    Choice({"require"}, kTiers, fields_.require);
    if (const JsonValue* user = At({"user"})) fields_.user = user->string;
    ReadCommand();
    ReadCwd();
    ReadEnv();
    ReadFilesystem();
    Choice({"network", "mode"}, kNetworkModes, fields_.network);
    Texts({"network", "allow"}, fields_.network_allow);
    Choice({"syscalls", "profile"}, kProfiles, fields_.syscall_profile);
    Texts({"syscalls", "allow"}, fields_.syscalls_allow);
    Texts({"syscalls", "deny"}, fields_.syscalls_deny);
    ReadLimits();
    ReadForClient();
    ReadStderr();
    return std::move(draft_);
  }

 private:
  const JsonValue* At(std::initializer_list<absl::string_view> path) const {
    const JsonValue* value = &tree_;
    for (const absl::string_view key : path) {
      value = value->Member(key);
      if (value == nullptr) return nullptr;
    }
    return value;
  }

  void Wrong(const JsonValue& value, absl::string_view what) {
    mistakes_.Add(*value.file, value.place, value.Pointer(), what);
  }
  static std::string PlaceOf(const JsonValue& value) { return absl::StrCat(Origin(value), ":", value.place.column); }
  static std::string Origin(const JsonValue& value) { return absl::StrCat(*value.file, ":", value.place.line); }

  template <typename T, std::size_t N>
  void Choice(std::initializer_list<absl::string_view> path, const Word<T> (&words)[N], T& out) {
    const JsonValue* value = At(path);
    if (value == nullptr) return;
    for (const Word<T>& word : words) {
      if (word.text == value->string) out = word.value;
    }
  }

  template <typename T>
  void Count(std::initializer_list<absl::string_view> path, T& out) {
    if (const JsonValue* value = At(path)) out = static_cast<T>(value->integer);
  }
  void Size(std::initializer_list<absl::string_view> path, std::uint64_t& out) {
    if (const JsonValue* value = At(path)) out = ParseSize(value->string).value_or(out);
  }
  void Duration(std::initializer_list<absl::string_view> path, absl::Duration& out) {
    const JsonValue* value = At(path);
    if (value == nullptr) return;
    const std::optional<std::uint64_t> milliseconds = ParseDurationMs(value->string);
    if (milliseconds.has_value()) out = absl::Milliseconds(*milliseconds);
  }

  void Texts(std::initializer_list<absl::string_view> path, std::vector<std::string>& out) {
    const JsonValue* list = At(path);
    if (list == nullptr) return;
    out.clear();
    absl::flat_hash_set<absl::string_view> known;
    known.reserve(list->children.size());
    for (const JsonValue& item : list->children) {
      if (known.insert(item.string).second) out.push_back(item.string);
    }
  }

  // The path that `text` stands for, written at `value`; nothing if it is left out or wrong. Only a variable or,
  // on Windows, a name can make it wrong: CheckGrammar has seen the rest. What a variable stands for is not repeated in
  // messages.
  std::optional<PathGrant> Path(const JsonValue& value, const std::string& text, bool optional,
                                EnvNames& env_names_of) {
    Expanded expanded = Expand(text, *options_.variables, options_.cache, /*empty_is_unset=*/true);
    std::string problem, help;
    bool is_of_another_system = false;
    PathGrant grant;
    if (!expanded.unset.empty()) {
      problem = absl::StrCat(expanded.unset, " is not set");
      help = HowToSet(expanded.unset);
    } else if (const PathProblem found = expanded.too_long
                                             ? PathProblem::kTooLong
                                             : NormalisePath(expanded.text, &grant.path, options_.platform);
               found != PathProblem::kNone) {
      const bool is_expanded = HasVariable(text);
      problem = absl::StrCat(Quote(text), is_expanded ? ", once expanded, " : " ", PathProblemText(found));
      help = is_expanded ? "give its variable another value" : "write the full path as Windows says it";
      is_of_another_system = found == PathProblem::kNoDrive && !is_expanded;
    }
    if (!problem.empty()) {
      // A preset's optional ${env:}, or path of another system, is a guess about this machine, no one's wish.
      const bool is_guess = absl::StartsWith(*value.file, "preset:") &&
                            (is_of_another_system || absl::StartsWith(expanded.unset, "${env:"));
      if (optional && !is_guess) {
        fields_.warnings.push_back(absl::StrCat(Origin(value), ": left out ", Quote(text), ": ", problem));
      } else if (!optional) {
        Wrong(value, absl::StrCat(problem, "; ", help));
      }
      return std::nullopt;
    }
    grant.optional = optional;
    if (expanded.leading_value.has_value()) NormalisePath(*expanded.leading_value, &grant.beneath, options_.platform);
    grant.origin = Origin(value);
    if (!expanded.env_names.empty()) {
      std::vector<std::string>& names = env_names_of[grant.path];
      names.insert(names.end(), expanded.env_names.begin(), expanded.env_names.end());
    }
    return grant;
  }

  std::optional<PathGrant> Path(const JsonValue& value, const std::string& text) {
    return Path(value, text, /*optional=*/false, draft_.env_names_of_file);
  }

  void Paths(std::initializer_list<absl::string_view> path, std::vector<std::string>& out) {
    const JsonValue* list = At(path);
    if (list == nullptr) return;
    absl::flat_hash_set<std::string> known;
    known.reserve(list->children.size());
    for (const JsonValue& item : list->children) {
      std::optional<PathGrant> grant = Path(item, item.string);
      if (grant.has_value() && known.insert(grant->path).second) out.push_back(std::move(grant->path));
    }
  }

  void Grants(absl::string_view name, std::vector<PathGrant>& out) {
    const JsonValue* list = At({"filesystem", name});
    if (list == nullptr) return;
    GrantList grants(out, list->children.size());
    for (const JsonValue& item : list->children) {
      const std::string& text = GrantPath(item);
      if (text == kRuntime) {
        PathGrant runtime;
        runtime.path = text;
        runtime.origin = Origin(item);
        grants.Add(std::move(runtime));
      } else if (std::optional<PathGrant> grant = Path(item, text, GrantIsOptional(item), draft_.env_names_of_grant);
                 grant.has_value()) {
        grants.Add(*std::move(grant));
      }
    }
  }

  void ReadCommand() {
    CommandRules& command = fields_.command;
    if (const JsonValue* allow = At({"command", "allow"})) {
      command.allow.emplace();
      for (const JsonValue& item : allow->children) {
        if (!HasSlash(item.string, options_.platform)) {
          command.allow->push_back(item.string);
        } else if (const auto path = Path(item, item.string); path.has_value()) {
          command.allow->push_back(path->path);
        }
      }
    }
    if (const JsonValue* pins = At({"command", "sha256"})) {
      draft_.sha256_origin = PlaceOf(*pins);
      for (const JsonValue& pin : pins->children) {
        const auto path = Path(pin, pin.key);
        if (path.has_value() && !command.sha256.emplace(path->path, pin.string).second) {
          Wrong(pin, "names a file that is pinned already; take one away");
        }
      }
    }
    Count({"command", "args", "max"}, command.args_max);
    Texts({"command", "args", "deny"}, command.args_deny);
    Texts({"command", "args", "allow"}, command.args_allow);
    Choice({"command", "batch_files"}, kBatchFiles, command.batch_files);
  }

  void ReadCwd() {
    if (const JsonValue* value = At({"cwd", "default"})) {
      if (const auto path = Path(*value, value->string)) fields_.cwd_default = path->path;
    }
    // In PolicyFields an empty list is "any folder", the opposite of what one says who writes it.
    if (const JsonValue* allow = At({"cwd", "allow"}); allow != nullptr && allow->children.empty()) {
      mistakes_.Add(*allow->file, allow->place, "/cwd/allow", "is empty; name a folder, or leave it out to allow any");
    }
    if (const JsonValue* allow = At({"cwd", "allow"})) draft_.cwd_allow_origin = PlaceOf(*allow);
    Paths({"cwd", "allow"}, fields_.cwd_allow);
  }

  void ReadEnv() {
    EnvRules& env = fields_.env;
    if (options_.platform == Platform::kPosix) {
      env.inherit.assign(std::begin(kDefaultInherit), std::end(kDefaultInherit));
    } else {
      env.inherit.assign(std::begin(kDefaultInheritWindows), std::end(kDefaultInheritWindows));
    }
    Texts({"env", "inherit"}, env.inherit);
    for (std::string& glob : env.inherit) glob = FoldEnvName(glob, options_.platform);
    if (options_.purpose == Purpose::kPolicy &&
        std::find(env.inherit.begin(), env.inherit.end(), "*") != env.inherit.end()) {
      fields_.warnings.push_back(
          "/env/inherit has \"*\": the server sees the host's whole environment, and every secret in it");
    }
    if (const JsonValue* set = At({"env", "set"})) {
      for (const JsonValue& entry : set->children) ReadSet(entry);
    }
    CheckOnce("set");
    CheckOnce("secret");
    if (const JsonValue* secrets = At({"env", "secret"})) {
      for (const JsonValue& entry : secrets->children) {
        SecretSource source;
        if (const JsonValue* name = entry.Member("env")) source.env = name->string;
        if (const JsonValue* fd = entry.Member("fd")) source.fd = static_cast<int>(fd->integer);
        if (const JsonValue* file = entry.Member("file")) {
          if (const auto path = Path(*file, file->string)) {
            source.file = path->path;
            source.follow_links = path->beneath.empty();
          }
        }
        env.secret[entry.key] = std::move(source);
      }
    }
  }

  // Names that differ only in case are two for JSON and one for Windows.
  void CheckOnce(absl::string_view map) {
    const JsonValue* entries = At({"env", map});
    if (entries == nullptr || options_.platform == Platform::kPosix) return;
    std::map<std::string, std::string> names;
    for (const JsonValue& entry : entries->children) {
      const auto [first, is_new] = names.emplace(FoldEnvName(entry.key, options_.platform), entry.key);
      if (!is_new)
        Wrong(entry, absl::StrCat("is the same name as ", Quote(first->second), " on Windows; take one away"));
    }
  }

  void ReadSet(const JsonValue& entry) {
    Expanded expanded = Expand(entry.string, *options_.variables, options_.cache, /*empty_is_unset=*/false);
    if (!expanded.unset.empty()) {
      return Wrong(entry, absl::StrCat(expanded.unset, " is not set; ", HowToSet(expanded.unset)));
    }
    // Only what variables add is looked at: the rest is as long as the text, and is looked at when a server is started.
    set_bytes_ += HasVariable(entry.string) ? expanded.text.size() : 0;
    if (expanded.too_long || set_bytes_ > kEnvironmentBytesMax) {
      return Wrong(entry,
                   absl::StrCat("once expanded, is longer than ", kArgumentBytesMax, " bytes, or all together are ",
                                "longer than ", kEnvironmentBytesMax, "; give its variables shorter values"));
    }
    const std::string wrong = CheckEnvValue(expanded.text);
    if (!wrong.empty()) return Wrong(entry, absl::StrCat("once expanded, ", wrong));
    fields_.env.set[entry.key] = std::move(expanded.text);
    if (!expanded.env_names.empty()) draft_.env_names_of_set[entry.key] = std::move(expanded.env_names);
  }

  void ReadFilesystem() {
    FilesystemRules& filesystem = fields_.filesystem;
    Grants("rx", filesystem.rx);
    Grants("ro", filesystem.ro);
    Grants("rw", filesystem.rw);
    Grants("protect", filesystem.protect);
    Grants("hide", filesystem.hide);
    Choice({"filesystem", "home"}, kHomes, filesystem.home);
    Choice({"filesystem", "tmp"}, kTmps, filesystem.tmp);
  }

  void ReadLimits() {
    Limits& limits = fields_.limits;
    Size({"limits", "memory"}, limits.memory_bytes);
    Count({"limits", "processes"}, limits.processes);
    Count({"limits", "open_files"}, limits.open_files);
    Size({"limits", "file_size"}, limits.file_size_bytes);
    Duration({"limits", "cpu_time"}, limits.cpu_time);
  }

  // What `bulkhead run` has no use for.
  void ReadForClient() {
    Size({"messages", "max_message_bytes"}, fields_.messages.max_message_bytes);
    Count({"messages", "max_junk_lines"}, fields_.messages.max_junk_lines);
    Size({"messages", "max_queued_bytes"}, fields_.messages.max_queued_bytes);
    Timeouts& timeouts = fields_.timeouts;
    Duration({"timeouts", "probe"}, timeouts.probe);
    Duration({"timeouts", "start"}, timeouts.start);
    Duration({"timeouts", "request"}, timeouts.request);
    Duration({"timeouts", "stdin_grace"}, timeouts.stdin_grace);
    Duration({"timeouts", "term_grace"}, timeouts.term_grace);
    timeouts.term_grace_was_set = At({"timeouts", "term_grace"}) != nullptr;
    RestartRules& restart = fields_.restart;
    Count({"restart", "max_in_a_row"}, restart.max_in_a_row);
    Duration({"restart", "backoff_initial"}, restart.backoff_initial);
    Duration({"restart", "backoff_max"}, restart.backoff_max);
    Duration({"restart", "healthy_after"}, restart.healthy_after);
    const JsonValue* said = At({"restart", "backoff_max"});
    if (said == nullptr) said = At({"restart", "backoff_initial"});
    if (said != nullptr && options_.purpose == Purpose::kPolicy && restart.backoff_initial > restart.backoff_max) {
      Wrong(*said, "makes backoff_initial longer than backoff_max; let it be the shorter one");
    }
  }

  void ReadStderr() {
    const JsonValue* value = At({"stderr"});
    if (value == nullptr) return;
    StderrRules& rules = fields_.stderr_rules;
    if (const JsonValue* file = value->Member("file")) {
      const auto path = Path(*file, file->string);
      rules.mode = StderrMode::kFile;
      if (path.has_value()) rules.file = path->path;
    } else {
      rules.mode = value->string == "discard" ? StderrMode::kDiscard : StderrMode::kInherit;
    }
  }

  const JsonValue& tree_;
  const ReadOptions& options_;
  Mistakes& mistakes_;
  Draft draft_;
  PolicyFields& fields_ = draft_.fields;
  std::size_t set_bytes_ = 0;  // of the values under env.set that have variables
};

void AddPaths(absl::string_view flag, const std::vector<std::string>& paths, std::vector<PathGrant>& grants,
              Draft& draft, Mistakes& mistakes) {
  if (paths.empty()) return;
  GrantList list(grants, paths.size());
  for (const std::string& path : paths) {
    PathGrant grant;
    const PathProblem problem = NormalisePath(path, &grant.path, draft.platform);
    if (problem != PathProblem::kNone) {
      mistakes.Add(flag, absl::StrCat(Quote(path), " ", PathProblemText(problem), "; write the full path"));
      continue;
    }
    grant.origin = std::string(flag);
    draft.env_names_of_grant.erase(grant.path);  // named in full now
    list.Add(std::move(grant));
  }
}

}  // namespace

Draft ReadFields(const JsonValue& tree, const ReadOptions& options, Mistakes& mistakes) {
  return Reader(tree, options, mistakes).Read();
}

void Add(const Additions& additions, Draft& draft, Mistakes& mistakes) {
  PolicyFields& fields = draft.fields;
  AddPaths("--ro", additions.ro, fields.filesystem.ro, draft, mistakes);
  AddPaths("--rw", additions.rw, fields.filesystem.rw, draft, mistakes);
  for (const auto& [name, value] : additions.env) {
    std::string wrong = CheckText(Form::kEnvName, name);
    if (wrong.empty()) wrong = CheckEnvValue(value);
    if (!wrong.empty()) {
      mistakes.Add(absl::StrCat("--env ", Quote(name)), wrong);
      continue;
    }
    fields.env.set[name] = value;
    draft.env_names_of_set.erase(name);
  }
  for (const std::string& name : additions.inherit) {
    std::string wrong = CheckText(Form::kEnvName, name);
    if (wrong.empty()) wrong = CheckText(Form::kEnvGlob, name);
    if (!wrong.empty()) {
      mistakes.Add("--env", wrong);
      continue;
    }
    fields.env.inherit.push_back(FoldEnvName(name, draft.platform));
    fields.env.set.erase(name);
    draft.env_names_of_set.erase(name);
  }
  if (additions.network == NetworkMode::kAllowlist) {
    mistakes.Add("--network", "\"allowlist\" is not enforced yet; write none or host");
  }
  if (additions.network.has_value()) fields.network = *additions.network;
  if (additions.require.has_value()) fields.require = *additions.require;
  if (!additions.stderr_rules.has_value()) return;
  fields.stderr_rules = *additions.stderr_rules;
  if (fields.stderr_rules.mode != StderrMode::kFile) return;
  const PathProblem problem = NormalisePath(additions.stderr_rules->file, &fields.stderr_rules.file, draft.platform);
  if (problem != PathProblem::kNone) {
    mistakes.Add("--stderr", absl::StrCat(Quote(additions.stderr_rules->file), " ", PathProblemText(problem),
                                          "; write the full path"));
  }
}

}  // namespace bulkhead::policy
