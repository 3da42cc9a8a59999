// No process of a server's tree is left, whatever shape it has and however it ends. Real plans from policy text, real
// launches, in tiers A and B, and with the portable backend. What a host is told is tested in process_test.cc.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tests/launcher/jail_fixture.h"
#include "tests/launcher/linux_alone.h"
#include "tests/launcher/survivors.h"
#include "tests/launcher/tree_check.h"

namespace bulkhead::launcher {
namespace {

using testing::IsEmpty;
using testing::StartsWith;

constexpr int kCycles = 20;
constexpr int kHangMilliseconds = 30000;  // no test is meant to come near it: it ends one that hangs

enum class Ending { kStop, kHostKilled, kKeeperKilled, kInitKilled };
constexpr Ending kEndings[] = {Ending::kStop, Ending::kHostKilled, Ending::kKeeperKilled, Ending::kInitKilled};
std::string NameOf(Ending ending) {
  switch (ending) {
    case Ending::kStop:
      return "Stop";
    case Ending::kHostKilled:
      return "HostKilled";
    case Ending::kKeeperKilled:
      return "KeeperKilled";
    case Ending::kInitKilled:
      return "InitKilled";
  }
  return "";
}

bool Ends(int pidfd, int milliseconds) {
  pollfd poll_fd = {pidfd, POLLIN, 0};
  return poll(&poll_fd, 1, milliseconds) == 1;
}

void WriteText(const std::string& path, const std::string& text) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size())) << path;
}

char StateOf(int pid) {
  const std::string stat = ReadWholeFile(absl::StrCat("/proc/", pid, "/stat"));
  const std::string::size_type end = stat.rfind(')');
  return end == std::string::npos ? 'X' : stat[end + 2];
}

// A process of its own that launches one server and waits for its end, as a host does. It can be killed.
class LaunchingHost {
 public:
  enum class As { kOurselves, kPerson };

  LaunchingHost(const Host& host, const Jail& jail, const Words& command, As as = As::kOurselves) {
    int to[2], from[2];
    EXPECT_EQ(pipe2(to, O_CLOEXEC) | pipe2(from, O_CLOEXEC), 0);
    pid_ = fork();
    EXPECT_GE(pid_, 0);
    if (pid_ == 0) {
      close(to[1]);
      close(from[0]);
      Live(host, jail, command, as, to[0], from[1]);
    }
    to_.reset(to[1]);
    from_.reset(from[0]);
    close(to[0]);
    close(from[1]);
    first_line_ = ReadLine(from_.get());
  }

  int pid() const { return pid_; }
  // Of the server's stdout; or why there is none.
  const std::string& first_line() const { return first_line_; }
  int keeper() const { return OnlyChildOf(pid_); }  // with the portable backend the server itself
  int init() const { return OnlyChildOf(keeper()); }

  void AskToStop() { EXPECT_EQ(write(to_.get(), "s", 1), 1); }
  // What the server's end looks like to the host; empty if it was killed.
  std::string WaitForTheEnd() {
    std::string end = ReadLine(from_.get());
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    return end;
  }

 private:
  static int OnlyChildOf(int pid) {
    const std::vector<int> children = ChildrenOf(pid);
    EXPECT_EQ(children.size(), 1u);
    return children.empty() ? 0 : children[0];
  }

  static void Say(int fd, const std::string& line) {
    if (write(fd, (line + "\n").data(), line.size() + 1) < 0) _exit(3);
  }

  [[noreturn]] static void Live(const Host& host, const Jail& jail, const Words& command, As as, int in, int out) {
    const uid_t person = host.person();
    if (as == As::kPerson && IsRoot() &&
        (setgroups(0, nullptr) != 0 || setresgid(person, person, person) != 0 ||
         setresuid(person, person, person) != 0)) {
      _exit(3);
    }
    const absl::StatusOr<LaunchPlan> plan = MakePlan(host, jail, command);
    if (!plan.ok()) {
      Say(out, plan.status().ToString());
      _exit(1);
    }
    absl::StatusOr<Process> process = Launch(*plan);
    if (!process.ok()) {
      Say(out, process.status().ToString());
      _exit(1);
    }
    Say(out, ReadLine(process->stdout_fd().get()));
    pollfd polls[2] = {{in, POLLIN, 0}, {process->pidfd(), POLLIN, 0}};
    poll(polls, 2, -1);
    const ExitStatus end = polls[0].revents != 0 ? process->Stop() : process->Wait();
    Say(out, end.ToString());
    _exit(0);
  }

  pid_t pid_ = -1;
  UniqueFd to_, from_;
  std::string first_line_;
};

// A grace that a tree is to survive is short; one that it is to end in is so long that it can't run out.
constexpr char kShort[] = "50ms", kLong[] = "10m";
Jail WithGraces(Way way, const std::string& stdin_grace, const std::string& term_grace) {
  Jail jail = JailFor(way);
  jail.more = absl::StrCat(R"(,"timeouts":{"stdin_grace":")", stdin_grace, R"(","term_grace":")", term_grace, R"("})");
  return jail;
}
Jail ShortGraces(Way way) { return WithGraces(way, kShort, kShort); }

// Ends the tree of a host that has one, looks for what is left, and gives back what the host was told.
std::string End(LaunchingHost& host, Ending ending, const std::string& token, Way way) {
  const int keeper = host.keeper();
  const UniqueFd keeper_fd(static_cast<int>(syscall(SYS_pidfd_open, keeper, 0)));
  EXPECT_TRUE(keeper_fd.valid());
  switch (ending) {
    case Ending::kStop:
      host.AskToStop();
      break;
    case Ending::kHostKilled:
      EXPECT_EQ(kill(host.pid(), SIGKILL), 0);
      break;
    case Ending::kKeeperKilled:
      EXPECT_EQ(kill(-keeper, SIGKILL), 0);  // with all of its group, which the init must not be in
      break;
    case Ending::kInitKilled:
      EXPECT_EQ(kill(host.init(), SIGKILL), 0);
      break;
  }
  std::string end = host.WaitForTheEnd();
  EXPECT_TRUE(Ends(keeper_fd.get(), kHangMilliseconds));
  EXPECT_THAT(Survivors(token), IsEmpty());
  // Whoever dies without its parent has become ours, and only we can reap it. Else everyone was reaped by their own.
  const bool reaped = way != Way::kPortable && (ending == Ending::kStop || ending == Ending::kInitKilled);
  EXPECT_TRUE(reaped ? !HasChildren() : OnlyZombiesWereLeft());
  return end;
}

class TreeFixture : public testing::Test {
 protected:
  static void SetUpTestSuite() { AdoptOrphans(); }
  void TearDown() override {
    EXPECT_FALSE(HasChildren());
    EndLeftovers();
  }
  Host host_;
};

// ---- Every shape, every ending

struct Shape {
  const char* name;
  Words words;           // of the probe; the token comes last
  const char* stop_end;  // what Stop gives back
  std::size_t processes;
  const char *stdin_grace, *term_grace;
};
std::ostream& operator<<(std::ostream& stream, const Shape& shape) { return stream << shape.name; }

using Case = std::tuple<Way, Ending, Shape>;
class TreeTest : public TreeFixture, public testing::WithParamInterface<Case> {};

TEST_P(TreeTest, NothingIsLeft) {
  const auto& [way, ending, shape] = GetParam();
  const Jail jail = WithGraces(way, shape.stdin_grace, shape.term_grace);
  for (int cycle = 0; cycle < kCycles && !HasFailure(); ++cycle) {
    const std::string token = NewToken();
    Words command = {host_.probe()};
    for (const std::string& word : shape.words) command.push_back(word == "PROBE" ? host_.probe() : word);
    command.push_back(token);
    LaunchingHost host(host_, jail, command);
    ASSERT_THAT(host.first_line(), StartsWith("ready "));
    const std::vector<int> tree = Survivors(token);
    ASSERT_EQ(tree.size(), shape.processes);
    if (shape.words[0] == "stop-self") {
      while (StateOf(tree[0]) != 'T') sched_yield();
    }
    const std::string end = End(host, ending, token, way);
    switch (ending) {
      case Ending::kStop:
        EXPECT_EQ(end, shape.stop_end);
        break;
      case Ending::kHostKilled:
        EXPECT_EQ(end, "");
        break;
      case Ending::kKeeperKilled:
        EXPECT_EQ(end, "ended because its keeper was killed; its own status is not known");
        break;
      case Ending::kInitKilled:
        EXPECT_EQ(end, "killed by signal 9 (SIGKILL)");
        break;
    }
  }
}

const Shape kShapes[] = {{"FourWrappers", {"wrap", "4", "PROBE", "wait"}, "exited with code 0", 5, kLong, kLong},
                         {"SetsidHelper", {"setsid-helper"}, "exited with code 0", 2, kLong, kLong},
                         {"Daemon", {"daemon"}, "exited with code 0", 2, kLong, kLong},
                         {"IgnoresAll", {"group-forever"}, "killed by signal 9 (SIGKILL)", 3, kShort, kShort},
                         {"Stopped", {"stop-self"}, "killed by signal 15 (SIGTERM)", 1, kShort, kLong}};

std::vector<Case> AllCases() {
  std::vector<Case> cases;
  for (const Way way : {Way::kTierA, Way::kTierB, Way::kPortable}) {
    for (const Ending ending : kEndings) {
      for (const Shape& shape : kShapes) {
        const std::string test = absl::StrCat("TreeTest.NothingIsLeft/", NameOf(ending), shape.name);
        if (way != Way::kPortable || WhyLinuxAlone(test) == nullptr) cases.emplace_back(way, ending, shape);
      }
    }
  }
  return cases;
}

std::string NameOf(const testing::TestParamInfo<Case>& info) {
  const auto& [way, ending, shape] = info.param;
  return absl::StrCat(way == Way::kPortable ? "" : "Tier", NameOf(way), NameOf(ending), shape.name);
}
INSTANTIATE_TEST_SUITE_P(, TreeTest, testing::ValuesIn(AllCases()), [](const auto& info) { return NameOf(info); });

// ---- A server that leaves something behind

class EndTest : public TreeFixture, public testing::WithParamInterface<Way> {};
INSTANTIATE_TEST_SUITE_P(, EndTest, testing::Values(Way::kTierA, Way::kTierB, Way::kPortable),
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(EndTest, AServerThatLeavesASleeperIsNoticedWithinASecond) {
  const std::string seconds = absl::StrCat("999.", getpid());  // the sleeper's token
  const std::string script = absl::StrCat("sleep ", seconds, " & exit 7");
  const int outside = system(script.c_str());
  ASSERT_EQ(WEXITSTATUS(outside), 7);
  ASSERT_FALSE(OnlyZombiesWereLeft()) << "without a jail the sleeper lives on";
  EndLeftovers();

  const absl::StatusOr<LaunchPlan> plan = MakePlan(host_, ShortGraces(GetParam()), {"/bin/sh", "-c", script});
  ASSERT_TRUE(plan.ok()) << plan.status();
  absl::StatusOr<Process> process = Launch(*plan);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_TRUE(Ends(process->pidfd(), 1000));
  EXPECT_EQ(process->Wait().ToString(), "exited with code 7");
  EXPECT_THAT(Survivors(seconds), IsEmpty());
  EXPECT_TRUE(GetParam() != Way::kPortable || OnlyZombiesWereLeft());  // the sleeper, which nobody else reaps
}

// An npx passes nothing on to the server behind it: that one has to hear of its end by itself.
TEST_P(EndTest, SigtermReachesAllOfTheTree) {
  const std::string script =
      "$| = 1; $SIG{TERM} = 'IGNORE';"
      "if (fork == 0) { $SIG{TERM} = sub { print \"term\\n\"; exit 0 }; print \"ready\\n\"; sleep 99; exit 1 }"
      "wait; exit 3";
  const absl::StatusOr<LaunchPlan> plan =
      MakePlan(host_, WithGraces(GetParam(), kShort, "10s"), {"/usr/bin/perl", "-e", script});
  ASSERT_TRUE(plan.ok()) << plan.status();
  absl::StatusOr<Process> process = Launch(*plan);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(ReadLine(process->stdout_fd().get()), "ready");
  EXPECT_EQ(process->Stop().ToString(), "exited with code 3");
  EXPECT_EQ(ReadLine(process->stdout_fd().get()), "term");
}

// Runs `f` as PID 1 of a process id namespace, where nobody else takes pids and the next one can be chosen (proc(5),
// ns_last_pid), and gives its exit code.
int InOwnPidNamespace(const std::function<int()>& f) {
  const pid_t outside = fork();
  if (outside == 0) {
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    if (unshare(CLONE_NEWPID | CLONE_NEWNS | (uid == 0 ? 0 : CLONE_NEWUSER)) != 0) _exit(101);
    if (uid != 0) {
      WriteText("/proc/self/setgroups", "deny");
      WriteText("/proc/self/uid_map", absl::StrCat(uid, " ", uid, " 1"));
      WriteText("/proc/self/gid_map", absl::StrCat(gid, " ", gid, " 1"));
    }
    const pid_t first = fork();
    if (first == 0) {
      const bool mounted = mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                           mount("proc", "/proc", "proc", 0, nullptr) == 0;
      _exit(mounted ? f() : 102);
    }
    int status = 0;
    waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 103);
  }
  int status = 0;
  waitpid(outside, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 104;
}

TEST_P(EndTest, ARecycledPidIsNeverSignalled) {
  const auto stranger_lives = [&]() -> int {
    const absl::StatusOr<LaunchPlan> plan =
        MakePlan(host_, WithGraces(GetParam(), kLong, kLong), {host_.probe(), "wait", NewToken()});
    if (!plan.ok()) return 1;
    absl::StatusOr<Process> process = Launch(*plan);
    if (!process.ok()) return 2;
    const std::vector<int> children = ChildrenOf(getpid());
    if (children.size() != 1) return 5;
    const int keeper = children[0];  // with the portable backend the server itself
    process->Stop();
    WriteText("/proc/sys/kernel/ns_last_pid", absl::StrCat(keeper - 1));
    const pid_t stranger = fork();
    if (stranger == 0) {
      for (;;) pause();
    }
    if (stranger != keeper) return 3;  // the control: it has the number that the other had
    process->Kill();
    process->Stop();
    process = absl::CancelledError("destroys the Process");
    siginfo_t ended = {};
    const bool lives = waitid(P_PID, stranger, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
    kill(stranger, SIGKILL);
    waitpid(stranger, nullptr, 0);
    return lives ? 0 : 4;
  };
  EXPECT_EQ(InOwnPidNamespace(stranger_lives), 0);
}

// ---- A server that attacks those who end it

class AttackTest : public TreeFixture, public testing::WithParamInterface<std::tuple<Ending, int>> {};

// In tier B keeper and jail init are processes of the same user, with numbers that the server can see.
TEST_P(AttackTest, NeitherKeeperNorInitCanBeSignalledOrBlinded) {
  const auto& [ending, landlock_abi] = GetParam();
  Jail jail = ShortGraces(Way::kTierB);
  jail.landlock_abi = landlock_abi;
  const std::string token = NewToken();
  const std::string script = absl::StrCat(
      "exec 2>/dev/null\n"
      "sleep 999 & kill -STOP $! || echo cannot stop a child\n"
      "kill -KILL $! || echo cannot kill a child\n"
      "read -r pid name state keeper rest </proc/$PPID/stat || echo cannot find the keeper\n"
      "[ \"$name\" = '(bulkhead-init)' ] || echo \"the parent is $name\"\n"
      "for pid in $PPID $keeper; do\n"
      "  for signal in KILL STOP TERM INT HUP QUIT CHLD 0; do\n"
      "    kill -$signal $pid && echo \"kill -$signal $pid\"\n"
      "    kill -$signal -$pid && echo \"kill -$signal -$pid\"\n"
      "  done\n"
      "  prlimit --pid $pid --nofile=0:0 && echo \"prlimit $pid\"\n"
      "done\n"
      "kill -KILL -1\n"
      "exec ",
      host_.probe(), " tree-forever ", token);
  LaunchingHost host(host_, jail, {"/bin/sh", "-c", script}, LaunchingHost::As::kPerson);
  ASSERT_THAT(host.first_line(), StartsWith("ready ")) << "else an attack that succeeded, or what it lacks";
  ASSERT_EQ(Survivors(token).size(), 3u);
  for (const int pid : {host.keeper(), host.init()}) {
    const std::string process = absl::StrCat("/proc/", pid);
    EXPECT_EQ(StateOf(pid), 'S');
    EXPECT_THAT(ReadWholeFile(process + "/status"), testing::HasSubstr(absl::StrCat("\nUid:\t", host_.person(), "\t")));
  }
  const std::string end = End(host, ending, token, Way::kTierB);
  if (ending == Ending::kStop) {
    EXPECT_EQ(end, "killed by signal 9 (SIGKILL)");
  }
}

INSTANTIATE_TEST_SUITE_P(, AttackTest,
                         testing::Combine(testing::ValuesIn(kEndings),
                                          testing::Values(-1, 5)),  // 5: a kernel whose Landlock knows no signals
                         [](const auto& info) {
                           return absl::StrCat(NameOf(std::get<0>(info.param)),
                                               std::get<1>(info.param) < 0 ? "" : "LandlockAbi5");
                         });

}  // namespace
}  // namespace bulkhead::launcher
