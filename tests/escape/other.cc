// Attacks by the environment, on limits, and on what the launcher leaves in reach.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attacker.h"

namespace bulkhead::escape {
namespace {

// ---- Environment: variables of the host that would pass a secret, or run code in the server or in what it starts.

int Variable(const char* name) { return getenv(name) != nullptr ? Got() : Held("not set"); }
int EnvCanary() { return Variable("BULKHEAD_ESCAPE_CANARY"); }
int EnvToken() { return Variable("GITHUB_TOKEN"); }
int EnvPreload() { return Variable("LD_PRELOAD"); }
int EnvAudit() { return Variable("LD_AUDIT"); }
int EnvLibraryPath() { return Variable("LD_LIBRARY_PATH"); }
int EnvNodeOptions() { return Variable("NODE_OPTIONS"); }
int EnvPythonStartup() { return Variable("PYTHONSTARTUP"); }
int EnvPythonPath() { return Variable("PYTHONPATH"); }
int EnvBash() { return Variable("BASH_ENV"); }
int EnvBashFunction() { return Variable("BASH_FUNC_ls%%"); }
int EnvFunctionValue() {
  const char* value = getenv("TERM");
  return value != nullptr && strncmp(value, "()", 2) == 0 ? Got() : Held("not set");
}
int EnvSshAgent() { return Variable("SSH_AUTH_SOCK"); }
int EnvOfOwn() { return GotIfReads("/proc/self/environ", Given("canary")); }

// ---- Limits, which the stage sets

int Children(int wanted) {
  pid_t children[64];
  int count = 0, error = 0;
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
  for (int i = 0; i < count; ++i) kill(children[i], SIGKILL);
  while (waitpid(-1, nullptr, 0) > 0) {
  }
  errno = error;
  return GotIf(error == 0);
}
int ForkBomb() { return Children(40); }
void* WaitForEver(void*) {
  while (true) pause();
}
int ThreadBomb() {
  for (int i = 0; i < 40; ++i) {
    pthread_t thread;
    const int error = pthread_create(&thread, nullptr, WaitForEver, nullptr);
    if (error != 0) return Held(error);
  }
  return Got();
}
int OpenFiles() {
  for (int i = 0; i < 100; ++i) {
    if (dup(1) < 0) return Held(errno);
  }
  return Got();
}
int RaiseOpenFiles() {
  const rlimit limit = {100, 100};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return Held(errno);
  return OpenFiles();
}
int LargeFile() {
  signal(SIGXFSZ, SIG_IGN);
  const int fd = open(Path("work", "large").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  return GotIf(fd >= 0 && pwrite(fd, "x", 1, 1 << 20) == 1);
}
int LargeFileByTruncate() {
  signal(SIGXFSZ, SIG_IGN);
  const int fd = open(Path("work", "large").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  return GotIf(fd >= 0 && ftruncate(fd, 1 << 20) == 0);
}
int LargeFileByFallocate() {
  signal(SIGXFSZ, SIG_IGN);
  const int fd = open(Path("work", "large").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  return GotIf(fd >= 0 && fallocate(fd, 0, 0, 1 << 20) == 0);
}
int CoreDumps() {
  const rlimit limit = {1, RLIM_INFINITY};
  if (setrlimit(RLIMIT_CORE, &limit) == 0) return Got();
  return Given("control")[0] == '1' ? Untried("core dumps (ulimit -Hc is 0)") : Held(errno);
}
// Processor time of a second and a half; the limit is one.
int Spin() {
  timespec used = {};
  while (used.tv_sec < 1 || used.tv_nsec < 500000000) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return Got();
}
// More than a private folder holds. fallocate takes the memory and writes nothing.
int Fill(const std::string& folder) {
  const int fd = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  return GotIf(fd >= 0 && fallocate(fd, 0, 0, 600ll << 20) == 0);
}
int FillShm() { return Fill("/dev/shm"); }
int FillHome() { return Fill(getenv("HOME")); }
int Memory() {
  const size_t size = 64 << 20;
  char* const memory =
      static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) return Held(errno);
  for (size_t i = 0; i < size; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
  return Got();
}
int OomScore() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  return GotIf(fd >= 0 && write(fd, "-1000", 5) == 5);
}

// ---- The launcher

// A plan or a filter that can still be written: any memfd of ours or of the processes above us (firejail#2718).
int WriteMemfds() {
  int error = EACCES;
  for (const pid_t pid : {getpid(), Init(), Keeper()}) {
    if (pid == 0) continue;
    for (int fd = 3; fd < 64; ++fd) {
      const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
      char target[256] = "";
      if (readlink(path.c_str(), target, sizeof target - 1) < 0) {
        if (errno != ENOENT) error = errno;
        continue;
      }
      if (strncmp(target, "/memfd:", 7) == 0 && open(path.c_str(), O_RDWR | O_CLOEXEC) >= 0) return Got(target);
    }
  }
  return Held(error);
}
int OverwriteOwnProgram() {
  // CVE-2019-5736. A program that runs can't be written (ETXTBSY), so that it holds its file and becomes another one.
  const int fd = open("/proc/self/exe", O_RDONLY);
  if (fd < 0) return Held(errno);
  execl("/bin/sh", "sh", "-c", "if (: >>/proc/self/fd/$0); then echo got; else echo held; exit 1; fi",
        std::to_string(fd).c_str(), nullptr);
  return Held(errno);
}
int ReadLauncher() {
  // The launcher's own program, from which its layout in memory is known.
  return GotIf(open(("/proc/" + std::to_string(Init()) + "/exe").c_str(), O_RDONLY | O_CLOEXEC) >= 0);
}
// A secret in the arguments of any process that can be seen. Our own words are no secret of the host's.
int SecretInArguments() {
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return Held(errno);
  while (const dirent* entry = readdir(folder)) {
    const pid_t pid = atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    const std::string words = Slurp(("/proc/" + std::to_string(pid) + "/cmdline").c_str());
    if (words.find(std::string("token-for-") + Given("token")) != std::string::npos) return Got();
  }
  return Held("in none");
}
int SecretInEnvironments() {
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return Held(errno);
  while (const dirent* entry = readdir(folder)) {
    const pid_t pid = atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    const std::string words = Slurp(("/proc/" + std::to_string(pid) + "/environ").c_str());
    if (words.find(Given("canary")) != std::string::npos) return Got();
  }
  return Held("in none");
}
int SharesInitsMountNamespace() {
  struct stat ours, theirs;
  const std::string path = "/proc/" + std::to_string(GivenPid("victim")) + "/ns/mnt";
  if (stat("/proc/self/ns/mnt", &ours) != 0 || stat(path.c_str(), &theirs) != 0) return Held(errno);
  return ours.st_ino == theirs.st_ino ? Got() : Held("another");
}
int DumpableInit() {
  struct stat info;
  if (stat(("/proc/" + std::to_string(Init()) + "/status").c_str(), &info) != 0) return Held(errno);
  // The files of a process that may be read belong to its user; those of others to root.
  return open(("/proc/" + std::to_string(Init()) + "/auxv").c_str(), O_RDONLY | O_CLOEXEC) >= 0 ? Got() : Held(errno);
}
int RuntimeFolders() {
  // What a setuid sandbox keeps in the jail's reach (CVE-2022-31214).
  for (const char* folder : {"/run/firejail", "/run/bulkhead", "/run/user"}) {
    if (open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0) return Got(folder);
  }
  return Given("control")[0] == '1' ? Untried("a /run/user or /run/firejail") : Held(errno);
}

}  // namespace

const Attack kOtherAttacks[] = {
    {"env_canary", EnvCanary},
    {"env_token", EnvToken},
    {"env_ld_preload", EnvPreload},
    {"env_ld_audit", EnvAudit},
    {"env_ld_library_path", EnvLibraryPath},
    {"env_node_options", EnvNodeOptions},
    {"env_pythonstartup", EnvPythonStartup},
    {"env_pythonpath", EnvPythonPath},
    {"env_bash_env", EnvBash},
    {"env_bash_function", EnvBashFunction},
    {"env_function_value", EnvFunctionValue},
    {"env_ssh_auth_sock", EnvSshAgent},
    {"env_of_own_process", EnvOfOwn},
    {"fork_bomb", ForkBomb},
    {"thread_bomb", ThreadBomb},
    {"open_files", OpenFiles},
    {"raise_open_files", RaiseOpenFiles},
    {"large_file", LargeFile},
    {"large_file_by_truncate", LargeFileByTruncate},
    {"large_file_by_fallocate", LargeFileByFallocate},
    {"core_dumps", CoreDumps},
    {"cpu_time", Spin},
    {"fill_shared_memory", FillShm},
    {"fill_home", FillHome},
    {"memory", Memory},
    {"oom_score", OomScore},
    {"write_plan", WriteMemfds},
    {"overwrite_own_program", OverwriteOwnProgram},
    {"read_launchers_program", ReadLauncher},
    {"secret_in_arguments", SecretInArguments},
    {"secret_in_environments", SecretInEnvironments},
    {"mount_namespace_of_victim", SharesInitsMountNamespace},
    {"read_inits_auxv", DumpableInit},
    {"runtime_folders", RuntimeFolders},
    {nullptr, nullptr},
};

}  // namespace bulkhead::escape
