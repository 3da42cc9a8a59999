// Hosts with odd habits, one a sub-command: each launches servers with a bare plan, checks what it can from inside, and
// exits with 0 or says on stderr what was not as it should be. Started by process_host_test.cc.
//
//   strange_host [--pid-namespace] COMMAND...
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "asio/use_future.hpp"
#include "bulkhead/launcher/keeper_image.h"
#include "bulkhead/launcher/process.h"
#include "tests/launcher/bare_plan.h"
#include "tests/launcher/tree_check.h"

namespace bulkhead::launcher {
namespace {

int report_fd = STDERR_FILENO;
BarePlanOptions plan_options;

[[noreturn]] void Fail(const std::string& text) {
  dprintf(report_fd, "strange_host: %s\n", text.c_str());
  _exit(1);
}

void Check(bool good, const std::string& text) {
  if (!good) Fail(text);
}

void CheckEqual(const std::string& found, const std::string& wanted) {
  Check(found == wanted, "found \"" + found + "\" instead of \"" + wanted + "\"");
}

Process Start(std::vector<std::string> arguments) {
  static const std::string probe = Probe();
  arguments.insert(arguments.begin(), probe);
  absl::StatusOr<Process> process = Launch(MakeBarePlan(arguments, plan_options));
  if (!process.ok()) Fail(process.status().ToString());
  return *std::move(process);
}

// From now on a call fails with `error` when its second argument has any of these bits (BPF_JSET) or is this (BPF_JEQ).
void RefuseCall(unsigned number, unsigned short test, unsigned value, int error) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(static_cast<unsigned short>(BPF_JMP | BPF_K | test), value, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  Check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  Check(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "seccomp");
}

// Output and end of a server that ends by itself.
std::string OutputOf(const std::vector<std::string>& arguments, int code = 0) {
  Process process = Start(arguments);
  const std::string text = ReadToEnd(process.stdout_fd().get());
  CheckEqual(process.Wait().ToString(), "exited with code " + std::to_string(code));
  return text;
}

void StartStopAndCheck(const std::string& token) {
  Process process = Start({"echo", token});
  Check(ReadLine(process.stdout_fd().get()).rfind("ready ", 0) == 0, "the server isn't ready");
  Check(write(process.stdin_fd().get(), "ping\n", 5) == 5, "no stdin");
  CheckEqual(ReadLine(process.stdout_fd().get()), "ping");
  CheckEqual(process.Stop().ToString(), "exited with code 0");
  Check(Living(token).empty(), "the server lives on");
}

void IgnoresChildren() {
  signal(SIGCHLD, SIG_IGN);
  StartStopAndCheck("server-ignores-children");
  // Over before anybody looks, and reaped by the kernel.
  for (int i = 0; i < 100; ++i) {
    Process process = Start({"exit", "7"});
    const ExitStatus status = i % 2 == 0 ? process.Wait() : process.AsyncWait(asio::use_future).get();
    CheckEqual(status.ToString(), "exited with code 7");
  }
  for (int i = 0; i < 20; ++i) {
    const absl::Status status = Launch(MakeBarePlan({"/nonexistent"}, plan_options)).status();
    CheckEqual(status.ToString(), "NOT_FOUND: there is no such program");
  }
}

// As libraries with an event loop of their own do.
void ReapsEverything() {
  std::thread([] {
    while (true) {
      if (waitpid(-1, nullptr, 0) < 0) sched_yield();
    }
  }).detach();
  StartStopAndCheck("server-reaps-everything");
  for (int i = 0; i < 100; ++i) {
    Process process = Start({"exit", "7"});
    CheckEqual(process.Wait().ToString(), "exited with code 7");
  }
}

// With any of 0 to 2 closed, new descriptors get these numbers.
void ClosedStdio() {
  report_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
  for (int closed = 1; closed < 8; ++closed) {
    for (int fd = 0; fd <= 2; ++fd) {
      if (closed & (1 << fd)) {
        close(fd);
      } else {
        dup2(open("/dev/null", O_RDWR | O_CLOEXEC), fd);
      }
    }
    const std::string fds = OutputOf({"fds"});
    Check(fds.find("0 pipe:") == 0 && fds.find("\n1 pipe:") != fds.npos, "the server's stdio: " + fds);
    Check(fds.find("\n2 /dev/null\nok 3\n") != fds.npos, "the server's stderr: " + fds);
    Process process = Start({"wait", "closed-stdio"});
    Check(process.stdin_fd().get() > 2 && process.stdout_fd().get() > 2 && process.pidfd() > 2,
          "the host's ends took the place of its stdio");
  }
}

void LeaksDescriptors() {
  // Both where the keeper has its own, and elsewhere.
  for (const int fd : {3, 4, 5, 6, 7, 8, 200}) dup2(open("/etc/passwd", O_RDONLY | O_CLOEXEC), fd);
  const std::string fds = OutputOf({"fds"});
  Check(fds.find("passwd") == fds.npos && fds.find("ok 3\n") != fds.npos, "the server has more: " + fds);
  Process process = Start({"wait", "leaks-descriptors"});
  Check(ReadLine(process.stdout_fd().get()).rfind("ready ", 0) == 0, "the server isn't ready");
  for (const int keeper : ChildrenOf(getpid())) {
    for (const std::string& name : NamesIn("/proc/" + std::to_string(keeper) + "/fd")) {
      char target[256] = "";
      (void)!readlink(("/proc/" + std::to_string(keeper) + "/fd/" + name).c_str(), target, sizeof(target) - 1);
      Check(strcmp(target, "/etc/passwd") != 0, "the keeper has the host's descriptor " + name);
    }
  }
}

void OddSignals() {
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGRTMAX}) signal(number, SIG_IGN);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  pthread_sigmask(SIG_SETMASK, nullptr, &all);  // without those that libc keeps to itself
  CheckEqual(OutputOf({"signals"}), "ok SigBlk=0000000000000000 SigIgn=0000000000000000 SigCgt=0000000000000000\n");
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int number = 1; number <= SIGRTMAX; ++number) {
    Check(sigismember(&after, number) == sigismember(&all, number), "the host's mask has changed");
  }
}

volatile sig_atomic_t sigpipes = 0;
void KeepsItsSignals() {
  // The control, and then everything that Launch and Process do.
  std::vector<struct sigaction> before(65), after(65);
  signal(SIGPIPE, [](int) { sigpipes = sigpipes + 1; });
  for (int number = 1; number < 65; ++number) sigaction(number, nullptr, &before[number]);
  StartStopAndCheck("server-keeps-its-signals");
  {
    Process process = Start({"exit", "3"});
    CheckEqual(process.AsyncWait(asio::use_future).get().ToString(), "exited with code 3");
    process.Kill();  // nobody listens any more
    process.Stop();
  }
  for (int number = 1; number < 65; ++number) {
    sigaction(number, nullptr, &after[number]);
    Check(before[number].sa_handler == after[number].sa_handler, "the handler of signal " + std::to_string(number));
  }
  Check(sigpipes == 0, "a SIGPIPE");
}

void ThreadEnds() {
  Process process = [] {
    absl::StatusOr<Process> started = absl::UnknownError("not launched");
    std::thread([&started] { started = Start({"echo", "thread-ends"}); }).join();
    return *std::move(started);
  }();
  // pthread_join returns while the kernel's thread may still be there; what ends with it has ended when it isn't
  // listed.
  while (NamesIn("/proc/self/task").size() > 1) sched_yield();
  Check(ReadLine(process.stdout_fd().get()).rfind("ready ", 0) == 0, "the server isn't ready");
  Check(write(process.stdin_fd().get(), "ping\n", 5) == 5, "no stdin");
  CheckEqual(ReadLine(process.stdout_fd().get()), "ping");
  CheckEqual(process.Stop().ToString(), "exited with code 0");
}

// A memfd counts for it; the signal that comes with the error would end a host that asked for a server.
void FileSizeLimit() {
  Start({"exit", "7"});
  const rlimit limit = {64, 64};
  Check(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
  const absl::Status status = Launch(MakeBarePlan({Probe(), "exit", "7"}, plan_options)).status();
  Check(status.message().find("ulimit -f") != std::string_view::npos, "it says: " + status.ToString());
  sigset_t pending;
  Check(sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 0, "a signal is left");
}

// What a child of fork would wait for for ever: the locks of malloc and of the environment, held by threads that it
// doesn't have. 1,000 launches here and as many in the other way.
void BusyThreads() {
  constexpr int kThreads = 8, kLaunches = 1000;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&stop, name = "BUSY_THREAD_" + std::to_string(i)] {
      for (std::size_t round = 1; !stop; ++round) {
        const std::string text(round % 512, 'x');
        Check(setenv(name.c_str(), text.c_str(), 1) == 0, "setenv");
        // Each is held most of the time, by one of them; the launches must get on with it.
        if (round % 64 == 0) sched_yield();
      }
    });
  }
  for (int i = 0; i < kLaunches; ++i) CheckEqual(Start({"exit", "7"}).Wait().ToString(), "exited with code 7");
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

void FewDescriptors() {
  const rlimit limit = {24, 24};
  Check(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  StartStopAndCheck("server-few-descriptors");
  const size_t before = OpenDescriptors();
  // Each descriptor of a launch is the one that isn't there once; none of the others may stay.
  std::vector<int> used;
  for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) used.push_back(fd);
  int refused = 0;
  while (true) {
    const size_t open_before = used.size();
    absl::StatusOr<Process> process = Launch(MakeBarePlan({Probe(), "exit", "7"}, plan_options));
    if (process.ok()) {
      CheckEqual(process->Wait().ToString(), "exited with code 7");
      break;
    }
    Check(absl::IsResourceExhausted(process.status()), process.status().ToString());
    ++refused;
    Check(!used.empty() && open_before == used.size(), "no launch with all descriptors free");
    close(used.back());
    used.pop_back();
  }
  Check(refused >= 8, "only " + std::to_string(refused) + " launches were refused");
  for (const int fd : used) close(fd);
  Check(OpenDescriptors() == before, "descriptors are left");
}

// No descriptor is left when a wait begins. (Imitated: the sanitizers need some of their own.)
void NoDescriptorToWaitWith() {
  Process process = Start({"exit", "7"});
  RefuseCall(SYS_fcntl, BPF_JEQ, F_DUPFD_CLOEXEC, EMFILE);
  Check(fcntl(0, F_DUPFD_CLOEXEC, 0) < 0 && errno == EMFILE, "the filter does nothing");
  CheckEqual(process.AsyncWait(asio::use_future).get().ToString(), "exited with code 7");
}

// Daemons close all that they don't know, and other files get the numbers.
void ClosesEverything() {
  StartStopAndCheck("server-closes-everything-1");
  std::vector<std::string> names = NamesIn("/proc/self/fd");
  for (const std::string& name : names) {
    if (atoi(name.c_str()) > 2) close(atoi(name.c_str()));
  }
  for (int i = 0; i < 32; ++i) (void)!open("/bin/false", O_RDONLY | O_CLOEXEC);
  StartStopAndCheck("server-closes-everything-2");
}

// A copy of the Process in a child of the host ends nothing.
void Forks() {
  Process process = Start({"echo", "forks"});
  Check(ReadLine(process.stdout_fd().get()).rfind("ready ", 0) == 0, "the server isn't ready");
  const pid_t child = fork();
  if (child == 0) {
    { const Process copy = std::move(process); }
    _exit(0);
  }
  int status;
  Check(waitpid(child, &status, 0) == child && status == 0, "the child");
  Check(write(process.stdin_fd().get(), "ping\n", 5) == 5, "no stdin");
  CheckEqual(ReadLine(process.stdout_fd().get()), "ping");
  CheckEqual(process.Stop().ToString(), "exited with code 0");
}

constexpr unsigned kMfdNoexecSeal = 8, kMfdExec = 16;

// Before Linux 6.3 neither flag was known.
void OldMemfd() {
  RefuseCall(SYS_memfd_create, BPF_JSET, kMfdNoexecSeal | kMfdExec, EINVAL);
  StartStopAndCheck("server-old-memfd");
}

void CheckRefusal(const std::string& why) {
  const absl::Status status = Launch(MakeBarePlan({Probe(), "exit", "0"}, plan_options)).status();
  Check(absl::IsFailedPrecondition(status), status.ToString());
  const std::string text(status.message());
  Check(text.find(why) != text.npos, text);
  Check(text.find("vm.memfd_noexec") != text.npos, text);
  Check(!HasChildren(), "a child is left");
}

// As with vm.memfd_noexec=2: memfds can be made, but none to execute.
void NoMemfdExec() {
  RefuseCall(SYS_memfd_create, BPF_JSET, kMfdExec, EACCES);
  CheckRefusal("memfd_create: Permission denied");
  CheckRefusal("\"/usr/lib/bulkhead/keeper\" ");
}

void WriteText(const std::string& path, const std::string& text) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
  Check(write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()), path);
}

// The same where a copy is installed: as the root of a user namespace, which may mount something over /usr/lib.
void InstalledKeeper() {
  const std::string uid = std::to_string(getuid()), gid = std::to_string(getgid()), probe = Probe();
  Check(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0, "unshare");
  WriteText("/proc/self/setgroups", "deny");
  WriteText("/proc/self/uid_map", "0 " + uid + " 1");
  WriteText("/proc/self/gid_map", "0 " + gid + " 1");
  Check(mount("none", "/usr/lib", "tmpfs", 0, "mode=0755") == 0, "mount");
  const char* const copy = kInstalledKeepers[0];
  Check(mkdir("/usr/lib/bulkhead", 0755) == 0, "mkdir");
  WriteText(copy, std::string(KeeperBytes()));
  RefuseCall(SYS_memfd_create, BPF_JSET, kMfdExec, EACCES);
  StartStopAndCheck("server-installed-keeper");
  Check(chmod(copy, 0644) == 0, "chmod");
  CheckRefusal("can't be run: Permission denied");
  Check(chmod(copy, 0775) == 0, "chmod");
  CheckRefusal("can be written by others than its owner");
}

// Starts a tree, says so, and waits to be killed.
void Holds(const std::string& shape, const std::string& token) {
  plan_options.stdin_grace_ms = plan_options.term_grace_ms = 20;
  Process process = Start({shape, token});
  Check(ReadLine(process.stdout_fd().get()).rfind("ready ", 0) == 0, "the server isn't ready");
  printf("ready\n");
  fflush(stdout);
  while (true) pause();
}

// Starts the rest of its words as a child of its own, and waits to be killed.
void IsParentOf(std::vector<std::string> words) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> argv = {words[0].data()};
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv("/proc/self/exe", argv.data());
    _exit(1);
  }
  while (true) pause();
}

// As `bulkhead run` does. The exit code of a refusal is 125.
void Becomes(const std::string& report, const std::string& stderr_file, std::vector<std::string> command) {
  plan_options.run_mode = true;
  plan_options.stdin_grace_ms = plan_options.term_grace_ms = 20;
  if (stderr_file == "discard") plan_options.stderr_rules = {policy::StderrMode::kDiscard, ""};
  if (stderr_file[0] == '/') plan_options.stderr_rules = {policy::StderrMode::kFile, stderr_file};
  if (command[0] == "probe") command[0] = Probe();
  const absl::Status status = BecomeKeeper(MakeBarePlan(command, plan_options), report == "-" ? "" : report);
  dprintf(STDERR_FILENO, "%s\n", std::string(status.message()).c_str());
  _exit(125);
}

int Main(std::vector<std::string> words) {
  AdoptOrphans();
  const std::map<std::string, std::function<void()>> habits = {
      {"ignores-children", IgnoresChildren},
      {"reaps-everything", ReapsEverything},
      {"closed-stdio", ClosedStdio},
      {"leaks-descriptors", LeaksDescriptors},
      {"odd-signals", OddSignals},
      {"keeps-its-signals", KeepsItsSignals},
      {"thread-ends", ThreadEnds},
      {"busy-threads", BusyThreads},
      {"file-size-limit", FileSizeLimit},
      {"few-descriptors", FewDescriptors},
      {"no-descriptor-to-wait-with", NoDescriptorToWaitWith},
      {"closes-everything", ClosesEverything},
      {"forks", Forks},
      {"old-memfd", OldMemfd},
      {"no-memfd-exec", NoMemfdExec},
      {"installed-keeper", InstalledKeeper},
  };
  if (words[0] == "--pid-namespace") {
    plan_options.namespaces = kPidNamespace;
    words.erase(words.begin());
  }
  const auto habit = habits.find(words[0]);
  if (habit != habits.end()) {
    habit->second();
    if (words[0] != "reaps-everything") Check(!HasChildren(), "children are left");
    return 0;
  }
  if (words[0] == "holds") Holds(words.at(1), words.at(2));
  if (words[0] == "is-parent-of") IsParentOf({words.begin() + 1, words.end()});
  if (words[0] == "becomes") Becomes(words.at(1), words.at(2), {words.begin() + 3, words.end()});
  Fail("unknown command");
}

}  // namespace
}  // namespace bulkhead::launcher

int main(int argc, char** argv) { return bulkhead::launcher::Main({argv + 1, argv + argc}); }
