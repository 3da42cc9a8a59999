// Launch and Process, with real servers (tests/programs/probe.cc) under the real keeper, both with a PID namespace, as
// in tier A, and with two subreapers, as in tiers B and C; and with the portable backend. Hosts with odd habits are in
// process_host_test.cc.
#include "bulkhead/launcher/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/bind_executor.hpp"
#include "asio/co_spawn.hpp"
#include "asio/detached.hpp"
#include "asio/io_context.hpp"
#include "asio/use_awaitable.hpp"
#include "asio/use_future.hpp"
#include "bulkhead/launcher/keeper_process.h"
#include "tests/launcher/bare_plan.h"
#include "tests/launcher/linux_alone.h"
#include "tests/launcher/tree_check.h"

namespace bulkhead::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Kind = ExitStatus::Kind;

std::string NewToken() {
  static int count = 0;
  return "token-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

int PidOf(const Process& process) {
  const std::string info = ReadWholeFile("/proc/self/fdinfo/" + std::to_string(process.pidfd()));
  return atoi(info.c_str() + info.find("Pid:") + 4);
}

void SendSignal(int pidfd, int signal) { ASSERT_EQ(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0), 0); }

mode_t ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode;
}

// A new, empty folder, removed at the end.
class TempFolder {
 public:
  TempFolder() {
    const char* const base = getenv("TEST_TMPDIR");
    std::string name = std::string(base != nullptr ? base : "/tmp") + "/process_test.XXXXXX";
    char* const real = realpath(mkdtemp(name.data()), nullptr);
    path_ = real;
    free(real);
  }
  ~TempFolder() {
    for (const std::string& name : NamesIn(path_)) unlink((path_ + "/" + name).c_str());
    rmdir(path_.c_str());
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

BarePlanOptions WithStderr(BarePlanOptions options, policy::StderrMode mode, std::string file = "") {
  options.stderr_rules = {mode, std::move(file)};
  return options;
}

enum class Kept { kSubreapers, kPidNamespace, kPortable };

class ProcessTest : public testing::TestWithParam<Kept> {
 protected:
  static bool Portable() { return GetParam() == Kept::kPortable; }
  static void SetUpTestSuite() { AdoptOrphans(); }
  // Nothing of any test may be left, not even a zombie; but without a keeper only we can reap who lost its parent.
  void TearDown() override {
    EXPECT_TRUE(NobodyIsLeft());
    EndLeftovers();
  }

  static BarePlanOptions Options() {
    BarePlanOptions options;
    options.namespaces = GetParam() == Kept::kPidNamespace ? kPidNamespace : 0;
    options.portable = Portable();
    return options;
  }
  static BarePlanOptions ShortGraces() {
    BarePlanOptions options = Options();
    options.stdin_grace_ms = options.term_grace_ms = 20;
    return options;
  }
  static LaunchPlan ProbePlan(std::vector<std::string> arguments, const BarePlanOptions& options = Options()) {
    arguments.insert(arguments.begin(), Probe());
    return MakeBarePlan(arguments, options);
  }
  static bool NobodyIsLeft() { return Portable() ? OnlyZombiesWereLeft() : !HasChildren(); }
  // Three processes that ignore everything.
  static const char* Forever() { return Portable() ? "group-forever" : "tree-forever"; }
  // The portable backend watches each server by a thread, which is gone a moment after it has told the end.
  static void ExpectNoNewDescriptor(size_t before) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (Portable() && OpenDescriptors() > before && absl::Now() < deadline) sched_yield();
    if (Portable()) {
      EXPECT_LE(OpenDescriptors(), before);
    } else {
      EXPECT_EQ(OpenDescriptors(), before);
    }
  }
  // A probe of which the whole tree stands.
  static Process StartTree(const std::vector<std::string>& arguments, const BarePlanOptions& options = Options()) {
    absl::StatusOr<Process> process = Launch(ProbePlan(arguments, options));
    EXPECT_TRUE(process.ok()) << process.status();
    EXPECT_THAT(ReadLine(process->stdout_fd().get()), StartsWith("ready "));
    return *std::move(process);
  }
};

INSTANTIATE_TEST_SUITE_P(, ProcessTest, testing::Values(Kept::kSubreapers, Kept::kPidNamespace, Kept::kPortable),
                         [](const auto& info) {
                           return info.param == Kept::kPortable     ? "Portable"
                                  : info.param == Kept::kSubreapers ? "Subreapers"
                                                                    : "PidNamespace";
                         });

TEST_P(ProcessTest, TheServersOutputAndCodeArrive) {
  absl::StatusOr<Process> process = Launch(ProbePlan({"argv", "a", "b c"}));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(ReadToEnd(process->stdout_fd().get()), "ok [a][b c]\n");
  const ExitStatus status = process->Wait();
  EXPECT_EQ(status.kind, Kind::kExited);
  EXPECT_EQ(status.code, 0);
  EXPECT_GT(status.max_resident_bytes, 0u);
}

TEST_P(ProcessTest, TheReportIsOfTheTierThatWasReached) {
  absl::StatusOr<Process> process = Launch(ProbePlan({"exit", "0"}));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->report().tier, Portable()                        ? policy::Tier::kC
                                    : GetParam() == Kept::kSubreapers ? policy::Tier::kB
                                                                      : policy::Tier::kA);
}

TEST_P(ProcessTest, EveryExitCodeIsKept) {
  for (const int code : {0, 1, 7, 255}) {
    absl::StatusOr<Process> process = Launch(ProbePlan({"exit", std::to_string(code)}));
    ASSERT_TRUE(process.ok()) << process.status();
    const ExitStatus status = process->Wait();
    EXPECT_EQ(status.kind, Kind::kExited);
    EXPECT_EQ(status.code, code);
    EXPECT_EQ(status.shell_code(), code);
    EXPECT_EQ(status.ToString(), "exited with code " + std::to_string(code));
  }
}

TEST_P(ProcessTest, ASignalIsNamed) {
  absl::StatusOr<Process> process = Launch(ProbePlan({"raise", std::to_string(SIGSEGV)}));
  ASSERT_TRUE(process.ok()) << process.status();
  const ExitStatus status = process->Wait();
  EXPECT_EQ(status.kind, Kind::kSignaled);
  EXPECT_EQ(status.signal, SIGSEGV);
  EXPECT_EQ(status.shell_code(), 139);
  EXPECT_EQ(status.ToString(), "killed by signal 11 (SIGSEGV)");
}

TEST_P(ProcessTest, WaitAnswersAgainAfterTheEnd) {
  absl::StatusOr<Process> process = Launch(ProbePlan({"exit", "7"}));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->Wait().code, 7);
  EXPECT_EQ(process->Wait().code, 7);
  EXPECT_EQ(process->Stop().code, 7);
  process->Kill();
  EXPECT_EQ(process->Wait().code, 7);
}

TEST_P(ProcessTest, StdinReachesTheServer) {
  const std::string token = NewToken();
  Process process = StartTree({"echo", token});
  ASSERT_EQ(write(process.stdin_fd().get(), "ping\n", 5), 5);
  EXPECT_EQ(ReadLine(process.stdout_fd().get()), "ping");
  process.stdin_fd().reset();
  EXPECT_EQ(process.Wait().code, 0);
}

TEST_P(ProcessTest, ATakenDescriptorStaysOpenAfterTheProcess) {
  UniqueFd out;
  {
    absl::StatusOr<Process> process = Launch(ProbePlan({"argv", "late"}));
    ASSERT_TRUE(process.ok()) << process.status();
    out = std::move(process->stdout_fd());
    process->Wait();
  }
  EXPECT_EQ(ReadToEnd(out.get()), "ok [late]\n");
}

TEST_P(ProcessTest, StopClosesStdinAndWaits) {
  const std::string token = NewToken();
  Process process = StartTree({"wait", token});
  const ExitStatus status = process.Stop();  // the graces are a minute: only the end of stdin ends it
  EXPECT_EQ(status.kind, Kind::kExited);
  EXPECT_EQ(status.code, 0);
  EXPECT_THAT(Living(token), IsEmpty());
}

TEST_P(ProcessTest, StopKillsATreeThatIgnoresEverything) {
  const std::string token = NewToken();
  Process process = StartTree({Forever(), token}, ShortGraces());
  ASSERT_EQ(Living(token).size(), 3u);
  const ExitStatus status = process.Stop();
  EXPECT_EQ(status.kind, Kind::kSignaled);
  EXPECT_EQ(status.signal, SIGKILL);
  EXPECT_THAT(Living(token), IsEmpty());
}

TEST_P(ProcessTest, StopIsBoundedWhenTheKeeperItselfIsStopped) {
  const std::string token = NewToken();
  Process process = StartTree({Forever(), token}, ShortGraces());
  SendSignal(process.pidfd(), SIGSTOP);
  static_cast<KeeperProcess&>(ProcessMaker::ImplOfForTest(process)).stop_time_max = std::chrono::milliseconds(50);
  EXPECT_EQ(process.Stop().kind, Kind::kKeeperLost);
  EXPECT_THAT(Living(token), IsEmpty());
}

TEST_P(ProcessTest, DestroyingItEndsEveryShapeOfTree) {
  for (const char* shape : {"wait", "setsid-helper", "daemon", "ignore-all", "stop-self", "group-forever",
                            "tree-forever", "runner", "orphan-eof"}) {
    if (Portable() && !AlsoPortable(shape)) continue;
    SCOPED_TRACE(shape);
    const std::string token = NewToken();
    {
      Process process = StartTree({shape, token}, WithStderr(Options(), policy::StderrMode::kDiscard));
      ASSERT_THAT(Living(token), testing::Not(IsEmpty()));
    }
    EXPECT_THAT(Living(token), IsEmpty());
    EXPECT_TRUE(NobodyIsLeft());
  }
}

TEST_P(ProcessTest, DestroyingItEndsTheTreeOfAStoppedKeeper) {
  const std::string token = NewToken();
  const absl::Time begin = absl::Now();
  {
    Process process = StartTree({Forever(), token});
    SendSignal(process.pidfd(), SIGSTOP);
  }
  EXPECT_THAT(Living(token), IsEmpty());
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5));  // one, on a machine that has nothing else to do
}

TEST_P(ProcessTest, AssigningEndsTheTreeThatWasHeld) {
  const std::string first = NewToken(), second = NewToken();
  Process process = StartTree({"wait", first});
  process = StartTree({"wait", second});
  EXPECT_THAT(Living(first), IsEmpty());
  EXPECT_EQ(Living(second).size(), 1u);
  EXPECT_EQ(process.Stop().code, 0);
}

TEST_P(ProcessTest, ATreeEndsWithItsServer) {
  const std::string token = NewToken();
  Process process = StartTree({"leave", token, "7"});
  // The child that was left behind still holds stdout: the end is not seen there.
  const ExitStatus status = process.Wait();
  EXPECT_EQ(status.kind, Kind::kExited);
  EXPECT_EQ(status.code, 7);
  EXPECT_THAT(Living(token), IsEmpty());
}

TEST_P(ProcessTest, KillEndsATreeAtOnce) {
  const std::string token = NewToken();
  Process process = StartTree({Forever(), token});
  process.Kill();
  EXPECT_EQ(process.Wait().signal, SIGKILL);
  EXPECT_THAT(Living(token), IsEmpty());
}

TEST_P(ProcessTest, KillingTheKeeperEndsTheTree) {
  for (int cycle = 0; cycle < 20; ++cycle) {
    const std::string token = NewToken();
    Process process = StartTree({Forever(), token});
    SendSignal(process.pidfd(), SIGKILL);
    const ExitStatus status = process.Wait();
    EXPECT_EQ(status.kind, Kind::kKeeperLost);
    EXPECT_EQ(status.shell_code(), 137);
    EXPECT_THAT(Living(token), IsEmpty());
  }
}

TEST_P(ProcessTest, KillingTheJailInitEndsTheTree) {
  for (int cycle = 0; cycle < 20; ++cycle) {
    const std::string token = NewToken();
    Process process = StartTree({Forever(), token});
    const std::vector<int> children = ChildrenOf(PidOf(process));
    ASSERT_EQ(children.size(), 1u);
    ASSERT_EQ(kill(children[0], SIGKILL), 0);
    EXPECT_EQ(process.Wait().shell_code(), 137);
    EXPECT_THAT(Living(token), IsEmpty());
  }
}

TEST_P(ProcessTest, TwoHundredCyclesLeaveNothingOpen) {
  const LaunchPlan plan = ProbePlan({"wait", "cycle"});
  asio::io_context context;
  const auto cycle = [&](int number) {
    absl::StatusOr<Process> process = Launch(plan, context.get_executor());
    ASSERT_TRUE(process.ok()) << process.status();
    switch (number % 3) {
      case 0:
        process->Stop();
        break;
      case 1:
        process->Kill();
        process->AsyncWait([](const ExitStatus& status) { EXPECT_EQ(status.signal, SIGKILL); });
        context.restart();
        context.run();
        break;
      default:
        break;  // the destructor
    }
  };
  for (int i = 0; i < 3; ++i) cycle(i);  // what is made once per process
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 200; ++i) cycle(i);
  ExpectNoNewDescriptor(before);
  EXPECT_FALSE(HasChildren());
}

TEST_P(ProcessTest, OnePlanStartsManyServersAtOnce) {
  const std::string token = NewToken();
  const LaunchPlan plan = ProbePlan({"wait", token});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&plan] {
      absl::StatusOr<Process> process = Launch(plan);
      ASSERT_TRUE(process.ok()) << process.status();
      EXPECT_EQ(process->Stop().code, 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Living(token), IsEmpty());
}

// ---- Asynchronous

TEST_P(ProcessTest, ACallbackIsCalledOnceOnTheGivenExecutor) {
  asio::io_context context;
  absl::StatusOr<Process> process = Launch(ProbePlan({"exit", "7"}), context.get_executor());
  ASSERT_TRUE(process.ok()) << process.status();
  std::vector<int> codes;
  process->AsyncWait([&codes](const ExitStatus& status) { codes.push_back(status.code); });
  EXPECT_THAT(codes, IsEmpty());
  context.run();
  EXPECT_THAT(codes, ElementsAre(7));
}

TEST_P(ProcessTest, AHandlersOwnExecutorIsUsedAndKeptBusy) {
  asio::io_context context;  // the process's is the system executor
  absl::StatusOr<Process> process = Launch(ProbePlan({"exit", "7"}));
  ASSERT_TRUE(process.ok()) << process.status();
  std::vector<int> codes;
  process->AsyncWait(asio::bind_executor(context, [&](const ExitStatus& status) {
    EXPECT_TRUE(context.get_executor().running_in_this_thread());
    codes.push_back(status.code);
  }));
  context.run();
  EXPECT_THAT(codes, ElementsAre(7));
}

TEST_P(ProcessTest, AFutureIsSet) {
  absl::StatusOr<Process> process = Launch(ProbePlan({"exit", "7"}));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->AsyncWait(asio::use_future).get().code, 7);
}

#if defined(ASIO_HAS_CO_AWAIT)
TEST_P(ProcessTest, ACoroutineMayOwnTheProcess) {
  asio::io_context context;
  ExitStatus status;
  const auto run = [&]() -> asio::awaitable<void> {
    absl::StatusOr<Process> process = Launch(ProbePlan({"exit", "7"}), context.get_executor());
    EXPECT_TRUE(process.ok()) << process.status();
    status = co_await process->AsyncWait(asio::use_awaitable);
  };
  asio::co_spawn(context, run, asio::detached);
  context.run();
  EXPECT_EQ(status.code, 7);
}

TEST_P(ProcessTest, ACoroutineThatIsDestroyedWhileItWaitsEndsItsTree) {
  const std::string token = NewToken();
  {
    asio::io_context context;
    const auto run = [&]() -> asio::awaitable<void> {
      absl::StatusOr<Process> process = Launch(ProbePlan({"wait", token}), context.get_executor());
      EXPECT_TRUE(process.ok()) << process.status();
      EXPECT_THAT(ReadLine(process->stdout_fd().get()), StartsWith("ready "));
      co_await process->AsyncWait(asio::use_awaitable);
    };
    asio::co_spawn(context, run, asio::detached);
    context.poll();
    EXPECT_EQ(Living(token).size(), 1u);
  }
  EXPECT_THAT(Living(token), IsEmpty());
}
#endif

TEST_P(ProcessTest, AHandlerThatOwnsTheProcessIsDestroyedWithItsContext) {
  const std::string token = NewToken();
  bool called = false;
  {
    asio::io_context context;
    absl::StatusOr<Process> started = Launch(ProbePlan({"wait", token}), context.get_executor());
    ASSERT_TRUE(started.ok()) << started.status();
    auto process = std::make_shared<Process>(*std::move(started));
    process->AsyncWait([process, &called](const ExitStatus&) { called = true; });
    process->AsyncStop([process, &called](const ExitStatus&) { called = true; });
  }
  EXPECT_FALSE(called);
  EXPECT_THAT(Living(token), IsEmpty());
}

TEST_P(ProcessTest, AProcessMayOutliveTheContextOfItsHandlers) {
  const std::string token = NewToken();
  auto context = std::make_unique<asio::io_context>();
  absl::StatusOr<Process> process = Launch(ProbePlan({"wait", token}), context->get_executor());
  ASSERT_TRUE(process.ok()) << process.status();
  process->AsyncWait([](const ExitStatus&) { FAIL() << "its context is gone"; });
  context.reset();
  EXPECT_EQ(process->Stop().code, 0);
}

TEST_P(ProcessTest, EveryoneWhoWaitsIsToldOnce) {
  asio::io_context context;
  absl::StatusOr<Process> process = Launch(ProbePlan({"wait", NewToken()}), context.get_executor());
  ASSERT_TRUE(process.ok()) << process.status();
  int calls = 0;
  for (int i = 0; i < 3; ++i) process->AsyncWait([&calls](const ExitStatus&) { ++calls; });
  process->AsyncStop([&calls](const ExitStatus&) { ++calls; });
  process->AsyncStop([&calls](const ExitStatus&) { ++calls; });
  context.run();  // also shows that no timer of a stop is left
  EXPECT_EQ(calls, 5);
  process->AsyncWait([&calls](const ExitStatus&) { ++calls; });
  EXPECT_EQ(calls, 5) << "a handler ran inside the call";
  context.restart();
  context.run();
  EXPECT_EQ(calls, 6);
}

TEST_P(ProcessTest, WhoWaitsIsToldWhenTheProcessIsDestroyedOrWaitedFor) {
  asio::io_context context;
  std::vector<std::string> told;
  const auto tell = [&told](const ExitStatus& status) { told.push_back(status.ToString()); };
  {
    absl::StatusOr<Process> destroyed = Launch(ProbePlan({"wait", NewToken()}), context.get_executor());
    ASSERT_TRUE(destroyed.ok()) << destroyed.status();
    destroyed->AsyncWait(tell);
  }
  absl::StatusOr<Process> waited = Launch(ProbePlan({"exit", "3"}), context.get_executor());
  ASSERT_TRUE(waited.ok()) << waited.status();
  waited->AsyncWait(tell);
  waited->Wait();
  context.run();
  EXPECT_THAT(told, ElementsAre("killed by signal 9 (SIGKILL)", "exited with code 3"));
}

TEST_P(ProcessTest, AsyncStopIsBoundedWhenTheKeeperItselfIsStopped) {
  asio::io_context context;
  const std::string token = NewToken();
  absl::StatusOr<Process> process = Launch(ProbePlan({Forever(), token}, ShortGraces()), context.get_executor());
  ASSERT_TRUE(process.ok()) << process.status();
  SendSignal(process->pidfd(), SIGSTOP);
  static_cast<KeeperProcess&>(ProcessMaker::ImplOfForTest(*process)).stop_time_max = std::chrono::milliseconds(50);
  ExitStatus status;
  process->AsyncStop([&status](const ExitStatus& ended) { status = ended; });
  context.run();
  EXPECT_EQ(status.kind, Kind::kKeeperLost);
  EXPECT_THAT(Living(token), IsEmpty());
}

TEST_P(ProcessTest, AKilledKeeperIsToldAfterItsTreeIsGone) {
  for (int cycle = 0; cycle < 20; ++cycle) {
    asio::io_context context;
    const std::string token = NewToken();
    absl::StatusOr<Process> process = Launch(ProbePlan({Forever(), token}), context.get_executor());
    ASSERT_TRUE(process.ok()) << process.status();
    ReadLine(process->stdout_fd().get());
    bool told = false;
    process->AsyncWait([&](const ExitStatus& status) {
      told = true;
      EXPECT_EQ(status.kind, Kind::kKeeperLost);
      EXPECT_THAT(Living(token), IsEmpty());
    });
    SendSignal(process->pidfd(), SIGKILL);
    context.run();
    EXPECT_TRUE(told);
  }
}

TEST_P(ProcessTest, KillAndAsyncWaitMayComeFromManyThreads) {
  absl::StatusOr<Process> process = Launch(ProbePlan({Forever(), NewToken()}));
  ASSERT_TRUE(process.ok()) << process.status();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&process, i] {
      auto ended = process->AsyncWait(asio::use_future);
      if (i % 2 == 1) process->Kill();
      EXPECT_EQ(ended.get().signal, SIGKILL);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// ---- Failures

TEST_P(ProcessTest, AMissingProgramIsNotFoundInThePlansWords) {
  const absl::StatusOr<Process> process = Launch(MakeBarePlan({"/nonexistent/server"}, Options()));
  EXPECT_EQ(process.status(), absl::NotFoundError("there is no such program"));
}

TEST_P(ProcessTest, AnUnusableProgramIsPermissionDeniedWithTheKernelsWord) {
  const absl::StatusOr<Process> process = Launch(MakeBarePlan({"/etc/passwd"}, Options()));
  EXPECT_EQ(process.status(), absl::PermissionDeniedError("cannot execute the program: Permission denied"));
}

TEST_P(ProcessTest, AnyOtherFailureIsInternal) {
  TempFolder folder;
  std::string program = folder / "text";
  std::ofstream(program) << "not a program\n";
  ASSERT_EQ(chmod(program.c_str(), 0755), 0);
  const absl::StatusOr<Process> process = Launch(MakeBarePlan({program}, Options()));
  EXPECT_EQ(process.status(), absl::InternalError("cannot run a step: Exec format error"));
}

TEST_P(ProcessTest, APlanThatTheKeeperRefusesIsAnError) {
  LaunchPlan plan = ProbePlan({"exit", "0"});
  plan.mutable_bytes_for_test()[0] ^= 1;  // the magic number
  testing::internal::CaptureStderr();
  const absl::StatusOr<Process> process = Launch(plan);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("of another version"));
  EXPECT_EQ(process.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(process.status().message()), HasSubstr("ended before the server started"));
}

TEST_P(ProcessTest, AFailedLaunchLeavesNothingOpen) {
  const LaunchPlan plan = MakeBarePlan({"/nonexistent/server"}, Options());
  Launch(plan).IgnoreError();
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(Launch(plan).ok());
  ExpectNoNewDescriptor(before);
  EXPECT_FALSE(HasChildren());
}

// ---- Folders and stderr

TEST_P(ProcessTest, MissingFoldersAreMadePrivate) {
  TempFolder folder;
  BarePlanOptions options = Options();
  options.folders = {folder / "a/b/c"};
  for (int again = 0; again < 2; ++again) {
    const absl::StatusOr<Process> process = Launch(ProbePlan({"exit", "0"}, options));
    ASSERT_TRUE(process.ok()) << process.status();
    const mode_t above = S_IFDIR | (geteuid() == 0 ? 0755 : 0700);  // root's next one may be for a named user
    EXPECT_EQ(ModeOf(folder / "a"), above);
    EXPECT_EQ(ModeOf(folder / "a/b"), above);
    EXPECT_EQ(ModeOf(folder / "a/b/c"), static_cast<mode_t>(S_IFDIR | 0700));
  }
  for (const char* part : {"a/b/c", "a/b", "a"}) EXPECT_EQ(rmdir((folder / part).c_str()), 0);
}

TEST_P(ProcessTest, AFileInTheWayOfAFolderIsAnError) {
  TempFolder folder;
  std::ofstream(folder / "file") << "x";
  BarePlanOptions options = Options();
  options.folders = {folder / "file/below"};
  const absl::StatusOr<Process> process = Launch(ProbePlan({"exit", "0"}, options));
  EXPECT_EQ(process.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(process.status().message(),
            "cannot make the folder \"" + (folder / "file") + "\": something else is there");
}

// `probe` says how it is used on stderr, and exits with 2.
TEST_P(ProcessTest, StderrIsTheHostsOwn) {
  testing::internal::CaptureStderr();
  absl::StatusOr<Process> process = Launch(ProbePlan({"no-such-command"}));
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->Wait().code, 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("probe"));
  EXPECT_FALSE(process->stderr_fd().valid());
}

TEST_P(ProcessTest, StderrMayBeAPipe) {
  LaunchOptions options;
  options.stderr_to = LaunchOptions::Stderr::kPipe;
  absl::StatusOr<Process> process = Launch(ProbePlan({"no-such-command"}), options);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_THAT(ReadToEnd(process->stderr_fd().get()), HasSubstr("probe"));
}

TEST_P(ProcessTest, StderrMayBeDiscardedWhateverTheHostAskedFor) {
  LaunchOptions options;
  options.stderr_to = LaunchOptions::Stderr::kPipe;
  testing::internal::CaptureStderr();
  absl::StatusOr<Process> process =
      Launch(ProbePlan({"no-such-command"}, WithStderr(Options(), policy::StderrMode::kDiscard)), options);
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(process->Wait().code, 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(process->stderr_fd().valid());
}

TEST_P(ProcessTest, StderrIsAppendedToAFile) {
  TempFolder folder;
  const std::string file = folder / "log";
  const LaunchPlan plan = ProbePlan({"no-such-command"}, WithStderr(Options(), policy::StderrMode::kFile, file));
  size_t size = 0;
  for (int again = 0; again < 2; ++again) {
    absl::StatusOr<Process> process = Launch(plan);
    ASSERT_TRUE(process.ok()) << process.status();
    EXPECT_EQ(process->Wait().code, 2);
    EXPECT_GT(ReadWholeFile(file).size(), size);
    size = ReadWholeFile(file).size();
  }
  struct stat info;
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_P(ProcessTest, StderrGoesToNothingButARegularFileThatIsReachedWithoutLinks) {
  TempFolder folder;
  std::ofstream(folder / "file") << "";
  ASSERT_EQ(symlink((folder / "file").c_str(), (folder / "link").c_str()), 0);
  ASSERT_EQ(symlink((folder / ".").c_str(), (folder / "folder-link").c_str()), 0);
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  UniqueFd reader(open((folder / "fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto launch = [&](const std::string& path) {
    return Launch(ProbePlan({"exit", "0"}, WithStderr(Options(), policy::StderrMode::kFile, path))).status();
  };
  EXPECT_TRUE(launch(folder / "file").ok());  // the control
  const std::string link =
      absl::StrCat("there is a symbolic link in it", Portable() ? ", or a file where a folder should be" : "",
                   "; write the path without links");
  const std::pair<std::string, std::string> cases[] = {
      {folder / "link", link},
      {folder / "folder-link/file", link},
      {folder / "fifo", "it is not a regular file"},
      {"/dev/null", "it is not a regular file"},
      {folder / ".", "Is a directory"},
      {folder / "missing/log", "No such file or directory"},
  };
  for (const auto& [path, why] : cases) {
    EXPECT_EQ(launch(path),
              absl::FailedPreconditionError("cannot append the server's stderr to \"" + path + "\": " + why));
  }
  reader.reset();
  EXPECT_THAT(std::string(launch(folder / "fifo").message()), HasSubstr("it is not a regular file"));
}

}  // namespace
}  // namespace bulkhead::launcher
