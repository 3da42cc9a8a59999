// The portable backend, on Linux: what of the main job makes sense without namespaces. What it can't do, and what it
// therefore refuses, is shown too. docs/platforms.md lists the tests of the other backend that have no twin here.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/use_future.hpp"
#include "nlohmann/json.hpp"
#include "tests/launcher/jail_fixture.h"
#include "tests/launcher/survivors.h"
#include "tests/launcher/tree_check.h"

namespace bulkhead::launcher {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using Kind = ExitStatus::Kind;

Jail Portable(const std::string& more = "") {
  Jail jail;
  jail.tier = policy::Tier::kC;
  jail.network = "host";
  jail.backend = BackendName::kPosix;
  if (IsRoot()) jail.user = "nobody";
  jail.more = absl::StrCat(",\"timeouts\":{\"stdin_grace\":\"20ms\",\"term_grace\":\"20ms\"}", more);
  return jail;
}

Process StartTree(const Host& host, const std::string& shape, const std::string& token) {
  absl::StatusOr<LaunchPlan> plan = MakePlan(host, Portable(",\"stderr\":\"discard\""), {host.probe(), shape, token});
  EXPECT_TRUE(plan.ok()) << plan.status();
  absl::StatusOr<Process> process = Launch(*plan);
  EXPECT_TRUE(process.ok()) << process.status();
  EXPECT_THAT(ReadLine(process->stdout_fd().get()), StartsWith("ready"));
  return *std::move(process);
}

// Kills what a test says is still there.
void EndSurvivors(const std::string& token) {
  for (const int pid : Survivors(token)) kill(pid, SIGKILL);
}

class PosixTest : public testing::Test {
 protected:
  Host host_;
  Jail jail_ = Portable();
  std::string token_ = NewToken();
};

TEST_F(PosixTest, OutputArgumentsAndCodeArrive) {
  const Outcome said = RunInJail(host_, jail_, {"argv", "a b", "", "\"\\"});
  EXPECT_EQ(said.out, "ok [a b][][\"\\]\n") << said;
  EXPECT_EQ(said.end.code, 0);
  EXPECT_GT(said.end.max_resident_bytes, 0u);
  EXPECT_EQ(said.report.tier, policy::Tier::kC);
  for (const int code : {0, 1, 255}) EXPECT_EQ(RunInJail(host_, jail_, {"exit", absl::StrCat(code)}).end.code, code);
  const Outcome killed = RunInJail(host_, jail_, {"raise", absl::StrCat(SIGSEGV)});
  EXPECT_EQ(killed.end.kind, Kind::kSignaled);
  EXPECT_EQ(killed.end.signal, SIGSEGV);
}

TEST_F(PosixTest, TheEnvironmentIsThePolicysAndTheHomeItsOwn) {
  jail_.env["SECRET_TOKEN"] = "x";
  jail_.more += ",\"env\":{\"set\":{\"TZ\":\"UTC\"}}";
  EXPECT_EQ(RunInJail(host_, jail_, {"environ"}).out, "ok HOME PATH TMPDIR TZ\n");
  EXPECT_EQ(RunInJail(host_, jail_, {"env", "TZ"}).out, "ok UTC\n");
  const std::string out = RunInJail(host_, jail_, {"env", "HOME"}).out;
  ASSERT_THAT(out, StartsWith("ok /tmp/bulkhead-"));
  const std::string home = out.substr(3, out.size() - 4);
  EXPECT_FALSE(Exists(home)) << "it is thrown away at the end";
}

TEST_F(PosixTest, NothingButStdioIsInherited) {
  const UniqueFd open_for_all(open("/dev/null", O_RDONLY));
  const UniqueFd high(fcntl(open_for_all.get(), F_DUPFD, 500));
  ASSERT_TRUE(high.valid());
  const Outcome fds = RunInJail(host_, jail_, {"fds"});
  EXPECT_THAT(fds.out, HasSubstr("ok 3\n")) << fds;
}

TEST_F(PosixTest, SignalsAreAtTheirDefault) {
  const Outcome outside_control = RunOutside(host_, {"signals"});
  ASSERT_THAT(outside_control.out, HasSubstr("ok"));
  struct sigaction ignore = {}, old;
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(sigaction(SIGUSR1, &ignore, &old), 0);
  const std::string with_ignored = RunInJail(host_, jail_, {"signals"}).out;
  sigaction(SIGUSR1, &old, nullptr);
  EXPECT_EQ(with_ignored, RunInJail(host_, jail_, {"signals"}).out);
}

TEST_F(PosixTest, OpenFilesAreLimited) {
  const auto limited = [this](int limit) {
    jail_.limits = absl::StrCat("\"open_files\":", limit);
    return RunInJail(host_, jail_, {"limit", "NOFILE"}).out;
  };
  EXPECT_THAT(limited(64), HasSubstr("64"));
  EXPECT_THAT(limited(65), HasSubstr("65"));
}

TEST_F(PosixTest, MemoryIsLimited) {
  const std::string limit = absl::StrCat(64 << 20), below = absl::StrCat(56 << 20);
  ASSERT_THAT(RunInJail(host_, jail_, {"memory", limit}), Succeeded());
  jail_.limits = "\"memory\": \"64MiB\"";
  EXPECT_THAT(RunInJail(host_, jail_, {"memory", below}), Succeeded());
  const Outcome outcome = RunInJail(host_, jail_, {"memory", limit});
  EXPECT_THAT(outcome, DeniedWith(ENOMEM));
  EXPECT_THAT(outcome.report.layers[5].does, HasSubstr("67108864 bytes of memory a process"));
  EXPECT_THAT(outcome.report.layers[5].does_not, Not(HasSubstr("memory is not limited")));
}

TEST_F(PosixTest, StartedAsRootTheServerIsTheAccount) {
  if (!IsRoot()) return;  // there is nobody else to become
  EXPECT_THAT(RunInJail(host_, jail_, {"ids"}).out, HasSubstr("65534"));
  jail_.user = "auto";
  EXPECT_THAT(RunInJail(host_, jail_, {"ids"}), RefusedSaying("name an account"));
  jail_.user = "root";
  EXPECT_FALSE(RunInJail(host_, jail_, {"ids"}).launched.ok());
}

TEST_F(PosixTest, WhatItCannotEnforceIsRefused) {
  Jail jail = jail_;
  ASSERT_THAT(RunInJail(host_, jail, {"exit", "0"}), testing::Field(&Outcome::launched, absl::OkStatus()));
  jail.tier = policy::Tier::kA;
  EXPECT_THAT(RunInJail(host_, jail, {"exit", "0"}), RefusedSaying("can't give tier A"));
  jail.tier = policy::Tier::kB;
  EXPECT_THAT(RunInJail(host_, jail, {"exit", "0"}), RefusedSaying("can't give tier B"));
  jail = jail_;
  jail.network = "none";
  EXPECT_THAT(RunInJail(host_, jail, {"exit", "0"}), RefusedSaying("can't keep a server from the network"));
  jail = jail_;
  jail.rw = {host_.Folder("work")};
  ASSERT_TRUE(RunInJail(host_, jail, {"exit", "0"}).launched.ok());
  jail.protect = {host_.Folder("work/.git")};
  EXPECT_THAT(RunInJail(host_, jail, {"exit", "0"}), RefusedSaying("/filesystem/protect"));
  jail.protect = {};
  jail.hide = {host_.File("work/.env", "x")};
  EXPECT_THAT(RunInJail(host_, jail, {"exit", "0"}), RefusedSaying("/filesystem/hide"));
  jail = jail_;
  jail.more += ",\"env\":{\"secret\":{\"A\":{\"env\":\"PATH\"}}}";
  EXPECT_THAT(RunInJail(host_, jail, {"exit", "0"}), RefusedSaying("/env/secret"));
  jail = jail_;
  jail.more += absl::StrCat(",\"command\":{\"sha256\":{\"/bin/sh\":\"", std::string(64, '0'), "\"}}");
  EXPECT_THAT(RunInJail(host_, jail, {"exit", "0"}), RefusedSaying("/command/sha256"));
  jail = jail_;
  jail.more += ",\"syscalls\":{\"profile\":\"strict\"}";
  EXPECT_THAT(RunInJail(host_, jail, {"exit", "0"}), RefusedSaying("/syscalls/profile"));
  jail = jail_;
  jail.more += ",\"syscalls\":{\"deny\":[\"ptrace\"]}";
  EXPECT_THAT(RunInJail(host_, jail, {"exit", "0"}), RefusedSaying("/syscalls/deny"));
  jail = jail_;
  jail.ro = {host_ / "absent"};
  EXPECT_THAT(RunInJail(host_, jail, {"exit", "0"}), RefusedSaying("cannot grant"));
}

TEST_F(PosixTest, TheReportSaysWhatIsNotEnforced) {
  const Outcome key = RunInJail(host_, jail_, {"read", host_.key()});
  EXPECT_THAT(key, Succeeded()) << "tier C keeps no file from the server, and says so";
  std::string words;
  for (const LayerReport& layer : key.report.layers) {
    EXPECT_EQ(layer.state == LayerState::kFull, layer.does_not.empty()) << layer.name;
    absl::StrAppend(&words, layer.does_not, "\n");
  }
  EXPECT_THAT(words, HasSubstr("every file that the user can open"));
  EXPECT_THAT(words, HasSubstr("a process that leaves the group lives on"));
}

TEST_F(PosixTest, ProgramsThatCannotRunSaySo) {
  EXPECT_EQ(RunCommand(host_, jail_, {"no-such-program"}).launched.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(RunCommand(host_, jail_, {host_ / "absent"}).launched.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(RunCommand(host_, jail_, {host_.folder()}), RefusedSaying("is a folder"));
  EXPECT_THAT(RunCommand(host_, jail_, {host_.File("plain", "x", 0644)}), RefusedSaying("not executable"));
  EXPECT_THAT(RunCommand(host_, jail_, {host_.File("script", "#!/no/such/interpreter\n", 0755)}),
              RefusedSaying("interpreter or loader is not there"));
  EXPECT_THAT(RunCommand(host_, jail_, {host_.File("junk", "\x01\x02", 0755)}), RefusedSaying("cannot run"));
  EXPECT_THAT(RunCommand(host_, jail_, {"true"}), testing::Field(&Outcome::launched, absl::OkStatus()));
}

// What the server could have put there is not started in the name of the policy.
TEST_F(PosixTest, ABareNameIsNotTakenFromWhereTheServerWrites) {
  const std::string folder = host_.Folder("bin");
  host_.File("bin/mine", "#!/bin/sh\n", 0755);
  jail_.more += absl::StrCat(",\"env\":{\"set\":{\"PATH\":\"", folder, "\"}}");
  EXPECT_TRUE(RunCommand(host_, jail_, {"mine"}).launched.ok());
  jail_.rw = {folder};
  EXPECT_EQ(RunCommand(host_, jail_, {"mine"}).launched.code(), absl::StatusCode::kNotFound);
}

TEST_F(PosixTest, StderrGoesWhereThePolicySays) {
  const std::string log = host_.Folder("log") + "/err";
  jail_.more += absl::StrCat(",\"stderr\":{\"file\":\"", log, "\"}");
  ASSERT_TRUE(RunCommand(host_, jail_, {"sh", "-c", "echo oops >&2"}).launched.ok());
  EXPECT_EQ(ReadFile(log), "oops\n");
  Jail linked = Portable(absl::StrCat(",\"stderr\":{\"file\":\"", host_.Link("log", "link"), "/err\"}"));
  EXPECT_THAT(RunCommand(host_, linked, {"true"}), RefusedSaying("symbolic link"));
}

TEST_F(PosixTest, StopIsTheLadder) {
  {
    Process process = StartTree(host_, "wait", token_);
    EXPECT_EQ(process.Stop().code, 0) << "the end of stdin is enough";
  }
  Process process = StartTree(host_, "ignore-all", token_);
  const ExitStatus status = process.Stop();
  EXPECT_EQ(status.kind, Kind::kSignaled);
  EXPECT_EQ(status.signal, SIGKILL);
  EXPECT_THAT(Survivors(token_), IsEmpty());
}

TEST_F(PosixTest, TheGroupEndsWithTheServerHoweverThatEnds) {
  for (const char* shape : {"wait", "ignore-all", "stop-self", "orphan-eof"}) {
    SCOPED_TRACE(shape);
    const std::string token = NewToken();
    {
      Process process = StartTree(host_, shape, token);
      ASSERT_THAT(Survivors(token), Not(IsEmpty()));
    }
    EXPECT_THAT(Survivors(token), IsEmpty());
  }
}

// The leader ends at once and leaves a child that holds its stdio.
TEST_F(PosixTest, WhatTheServerLeavesBehindInItsGroupIsKilled) {
  absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail_, {host_.probe(), "leave", token_, "7"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  absl::StatusOr<Process> process = Launch(*plan);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->Wait().code, 7);
  EXPECT_THAT(Survivors(token_), IsEmpty());
}

// The limit of this backend, which its report names.
TEST_F(PosixTest, WhoLeavesTheGroupLivesOn) {
  { Process process = StartTree(host_, "setsid-helper", token_); }
  EXPECT_THAT(Survivors(token_), testing::SizeIs(1));
  EndSurvivors(token_);
}

TEST_F(PosixTest, AsyncWaitAndAsyncStopComplete) {
  asio::io_context io;
  absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail_, {host_.probe(), "ignore-all", token_});
  ASSERT_TRUE(plan.ok()) << plan.status();
  absl::StatusOr<Process> process = Launch(*plan, io.get_executor());
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_THAT(ReadLine(process->stdout_fd().get()), StartsWith("ready"));
  int completed = 0;
  process->AsyncWait([&completed](const ExitStatus& end) { completed += end.signal == SIGKILL; });
  process->AsyncStop([&completed](const ExitStatus& end) { completed += end.signal == SIGKILL; });
  io.run();
  EXPECT_EQ(completed, 2);
}

TEST_F(PosixTest, AHandlerOfADestroyedContextIsDestroyedUncalled) {
  bool called = false;
  {
    std::optional<Process> process;
    {
      asio::io_context io;
      absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail_, {host_.probe(), "wait", token_});
      ASSERT_TRUE(plan.ok()) << plan.status();
      absl::StatusOr<Process> launched = Launch(*plan, io.get_executor());
      ASSERT_TRUE(launched.ok()) << launched.status();
      process = *std::move(launched);
      process->AsyncWait([&called](const ExitStatus&) { called = true; });
    }
    EXPECT_EQ(process->Stop().code, 0);
  }
  EXPECT_FALSE(called);
}

TEST_F(PosixTest, AHostThatLetsTheKernelReapIsRefused) {
  struct sigaction ignore = {}, old;
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(sigaction(SIGCHLD, &ignore, &old), 0);
  EXPECT_THAT(RunInJail(host_, jail_, {"exit", "0"}), RefusedSaying("SIGCHLD"));
  sigaction(SIGCHLD, &old, nullptr);
  EXPECT_TRUE(RunInJail(host_, jail_, {"exit", "0"}).launched.ok());
}

// `bulkhead run`, without the command line: a process of its own that becomes what stands beside the server.
class Runner {
 public:
  Runner(const Host& host, Jail jail, const Words& command, const std::string& report = "") {
    jail.run_mode = true;
    int in[2], out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      // One between, as the host that can be killed.
      const pid_t middle = fork();
      if (middle != 0) {
        close(in[1]), close(out[0]), close(in[0]), close(out[1]);
        int status = 0;
        waitpid(middle, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
      }
      dup2(in[0], 0), dup2(out[1], 1);
      close(in[0]), close(in[1]), close(out[0]), close(out[1]);
      const absl::StatusOr<LaunchPlan> plan = MakePlan(host, jail, command);
      if (plan.ok()) BecomeKeeper(*plan, report).IgnoreError();
      _exit(98);
    }
    close(in[0]), close(out[1]);
    in_.reset(in[1]);
    out_.reset(out[0]);
  }
  UniqueFd& in() { return in_; }
  UniqueFd& out() { return out_; }
  void KillHost() { kill(pid_, SIGKILL); }
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_;
  UniqueFd in_, out_;
};

TEST_F(PosixTest, RunPassesStdioAndCodeThroughAndReports) {
  const std::string report = host_ / "report.json";
  Runner runner(host_, jail_, {"sh", "-c", "read line; echo got $line; exit 7"}, report);
  ASSERT_EQ(write(runner.in().get(), "ping\n", 5), 5);
  EXPECT_EQ(ReadLine(runner.out().get()), "got ping");
  EXPECT_EQ(runner.Wait(), 7);
  const nlohmann::json json = nlohmann::json::parse(ReadFile(report));
  EXPECT_EQ(json["tier"], "C");
  EXPECT_EQ(json["exit"]["code"], 7);
}

TEST_F(PosixTest, RunEndsTheServerWhenTheHostIsKilled) {
  Runner runner(host_, jail_, {host_.probe(), "ignore-all", token_});
  EXPECT_THAT(ReadLine(runner.out().get()), StartsWith("ready"));
  runner.KillHost();
  EXPECT_EQ(runner.Wait(), 137);
  EXPECT_EQ(ReadToEnd(runner.out().get()), "") << "to the end, which comes when nobody holds the pipe";
  EXPECT_THAT(Survivors(token_), IsEmpty());
}

TEST_F(PosixTest, RunEndsTheServerWhenBothPipesAreClosed) {
  Runner runner(host_, jail_, {host_.probe(), "ignore-all", token_});
  EXPECT_THAT(ReadLine(runner.out().get()), StartsWith("ready"));
  runner.in().reset();
  runner.out().reset();
  EXPECT_EQ(runner.Wait(), 137);
  EXPECT_THAT(Survivors(token_), IsEmpty());
}

}  // namespace
}  // namespace bulkhead::launcher
