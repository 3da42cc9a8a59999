// `bulkhead run`, the real command: what passes through it, what ends a server and what doesn't. In tiers A and B; tier
// B is what is left where user namespaces are refused, which tests/programs/deny.cc imitates. And as it is on systems
// that have the portable backend alone, without kqueue and with.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/host_behind.h"
#include "nlohmann/json.hpp"
#include "tests/launcher/jail_fixture.h"
#include "tests/launcher/linux_alone.h"
#include "tests/launcher/survivors.h"
#include "tests/launcher/tree_check.h"

namespace bulkhead::launcher {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

constexpr int kHangMilliseconds = 30000;  // no test is meant to come near it: it ends one that hangs
// Graces, in the policy's words: so short that a ladder that has begun is soon at its end, and so long that the test
// would hang in them.
constexpr char kShort[] = "5ms", kLong[] = "10m";
constexpr int kManyShortGracesMilliseconds = 100;

// How a host and a server are joined. Node's hosts use sockets, one for each of stdin and stdout.
enum class Wiring { kPipes, kSocketPairs, kOneSocket, kNullStdin };

// A program that runs, with our ends of its stdio.
class Program {
 public:
  static constexpr pid_t kOurGroup = -1, kNewGroup = 0;

  Program(Words argv, Wiring wiring, pid_t group = kOurGroup) {
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err_pair[2];
    EXPECT_EQ(pipe2(err_pair, O_CLOEXEC), 0);
    switch (wiring) {
      case Wiring::kPipes:
        EXPECT_EQ(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
        break;
      case Wiring::kSocketPairs:
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in), 0);
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
        std::swap(out[0], out[1]);
        break;
      case Wiring::kOneSocket:
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in), 0);
        out[0] = fcntl(in[1], F_DUPFD_CLOEXEC, 0);
        out[1] = fcntl(in[0], F_DUPFD_CLOEXEC, 0);
        break;
      case Wiring::kNullStdin:
        in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
        break;
    }
    std::vector<char*> words;
    for (std::string& word : argv) words.push_back(word.data());
    words.push_back(nullptr);
    pid_ = fork();
    EXPECT_GE(pid_, 0);
    if (pid_ == 0) {
      if (chdir("/") != 0 || (group != kOurGroup && setpgid(0, group) != 0)) _exit(3);
      dup2(in[0], 0);
      dup2(out[1], 1);
      dup2(err_pair[1], 2);
      execv(words[0], words.data());
      _exit(3);
    }
    for (const int fd : {in[0], out[1], err_pair[1]}) close(fd);
    in_.reset(in[1]);
    out_.reset(out[0]);
    err_.reset(err_pair[0]);
    pidfd_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  }

  int pid() const { return pid_; }
  UniqueFd& in() { return in_; }
  UniqueFd& out() { return out_; }
  UniqueFd& err() { return err_; }

  void Write(const std::string& text) {
    EXPECT_EQ(write(in_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void Signal(int signal) { EXPECT_EQ(kill(pid_, signal), 0); }
  bool EndsWithin(int milliseconds) {
    pollfd poll_fd = {pidfd_.get(), POLLIN, 0};
    return poll(&poll_fd, 1, milliseconds) == 1;
  }
  // As a shell shows it. Checks that nothing was written to stderr, by us or by the server.
  int Wait() {
    const int code = WaitUnread();
    EXPECT_EQ(ReadToEnd(err_.get()), "");
    return code;
  }
  int WaitUnread() {
    if (!EndsWithin(kHangMilliseconds)) {
      ADD_FAILURE() << "it does not end";
      kill(pid_, SIGKILL);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_ = -1;
  UniqueFd in_, out_, err_, pidfd_;
};

struct Build {
  const char* name;
  Way way;
  const char* command;  // as Bazel calls it
};
constexpr Build kBuilds[] = {{"A", Way::kTierA, "cli/bulkhead"},
                             {"B", Way::kTierB, "cli/bulkhead"},
                             {"Portable", Way::kPortable, "tests/launcher/bulkhead_portable"},
                             {"PortableKqueue", Way::kPortable, "tests/launcher/bulkhead_kqueue"}};
std::ostream& operator<<(std::ostream& stream, const Build& build) { return stream << build.name; }

class RunTest : public testing::TestWithParam<Build> {
 protected:
  static bool Portable() { return GetParam().way == Way::kPortable; }
  static void SetUpTestSuite() {
    AdoptOrphans();
    signal(SIGPIPE, SIG_IGN);
  }
  void TearDown() override {
    EXPECT_TRUE(Portable() ? OnlyZombiesWereLeft() : !HasChildren());  // without a keeper nobody else reaps orphans
    EndLeftovers();
  }

  // The words that run `server` in the tier of this test.
  Words Run(const Words& server, const char* grace) const {
    const Jail jail = JailFor(GetParam().way);
    const std::string policy = host_.File(
        "policy.json",
        absl::StrCat(R"({"version":1,"require":")", std::string(policy::TierName(jail.tier)), R"(","user":")",
                     IsRoot() ? "nobody" : "auto", R"(","network":{"mode":")", jail.network,
                     R"("},"filesystem":{"rx":[":runtime",")", host_ / "tools", R"("],"rw":[")", host_.Folder("work"),
                     R"("]},"timeouts":{"stdin_grace":")", grace, R"(","term_grace":")", grace, R"("}})"));
    Words words = {TestData(GetParam().command), "run",      "--policy", policy, "--cwd",
                   host_.Folder("work"),         "--report", report(),   "--"};
    if (GetParam().way == Way::kTierB) words.insert(words.begin(), {TestData("tests/programs/deny"), "--userns"});
    words.insert(words.end(), server.begin(), server.end());
    return words;
  }
  // The probe, joined by `wiring`, once it is ready.
  Program StartProbe(Words words, const char* grace, Wiring wiring = Wiring::kPipes,
                     pid_t group = Program::kOurGroup) const {
    words.insert(words.begin(), host_.probe());
    Program program(Run(words, grace), wiring, group);
    EXPECT_THAT(ReadLine(program.out().get()), StartsWith("ready "));
    return program;
  }
  // Three processes that ignore everything.
  static const char* Forever() { return Portable() ? "group-forever" : "tree-forever"; }
  std::string report() const { return host_ / "report.json"; }
  nlohmann::json Report() const { return nlohmann::json::parse(ReadFile(report()), nullptr, false); }

  // The ladder has not begun: it would be at its end.
  static void ExpectNothingEnds(Program& program) { EXPECT_FALSE(program.EndsWithin(kManyShortGracesMilliseconds)); }

  Host host_;
};

INSTANTIATE_TEST_SUITE_P(, RunTest, testing::ValuesIn(kBuilds), [](const auto& info) { return info.param.name; });

// ---- What passes

TEST_P(RunTest, InputFromAPipeIsAnsweredBeforeAnythingIsEnded) {
  // More than a page of lines, all written and the writer gone before the server runs.
  std::string command = "printf '%0512d\\n' $(seq 100) |";
  for (const std::string& word : Run({host_.probe(), "echo", "x"}, kShort)) absl::StrAppend(&command, " '", word, "'");
  Program shell({"/bin/sh", "-c", command}, Wiring::kNullStdin);
  const std::string out = ReadToEnd(shell.out().get());
  EXPECT_EQ(out.size(), out.find('\n') + 1 + 100 * 513);
  EXPECT_EQ(shell.Wait(), 0);
}

TEST_P(RunTest, AServerMayTakeItsTimeAfterTheEndOfStdin) {
  const std::string go = host_.Folder("work") + "/go";
  ASSERT_EQ(mkfifo(go.c_str(), 0666) | chmod(go.c_str(), 0666), 0);
  for (const Wiring wiring : {Wiring::kPipes, Wiring::kSocketPairs}) {
    Program run(Run({"/bin/sh", "-c", absl::StrCat("cat; read -r x <", go, "; echo $x")}, kShort), wiring);
    run.Write("one\n");
    run.in().reset();
    EXPECT_EQ(ReadLine(run.out().get()), "one");
    ExpectNothingEnds(run);
    const UniqueFd fifo(open(go.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(write(fifo.get(), "two\n", 4), 4);
    EXPECT_EQ(ReadToEnd(run.out().get()), "two\n");
    EXPECT_EQ(run.Wait(), 0);
  }
}

TEST_P(RunTest, TheExitCodeIsWhatAShellShows) {
  EXPECT_EQ(Program(Run({host_.probe(), "exit", "7"}, kShort), Wiring::kPipes).Wait(), 7);
  EXPECT_EQ(Program(Run({host_.probe(), "exit", "255"}, kShort), Wiring::kPipes).Wait(), 255);
  for (const int signal : {SIGTERM, SIGKILL, SIGHUP}) {
    const Words server = {host_.probe(), "raise", std::to_string(signal)};
    EXPECT_EQ(Program(Run(server, kShort), Wiring::kPipes).Wait(), 128 + signal);
    EXPECT_EQ(Report()["exit"], nlohmann::json({{"signal", signal}}));
  }
}

TEST_P(RunTest, TheReportIsJsonWithTheTierAndTheEnd) {
  EXPECT_EQ(Program(Run({host_.probe(), "exit", "7"}, kShort), Wiring::kPipes).Wait(), 7);
  nlohmann::json report = Report();
  ASSERT_TRUE(report.is_object()) << ReadFile(this->report());
  EXPECT_EQ(report["tier"], Portable() ? "C" : GetParam().name);
  EXPECT_EQ(report["exit"], nlohmann::json({{"code", 7}}));
  EXPECT_GT(report["usage"]["max_resident_bytes"], 0);
  EXPECT_TRUE(report["usage"]["user_us"].is_number_unsigned());
  EXPECT_TRUE(report["usage"]["system_us"].is_number_unsigned());
}

// Our note after a failed server must not wait for a reader: nothing but SIGKILL would end us then.
TEST_P(RunTest, AStderrThatNobodyReadsDoesNotKeepUsFromEnding) {
  const auto fails = [&](const std::string& first) {
    return Program(Run({"/usr/bin/perl", "-e", first + "exit 3", host_.key()}, kShort), Wiring::kPipes);
  };
  Program control = fails("");
  EXPECT_EQ(control.WaitUnread(), 3);
  const std::string note = ReadToEnd(control.err().get());
  EXPECT_THAT(note, HasSubstr(Portable() ? "" : "names a file that the server can't see"));
  EXPECT_EQ(fails("use Fcntl; fcntl(STDERR, F_SETFL, O_NONBLOCK); 1 while syswrite(STDERR, 'x' x 4096);"
                  "1 while syswrite(STDERR, 'x'); fcntl(STDERR, F_SETFL, 0);")
                .WaitUnread(),
            3);
}

// ---- When the host is gone

TEST_P(RunTest, TheHostIsGoneWhenNobodyWritesAndNobodyReads) {
  const auto close_in = [](Program& run) { run.in().reset(); };
  const auto close_out = [](Program& run) { run.out().reset(); };
  const auto shut_in = [](Program& run) { EXPECT_EQ(shutdown(run.in().get(), SHUT_WR), 0); };
  const auto close_both = [](Program& run) {
    run.in().reset();
    run.out().reset();
  };
  const struct {
    const char* name;
    Wiring wiring;
    std::function<void(Program&)> first, second;
  } kWays[] = {
      {"pipes, stdin first", Wiring::kPipes, close_in, close_out},
      {"pipes, stdout first", Wiring::kPipes, close_out, close_in},
      {"sockets, stdin first", Wiring::kSocketPairs, close_in, close_out},
      {"sockets, stdout first", Wiring::kSocketPairs, close_out, close_in},
      {"sockets, stdin shut down first", Wiring::kSocketPairs, shut_in, close_out},
      {"sockets, stdin shut down last", Wiring::kSocketPairs, close_out, shut_in},
      {"one socket", Wiring::kOneSocket, shut_in, close_both},
  };
  for (const auto& way : kWays) {
    SCOPED_TRACE(way.name);
    const std::string token = NewToken();
    Program run = StartProbe({"ignore-all", token}, kShort, way.wiring);
    way.first(run);
    ExpectNothingEnds(run);
    EXPECT_THAT(Survivors(token), Not(IsEmpty()));
    way.second(run);
    EXPECT_EQ(run.Wait(), 128 + SIGKILL);
    EXPECT_THAT(Survivors(token), IsEmpty());
  }
}

TEST_P(RunTest, StdinFromDevNullIsNoHostThatIsGone) {
  Program run = StartProbe({"ignore-all", NewToken()}, kShort, Wiring::kNullStdin);
  ExpectNothingEnds(run);
  run.out().reset();
  ExpectNothingEnds(run);
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), 128 + SIGKILL);
}

TEST_P(RunTest, AKilledHostsTreeEnds) {
  // With stdin from /dev/null nothing hangs up: the death of the parent alone is seen.
  for (const Wiring wiring : {Wiring::kPipes, Wiring::kSocketPairs, Wiring::kNullStdin}) {
    for (const char* shape : {"wait", "group-forever", "tree-forever"}) {
      if (Portable() && !AlsoPortable(shape)) continue;
      const std::string token = NewToken();
      int pair[2];
      ASSERT_EQ(pipe2(pair, O_CLOEXEC), 0);
      const pid_t host = fork();
      if (host == 0) {
        Program run = StartProbe({shape, token}, kShort, wiring);
        if (write(pair[1], "up\n", 3) != 3) _exit(3);
        while (true) pause();
      }
      close(pair[1]);
      EXPECT_EQ(ReadLine(pair[0]), "up");
      close(pair[0]);
      const std::vector<int> children = ChildrenOf(host);
      ASSERT_THAT(children, SizeIs(1));
      const UniqueFd keeper(static_cast<int>(syscall(SYS_pidfd_open, children[0], 0)));
      if (wiring != Wiring::kNullStdin || std::string(shape) != "wait") {  // whose stdin is at its end from the start
        EXPECT_THAT(Survivors(token), Not(IsEmpty()));
      }
      ASSERT_EQ(kill(host, SIGKILL), 0);
      ASSERT_EQ(waitpid(host, nullptr, 0), host);
      pollfd poll_fd = {keeper.get(), POLLIN, 0};
      EXPECT_EQ(poll(&poll_fd, 1, kHangMilliseconds), 1);
      EXPECT_THAT(Survivors(token), IsEmpty());
      EXPECT_TRUE(OnlyZombiesWereLeft());
    }
  }
}

// A server that opens the host's ends of its pipes hides that the host is gone: no pipe hangs up. Where the host
// started us, its death is seen; where a shell or a package runner is between, it is found by its ends of the pipes.
TEST_P(RunTest, AKilledHostIsMissedAlsoWhenTheServerHoldsItsPipes) {
  for (const int wrappers : {0, 1, kAncestorsMax - 1, kAncestorsMax, kAncestorsMax + 1}) {
    if (Portable() && wrappers > 0 && !AlsoPortable("wrappers")) continue;
    SCOPED_TRACE(wrappers);
    const std::string token = NewToken();
    int pair[2];
    ASSERT_EQ(pipe2(pair, O_CLOEXEC), 0);
    const pid_t host = fork();
    if (host == 0) {
      Words words = Run({host_.probe(), "hold-stdio", token}, kShort);
      if (wrappers > 0) words.insert(words.begin(), {host_.probe(), "wrap", std::to_string(wrappers)});
      Program run(words, Wiring::kPipes);
      EXPECT_THAT(ReadLine(run.out().get()), StartsWith("ready "));
      // Root's server is another user, who can't open root's pipes: let them be its own.
      for (const int fd : {run.in().get(), run.out().get()}) {
        EXPECT_TRUE(!IsRoot() || fchown(fd, kNobody, kNobody) == 0);
      }
      run.Write("\n");
      if (ReadLine(run.out().get()) != "held" || write(pair[1], "held\n", 5) != 5) _exit(3);
      while (true) pause();
    }
    close(pair[1]);
    EXPECT_EQ(ReadLine(pair[0]), "held");  // else it would be seen by the pipes
    close(pair[0]);
    std::vector<int> below = {host};  // the wrappers, and the keeper
    while (below.size() < static_cast<std::size_t>(wrappers) + 2) {
      const std::vector<int> children = ChildrenOf(below.back());
      ASSERT_THAT(children, SizeIs(1));
      below.push_back(children[0]);
    }
    const UniqueFd outermost(static_cast<int>(syscall(SYS_pidfd_open, below[1], 0)));  // it ends last
    EXPECT_THAT(Survivors(token), Not(IsEmpty()));
    ASSERT_EQ(kill(host, SIGKILL), 0);
    ASSERT_EQ(waitpid(host, nullptr, 0), host);
    pollfd poll_fd = {outermost.get(), POLLIN, 0};
    if (wrappers > kAncestorsMax) {  // not promised
      EXPECT_EQ(poll(&poll_fd, 1, kManyShortGracesMilliseconds), 0);
      EXPECT_EQ(kill(below.back(), SIGTERM), 0);
    }
    EXPECT_EQ(poll(&poll_fd, 1, kHangMilliseconds), 1);
    EXPECT_THAT(Survivors(token), IsEmpty());
    EXPECT_TRUE(OnlyZombiesWereLeft());
  }
}

// ---- Signals

TEST_P(RunTest, ASignalBeginsTheLadderAtTerm) {
  const std::string eof = host_.Folder("work") + "/eof", term = host_.Folder("work") + "/term";
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    Program run = StartProbe({"on-stop", NewToken(), eof, term}, kLong);
    run.Signal(signal);
    EXPECT_EQ(run.Wait(), 0);
    EXPECT_TRUE(Exists(term));
    EXPECT_FALSE(Exists(eof));
    EXPECT_EQ(Report()["exit"], nlohmann::json({{"code", 0}}));
    unlink(term.c_str());
  }
  Program run = StartProbe({"wait", NewToken()}, kLong);
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), 128 + SIGTERM);
  EXPECT_EQ(Report()["exit"], nlohmann::json({{"signal", SIGTERM}}));
}

TEST_P(RunTest, ASecondSignalKills) {
  const std::string token = NewToken();
  const std::string script = "trap 'echo term' TERM; echo ready; while :; do read -r line; done";
  Program run(Run({"/bin/sh", "-c", script, "sh", token}, kLong), Wiring::kPipes);
  EXPECT_EQ(ReadLine(run.out().get()), "ready");
  run.Signal(SIGTERM);
  EXPECT_EQ(ReadLine(run.out().get()), "term");
  ASSERT_THAT(Survivors(token), Not(IsEmpty()));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), 128 + SIGKILL);
  EXPECT_THAT(Survivors(token), IsEmpty());
  EXPECT_EQ(Report()["exit"], nlohmann::json({{"signal", SIGKILL}}));
}

TEST_P(RunTest, TheHostsOwnGroupIsNeverSignalled) {
  Program sibling({host_.probe(), "echo", NewToken()}, Wiring::kPipes, Program::kNewGroup);
  ASSERT_THAT(ReadLine(sibling.out().get()), StartsWith("ready "));
  const pid_t group = sibling.pid();
  const auto expect_sibling_lives = [&sibling] {
    sibling.Write("ping\n");
    EXPECT_EQ(ReadLine(sibling.out().get()), "ping");
  };

  Program stopped = StartProbe({Forever(), NewToken()}, kShort, Wiring::kPipes, group);
  ASSERT_EQ(getpgid(stopped.pid()), group);
  stopped.Signal(SIGTERM);
  EXPECT_EQ(stopped.Wait(), 128 + SIGKILL);
  expect_sibling_lives();

  Program left = StartProbe({Forever(), NewToken()}, kShort, Wiring::kPipes, group);
  left.in().reset();
  left.out().reset();
  EXPECT_EQ(left.Wait(), 128 + SIGKILL);
  expect_sibling_lives();

  // Its group is its own, so that this hits nobody else.
  const Words attack = {"/bin/sh", "-c", "kill -KILL 0"};
  EXPECT_EQ(Program(Run(attack, kShort), Wiring::kPipes, group).Wait(), 128 + SIGKILL);
  expect_sibling_lives();

  sibling.in().reset();
  EXPECT_EQ(sibling.Wait(), 0);
}

// ---- What the keeper shows

TEST_P(RunTest, NothingOfTheCommandIsSeenInKeeperAndInit) {
  ASSERT_NE(ReadFile("/proc/self/environ"), "");
  Program run = StartProbe({"wait", NewToken()}, kShort);
  const std::vector<int> children = ChildrenOf(run.pid());
  ASSERT_THAT(children, SizeIs(1));
  for (const int pid : {run.pid(), children[0]}) {
    const std::string process = absl::StrCat("/proc/", pid);
    EXPECT_EQ(ReadFile(process + "/cmdline"), std::string("bulkhead\0", 9));
    EXPECT_EQ(ReadFile(process + "/environ"), "");  // to a user who is not root: or not to be read at all
  }
  run.in().reset();
  EXPECT_EQ(run.Wait(), 0);
}

}  // namespace
}  // namespace bulkhead::launcher
