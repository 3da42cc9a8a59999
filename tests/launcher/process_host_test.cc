// Hosts with odd habits (strange_host.cc), hosts that are killed, and `bulkhead run`'s way of becoming the keeper.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "bulkhead/launcher/keeper_image.h"
#include "bulkhead/launcher/process.h"
#include "tests/launcher/bare_plan.h"
#include "tests/launcher/tree_check.h"

namespace bulkhead::launcher {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::string NewToken() {
  static int count = 0;
  return "token-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

// A program that runs, with our ends of its stdio.
struct Child {
  pid_t pid = -1;
  UniqueFd in, out, err;

  // 128 + signal, as a shell says it.
  int Wait() {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
};

Child StartHost(std::vector<std::string> words) {
  words.insert(words.begin(), TestProgram("tests/launcher/strange_host"));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int in[2], out[2], err[2];
  EXPECT_EQ(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(err, O_CLOEXEC), 0);
  Child child;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err[1], 2);
  EXPECT_EQ(posix_spawn(&child.pid, argv[0], &actions, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  child.in.reset(in[1]);
  child.out.reset(out[0]);
  child.err.reset(err[0]);
  for (const int fd : {in[0], out[1], err[1]}) close(fd);
  return child;
}

struct Result {
  int code;
  std::string out, err;
};
Result RunHost(const std::vector<std::string>& words) {
  Child child = StartHost(words);
  child.in.reset();
  Result result;
  result.out = ReadToEnd(child.out.get());
  result.err = ReadToEnd(child.err.get());
  result.code = child.Wait();
  return result;
}

// Blocks until whoever lost its host or keeper, and so became our child, has ended.
void ReapEveryone() {
  while (waitpid(-1, nullptr, __WALL) > 0 || errno == EINTR) {
  }
}

class HostTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { AdoptOrphans(); }
  void TearDown() override {
    EXPECT_FALSE(HasChildren());
    EndLeftovers();
  }
};

class HabitTest : public HostTest, public testing::WithParamInterface<std::tuple<std::string, std::string>> {};

TEST_P(HabitTest, IsServedLikeAnyOther) {
  const auto& [habit, way] = GetParam();
  std::vector<std::string> words = {habit};
  if (way == "PidNamespace") words.insert(words.begin(), "--pid-namespace");
  const Result result = RunHost(words);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
}

std::string HabitName(const testing::TestParamInfo<HabitTest::ParamType>& info) {
  std::string name = std::get<1>(info.param);
  bool upper = true;
  for (const char c : std::get<0>(info.param)) {
    if (c != '-') name += static_cast<char>(upper ? toupper(c) : c);
    upper = c == '-';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(, HabitTest,
                         testing::Combine(testing::Values("ignores-children", "reaps-everything", "closed-stdio",
                                                          "leaks-descriptors", "odd-signals", "keeps-its-signals",
                                                          "thread-ends", "busy-threads", "file-size-limit",
                                                          "few-descriptors", "no-descriptor-to-wait-with",
                                                          "closes-everything", "forks", "old-memfd"),
                                          testing::Values("Subreapers", "PidNamespace")),
                         HabitName);
INSTANTIATE_TEST_SUITE_P(WithoutMemfdExec, HabitTest,
                         testing::Combine(testing::Values("no-memfd-exec", "installed-keeper"),
                                          testing::Values("Subreapers")),
                         HabitName);

TEST_F(HostTest, AKilledHostsTreeEnds) {
  for (const char* way : {"", "--pid-namespace"}) {
    for (const char* shape : {"wait", "setsid-helper", "daemon", "ignore-all", "stop-self", "tree-forever"}) {
      SCOPED_TRACE(std::string(way) + " " + shape);
      const std::string token = NewToken();
      std::vector<std::string> words = {"holds", shape, token};
      if (*way != '\0') words.insert(words.begin(), way);
      Child host = StartHost(words);
      ASSERT_EQ(ReadLine(host.out.get()), "ready");
      ASSERT_THAT(Living(token), Not(IsEmpty()));
      ASSERT_EQ(kill(host.pid, SIGKILL), 0);
      EXPECT_EQ(host.Wait(), 128 + SIGKILL);
      ReapEveryone();
      EXPECT_THAT(Living(token), IsEmpty());
    }
  }
}

// ---- BecomeKeeper

class BecomeKeeperTest : public HostTest {
 protected:
  void SetUp() override {
    const char* const base = getenv("TEST_TMPDIR");
    std::string name = std::string(base != nullptr ? base : "/tmp") + "/process_host_test.XXXXXX";
    char* const real = realpath(mkdtemp(name.data()), nullptr);
    folder_ = real;
    free(real);
  }
  void TearDown() override {
    for (const std::string& name : NamesIn(folder_)) unlink((folder_ + "/" + name).c_str());
    rmdir(folder_.c_str());
    HostTest::TearDown();
  }
  std::string folder_;
};

TEST_F(BecomeKeeperTest, TheServersCodeAndOutputAreItsOwn) {
  for (const char* way : {"--", "--pid-namespace"}) {
    SCOPED_TRACE(way);
    std::vector<std::string> words = {"becomes", "-", "inherit", "probe"};
    if (way[2] != '\0') words.insert(words.begin(), way);
    const auto with = [&words](std::vector<std::string> more) {
      more.insert(more.begin(), words.begin(), words.end());
      return RunHost(more);
    };
    EXPECT_EQ(with({"argv", "a", "b c"}).out, "ok [a][b c]\n");
    EXPECT_EQ(with({"exit", "0"}).code, 0);
    EXPECT_EQ(with({"exit", "7"}).code, 7);
    EXPECT_EQ(with({"raise", "9"}).code, 137);
    EXPECT_EQ(with({"no-such-command"}).code, 2);
    EXPECT_THAT(with({"no-such-command"}).err, HasSubstr("probe"));
  }
}

TEST_F(BecomeKeeperTest, NothingOfTheCommandIsLeftInTheKeeper) {
  const std::string token = NewToken();
  Child child = StartHost({"becomes", "-", "inherit", "probe", "echo", token});
  EXPECT_THAT(ReadLine(child.out.get()), StartsWith("ready "));
  const std::string process = "/proc/" + std::to_string(child.pid);
  EXPECT_EQ(ReadWholeFile(process + "/cmdline"), std::string("bulkhead\0", 9));
  EXPECT_EQ(ReadWholeFile(process + "/environ"), "");
  ASSERT_EQ(write(child.in.get(), "ping\n", 5), 5);
  EXPECT_EQ(ReadLine(child.out.get()), "ping");
  child.in.reset();
  EXPECT_EQ(child.Wait(), 0);
}

TEST_F(BecomeKeeperTest, InheritedDescriptorsReachNeitherKeeperNorServer) {
  std::vector<UniqueFd> leaked;
  for (const int fd : {30, 31, 200}) leaked.emplace_back(dup2(open("/etc/passwd", O_RDONLY | O_CLOEXEC), fd));
  Child child = StartHost({"becomes", "-", "inherit", "probe", "wait", NewToken()});
  EXPECT_THAT(ReadLine(child.out.get()), StartsWith("ready "));
  const std::string fds = "/proc/" + std::to_string(child.pid) + "/fd";
  for (const std::string& name : NamesIn(fds)) {
    char target[256] = "";
    (void)!readlink((fds + "/" + name).c_str(), target, sizeof(target) - 1);
    EXPECT_STRNE(target, "/etc/passwd") << name;
  }
  child.in.reset();
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_THAT(RunHost({"becomes", "-", "inherit", "probe", "fds"}).out, HasSubstr("\nok 3\n"));
}

TEST_F(BecomeKeeperTest, TheReportIsWritten) {
  const std::string report = folder_ + "/report.json";
  EXPECT_EQ(RunHost({"becomes", report, "inherit", "probe", "exit", "7"}).code, 7);
  EXPECT_THAT(ReadWholeFile(report), StartsWith("{\"tier\":\"test\",\"exit\":{\"code\":7}"));
  EXPECT_THAT(ReadWholeFile(report), EndsWith("}\n"));
  struct stat info;
  ASSERT_EQ(stat(report.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(BecomeKeeperTest, AReportThatCannotBeWrittenIsARefusal) {
  const std::string link = folder_ + "/link", missing = folder_ + "/missing/report";
  ASSERT_EQ(symlink("/dev/null", link.c_str()), 0);
  const Result at_link = RunHost({"becomes", link, "inherit", "probe", "argv", "ran"});
  EXPECT_EQ(at_link.code, 125);
  EXPECT_EQ(at_link.out, "");
  EXPECT_EQ(at_link.err, "cannot write the report to \"" + link + "\": it is a symbolic link\n");
  const Result at_missing = RunHost({"becomes", missing, "inherit", "probe", "argv", "ran"});
  EXPECT_EQ(at_missing.code, 125);
  EXPECT_EQ(at_missing.err, "cannot write the report to \"" + missing + "\": No such file or directory\n");
}

TEST_F(BecomeKeeperTest, TheServersStderrMayBeAFileOrNothing) {
  const std::string log = folder_ + "/log";
  const Result to_file = RunHost({"becomes", "-", log, "probe", "no-such-command"});
  EXPECT_EQ(to_file.code, 2);
  EXPECT_EQ(to_file.err, "");
  EXPECT_THAT(ReadWholeFile(log), HasSubstr("probe"));
  const Result discarded = RunHost({"becomes", "-", "discard", "probe", "no-such-command"});
  EXPECT_EQ(discarded.code, 2);
  EXPECT_EQ(discarded.err, "");
}

TEST_F(BecomeKeeperTest, OurOwnSentencesGoToTheRealStderrAllTheSame) {
  const std::string log = folder_ + "/log";
  const Result result = RunHost({"becomes", "-", log, "/nonexistent/server"});
  EXPECT_EQ(result.code, 127);
  EXPECT_EQ(result.err, "bulkhead: there is no such program\n");
  EXPECT_EQ(ReadWholeFile(log), "");
}

TEST_F(BecomeKeeperTest, TheTreeEndsWithTheParentThoughStdioStaysOpen) {
  for (const char* way : {"--", "--pid-namespace"}) {
    SCOPED_TRACE(way);
    const std::string token = NewToken();
    std::vector<std::string> words = {"is-parent-of", "becomes", "-", "inherit", "probe", "tree-forever", token};
    if (way[2] != '\0') words.insert(words.begin() + 1, way);
    Child parent = StartHost(words);
    EXPECT_THAT(ReadLine(parent.out.get()), StartsWith("ready "));
    EXPECT_THAT(Living(token), Not(IsEmpty()));
    ASSERT_EQ(kill(parent.pid, SIGKILL), 0);
    EXPECT_EQ(parent.Wait(), 128 + SIGKILL);
    ReapEveryone();
    EXPECT_THAT(Living(token), IsEmpty());
  }
}

TEST_F(BecomeKeeperTest, APlanForLaunchIsRefused) {
  const absl::Status status = BecomeKeeper(MakeBarePlan({Probe(), "exit", "0"}), "");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

// ---- The installed copy

class InstalledKeeperTest : public BecomeKeeperTest {
 protected:
  std::string Install(std::string bytes, mode_t mode) {
    const std::string path = folder_ + "/keeper";
    unlink(path.c_str());
    UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(fchmod(fd.get(), mode), 0);
    return path;
  }
  static std::string WhyNot(const std::string& path) {
    const absl::Status status = OpenInstalledKeeper(path).status();
    const std::string prefix = "\"" + path + "\" ";
    EXPECT_TRUE(status.ok() || absl::StartsWith(status.message(), prefix)) << status;
    return status.ok() ? "" : std::string(status.message()).substr(prefix.size());
  }
};

TEST_F(InstalledKeeperTest, IsTrustedOnlyWhenItIsRootsAndExactlyOurs) {
  const std::string ours(KeeperBytes());
  ASSERT_THAT(ours, StartsWith("\177ELF"));
  if (geteuid() != 0) {
    EXPECT_EQ(WhyNot(Install(ours, 0755)), "does not belong to root");
    return;
  }
  EXPECT_EQ(WhyNot(Install(ours, 0755)), "");
  EXPECT_EQ(WhyNot(Install(ours, 0775)), "can be written by others than its owner");
  EXPECT_EQ(WhyNot(Install(ours, 0757)), "can be written by others than its owner");
  std::string other = ours;
  other.back() ^= 1;
  EXPECT_EQ(WhyNot(Install(other, 0755)), "is not the keeper of this build");
  EXPECT_EQ(WhyNot(Install(ours + "x", 0755)), "is not the keeper of this build");
  EXPECT_EQ(WhyNot(Install(ours.substr(0, ours.size() - 1), 0755)), "is not the keeper of this build");
  const std::string path = Install(ours, 0755);
  ASSERT_EQ(chown(path.c_str(), 1, 0), 0);
  EXPECT_EQ(WhyNot(path), "does not belong to root");
}

TEST_F(InstalledKeeperTest, MustBeARegularFileThatIsThere) {
  EXPECT_EQ(WhyNot(folder_ + "/missing"), "can't be opened: No such file or directory");
  EXPECT_EQ(WhyNot(folder_), "is not a regular file");
  const std::string link = folder_ + "/link";
  ASSERT_EQ(symlink(Install(std::string(KeeperBytes()), 0755).c_str(), link.c_str()), 0);
  EXPECT_THAT(WhyNot(link), StartsWith("can't be opened: "));
}

}  // namespace
}  // namespace bulkhead::launcher
