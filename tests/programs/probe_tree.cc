// probe's trees, shapes that servers have been seen to leave behind: see the head of probe.cc.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

namespace bulkhead::probe {
namespace {

constexpr int kRunnerSecondsMax = 30;  // a runner can't be killed by pid, so that it must end by itself
constexpr int kPidsMax = 8;

// The pids of a tree that is being built: every new process writes its own, the first process prints them.
class Roll {
 public:
  Roll() {
    if (pipe2(fds_, O_CLOEXEC) < 0) Fail("pipe2");
  }

  // In each new process, once it is as it should be.
  void Report() {
    const pid_t pid = getpid();
    if (write(fds_[1], &pid, sizeof pid) != sizeof pid) _exit(3);
    close(fds_[0]);
    close(fds_[1]);
  }

  // In the first process: waits for `expected` others, prints the line and `more`.
  void PrintReady(int expected, const char* more = "") {
    close(fds_[1]);
    char text[32 * kPidsMax];
    int length = snprintf(text, sizeof text, "ready %d", getpid());
    for (int i = 0; i < expected; ++i) {
      pid_t pid = 0;
      if (read(fds_[0], &pid, sizeof pid) != sizeof pid) Fail("a process of the tree");
      length += snprintf(text + length, sizeof text - static_cast<size_t>(length), " %d", pid);
    }
    close(fds_[0]);
    printf("%s%s\n", text, more);
    fflush(stdout);
  }

  [[noreturn]] static void Fail(const char* what) {
    printf("error %s %s\n", strerrorname_np(errno), what);
    fflush(stdout);
    _exit(1);
  }

 private:
  int fds_[2];
};

pid_t Fork() {
  const pid_t pid = fork();
  if (pid < 0) Roll::Fail("fork");
  return pid;
}

void IgnoreEverything() {
  static constexpr int kNumbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
  for (const int number : kNumbers) signal(number, SIG_IGN);
}

[[noreturn]] void LiveForEver() {
  while (true) pause();
}

int LiveUntilEof() {
  char buffer[4096];
  ssize_t count = 0;
  while ((count = read(STDIN_FILENO, buffer, sizeof buffer)) != 0) {
    if (count < 0 && errno != EINTR) return 1;
  }
  return 0;
}

int Wait(int, char**) {
  Roll().PrintReady(0);
  return LiveUntilEof();
}

int Echo(int, char**) {
  Roll().PrintReady(0);
  char buffer[65536];
  ssize_t count = 0;
  while ((count = read(STDIN_FILENO, buffer, sizeof buffer)) > 0) {
    for (ssize_t done = 0; done < count;) {
      const ssize_t written = write(STDOUT_FILENO, buffer + done, static_cast<size_t>(count - done));
      if (written < 0) return 1;
      done += written;
    }
  }
  return count < 0 ? 1 : 0;
}

int Wrap(int argc, char** argv) {
  const long levels = Number(argv[0]);
  if (levels == 0) {
    execvp(argv[1], argv + 1);
    return Error(errno);
  }
  const pid_t child = Fork();
  if (child == 0) {
    char count[24];
    snprintf(count, sizeof count, "%ld", levels - 1);
    char program[] = "probe", name[] = "wrap";
    char** const words = static_cast<char**>(calloc(static_cast<size_t>(argc) + 3, sizeof(char*)));
    words[0] = program;
    words[1] = name;
    words[2] = count;
    memcpy(words + 3, argv + 1, static_cast<size_t>(argc - 1) * sizeof(char*));
    execv("/proc/self/exe", words);
    Roll::Fail("execv");
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error(errno);
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int SetsidHelper(int, char**) {
  Roll roll;
  if (Fork() == 0) {
    setsid();
    roll.Report();
    LiveForEver();
  }
  roll.PrintReady(1);
  return LiveUntilEof();
}

int Daemon(int, char**) {
  Roll roll;
  const pid_t middle = Fork();
  if (middle == 0) {
    setsid();
    if (Fork() != 0) _exit(0);
    roll.Report();
    LiveForEver();
  }
  waitpid(middle, nullptr, 0);
  roll.PrintReady(1);
  return LiveUntilEof();
}

int Leave(int, char** argv) {
  Roll roll;
  if (Fork() == 0) {
    roll.Report();
    LiveForEver();
  }
  roll.PrintReady(1);
  return static_cast<int>(Number(argv[1]));
}

int IgnoreAll(int, char**) {
  IgnoreEverything();
  Roll().PrintReady(0);
  LiveForEver();
}

int HoldStdio(int, char**) {
  IgnoreEverything();
  Roll().PrintReady(0);
  char line;
  if (read(STDIN_FILENO, &line, 1) != 1) return Error(errno);
  if (open("/proc/self/fd/0", O_WRONLY) < 0 || open("/proc/self/fd/1", O_RDONLY) < 0) return Error(errno);
  if (write(STDOUT_FILENO, "held\n", 5) != 5) return Error(errno);
  LiveForEver();
}

int StopSelf(int, char**) {
  Roll().PrintReady(0);
  raise(SIGSTOP);
  return LiveUntilEof();
}

int ThreeForEver(bool sessions) {
  IgnoreEverything();
  Roll roll;
  if (Fork() == 0) {
    if (sessions) setsid();
    if (Fork() == 0 && sessions) setsid();
    roll.Report();  // both of them
    LiveForEver();
  }
  roll.PrintReady(2);
  LiveForEver();
}

int TreeForEver(int, char**) { return ThreeForEver(/*sessions=*/true); }
int GroupForEver(int, char**) { return ThreeForEver(/*sessions=*/false); }

int Runner(int, char**) {
  Roll roll;
  if (Fork() == 0) {
    setsid();
    roll.Report();
    timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
      const pid_t next = fork();
      if (next > 0) _exit(0);
      if (next == 0) setsid();
      clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < kRunnerSecondsMax);
    _exit(0);
  }
  roll.PrintReady(1);
  return LiveUntilEof();
}

char* term_file;  // read by the handler

void MakeFile(const char* path) { close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644)); }

int OnStop(int, char** argv) {
  term_file = argv[2];
  struct sigaction action = {};
  action.sa_handler = [](int) {
    MakeFile(term_file);
    _exit(0);
  };
  sigaction(SIGTERM, &action, nullptr);
  Roll().PrintReady(0);
  const int result = LiveUntilEof();
  MakeFile(argv[1]);
  return result;
}

int OrphanEof(int, char**) {
  IgnoreEverything();
  Roll().PrintReady(0);
  LiveUntilEof();
  while (true) {
    if (write(STDERR_FILENO, "still here\n", 11) < 0) continue;
  }
}

[[noreturn]] void AcceptForEver(int fd) {
  while (true) close(accept(fd, nullptr, nullptr));
}

int ListenTcp(int, char** argv) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<in_port_t>(Number(argv[1])));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  socklen_t length = sizeof address;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
      bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0 || listen(fd, 16) < 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) < 0) {
    return Error(errno);
  }
  char more[32];
  snprintf(more, sizeof more, " port=%d", ntohs(address.sin_port));
  Roll().PrintReady(0, more);
  AcceptForEver(fd);
}

int ListenUnixAt(const char* name, bool abstract) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t length = strlen(name);
  if (length + 1 > sizeof address.sun_path) return Error(ENAMETOOLONG);
  memcpy(address.sun_path + (abstract ? 1 : 0), name, length);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const socklen_t size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), size) < 0 || listen(fd, 16) < 0) return Error(errno);
  Roll().PrintReady(0);
  AcceptForEver(fd);
}

int ListenUnix(int, char** argv) { return ListenUnixAt(argv[1], false); }
int ListenAbstract(int, char** argv) { return ListenUnixAt(argv[1], true); }

}  // namespace

const Command kTreeCommands[] = {
    {"wait", 1, 1, Wait},
    {"echo", 1, 1, Echo},
    {"wrap", 2, 1000, Wrap},
    {"setsid-helper", 1, 1, SetsidHelper},
    {"daemon", 1, 1, Daemon},
    {"leave", 2, 2, Leave},
    {"ignore-all", 1, 1, IgnoreAll},
    {"hold-stdio", 1, 1, HoldStdio},
    {"stop-self", 1, 1, StopSelf},
    {"tree-forever", 1, 1, TreeForEver},
    {"group-forever", 1, 1, GroupForEver},
    {"runner", 1, 1, Runner},
    {"on-stop", 3, 3, OnStop},
    {"orphan-eof", 1, 1, OrphanEof},
    {"listen-tcp", 2, 2, ListenTcp},
    {"listen-unix", 2, 2, ListenUnix},
    {"listen-abstract", 2, 2, ListenAbstract},
    {nullptr, 0, 0, nullptr},
};

}  // namespace bulkhead::probe
