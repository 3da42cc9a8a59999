// Every system call of a launch fails once: those of the host in Launch, of the keeper, of the jail init and of the
// server's process until its program runs. Whatever fails, Launch gives an error that says what could not be done, or
// the server runs and ends; nothing hangs, and no process, descriptor or folder is left. Then the same with ever fewer
// descriptors.
//
// A tracer (ptrace(2)) lets the launch run and, at the Nth call of one of its processes, has the kernel skip that call
// and gives it an error instead; for N = 1, 2, 3 … until there is no Nth call.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bulkhead/launcher/cgroup.h"
#include "tests/launcher/jail_test.h"
#include "tests/launcher/tree_check.h"

namespace bulkhead::launcher {
namespace {

constexpr int kHangSeconds = 20;  // ends a run that hangs
constexpr int kCallsMax = 5000;   // no launch comes near it: it ends a sweep that doesn't
constexpr absl::Duration kStartTimeout =
    absl::Seconds(10);                     // within the above: a keeper that says nothing is a finding
constexpr long kMarker = SYS_getpriority;  // the host makes this call, which Launch doesn't, before and after

// Private folders of this process's plans have a name of their own, since other tests make some at the same time.
constexpr absl::string_view kPrivateFolder = "/tmp/bulkhead-";
std::string OwnPrivateFolder() { return absl::StrFormat("/tmp/bh%06d-", getpid() % 1000000); }

void RenamePrivateFolders(std::string& plan) {
  const std::string own = OwnPrivateFolder();
  ASSERT_EQ(own.size(), kPrivateFolder.size());
  for (std::size_t at = 0; (at = plan.find(kPrivateFolder.data(), at)) != std::string::npos; at += own.size()) {
    if (plan.compare(at - 4, 4, "/var") != 0) plan.replace(at, own.size(), own);  // not the files of this test
  }
}

std::set<std::string> PrivateFolders() {
  std::set<std::string> names;
  for (const std::string& name : NamesIn("/tmp")) {
    if (absl::StartsWith("/tmp/" + name, OwnPrivateFolder())) names.insert(name);
  }
  return names;
}

// Once, so that what a host keeps for all its launches (the keeper's image) is there before anything is counted.
void LaunchOnce(const LaunchPlan& plan) { EXPECT_EQ(RunPlan(plan).end.code, 7); }

// What the process that launches does, and says on `out`: "failed CODE MESSAGE" or "ran CODE".
[[noreturn]] void LaunchAndSay(const LaunchPlan& plan, int out, int descriptors = 0) {
  std::string said;
  const std::size_t before = OpenDescriptors();
  // The soft limit: the plan lowers the hard one. What is open already stays open.
  struct rlimit limit = {}, few = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  few = {static_cast<rlim_t>(descriptors), limit.rlim_max};
  if (descriptors > 0) setrlimit(RLIMIT_NOFILE, &few);
  {
    LaunchOptions options;
    options.start_timeout = kStartTimeout;
    syscall(kMarker, PRIO_PROCESS, 0);
    absl::StatusOr<Process> process = Launch(plan, options);
    syscall(kMarker, PRIO_PROCESS, 0);
    if (process.ok()) {
      ReadToEnd(process->stdout_fd().get());
      said = absl::StrCat("ran ", process->Wait().shell_code());
    } else {
      said = absl::StrCat("failed ", ExitCodeForStatus(process.status()), " ", std::string(process.status().message()));
    }
  }
  setrlimit(RLIMIT_NOFILE, &limit);
  if (OpenDescriptors() != before) absl::StrAppend(&said, " (and a descriptor is left)");
  if (write(out, said.data(), said.size()) < 0) _exit(2);
  _exit(0);
}

#if defined(__x86_64__)

struct FaultyRun {
  bool reached = false;     // there was an Nth call
  long call = -1;           // its number
  bool server_ran = false;  // before the fault
  std::string said;         // of the process that launched
  bool hung = false;
};

void OnAlarm(int) {}

// One launch under the tracer. Processes are counted in the order in which they are made: 0 is the one that launches, 1
// the keeper, and so on. Call `nth` (from 1) of process `which` fails with `error`.
class Tracer {
 public:
  Tracer(int which, int nth, int error) : which_(which), nth_(nth), error_(error) {}

  FaultyRun Run(const LaunchPlan& plan) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return run_;
    const pid_t host = fork();
    if (host == 0) {
      ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      raise(SIGSTOP);
      LaunchAndSay(plan, ends[1]);
    }
    close(ends[1]);
    Adopt(host);
    Follow();
    run_.said = ReadToEnd(ends[0]);
    close(ends[0]);
    return run_;
  }

 private:
  struct Tracee {
    int number = -1;  // -1: seen before its parent told of it
    bool in_call = false, counting = true, failing = false;
    int calls = 0;
    long last_call = -1;
  };

  void Adopt(pid_t pid) {
    Tracee& tracee = tracees_[pid];
    tracee.number = made_++;
    tracee.counting = tracee.number != 0;  // the host from its first marker on
  }

  // Until no process is left.
  void Follow() {
    struct sigaction alarm_action = {}, old;
    alarm_action.sa_handler = OnAlarm;  // without SA_RESTART: waitpid returns
    sigaction(SIGALRM, &alarm_action, &old);
    alarm(kHangSeconds);
    int status;
    for (;;) {
      const pid_t pid = waitpid(-1, &status, __WALL);
      if (pid < 0 && errno == EINTR && !run_.hung) {
        run_.hung = true;
        for (const auto& [tracee, state] : tracees_) kill(tracee, SIGKILL);
        continue;
      }
      if (pid < 0) break;
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        tracees_.erase(pid);
      } else if (WIFSTOPPED(status)) {
        OnStop(pid, status);
      }
    }
    alarm(0);
    sigaction(SIGALRM, &old, nullptr);
  }

  void OnStop(pid_t pid, int status) {
    const int signal = WSTOPSIG(status), event = status >> 16;
    const bool is_new = tracees_.count(pid) == 0;
    Tracee& tracee = tracees_[pid];
    if (is_new) return;  // stays stopped until its parent's event
    int deliver = 0;
    if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE) {
      unsigned long child = 0;
      ptrace(PTRACE_GETEVENTMSG, pid, nullptr, &child);
      const bool waits = tracees_.count(static_cast<pid_t>(child)) != 0;
      Adopt(static_cast<pid_t>(child));
      if (waits) Resume(static_cast<pid_t>(child), 0);
    } else if (event == PTRACE_EVENT_EXEC) {
      // The keeper's own exec is part of the launch; any later one is the server's program.
      if (tracee.number > 1) {
        run_.server_ran = run_.server_ran || !run_.reached;
        tracee.counting = false;
      }
    } else if (signal == (SIGTRAP | 0x80)) {
      OnCall(pid, tracee);
    } else if (event == 0 && signal == SIGSTOP && !tracee.in_call && tracee.calls == 0) {
      ptrace(PTRACE_SETOPTIONS, pid, nullptr,
             PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                 PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
    } else if (event == 0) {
      deliver = signal;
    }
    Resume(pid, deliver);
  }

  void OnCall(pid_t pid, Tracee& tracee) {
    tracee.in_call = !tracee.in_call;
    constexpr std::size_t kNumber = offsetof(user, regs.orig_rax), kResult = offsetof(user, regs.rax);
    if (!tracee.in_call) {
      if (tracee.failing) ptrace(PTRACE_POKEUSER, pid, kResult, -static_cast<long>(error_));
      tracee.failing = false;
      return;
    }
    const long call = ptrace(PTRACE_PEEKUSER, pid, kNumber, nullptr);
    if (call == kMarker && tracee.number == 0) {
      tracee.counting = !tracee.counting;
      return;
    }
    // close(2) always closes, whatever it returns; the others don't return.
    const bool cannot_fail =
        call == SYS_close || call == SYS_exit_group || call == SYS_exit || call == SYS_rt_sigreturn;
    // The keeper makes this one 64 times in a row; one of them stands for all.
    const bool repeated = call == SYS_rt_sigaction && tracee.last_call == SYS_rt_sigaction;
    tracee.last_call = call;
    if (!tracee.counting || cannot_fail || repeated || ++tracee.calls != nth_ || tracee.number != which_) return;
    run_.reached = true;
    run_.call = call;
    tracee.failing = true;
    ptrace(PTRACE_POKEUSER, pid, kNumber, -1L);
  }

  static void Resume(pid_t pid, int signal) { ptrace(PTRACE_SYSCALL, pid, nullptr, static_cast<long>(signal)); }

  const int which_, nth_, error_;
  int made_ = 0;
  std::map<pid_t, Tracee> tracees_;
  FaultyRun run_;
};

class FaultTest : public JailTest {
 protected:
  // Where cgroup v2 is to be had, also without controllers, a launch makes groups, too.
  FaultTest() {
    for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
      std::string folder = absl::StrCat(mount, "/fault-test.XXXXXX");
      if (!Exists(absl::StrCat(mount, "/cgroup.controllers")) || mkdtemp(folder.data()) == nullptr) continue;
      place_.folder = folder;
      place_.mount = mount;
    }
  }
  // A keeper whose call to remove one failed leaves it.
  ~FaultTest() override {
    for (const std::string& name : PrivateFolders()) std::filesystem::remove_all("/tmp/" + name);
    if (place_.folder.empty()) return;
    SweepCgroups(place_.folder);
    EXPECT_EQ(rmdir(place_.folder.c_str()), 0) << "a group is left that the next launch would not sweep";
  }

  absl::StatusOr<LaunchPlan> Plan() const {
    Jail jail = Writing({host_.Folder("work")});
    jail.cgroup = place_;
    jail.limits = "\"memory\": \"1GiB\"";
    host_.File("work/.env", "hidden");
    host_.Folder("work/sub/protected");
    if (InA()) {
      jail.protect = {host_ / "work/sub/protected"};
      jail.hide = {host_ / "work/.env"};
    }
    absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail, {host_.probe(), "exit", "7"});
    if (!plan.ok()) return plan;
    EXPECT_EQ(plan->cgroup_folder(), place_.folder);
    RenamePrivateFolders(plan->mutable_bytes_for_test());
    return plan;
  }

  CgroupPlace place_;

  // Every call of one process. How many there were.
  int Sweep(const LaunchPlan& plan, int which, int error) const {
    LaunchOnce(plan);
    int nth = 1;
    // A run that leaves something is one failure, not also that of all after it.
    for (std::set<std::string> folders = PrivateFolders(); nth < kCallsMax; ++nth, folders = PrivateFolders()) {
      const FaultyRun run = Tracer(which, nth, error).Run(plan);
      if (!run.reached) {
        EXPECT_EQ(run.said, "ran 7");
        break;
      }
      SCOPED_TRACE(absl::StrCat("call ", nth, " (number ", run.call, ") of process ", which, " failed with ",
                                strerror(error), "; it said: ", run.said));
      EXPECT_FALSE(run.hung);
      // A host's image of the keeper that can't be looked at may have become another file, so it is not closed.
      if (which != 0 || run.call != SYS_newfstatat) {
        EXPECT_THAT(run.said, testing::Not(testing::HasSubstr("is left")));
      }
      // What the words must do: name what was tried. A launch that never began, or a keeper that was lost, has few.
      EXPECT_THAT(run.said,
                  testing::AnyOf(testing::StartsWith("ran "),
                                 testing::ContainsRegex("^failed 12[567] .*(can|the keeper|the launch|the server)")));
      EXPECT_THAT(run.said, testing::Not(testing::HasSubstr("makes no sense")));
      if (which == 2 && run.call == SYS_clone) {
        EXPECT_THAT(run.said, testing::HasSubstr("cannot start a process for the server"));
      }
      if (!run.server_ran) {
        EXPECT_EQ(PrivateFolders(), folders);
      }
    }
    return nth - 1;
  }
};

TEST_P(FaultTest, EveryCallOfTheHost) {
  const absl::StatusOr<LaunchPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(Sweep(*plan, 0, ENOMEM), 15);
}

TEST_P(FaultTest, EveryCallOfTheKeeper) {
  const absl::StatusOr<LaunchPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(Sweep(*plan, 1, ENOMEM), 30);
}

// The jail init, the server's process, and as root the process that lends its user namespace.
TEST_P(FaultTest, EveryCallOfTheOthers) {
  const absl::StatusOr<LaunchPlan> plan = Plan();
  ASSERT_TRUE(plan.ok()) << plan.status();
  int calls = 0;
  for (int which = 2; which < 5; ++which) calls += Sweep(*plan, which, ENOMEM);
  EXPECT_GT(calls, InA() ? 60 : 20);
}

INSTANTIATE_TEST_SUITE_P(Tier, FaultTest, testing::Values(policy::Tier::kA, policy::Tier::kB), TierOf);

#endif  // __x86_64__

// ---- Descriptors

class DescriptorsTest : public JailTest {};

TEST_P(DescriptorsTest, EverFewerOfThem) {
  const absl::StatusOr<LaunchPlan> plan =
      MakePlan(host_, Writing({host_.Folder("work")}), {host_.probe(), "exit", "7"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  LaunchOnce(*plan);
  bool ran = false;
  int limit = 3;
  for (; !ran && limit < 64; ++limit) {
    SCOPED_TRACE(absl::StrCat(limit, " descriptors"));
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      LaunchAndSay(*plan, ends[1], limit);
    }
    close(ends[1]);
    const std::string said = ReadToEnd(ends[0]);
    close(ends[0]);
    int status;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
    ran = said == "ran 7";
    if (!ran) {
      EXPECT_THAT(said, testing::ContainsRegex("^failed 12[567] .*(Too many open files|EMFILE)"));
    }
  }
  EXPECT_TRUE(ran);
}

INSTANTIATE_TEST_SUITE_P(Tier, DescriptorsTest, testing::Values(policy::Tier::kA, policy::Tier::kB), TierOf);

}  // namespace
}  // namespace bulkhead::launcher
