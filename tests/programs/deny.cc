// deny: runs a program where some system calls fail, to imitate a kernel or a container that lacks them.
//
//   deny [--userns] [--namespaces] [--landlock] [--call NAME=ERRNO]... COMMAND [ARG...]
//
//   --userns        clone and unshare with CLONE_NEWUSER fail with EPERM, clone3 with ENOSYS (as Docker and Ubuntu do:
//                   a filter can't look into clone3's arguments)
//   --namespaces    the same for every CLONE_NEW flag, and EPERM for mount, umount2, pivot_root and setns
//   --landlock      landlock_create_ruleset fails with ENOSYS
//   --call N=E      the call named N fails with E: EPERM, ENOSYS, EACCES, EINVAL or ENOMEM
//
// The calls are those of this machine's own architecture; there is no second one inside. Exit code 2 for wrong use;
// else the command's. Libc only.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    {"setns", __NR_setns},
    {"umount2", __NR_umount2},
    {"unshare", __NR_unshare},
};

constexpr Name kErrors[] = {
    {"EPERM", EPERM}, {"ENOSYS", ENOSYS}, {"EACCES", EACCES}, {"EINVAL", EINVAL}, {"ENOMEM", ENOMEM}};

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

void Install() {
  const sock_fprog filter = {static_cast<unsigned short>(length), program};
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0) return;  // root: leaves no_new_privs as it is
  if (errno != EACCES) Fail("seccomp", strerror(errno));
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0) {
    Fail("seccomp", strerror(errno));
  }
}

}  // namespace

int main(int argc, char** argv) {
  LoadNumber();
  int i = 1;
  for (; i < argc && strncmp(argv[i], "--", 2) == 0; ++i) {
    if (strcmp(argv[i], "--userns") == 0) {
      DenyNamespaces(CLONE_NEWUSER);
    } else if (strcmp(argv[i], "--namespaces") == 0) {
      DenyNamespaces(kNamespaceFlags);
      static constexpr int kMountCalls[] = {__NR_mount, __NR_umount2, __NR_pivot_root, __NR_setns};
      for (const int call : kMountCalls) DenyCall(call, EPERM);
    } else if (strcmp(argv[i], "--landlock") == 0) {
      DenyCall(444 /* landlock_create_ruleset */, ENOSYS);
    } else if (strcmp(argv[i], "--call") == 0 && i + 1 < argc) {
      DenyNamed(argv[++i]);
    } else {
      Fail("unknown flag", argv[i]);
    }
  }
  if (i >= argc) Fail("no command", "see the head of tests/programs/deny.cc");
  Return(SECCOMP_RET_ALLOW);
  Install();
  execvp(argv[i], argv + i);
  Fail(argv[i], strerror(errno));
}
