#include "bulkhead/policy/command.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bulkhead/policy/env_names.h"
#include "bulkhead/policy/glob.h"
#include "bulkhead/policy/paths.h"
#include "bulkhead/policy/text.h"
#include "bulkhead/policy/windows_command.h"

namespace bulkhead::policy {
namespace {

bool IsAbsolute(absl::string_view path, Platform platform) {
  if (path.empty()) return false;
  return platform == Platform::kPosix ? path.front() == '/' : IsWindowsAbsolute(path);
}

bool HasSpace(absl::string_view text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isspace(c); });
}

// Folders whose entries are not files but doors to what a process has open: CVE-2024-21626.
bool IsMagic(absl::string_view path) {
  for (const absl::string_view folder : {"/proc", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"}) {
    if (IsWithin(path, folder)) return true;
  }
  return false;
}

// `path` without empty and "." components; ".." is kept, since only the kernel knows where it leads.
std::string WithoutDots(absl::string_view path) {
  std::string clean;
  for (const absl::string_view component : absl::StrSplit(path, '/')) {
    if (!component.empty() && component != ".") absl::StrAppend(&clean, "/", component);
  }
  return clean.empty() ? "/" : clean;
}

// "argument 2", with the option's name if it has one: what follows an '=' may be a secret.
std::string Argument(const std::vector<std::string>& argv, std::size_t i) {
  const std::size_t equals = argv[i].find('=');
  if (!absl::StartsWith(argv[i], "-") || equals == std::string::npos) return absl::StrCat("argument ", i);
  return absl::StrCat("argument ", i, " (", Quote(absl::string_view(argv[i]).substr(0, equals)), ")");
}

class Validator {
 public:
  Validator(const PolicyFields& policy, const CommandRequest& request) : policy_(policy), request_(request) {}

  absl::StatusOr<ValidatedCommand> Validate() {
    absl::Status status = CheckArgv();
    if (status.ok()) status = ChooseCwd();
    if (status.ok()) status = ChooseProgram();
    if (status.ok()) status = CheckArgumentRules();
    if (status.ok()) status = MakeEnv();
    if (status.ok()) FindLookUpFolders();
    if (!status.ok()) return status;
    return std::move(command_);
  }

 private:
  absl::Status Refused(absl::string_view what) const {
    return absl::PermissionDeniedError(absl::StrCat(policy_.name, ": ", what));
  }

  absl::Status CheckArgv() const {
    const std::vector<std::string>& argv = request_.argv;
    if (argv.empty() || argv[0].empty()) {
      return absl::InvalidArgumentError("the command is empty; name the program to start");
    }
    for (std::size_t i = 0; i < argv.size(); ++i) {
      const std::string which = i == 0 ? "the command" : Argument(argv, i);
      if (absl::StrContains(argv[i], '\0')) {
        return absl::InvalidArgumentError(absl::StrCat(which, " has a NUL in it, which no program can be given"));
      }
      if (argv[i].size() > kArgumentBytesMax) {
        return absl::InvalidArgumentError(absl::StrCat(which, " is ", argv[i].size(), " bytes long, of at most ",
                                                       kArgumentBytesMax, "; pass a file instead"));
      }
    }
    if (!HasSpace(argv[0]) || IsAbsolute(argv[0], request_.platform)) return absl::OkStatus();
    std::vector<absl::string_view> words = absl::StrSplit(argv[0], absl::ByAnyChar(" \t\r\n\v\f"), absl::SkipEmpty());
    std::vector<std::string> quoted;
    for (const absl::string_view word : words) quoted.push_back(Quote(word));
    return absl::InvalidArgumentError(
        absl::StrCat("the command ", Quote(argv[0]), " has a space in it; arguments belong in argv, one each: ",
                     absl::StrJoin(quoted, ", "), " (a program whose name has a space is started by its full path)"));
  }

  absl::Status ChooseProgram() {
    command_.argv = request_.argv;
    std::string& program = command_.argv[0];
    command_.look_up = !HasSlash(program, request_.platform);
    if (request_.platform == Platform::kWindows) {
      absl::Status status = CheckWindowsProgram(program);
      if (!status.ok()) return status;
    }
    if (!command_.look_up && !IsAbsolute(program, request_.platform)) {
      program = absl::StrCat(command_.cwd, request_.platform == Platform::kWindows ? "\\" : "/", program);
    }
    if (!command_.look_up && request_.platform == Platform::kPosix && IsMagic(JoinPath("/", program))) {
      return absl::PermissionDeniedError(absl::StrCat("the command ", Quote(program),
                                                      " is not a file of its own but a door to one that is open "
                                                      "somewhere; name the file"));
    }
    if (command_.look_up) return CheckAllowed(program);
    if (request_.platform == Platform::kPosix) return CheckAllowed(WithoutDots(program));
    // What has no normal form is no entry's.
    std::string normal;
    return CheckAllowed(NormalisePath(program, &normal, Platform::kWindows) == PathProblem::kNone ? normal : program);
  }

  // What the name alone tells. What a bare one leads to is looked at by MakeWindowsStart.
  absl::Status CheckWindowsProgram(const std::string& program) const {
    const std::string which = absl::StrCat("the command ", Quote(program), " ");
    const bool is_batch_file = IsBatchFile(program);
    if (is_batch_file && policy_.command.batch_files == BatchFiles::kRefuse) {
      return Refused(absl::StrCat(
          which, "is a batch file, whose arguments can't be passed safely; start the program that it starts"));
    }
    const absl::string_view why_not = WhyNoWindowsProgram(program);
    if (!why_not.empty()) return Refused(absl::StrCat(which, why_not, "; write the full path of a file"));
    if (!is_batch_file) return absl::OkStatus();
    for (std::size_t i = 1; i < request_.argv.size(); ++i) {
      const std::string why = WhyNotThroughCmd(request_.argv[i]);
      if (why.empty()) continue;
      return Refused(absl::StrCat(Argument(request_.argv, i), " ", why, ", which can't be passed to the batch file ",
                                  Quote(program), "; start the program that it starts"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckAllowed(const std::string& program) const {
    if (!policy_.command.allow.has_value()) return absl::OkStatus();
    const std::vector<std::string>& allow = *policy_.command.allow;
    if (std::find(allow.begin(), allow.end(), program) != allow.end()) return absl::OkStatus();
    std::vector<std::string> quoted;
    std::string help = "start one of these, or add it to /command/allow";
    const absl::string_view last = absl::string_view(program).substr(program.rfind('/') + 1);
    for (const std::string& entry : allow) {
      quoted.push_back(Quote(entry));
      if (absl::string_view(entry).substr(entry.rfind('/') + 1) == last) {
        help = absl::StrCat("start it as ", Quote(entry), ", or add ", Quote(program), " to /command/allow");
      }
    }
    return Refused(absl::StrCat("the command ", Quote(program), " is not allowed; /command/allow has ",
                                quoted.empty() ? "nothing" : absl::StrJoin(quoted, ", "), "; ", help));
  }

  absl::Status CheckArgumentRules() const {
    const CommandRules& rules = policy_.command;
    const std::vector<std::string>& argv = request_.argv;
    if (argv.size() - 1 > rules.args_max) {
      return Refused(absl::StrCat(argv.size() - 1, " arguments are more than /command/args/max, which is ",
                                  rules.args_max, "; pass fewer, or raise it"));
    }
    for (std::size_t i = 1; i < argv.size(); ++i) {
      for (const std::string& glob : rules.args_deny) {
        if (!GlobMatches(glob, argv[i])) continue;
        return Refused(absl::StrCat(Argument(argv, i), " is denied by ", Quote(glob),
                                    " of /command/args/deny; leave it "
                                    "out"));
      }
      if (!AnyGlobMatches(rules.args_allow, argv[i])) {
        return Refused(absl::StrCat(Argument(argv, i),
                                    " matches nothing of /command/args/allow; leave it out, or add a "
                                    "pattern for it"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ChooseCwd() {
    std::string asked = request_.cwd;
    if (asked.empty()) asked = policy_.cwd_default;
    command_.cwd_asked_for = !asked.empty();
    if (asked.empty()) asked = request_.host_cwd;
    const PathProblem problem = NormalisePath(asked, &command_.cwd, request_.platform);
    if (problem == PathProblem::kNoDrive && IsWindowsAbsolute(asked)) {
      command_.cwd = asked;  // a share, which is in no folder that a policy can name
    } else if (problem != PathProblem::kNone) {
      return absl::InvalidArgumentError(
          absl::StrCat("the working folder ", Quote(asked), " ", PathProblemText(problem), "; write the full path"));
    }
    if (IsMagic(command_.cwd)) {
      return absl::PermissionDeniedError(absl::StrCat("the working folder ", Quote(asked),
                                                      " shows what processes have open, not files (CVE-2024-21626); "
                                                      "start in another"));
    }
    const std::vector<std::string>& allow = policy_.cwd_allow;
    const bool allowed = allow.empty() || std::any_of(allow.begin(), allow.end(), [this](const std::string& folder) {
                           return IsWithin(command_.cwd, folder);
                         });
    if (allowed) return absl::OkStatus();
    std::vector<std::string> quoted;
    for (const std::string& folder : allow) quoted.push_back(Quote(folder));
    return Refused(absl::StrCat("the working folder ", Quote(command_.cwd), " is not allowed; /cwd/allow has ",
                                absl::StrJoin(quoted, ", "), "; start in one of these, or set /cwd/default"));
  }

  // The first of the host's variables wins over a second one that differs only in case (Windows).
  EnvEntry& Entry(const std::string& name) {
    EnvEntry& entry = env_[FoldEnvName(name, request_.platform)];
    if (entry.name.empty()) entry.name = name;
    return entry;
  }

  // The entry of env.inherit that lets the name in, or null.
  const std::string* LetInBy(const std::string& name) const {
    const std::string folded = FoldEnvName(name, request_.platform);
    for (const std::string& glob : policy_.env.inherit) {
      if (GlobMatches(FoldEnvName(glob, request_.platform), folded)) return &glob;
    }
    return nullptr;
  }

  // Why a variable of the host that the policy lets in by name stays out all the same. Empty if it may pass.
  std::string WhyDropped(const std::string& name, const std::string& value) const {
    if (absl::StrContains(name, '\0') || absl::StrContains(value, '\0')) return "has a NUL in it";
    if (IsFunctionName(name) || IsFunctionValue(value)) return "is a shell function";
    const absl::string_view never = WhyNeverInherited(name, request_.platform == Platform::kWindows);
    return std::string(never.empty() ? WhyValueNeverInherited(name, value) : never);
  }

  absl::Status MakeEnv() {
    for (const auto& [name, value] : request_.host_env) {
      const std::string* glob = name.empty() || absl::StrContains(name, '=') ? nullptr : LetInBy(name);
      if (glob == nullptr) continue;
      const std::string why = WhyDropped(name, value);
      if (!why.empty()) {
        command_.env_dropped.push_back(absl::StrCat(name, ": ", why));
        continue;
      }
      EnvEntry& entry = Entry(name);
      if (entry.name != name) continue;
      entry.value = value;
      entry.let_in_by = *glob;
    }
    for (const auto& [name, value] : policy_.env.set) {
      EnvEntry& entry = Entry(name);
      entry.name = name;
      entry.value = value;
      entry.source = EnvEntry::Source::kSet;
    }
    for (const auto& [name, source] : policy_.env.secret) {
      EnvEntry& entry = Entry(name);
      entry = EnvEntry{name, "", EnvEntry::Source::kSecret, source, ""};
    }
    std::size_t total = 0;
    for (const auto& [folded, entry] : env_) {
      const std::size_t size = entry.name.size() + 1 + entry.value.size();
      total += size + 1;
      if (size > kArgumentBytesMax) {
        return absl::InvalidArgumentError(absl::StrCat("the environment variable ", Quote(entry.name), " is ", size,
                                                       " bytes long, of at most ", kArgumentBytesMax,
                                                       "; shorten it, or leave it out of /env"));
      }
      command_.env.push_back(entry);
    }
    if (total > kEnvironmentBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat("the environment is ", total, " bytes long, of at most ",
                                                     kEnvironmentBytesMax, "; let fewer variables in by /env/inherit"));
    }
    return absl::OkStatus();
  }

  void FindLookUpFolders() {
    const auto path = env_.find("PATH");
    if (path == env_.end()) return;
    for (const std::string& entry : SearchFolders(path->second.value)) {
      LookUpFolder folder;
      folder.path = entry;
      folder.granted_for_writing = GrantsWriting(entry);
      const auto same = [&](const LookUpFolder& other) { return other.path == entry; };
      auto& folders = command_.look_up_folders;
      if (std::none_of(folders.begin(), folders.end(), same)) folders.push_back(std::move(folder));
    }
  }

  std::vector<std::string> SearchFolders(absl::string_view list) const {
    if (request_.platform == Platform::kWindows) return WindowsSearchFolders(list);
    std::vector<std::string> folders;
    for (const absl::string_view entry : absl::StrSplit(list, ':')) {
      if (absl::StartsWith(entry, "/")) folders.push_back(WithoutDots(entry));
    }
    return folders;
  }

  // `protect` and `hide` count only where they hold all of the folder.
  bool GrantsWriting(const std::string& folder) const {
    const FilesystemRules& files = policy_.filesystem;
    std::string normal;
    const bool is_normal = request_.platform == Platform::kWindows &&
                           NormalisePath(folder, &normal, request_.platform) == PathProblem::kNone;
    if (!is_normal) normal = folder;
    const auto holds = [&normal](const PathGrant& grant) { return IsWithin(normal, grant.path); };
    if (std::any_of(files.protect.begin(), files.protect.end(), holds)) return false;
    if (std::any_of(files.hide.begin(), files.hide.end(), holds)) return false;
    const auto home = request_.host_env.find("HOME");
    const bool in_home = files.home == HomeMode::kReadWrite && home != request_.host_env.end() &&
                         IsWithin(folder, WithoutDots(home->second));
    return in_home || std::any_of(files.rw.begin(), files.rw.end(), holds);
  }

  const PolicyFields& policy_;
  const CommandRequest& request_;
  ValidatedCommand command_;
  std::map<std::string, EnvEntry> env_;
};

}  // namespace

absl::StatusOr<ValidatedCommand> ValidateCommand(const Policy& policy, const CommandRequest& request) {
  return Validator(*policy, request).Validate();
}

}  // namespace bulkhead::policy
