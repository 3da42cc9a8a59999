// The portable backend, on Linux: what it alone does, what it can't do, and what it therefore refuses. What it shares
// with the other one is in the tests with linux_alone.h.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/launcher/jail_fixture.h"
#include "tests/launcher/survivors.h"
#include "tests/launcher/tree_check.h"

namespace bulkhead::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Kind = ExitStatus::Kind;

Jail Portable(const std::string& more = "") {
  Jail jail = JailFor(Way::kPortable);
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

// What the server could have put there is not started in the name of the policy.
TEST_F(PosixTest, ABareNameIsNotTakenFromWhereTheServerWrites) {
  const std::string folder = host_.Folder("bin");
  host_.File("bin/mine", "#!/bin/sh\n", 0755);
  jail_.more += absl::StrCat(",\"env\":{\"set\":{\"PATH\":\"", folder, "\"}}");
  EXPECT_TRUE(RunCommand(host_, jail_, {"mine"}).launched.ok());
  jail_.rw = {folder};
  EXPECT_EQ(RunCommand(host_, jail_, {"mine"}).launched.code(), absl::StatusCode::kNotFound);
}

// The limit of this backend, which its report names, and the reason of entries in linux_alone.h.
TEST_F(PosixTest, WhoLeavesTheGroupLivesOn) {
  const std::pair<const char*, std::size_t> kShapes[] = {{"setsid-helper", 1}, {"daemon", 1}, {"tree-forever", 2}};
  for (const auto& [shape, left] : kShapes) {
    SCOPED_TRACE(shape);
    const std::string token = NewToken();
    { Process process = StartTree(host_, shape, token); }
    EXPECT_THAT(Survivors(token), testing::SizeIs(left));
    EndSurvivors(token);
  }
}

TEST_F(PosixTest, AHostThatLetsTheKernelReapIsRefused) {
  struct sigaction ignore = {}, old;
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(sigaction(SIGCHLD, &ignore, &old), 0);
  EXPECT_THAT(RunInJail(host_, jail_, {"exit", "0"}), RefusedSaying("SIGCHLD"));
  sigaction(SIGCHLD, &old, nullptr);
  EXPECT_TRUE(RunInJail(host_, jail_, {"exit", "0"}).launched.ok());
}

}  // namespace
}  // namespace bulkhead::launcher
