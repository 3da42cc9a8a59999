// probe's sub-commands about itself and other processes: see the head of probe.cc.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe.h"

namespace bulkhead::probe {
namespace {

int Env(int, char** argv) {
  const char* value = getenv(argv[0]);
  return value == nullptr ? Error(ENOENT) : Ok("%s", value);
}

int CompareText(const void* a, const void* b) {
  return strcmp(*static_cast<char* const*>(a), *static_cast<char* const*>(b));
}

int Environ(int, char**) {
  size_t count = 0;
  while (environ[count] != nullptr) ++count;
  qsort(environ, count, sizeof environ[0], CompareText);
  static char text[65536];
  size_t length = 0;
  for (size_t i = 0; i < count && length + 256 < sizeof text; ++i) {
    const int name_length = static_cast<int>(strcspn(environ[i], "="));
    length += snprintf(text + length, sizeof text - length, "%s%.*s", i == 0 ? "" : " ",
                       name_length < 200 ? name_length : 200, environ[i]);
  }
  return Ok("%s", text);
}

int Argv(int argc, char** argv) {
  static char text[65536];
  size_t length = 0;
  for (int i = 0; i < argc && length < sizeof text; ++i) {
    length += snprintf(text + length, sizeof text - length, "[%s]", argv[i]);
  }
  return Ok("%s", text);
}

int Cwd(int, char**) {
  char path[4096];
  return getcwd(path, sizeof path) == nullptr ? Error(errno) : Ok("%s", path);
}

// The lines of /proc/self/status that begin with one of `names`, in the file's order, as `Name=value`.
int StatusLines(const char* const* names) {
  char status[8192];
  if (Slurp("/proc/self/status", status, sizeof status) < 0) return Error(errno);
  char text[4096] = "";
  size_t length = 0;
  for (char* line = strtok(status, "\n"); line != nullptr; line = strtok(nullptr, "\n")) {
    char* value = strchr(line, ':');
    if (value == nullptr) continue;
    *value++ = '\0';
    while (*value == '\t' || *value == ' ') ++value;
    for (char* c = value; *c != '\0'; ++c) {
      if (*c == '\t' || *c == ' ') *c = ',';
    }
    for (const char* const* name = names; *name != nullptr; ++name) {
      if (strcmp(line, *name) != 0 || length >= sizeof text) continue;
      length += snprintf(text + length, sizeof text - length, "%s%s=%s", length == 0 ? "" : " ", line, value);
    }
  }
  return Ok("%s", text);
}

int Signals(int, char**) {
  const char* const names[] = {"SigBlk", "SigIgn", "SigCgt", nullptr};
  return StatusLines(names);
}

int Ids(int, char**) {
  const char* const names[] = {"Uid",    "Gid",    "Groups", "CapInh",     "CapPrm",  "CapEff",
                               "CapBnd", "CapAmb", "Umask",  "NoNewPrivs", "Seccomp", nullptr};
  return StatusLines(names);
}

int Limit(int, char** argv) {
  static constexpr struct {
    const char* name;
    __rlimit_resource resource;
  } kLimits[] = {{"AS", RLIMIT_AS},         {"CORE", RLIMIT_CORE},   {"CPU", RLIMIT_CPU},
                 {"DATA", RLIMIT_DATA},     {"FSIZE", RLIMIT_FSIZE}, {"MEMLOCK", RLIMIT_MEMLOCK},
                 {"NOFILE", RLIMIT_NOFILE}, {"NPROC", RLIMIT_NPROC}, {"STACK", RLIMIT_STACK}};
  for (const auto& entry : kLimits) {
    if (strcmp(entry.name, argv[0]) != 0) continue;
    rlimit limit;
    if (getrlimit(entry.resource, &limit) < 0) return Error(errno);
    return Ok("soft=%lld hard=%lld", static_cast<long long>(limit.rlim_cur), static_cast<long long>(limit.rlim_max));
  }
  return Error(ENOENT);
}

int GetPid(int, char**) { return Ok("pid=%d ppid=%d pgid=%d sid=%d", getpid(), getppid(), getpgid(0), getsid(0)); }

int Syscall(int argc, char** argv) {
  long number[7] = {};
  for (int i = 0; i < argc; ++i) number[i] = Number(argv[i]);
  return OkOrError(syscall(number[0], number[1], number[2], number[3], number[4], number[5], number[6]));
}

int Kill(int, char** argv) {
  // A negative pid is a group, which Number does not read.
  return OkOrError(kill(static_cast<pid_t>(strtol(argv[0], nullptr, 10)), static_cast<int>(Number(argv[1]))));
}

int Ptrace(int, char** argv) { return OkOrError(ptrace(PTRACE_SEIZE, Number(argv[0]), nullptr, nullptr)); }

int ReadMem(int, char** argv) {
  char path[64], maps[4096];
  snprintf(path, sizeof path, "/proc/%ld/maps", Number(argv[0]));
  if (Slurp(path, maps, sizeof maps) < 0) return Error(errno);
  unsigned long address = 0;
  if (sscanf(maps, "%lx", &address) != 1) return Error(EFAULT);
  snprintf(path, sizeof path, "/proc/%ld/mem", Number(argv[0]));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Error(errno);
  char bytes[16];
  return OkOrError(pread(fd, bytes, sizeof bytes, static_cast<off_t>(address)));
}

int VmRead(int, char** argv) {
  char bytes[16];
  iovec local = {bytes, sizeof bytes};
  iovec remote = {&local, sizeof bytes};
  const ssize_t count = process_vm_readv(static_cast<pid_t>(Number(argv[0])), &local, 1, &remote, 1, 0);
  // EFAULT: there is no memory at that address over there. Permission is checked before.
  return count < 0 && errno != EFAULT ? Error(errno) : Ok("permitted");
}

int Exec(int, char** argv) {
  execv(argv[0], argv);
  return Error(errno);
}

int Exit(int, char** argv) { _exit(static_cast<int>(Number(argv[0]))); }

int Raise(int, char** argv) {
  const int number = static_cast<int>(Number(argv[0]));
  signal(number, SIG_DFL);
  return OkOrError(raise(number));
}

int Memory(int, char** argv) {
  const size_t size = static_cast<size_t>(Number(argv[0]));
  char* const memory = static_cast<char*>(malloc(size));
  if (memory == nullptr) return Error(ENOMEM);
  for (size_t i = 0; i < size; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
  return Ok("%zu bytes", size);
}

int Spin(int, char** argv) {
  const long seconds = Number(argv[0]);
  timespec used = {};
  while (used.tv_sec < seconds) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return Ok("%ld s", seconds);
}

int Files(int, char** argv) {
  const long wanted = Number(argv[1]);
  if (chdir(argv[0]) != 0) return Error(errno);
  for (long count = 0; count < wanted; ++count) {
    char name[24];
    snprintf(name, sizeof name, "%ld", count);
    if (mknod(name, S_IFREG | 0600, 0) == 0) continue;
    printf("error %s after %ld\n", strerrorname_np(errno), count);
    return 1;
  }
  return Ok("%ld", wanted);
}

int Queue(int, char** argv) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const long wanted = Number(argv[0]);
  for (long count = 0; count < wanted; ++count) {
    if (sigqueue(getpid(), SIGRTMIN, {}) == 0) continue;
    printf("error %s after %ld\n", strerrorname_np(errno), count);
    return 1;
  }
  return Ok("%ld", wanted);
}

int Lock(int, char** argv) {
  const int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
  return fd < 0 ? Error(errno) : OkOrError(flock(fd, LOCK_EX | LOCK_NB));
}

int Lease(int, char** argv) {
  const int fd = open(argv[0], O_RDONLY | O_CLOEXEC);
  return fd < 0 ? Error(errno) : OkOrError(fcntl(fd, F_SETLEASE, F_WRLCK));
}

int ForkBomb(int, char** argv) {
  const long wanted = Number(argv[0]);
  pid_t* const children = static_cast<pid_t*>(calloc(static_cast<size_t>(wanted) + 1, sizeof(pid_t)));
  if (children == nullptr) return Error(ENOMEM);
  long count = 0;
  int error = 0;
  while (count < wanted) {
    const pid_t child = fork();
    if (child == 0) {
      while (true) pause();
    }
    if (child < 0) {
      error = errno;
      break;
    }
    children[count++] = child;
  }
  for (long i = 0; i < count; ++i) kill(children[i], SIGKILL);
  while (waitpid(-1, nullptr, 0) > 0) {
  }
  if (error == 0) return Ok("%ld", count);
  printf("error %s after %ld\n", strerrorname_np(error), count);
  return 1;
}

}  // namespace

const Command kProcessCommands[] = {
    {"env", 1, 1, Env},         {"environ", 0, 0, Environ}, {"argv", 0, 1000000, Argv},   {"cwd", 0, 0, Cwd},
    {"ids", 0, 0, Ids},         {"signals", 0, 0, Signals}, {"limit", 1, 1, Limit},       {"getpid", 0, 0, GetPid},
    {"syscall", 1, 7, Syscall}, {"kill", 2, 2, Kill},       {"ptrace", 1, 1, Ptrace},     {"readmem", 1, 1, ReadMem},
    {"vmread", 1, 1, VmRead},   {"exec", 1, 1000000, Exec}, {"exit", 1, 1, Exit},         {"raise", 1, 1, Raise},
    {"memory", 1, 1, Memory},   {"spin", 1, 1, Spin},       {"forkbomb", 1, 1, ForkBomb}, {"files", 2, 2, Files},
    {"lock", 1, 1, Lock},       {"queue", 1, 1, Queue},     {"lease", 1, 1, Lease},       {nullptr, 0, 0, nullptr},
};

}  // namespace bulkhead::probe
