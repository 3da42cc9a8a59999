// deny: runs a program where some system calls fail, to imitate a kernel or a container that lacks them.
//
//   deny [--userns] [--namespaces] [--landlock] [--landlock-abi N] [--proc HOW] [--call NAME=ERRNO]... COMMAND [ARG...]
//
//   --userns        clone and unshare with CLONE_NEWUSER fail with EPERM, clone3 with ENOSYS (as Docker and Ubuntu do:
//                   a filter can't look into clone3's arguments)
//   --namespaces    the same for every CLONE_NEW flag, and EPERM for mount, umount2, pivot_root and setns
//   --landlock      landlock_create_ruleset fails with ENOSYS
//   --landlock-abi N  the kernel says that its Landlock has this ABI; a process of ours answers in its place
//   --proc read-only  nothing in /proc can be written, so that no uid_map can (as AppArmor does on Ubuntu 24.04)
//   --proc none     /proc is an empty folder
//   --call N=E      the call named N fails with E: EPERM, ENOSYS, EACCES, EAGAIN, EINVAL or ENOMEM
//
// The user namespace that --proc takes, unless root starts it, shows the user as himself and gives the command nothing.
// The calls are those of this machine's own architecture; there is no second one inside. Exit code 2 for wrong use;
// else the command's. Libc only.
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr uint32_t kNamespaceFlags =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

struct Name {
  const char* name;
  int value;
};

// Newer calls have one number on all architectures.
constexpr Name kCalls[] = {
    {"clone", __NR_clone},
    {"clone3", 435},
    {"close_range", 436},
    {"execveat", __NR_execveat},
    {"fsmount", 432},
    {"landlock_create_ruleset", 444},
    {"landlock_restrict_self", 446},
    {"memfd_create", __NR_memfd_create},
    {"mount", __NR_mount},
    {"mount_setattr", 442},
    {"move_mount", 429},
    {"open_tree", 428},
    {"openat2", 437},
    {"pidfd_open", 434},
    {"pidfd_send_signal", 424},
    {"pivot_root", __NR_pivot_root},
    {"ppoll", __NR_ppoll},
    {"setns", __NR_setns},
    {"statx", __NR_statx},
    {"umount2", __NR_umount2},
    {"unshare", __NR_unshare},
};

constexpr Name kErrors[] = {{"EPERM", EPERM},   {"ENOSYS", ENOSYS}, {"EACCES", EACCES},
                            {"EAGAIN", EAGAIN}, {"EINVAL", EINVAL}, {"ENOMEM", ENOMEM}};

constexpr size_t kInstructionsMax = 128;
sock_filter program[kInstructionsMax];
size_t length = 0;

[[noreturn]] void Fail(const char* what, const char* detail) {
  fprintf(stderr, "deny: %s: %s\n", what, detail);
  exit(2);
}

void Add(uint16_t code, uint32_t k, uint8_t if_true = 0, uint8_t if_false = 0) {
  if (length == kInstructionsMax) Fail("too many calls", "128 instructions at most");
  program[length++] = sock_filter{code, if_true, if_false, k};
}

void Return(uint32_t action) { Add(BPF_RET | BPF_K, action); }

void LoadNumber() { Add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)); }

void DenyCall(int number, int error) {
  Add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 1);
  Return(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
}

// The first argument is where clone and unshare have their flags, on x86-64 and aarch64.
void DenyFlags(int number, uint32_t flags) {
  Add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 4);
  Add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0]));
  Add(BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1);
  Return(SECCOMP_RET_ERRNO | EPERM);
  LoadNumber();
}

void DenyNamespaces(uint32_t flags) {
  DenyFlags(__NR_clone, flags);
  DenyFlags(__NR_unshare, flags);
  DenyCall(435 /* clone3 */, ENOSYS);
}

template <size_t N>
int Find(const Name (&names)[N], const char* text, size_t text_length) {
  for (const Name& entry : names) {
    if (strlen(entry.name) == text_length && memcmp(entry.name, text, text_length) == 0) return entry.value;
  }
  Fail("unknown name", text);
}

void DenyNamed(const char* text) {
  const char* const equals = strchr(text, '=');
  if (equals == nullptr) Fail("--call needs NAME=ERRNO", text);
  DenyCall(Find(kCalls, text, static_cast<size_t>(equals - text)), Find(kErrors, equals + 1, strlen(equals + 1)));
}

// The descriptor that --landlock-abi is answered by, or 0.
int Install(unsigned flags) {
  const sock_fprog filter = {static_cast<unsigned short>(length), program};
  long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter);  // root: leaves no_new_privs as it is
  if (result < 0 && errno != EACCES) Fail("seccomp", strerror(errno));
  if (result < 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                     (result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter)) < 0)) {
    Fail("seccomp", strerror(errno));
  }
  return static_cast<int>(result);
}

// landlock_create_ruleset(2) with LANDLOCK_CREATE_RULESET_VERSION asks for the ABI; all else is the kernel's to do.
void AskAboutVersion() {
  Add(BPF_JMP | BPF_JEQ | BPF_K, 444 /* landlock_create_ruleset */, 0, 4);
  Add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2]));
  Add(BPF_JMP | BPF_JEQ | BPF_K, 1 /* LANDLOCK_CREATE_RULESET_VERSION */, 0, 1);
  Return(SECCOMP_RET_USER_NOTIF);
  LoadNumber();
}

// A child answers until nobody is left who could ask.
void AnswerVersion(int listener, int abi) {
  if (fork() != 0) return;
  for (int fd = 0; fd <= 2; ++fd) close(fd);
  seccomp_notif ask;
  for (;;) {
    pollfd ready = {listener, POLLIN, 0};
    if (poll(&ready, 1, -1) < 0 || (ready.revents & POLLIN) == 0) _exit(0);
    memset(&ask, 0, sizeof ask);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &ask) != 0) continue;
    seccomp_notif_resp answer = {ask.id, abi, 0, 0};
    ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

void Write(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) Fail(path, strerror(errno));
  close(fd);
}

void MapOneself(const char* path, unsigned id) {
  char map[32];
  snprintf(map, sizeof map, "%u %u 1", id, id);
  Write(path, map);
}

void ChangeProc(const char* how) {
  const unsigned uid = geteuid(), gid = getegid();
  if (unshare(CLONE_NEWNS | (uid == 0 ? 0 : CLONE_NEWUSER)) != 0) Fail("unshare", strerror(errno));
  if (uid != 0) {
    MapOneself("/proc/self/uid_map", uid);
    Write("/proc/self/setgroups", "deny");
    MapOneself("/proc/self/gid_map", gid);
  }
  const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  const bool none = strcmp(how, "none") == 0;
  if (!none && strcmp(how, "read-only") != 0) Fail("--proc is none or read-only, not", how);
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      (none ? mount("none", "/proc", "tmpfs", flags | MS_RDONLY, nullptr)
            : mount(nullptr, "/proc", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, nullptr)) != 0) {
    Fail("mount", strerror(errno));
  }
}

}  // namespace

int main(int argc, char** argv) {
  LoadNumber();
  int i = 1, abi = 0;
  const char* proc = nullptr;
  for (; i < argc && strncmp(argv[i], "--", 2) == 0; ++i) {
    if (strcmp(argv[i], "--userns") == 0) {
      DenyNamespaces(CLONE_NEWUSER);
    } else if (strcmp(argv[i], "--namespaces") == 0) {
      DenyNamespaces(kNamespaceFlags);
      static constexpr int kMountCalls[] = {__NR_mount, __NR_umount2, __NR_pivot_root, __NR_setns};
      for (const int call : kMountCalls) DenyCall(call, EPERM);
    } else if (strcmp(argv[i], "--landlock") == 0) {
      DenyCall(444 /* landlock_create_ruleset */, ENOSYS);
    } else if (strcmp(argv[i], "--landlock-abi") == 0 && i + 1 < argc) {
      abi = atoi(argv[++i]);
      AskAboutVersion();
    } else if (strcmp(argv[i], "--proc") == 0 && i + 1 < argc) {
      proc = argv[++i];
    } else if (strcmp(argv[i], "--call") == 0 && i + 1 < argc) {
      DenyNamed(argv[++i]);
    } else {
      Fail("unknown flag", argv[i]);
    }
  }
  if (i >= argc) Fail("no command", "see the head of tests/programs/deny.cc");
  Return(SECCOMP_RET_ALLOW);
  if (proc != nullptr) ChangeProc(proc);
  const int listener = Install(abi == 0 ? 0 : SECCOMP_FILTER_FLAG_NEW_LISTENER);
  if (abi != 0) AnswerVersion(listener, abi);  // the listener is closed by exec
  execvp(argv[i], argv + i);
  Fail(argv[i], strerror(errno));
}
