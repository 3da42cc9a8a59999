#include "tests/launcher/jail_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::launcher {
namespace {

using testing::AllOf;
using testing::Field;
using testing::HasSubstr;
using testing::Matcher;
using testing::StartsWith;

constexpr char kPath[] = "/usr/local/bin:/usr/bin:/bin";

[[noreturn]] void Die(const std::string& what) {
  fprintf(stderr, "jail_fixture: %s: %s\n", what.c_str(), strerror(errno));
  abort();
}

void Check(bool ok, const std::string& what) {
  if (!ok) Die(what);
}

std::string ReadToEnd(int fd) {
  std::string text;
  char block[4096];
  ssize_t count;
  while ((count = read(fd, block, sizeof block)) > 0) text.append(block, static_cast<std::size_t>(count));
  return text;
}

std::string JsonList(const Words& words) {
  return absl::StrCat("[",
                      absl::StrJoin(words, ",",
                                    [](std::string* out, const std::string& word) {
                                      absl::StrAppend(out, "\"", absl::CEscape(word), "\"");
                                    }),
                      "]");
}

// Starts `words` as the person; gives the pid and this side of its stdin and stdout.
pid_t StartOutside(const Host& host, Words words, const std::map<std::string, std::string>& env, int* in, int* out) {
  int to[2], from[2];
  Check(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0, "pipe2");
  std::vector<std::string> variables;
  for (const auto& [name, value] : env) variables.push_back(absl::StrCat(name, "=", value));
  variables.insert(variables.end(), {absl::StrCat("HOME=", host.home()), absl::StrCat("PATH=", kPath)});
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : variables) envp.push_back(variable.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  const pid_t pid = fork();
  Check(pid >= 0, "fork");
  if (pid == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    const uid_t uid = host.person();
    if (uid != geteuid() && (setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)) _exit(3);
    execve(argv[0], argv.data(), envp.data());
    _exit(3);
  }
  close(to[0]);
  close(from[1]);
  *in = to[1];
  *out = from[0];
  return pid;
}

}  // namespace

bool IsRoot() { return geteuid() == 0; }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string ReadStderr(const std::string& path) {
  std::string kept;
  for (const absl::string_view line : absl::StrSplit(ReadFile(path), '\n')) {
    if (!absl::StartsWith(line, "==") || !absl::StrContains(line, "==WARNING: reading executable name failed"))
      absl::StrAppend(&kept, kept.empty() ? "" : "\n", line);
  }
  return kept;
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

std::string NewToken() {
  static int count = 0;
  return absl::StrCat("jail-", getpid(), "-", ++count);
}

std::string TestData(const std::string& name) {
  const char* const folder = getenv("BULKHEAD_TEST_PROGRAMS");
  const char* const source = getenv("TEST_SRCDIR");
  const char* const workspace = getenv("TEST_WORKSPACE");
  const std::string path = folder != nullptr ? absl::StrCat(folder, name.substr(name.rfind('/')))
                           : source != nullptr && workspace != nullptr ? absl::StrCat(source, "/", workspace, "/", name)
                                                                       : name;
  Check(access(path.c_str(), R_OK) == 0, absl::StrCat("run this by bazel test: ", path));
  return path;
}

Host::Host() : person_(IsRoot() ? kNobody : geteuid()) {
  // Not in TEST_TMPDIR, which as root lies where nobody else may enter.
  char name[] = "/var/tmp/bulkhead-jail.XXXXXX";
  Check(mkdtemp(name) != nullptr, "mkdtemp");
  folder_ = name;
  Check(chmod(name, 0755) == 0, "chmod");
  if (IsRoot()) GiveTo(folder_, person_);
  home_ = Folder("home");
  File("home/.ssh/id_test", "the private key");
  probe_ = folder_ + "/tools/probe";
  Folder("tools");
  std::filesystem::copy_file(TestData("tests/programs/probe"), probe_);
  Check(chmod(probe_.c_str(), 0755) == 0, "chmod");
}

Host::~Host() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

std::string Host::Folder(const std::string& name, mode_t mode) const {
  std::string path = folder_;
  std::size_t begin = 0;
  while (begin < name.size()) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    absl::StrAppend(&path, "/", name.substr(begin, end - begin));
    if (mkdir(path.c_str(), 0755) == 0 && IsRoot()) GiveTo(path, person_);
    begin = end + 1;
  }
  Check(chmod(path.c_str(), mode) == 0, path);
  return path;
}

std::string Host::File(const std::string& name, const std::string& text, mode_t mode) const {
  if (name.find('/') != std::string::npos) Folder(name.substr(0, name.rfind('/')));
  const std::string path = *this / name;
  std::ofstream(path, std::ios::binary) << text;
  if (IsRoot()) GiveTo(path, person_);
  Check(chmod(path.c_str(), mode) == 0, path);
  return path;
}

std::string Host::Link(const std::string& target, const std::string& name) const {
  const std::string path = *this / name;
  Check(symlink(target.c_str(), path.c_str()) == 0, path);
  return path;
}

void Host::GiveTo(const std::string& path, uid_t owner) const {
  Check(lchown(path.c_str(), owner, owner) == 0, absl::StrCat("chown ", path));
}

std::ostream& operator<<(std::ostream& stream, const Outcome& outcome) {
  if (!outcome.launched.ok()) return stream << "not started: " << outcome.launched;
  return stream << "\"" << outcome.out << "\", " << outcome.end.ToString();
}

std::string NameOf(Way way) { return way == Way::kTierA ? "A" : way == Way::kTierB ? "B" : "Portable"; }

Jail JailFor(Way way) {
  Jail jail;
  jail.tier = way == Way::kTierA ? policy::Tier::kA : policy::Tier::kB;
  if (way != Way::kPortable) return jail;
  jail.tier = policy::Tier::kC;
  jail.network = "host";
  jail.backend = BackendName::kPosix;
  if (IsRoot()) jail.user = "nobody";
  return jail;
}

absl::StatusOr<LaunchPlan> MakePlan(const Host& host, const Jail& jail, const Words& command) {
  Words rx = jail.rx;
  rx.insert(rx.end(), {":runtime", host / "tools"});
  const policy::PolicyText text = {
      "test.json",
      absl::StrCat("{\"version\":1,\"require\":\"", std::string(policy::TierName(jail.tier)), "\",\"user\":\"",
                   jail.user, "\",\"filesystem\":{\"rx\":", JsonList(rx), ",\"ro\":", JsonList(jail.ro), ",\"rw\":",
                   JsonList(jail.rw), ",\"protect\":", JsonList(jail.protect), ",\"hide\":", JsonList(jail.hide),
                   "},\"network\":{\"mode\":\"", jail.network, "\"},\"limits\":{", jail.limits, "}", jail.more, "}")};
  policy::ParseOptions parse;
  parse.variables.home = host.home();
  parse.variables.cache_root = host / "cache";
  if (!jail.workspace.empty()) parse.variables.workspace = jail.workspace;
  const absl::StatusOr<policy::Policy> policy = policy::ParsePolicy(text, parse);
  if (!policy.ok()) return policy.status();

  policy::CommandRequest request;
  request.argv = command;
  request.cwd = jail.cwd;
  request.host_cwd = "/";
  request.host_env = jail.env;
  request.host_env["HOME"] = host.home();
  request.host_env["PATH"] = kPath;
  const absl::StatusOr<policy::ValidatedCommand> validated = policy::ValidateCommand(*policy, request);
  if (!validated.ok()) return validated.status();

  KernelFeatures features = DetectKernelFeatures();
  if (jail.landlock_abi >= 0) features.landlock_abi = std::min(features.landlock_abi, jail.landlock_abi);
  if (jail.pretended_abi.has_value()) features.landlock_abi = *jail.pretended_abi;
  features.cgroup = jail.cgroup;
  if (jail.is_root.has_value()) features.is_root = *jail.is_root;
  PlanOptions options;
  options.only_tier = jail.tier;
  options.backend = jail.backend;
  options.run_mode = jail.run_mode;
  return BuildLaunchPlan(*policy, *validated, features, options);
}

Outcome RunPlan(absl::StatusOr<LaunchPlan> plan, const Edit& edit) {
  Outcome outcome;
  outcome.launched = plan.status();
  if (!plan.ok()) return outcome;
  if (edit) edit(*plan);
  absl::StatusOr<Process> process = Launch(*plan);
  outcome.launched = process.status();
  if (!process.ok()) return outcome;
  outcome.report = process->report();
  outcome.out = ReadToEnd(process->stdout_fd().get());
  outcome.end = process->Wait();
  return outcome;
}

Outcome RunCommand(const Host& host, const Jail& jail, const Words& command, const Edit& edit) {
  return RunPlan(MakePlan(host, jail, command), edit);
}

Outcome RunInJail(const Host& host, const Jail& jail, Words words, const Edit& edit) {
  words.insert(words.begin(), host.probe());
  return RunCommand(host, jail, words, edit);
}

Outcome RunOutside(const Host& host, Words words) {
  words.insert(words.begin(), host.probe());
  int in, out, status;
  const pid_t pid = StartOutside(host, std::move(words), {}, &in, &out);
  close(in);
  Outcome outcome;
  outcome.out = ReadToEnd(out);
  close(out);
  Check(waitpid(pid, &status, 0) == pid, "waitpid");
  outcome.end.kind = WIFEXITED(status) ? ExitStatus::Kind::kExited : ExitStatus::Kind::kSignaled;
  outcome.end.code = WEXITSTATUS(status);
  outcome.end.signal = WTERMSIG(status);
  return outcome;
}

HostProcess::HostProcess(const Host& host, Words words, std::map<std::string, std::string> env) {
  words.insert(words.begin(), host.probe());
  int out;
  pid_ = StartOutside(host, std::move(words), env, &in_, &out);
  char c;
  while (read(out, &c, 1) == 1 && c != '\n') ready_ += c;
  close(out);
  EXPECT_THAT(ready_, StartsWith("ready"));
}

HostProcess::~HostProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(in_);
}

Matcher<const Outcome&> SaysOk(const Matcher<std::string>& text) {
  return AllOf(Field("launched", &Outcome::launched, testing::Property("ok", &absl::Status::ok, true)),
               Field("out", &Outcome::out, AllOf(StartsWith("ok"), text)));
}

Matcher<const Outcome&> Succeeded() { return SaysOk(testing::_); }

Matcher<const Outcome&> DeniedWithAnyOf(std::vector<int> errors) {
  std::vector<std::string> texts;
  for (const int error : errors) texts.push_back(strerrorname_np(error));
  const std::string pattern = absl::StrCat("error (", absl::StrJoin(texts, "|"), ")( .*)?\n");
  return AllOf(Field("launched", &Outcome::launched, testing::Property("ok", &absl::Status::ok, true)),
               Field("out", &Outcome::out, testing::MatchesRegex(pattern)));
}

Matcher<const Outcome&> DeniedWith(int error) { return DeniedWithAnyOf({error}); }

Matcher<const Outcome&> RefusedSaying(const std::string& words) {
  return Field("launched", &Outcome::launched,
               AllOf(testing::Property("ok", &absl::Status::ok, false),
                     testing::ResultOf([](const absl::Status& status) { return std::string(status.message()); },
                                       HasSubstr(words))));
}

// ---- PlanEditor

void PlanEditor::ForEachVariant(const std::function<void(wire::Variant&)>& f) {
  const auto* plan = At<wire::Plan>(0);
  for (std::uint32_t i = 0; i < plan->variant_count; ++i) f(At<wire::Variant>(plan->variants)[i]);
}

void PlanEditor::ForEachStep(const std::function<void(wire::Step&)>& f) {
  ForEachVariant([&](wire::Variant& variant) {
    for (const wire::StepList& list : {variant.keeper, variant.init, variant.server}) {
      for (std::uint32_t i = 0; i < list.count; ++i) f(At<wire::Step>(list.steps)[i]);
    }
  });
}

void PlanEditor::Drop(wire::StepKind kind, const StepPredicate& which) {
  int dropped = 0;
  ForEachStep([&](wire::Step& step) {
    if (step.kind != kind || (which && !which(step))) return;
    step.kind = wire::StepKind::kNothing;
    ++dropped;
  });
  EXPECT_GT(dropped, 0) << "the plan has no such step: " << static_cast<int>(kind);
}

void PlanEditor::DropNamespace(std::uint32_t flag) {
  ForEachVariant([&](wire::Variant& variant) {
    EXPECT_NE(variant.namespaces & flag, 0u) << "the plan does not make this namespace";
    variant.namespaces &= ~flag;
  });
}

void PlanEditor::DropMountAttribute(const std::string& path, std::uint64_t attribute) {
  int dropped = 0;
  const auto take = [&](wire::Offset source, std::uint64_t& attributes) {
    const std::string text = Text(source);
    if (text != path && text.compare(0, path.size() + 1, path + "/") != 0) return;
    if ((attributes & attribute) != 0) ++dropped;
    attributes &= ~attribute;
  };
  ForEachStep([&](wire::Step& step) {
    if (step.kind == wire::StepKind::kBind) take(step.bind.source.path, step.bind.mount_attributes);
    if (step.kind == wire::StepKind::kOpenTree) take(step.tree.source.path, step.tree.mount_attributes);
  });
  EXPECT_GT(dropped, 0) << "no mount of \"" << path << "\" has this attribute";
}

wire::Offset PlanEditor::Append(const void* data, std::size_t bytes) {
  bytes_.resize((bytes_.size() + 15) / 16 * 16);
  const auto at = static_cast<wire::Offset>(bytes_.size());
  bytes_.append(static_cast<const char*>(data), bytes);
  At<wire::Plan>(0)->bytes = static_cast<std::uint32_t>(bytes_.size());
  return at;
}

void PlanEditor::KeepVariant(std::size_t index) {
  auto* plan = At<wire::Plan>(0);
  ASSERT_LT(index, plan->variant_count);
  At<wire::Variant>(plan->variants)[0] = At<wire::Variant>(plan->variants)[index];
  plan->variant_count = 1;
}

}  // namespace bulkhead::launcher
