// attacker: a server that tries one way out. The stage (stage.h) starts it without a jail, in which case it must
// succeed, and then in each jail.
//
//   attacker NAME key=value...     tries the attack NAME with what the stage has at hand
//   attacker --list                the names of all attacks
//   attacker --victim              another process of the person: keeps its signals pending until it is killed
//   attacker --in-front COMMAND    runs COMMAND as a child, as whatever stands where Bulkhead's processes are in a jail
//
// An attack prints one line, and exits with
//   0  got ...       it has what it wanted
//   1  held ERRNO    it has not
//   2  untried ...   nobody could do it here, with the kernel's feature that is missing
//
// Libc only, linked statically, so that it starts wherever a program can be started. An attack leaves the host as it
// was: what would hurt is tried only as far as it shows that nothing would have stopped it.
#include "attacker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bulkhead::escape {
namespace {

char** g_words;

int Say(int code, const char* word, const char* text) {
  printf("%s%s%s\n", word, *text == '\0' ? "" : " ", text);
  fflush(stdout);
  return code;
}

[[noreturn]] void BeVictim() {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  puts("ready");
  fflush(stdout);
  while (true) pause();
}

int StandInFront(char** command) {
  memfd_create("a-plan", 0);  // left open, and not sealed
  const pid_t child = fork();
  if (child == 0) {
    execv(command[0], command);
    _exit(3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

}  // namespace

const char* Given(const char* key) {
  const size_t length = strlen(key);
  for (char** word = g_words; *word != nullptr; ++word) {
    if (strncmp(*word, key, length) == 0 && (*word)[length] == '=') return *word + length + 1;
  }
  return "";
}

std::string Path(const char* key, const char* below) { return std::string(Given(key)) + "/" + below; }

pid_t GivenPid(const char* key) { return static_cast<pid_t>(atoi(Given(key))); }

int Got(const char* what) { return Say(0, "got", what); }
int Held(int error) { return Say(1, "held", error == 0 ? "" : strerrorname_np(error)); }
int Held(const char* why) { return Say(1, "held", why); }
int Untried(const char* feature) { return Say(2, "untried", feature); }
int GotIf(bool got) { return got ? Got() : Held(errno); }

int GotIfFdReads(int fd, const char* mark) {
  if (fd < 0) return Held(errno);
  std::string text;
  char block[4096];
  ssize_t count = 0;
  while (text.size() < (1 << 20) && (count = read(fd, block, sizeof block)) > 0) {
    text.append(block, static_cast<size_t>(count));
  }
  const int error = count < 0 ? errno : 0;
  close(fd);
  return text.find(mark) != std::string::npos ? Got() : error != 0 ? Held(error) : Held("nothing of it");
}

int GotIfReads(const char* path, const char* mark) { return GotIfFdReads(open(path, O_RDONLY | O_CLOEXEC), mark); }

int GotIfWrites(int fd) {
  if (fd < 0) return Held(errno);
  const bool written = write(fd, kEvilMark, strlen(kEvilMark)) > 0;
  const int error = errno;
  close(fd);
  errno = error;
  return GotIf(written);
}

std::string Slurp(const char* path) {
  std::string text;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char block[4096];
  ssize_t count = 0;
  while ((count = read(fd, block, sizeof block)) > 0) text.append(block, static_cast<size_t>(count));
  close(fd);
  return text;
}

pid_t Init() { return getppid(); }

pid_t Keeper() {
  const std::string stat = Slurp(("/proc/" + std::to_string(getppid()) + "/stat").c_str());
  const size_t name_end = stat.rfind(')');
  int parent = 0;
  if (name_end == std::string::npos || sscanf(stat.c_str() + name_end, ") %*c %d", &parent) != 1) return 0;
  return parent;
}

int Main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--victim") == 0) BeVictim();
  if (argc > 2 && strcmp(argv[1], "--in-front") == 0) return StandInFront(argv + 2);
  g_words = argv + (argc > 1 ? 2 : 1);
  const bool list = argc == 2 && strcmp(argv[1], "--list") == 0;
  for (const Attack* attacks :
       {kFileAttacks, kProcessAttacks, kDescriptorAttacks, kNetworkAttacks, kKernelAttacks, kOtherAttacks}) {
    for (; attacks->name != nullptr; ++attacks) {
      if (list) puts(attacks->name);
      if (!list && argc > 1 && strcmp(argv[1], attacks->name) == 0) return attacks->run();
    }
  }
  if (list) return 0;
  fprintf(stderr, "attacker: no such attack\n");
  return 3;
}

}  // namespace bulkhead::escape

int main(int argc, char** argv) { return bulkhead::escape::Main(argc, argv); }
