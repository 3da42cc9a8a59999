// How long it takes to start a tiny program and see its end: bare, by bubblewrap with its usual flags, by `bulkhead
// run`, and by the library. Everything is measured in turn, round after round, so that a busy machine slows all alike;
// what counts is the ratios of the medians. See bench/README.md.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/process.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "launch_bench: %s\n", why.c_str());
  std::exit(1);
}

double Microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

// vfork and exec, with stdout thrown away, until reaped: the least that a launch can cost.
double RunBare(const std::vector<std::string>& argv, int null_fd) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const Clock::time_point start = Clock::now();
  const pid_t pid = vfork();
  if (pid == 0) {
    dup2(null_fd, STDOUT_FILENO);
    execve(words[0], words.data(), environ);
    _exit(127);
  }
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) Die("cannot start a process");
  const double time = Microseconds(Clock::now() - start);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) Die(absl::StrCat(argv[0], " did not succeed; status ", status));
  return time;
}

// A process in which user namespaces can't be made, so that `bulkhead run` takes tier B: it runs the command for us and
// tells how long each run took.
class RunnerWithoutNamespaces {
 public:
  RunnerWithoutNamespaces(const std::vector<std::string>& argv, int null_fd) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) Die("socketpair");
    fd_ = pair[0];
    if (fork() != 0) {
      close(pair[1]);
      return;
    }
    close(pair[0]);
    DenyUserNamespaces();
    char go;
    while (read(pair[1], &go, 1) == 1) {
      const double time = RunBare(argv, null_fd);
      if (write(pair[1], &time, sizeof time) != sizeof time) break;
    }
    _exit(0);
  }
  double Run() {
    double time = 0;
    if (write(fd_, "g", 1) != 1 || read(fd_, &time, sizeof time) != sizeof time) Die("tier B does not run");
    return time;
  }

 private:
  static void DenyUserNamespaces() {
    sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
                            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
                            BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 1),
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1 /* EPERM */),
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) Die("seccomp");
  }
  int fd_ = -1;
};

launcher::LaunchPlan MakePlan(const std::string& program, policy::Tier tier) {
  const std::string text = R"({"version": 1, "extends": ["preset:default"], "require": "B", "stderr": "discard"})";
  policy::ParseOptions options;
  options.variables.home = "/nonexistent";
  absl::StatusOr<policy::Policy> policy = policy::ParsePolicy({"bench", text}, options);
  if (!policy.ok()) Die(std::string(policy.status().message()));
  policy::CommandRequest request;
  request.argv = {program};
  request.host_cwd = "/";
  request.host_env = {{"PATH", "/usr/bin:/bin"}, {"HOME", "/nonexistent"}};
  absl::StatusOr<policy::ValidatedCommand> command = policy::ValidateCommand(*policy, request);
  if (!command.ok()) Die(std::string(command.status().message()));
  launcher::PlanOptions plan_options;
  plan_options.only_tier = tier;
  absl::StatusOr<launcher::LaunchPlan> plan =
      launcher::BuildLaunchPlan(*policy, *command, launcher::DetectKernelFeatures(), plan_options);
  if (!plan.ok()) Die(std::string(plan.status().message()));
  return *std::move(plan);
}

double RunPlan(const launcher::LaunchPlan& plan) {
  const Clock::time_point start = Clock::now();
  absl::StatusOr<launcher::Process> process = launcher::Launch(plan);
  if (!process.ok()) Die(std::string(process.status().message()));
  const launcher::ExitStatus status = process->Wait();
  const double time = Microseconds(Clock::now() - start);
  if (status.shell_code() != 0) Die(status.ToString());
  return time;
}

struct Case {
  std::string name;
  std::function<double()> run;
  std::vector<double> times;
  double median() {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
};

void Touch(std::size_t mebibytes) {
  const std::size_t bytes = mebibytes << 20;
  char* memory = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) Die("mmap");
  for (std::size_t i = 0; i < bytes; i += 4096) memory[i] = 1;
}

}  // namespace

int Main(int argc, char** argv) {
  int rounds = 100;
  std::size_t host_mebibytes = 10;
  if (argc < 3) Die("use: launch_bench BULKHEAD TINY [ROUNDS [HOST_MEBIBYTES]]");
  const std::string command = argv[1], tiny = argv[2];
  if (argc > 3 && !absl::SimpleAtoi(argv[3], &rounds)) Die("ROUNDS is a number");
  if (argc > 4 && !absl::SimpleAtoi(argv[4], &host_mebibytes)) Die("HOST_MEBIBYTES is a number");
  const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  RunnerWithoutNamespaces tier_b({command, "run", "--require", "B", tiny}, null_fd);
  Touch(host_mebibytes);
  const launcher::LaunchPlan plan_a = MakePlan(tiny, policy::Tier::kA), plan_b = MakePlan(tiny, policy::Tier::kB);

  std::vector<Case> cases;
  cases.push_back({"bare vfork + exec", [&] { return RunBare({tiny}, null_fd); }, {}});
  if (access("/usr/bin/bwrap", X_OK) == 0) {
    cases.push_back({"bwrap, usual flags",
                     [&] {
                       return RunBare(
                           {"/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc",
                            "/proc", "--tmpfs", "/tmp", "--die-with-parent", "--new-session", tiny},
                           null_fd);
                     },
                     {}});
  }
  cases.push_back({"bulkhead run, tier A", [&] { return RunBare({command, "run", tiny}, null_fd); }, {}});
  cases.push_back({"bulkhead run, tier B", [&] { return tier_b.Run(); }, {}});
  cases.push_back({"bulkhead --version", [&] { return RunBare({command, "--version"}, null_fd); }, {}});
  cases.push_back({"Launch, tier A", [&] { return RunPlan(plan_a); }, {}});
  cases.push_back({"Launch, tier B", [&] { return RunPlan(plan_b); }, {}});

  for (int round = 0; round < rounds + 3; ++round) {
    for (Case& item : cases) {
      const double time = item.run();
      if (round >= 3) item.times.push_back(time);  // the first ones fill caches
    }
  }
  const double bare = cases[0].median();
  const double bwrap = cases[1].name[0] == 'b' && cases[1].name[1] == 'w' ? cases[1].median() : 0;
  std::printf("%d rounds, a host of %zu MiB, uid %d: medians until reaped\n", rounds, host_mebibytes, getuid());
  for (Case& item : cases) {
    std::printf("  %-24s %8.0f us  %6.2f x bare", item.name.c_str(), item.median(), item.median() / bare);
    if (bwrap > 0) std::printf("  %5.2f x bwrap", item.median() / bwrap);
    std::printf("\n");
  }
  return 0;
}

}  // namespace bulkhead

int main(int argc, char** argv) { return bulkhead::Main(argc, argv); }
