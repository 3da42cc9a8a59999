// Attacks on the kernel's surface: calls that exploits begin with. Most are asked with arguments that do nothing: who
// gets past the check for permission sees another error than EPERM, which is what is wanted.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attacker.h"

namespace bulkhead::escape {
namespace {

bool IsControl() { return Given("control")[0] == '1'; }

// What a wall says. Everything else came from behind it.
bool IsWall(int error) { return error == EPERM || error == EACCES || error == ENOSYS || error == ENOMEM; }
int GotPast(long result, const char* feature = nullptr) {
  if (result >= 0 || !IsWall(errno)) return Got(result >= 0 ? "" : strerrorname_np(errno));
  return errno == ENOSYS && IsControl() && feature != nullptr ? Untried(feature) : Held(errno);
}
// In a child, since what it makes would stay with us.
template <typename F>
int InChild(F call, const char* feature = nullptr) {
  const pid_t child = fork();
  if (child == 0) _exit(call() >= 0 ? 0 : errno);
  int status = 0;
  waitpid(child, &status, 0);
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
  return errno == 0 ? Got() : GotPast(-1, feature);
}

int Unshare(int flags) {
  return InChild([flags] { return unshare(flags); });
}
int UnshareUser() { return Unshare(CLONE_NEWUSER); }
int UnshareMount() { return Unshare(CLONE_NEWNS); }
int UnsharePid() { return Unshare(CLONE_NEWPID); }
int UnshareNet() { return Unshare(CLONE_NEWNET); }
int UnshareIpc() { return Unshare(CLONE_NEWIPC); }
int UnshareUserAndAll() {
  return Unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS);
}
int UnshareTime() { return Unshare(0x80 /* CLONE_NEWTIME */); }
int CloneWith(unsigned long flags) {
  const long child = syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) _exit(0);
  if (child < 0) return GotPast(-1);
  waitpid(static_cast<pid_t>(child), nullptr, 0);
  return Got();
}
int CloneUser() { return CloneWith(CLONE_NEWUSER); }
int CloneUserAndNet() { return CloneWith(CLONE_NEWUSER | CLONE_NEWNET); }
int CloneUserAndMount() { return CloneWith(CLONE_NEWUSER | CLONE_NEWNS); }
int Clone3User() {
  struct {
    unsigned long long flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
  } arguments = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0};
  const long child = syscall(435, &arguments, sizeof arguments);
  if (child == 0) _exit(0);
  if (child < 0) return GotPast(-1, "clone3 (Linux 5.3)");
  waitpid(static_cast<pid_t>(child), nullptr, 0);
  return Got();
}
// What a namespace of its own is wanted for: all capabilities there.
int BecomeRootOfNamespace() {
  return InChild([] {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return -1;
    return mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  });
}
int SetnsInvalid() { return GotPast(setns(-1, 0)); }  // EBADF

int MountTmpfs() {
  const std::string folder = Path("work", "mnt");
  if (mount("none", folder.c_str(), "tmpfs", 0, "size=1k") != 0) return Held(errno);
  umount2(folder.c_str(), MNT_DETACH);
  return Got();
}
int MountProc() {
  const std::string folder = Path("work", "mnt");
  if (mount("none", folder.c_str(), "proc", 0, nullptr) != 0) return Held(errno);
  umount2(folder.c_str(), MNT_DETACH);
  return Got();
}
int Umount() { return GotPast(umount2("/nonexistent", MNT_DETACH)); }
int PivotRoot() { return GotPast(syscall(SYS_pivot_root, "/nonexistent", "/nonexistent")); }
int Chroot() {
  return InChild([] { return chroot("/"); });
}
int Fsopen() { return GotPast(syscall(430, "tmpfs", 0), "fsopen (Linux 5.2)"); }
int Fspick() { return GotPast(syscall(433, AT_FDCWD, "/", 0), "fspick (Linux 5.2)"); }
int OpenTree() { return GotPast(syscall(428, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */), "open_tree (Linux 5.2)"); }
int MoveMount() { return GotPast(syscall(429, -1, "", -1, "", 4), "move_mount (Linux 5.2)"); }
int MountSetattr() {
  unsigned long long attributes[4] = {};
  return GotPast(syscall(442, -1, "", 0x1000, attributes, sizeof attributes), "mount_setattr (Linux 5.12)");
}

int Bpf() {
  // BPF_MAP_CREATE of an array of one.
  unsigned attributes[32] = {2, 4, 4, 1};
  return GotPast(syscall(SYS_bpf, 0, attributes, sizeof attributes), "bpf (CONFIG_BPF_SYSCALL)");
}
int BpfProgram() {
  unsigned attributes[32] = {1};
  return GotPast(syscall(SYS_bpf, 5, attributes, sizeof attributes), "bpf (CONFIG_BPF_SYSCALL)");
}
int Userfaultfd() { return GotPast(syscall(SYS_userfaultfd, O_CLOEXEC | 1), "userfaultfd (CONFIG_USERFAULTFD)"); }
int OpenUserfaultfd() {
  if (access("/dev/userfaultfd", F_OK) != 0 && IsControl()) return Untried("/dev/userfaultfd (CONFIG_USERFAULTFD)");
  return GotIf(open("/dev/userfaultfd", O_RDWR | O_CLOEXEC) >= 0);
}
int PerfEvent() {
  // PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, without the kernel.
  struct {
    unsigned type, size;
    unsigned long long config, more[14];
  } attributes = {1, sizeof attributes, 0, {}};
  attributes.more[3] = 1u << 5;
  return GotPast(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0), "perf_event_open (CONFIG_PERF_EVENTS)");
}
int IoUringSetup() {
  unsigned parameters[30] = {};
  return GotPast(syscall(425, 1, parameters), "io_uring (CONFIG_IO_URING)");
}
int IoUringEnter() { return GotPast(syscall(426, -1, 0, 0, 0, nullptr, 0), "io_uring (CONFIG_IO_URING)"); }
int IoUringRegister() { return GotPast(syscall(427, -1, 0, nullptr, 0), "io_uring (CONFIG_IO_URING)"); }
int Fanotify() { return GotPast(syscall(SYS_fanotify_init, 0x200, 0), "fanotify (CONFIG_FANOTIFY)"); }
int ListSecurityModules() {
  unsigned long long ids[64];
  unsigned size = sizeof ids;
  return GotPast(syscall(461, ids, &size, 0), "lsm_list_modules (Linux 6.8)");
}
int MemfdSecret() { return GotPast(syscall(447, 0), "memfd_secret (CONFIG_SECRETMEM)"); }
int Vmsplice() {
  int ends[2];
  if (pipe(ends) != 0) return Held(errno);
  char byte = 'x';
  const iovec data = {&byte, 1};
  return GotPast(vmsplice(ends[1], &data, 1, 0));
}
int Ptrace() {
  return InChild([] { return static_cast<int>(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); });
}
int Mbind() { return GotPast(syscall(SYS_set_mempolicy, 0, nullptr, 0), "set_mempolicy (CONFIG_NUMA)"); }
int ModifyLdt() {
  char entry[16] = {};
  return GotPast(syscall(SYS_modify_ldt, 0, entry, sizeof entry), "modify_ldt (CONFIG_MODIFY_LDT_SYSCALL)");
}
int Personality() { return GotPast(personality(ADDR_NO_RANDOMIZE)); }
int PersonalityReadExec() { return GotPast(personality(READ_IMPLIES_EXEC)); }

int InitModule() { return GotPast(syscall(SYS_init_module, "", 0, ""), "modules (CONFIG_MODULES)"); }
int FinitModule() { return GotPast(syscall(SYS_finit_module, -1, "", 0), "modules (CONFIG_MODULES)"); }
int DeleteModule() {
  return GotPast(syscall(SYS_delete_module, "no_such_module", O_NONBLOCK), "modules (CONFIG_MODULES)");
}
int Kexec() { return GotPast(syscall(SYS_kexec_load, 0, 1ul << 20, nullptr, 0), "kexec (CONFIG_KEXEC)"); }
int KexecFile() { return GotPast(syscall(SYS_kexec_file_load, -1, -1, 0, "", 0x1000), "kexec (CONFIG_KEXEC_FILE)"); }
int Reboot() { return GotPast(syscall(SYS_reboot, 0, 0, 0, nullptr)); }  // EINVAL: these are not its magic numbers
int Swapon() { return GotPast(syscall(SYS_swapon, "/nonexistent", 0)); }
int Swapoff() { return GotPast(syscall(SYS_swapoff, "/nonexistent")); }
int Acct() { return GotPast(syscall(SYS_acct, "/nonexistent"), "acct (CONFIG_BSD_PROCESS_ACCT)"); }
int Quotactl() { return GotPast(syscall(SYS_quotactl, 0, "/nonexistent", 0, nullptr), "quotactl (CONFIG_QUOTA)"); }
int Syslog() { return GotPast(syscall(SYS_syslog, 10 /* size of the buffer */, nullptr, 0)); }
int Adjtimex() {
  timex state = {};
  return GotPast(adjtimex(&state));
}
int ClockSettime() {
  // Of a clock that can't be set: EINVAL, from behind the wall.
  const timespec now = {1, 0};
  return GotPast(clock_settime(CLOCK_MONOTONIC, &now));
}
int SetHostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return GotIf(sethostname(name, strlen(name)) == 0);
}
int Iopl() { return GotPast(syscall(SYS_iopl, 3), "iopl (CONFIG_X86_IOPL_IOPERM)"); }
int Ioperm() { return GotPast(syscall(SYS_ioperm, 0x80, 1, 1), "ioperm (CONFIG_X86_IOPL_IOPERM)"); }
int BadNumber() { return GotPast(syscall(SYS_uselib, ""), "uselib (CONFIG_USELIB)"); }
int Sysfs() { return GotPast(syscall(SYS_sysfs, 3), "sysfs(2) (CONFIG_SYSFS_SYSCALL)"); }
int Ustat() {
  char buffer[64];
  return GotPast(syscall(SYS_ustat, 0, buffer), "ustat");
}

// The same calls by other numbers and by another door.
int X32() {
#ifdef __x86_64__
  return GotPast(syscall(0x40000000 + SYS_getpid), "x32 (CONFIG_X86_X32_ABI)");
#else
  return Untried("x86_64");
#endif
}
int Int80() {
#ifdef __x86_64__
  // getpid of i386. A kernel without that door ends us with SIGSEGV; some virtual machines with SIGILL.
  const pid_t child = fork();
  if (child == 0) {
    long result = 20;
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    _exit(result > 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status) && IsControl()) return Untried("int 0x80 (CONFIG_IA32_EMULATION)");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? Got() : Held("refused");
#else
  return Untried("x86_64");
#endif
}

// ---- Rights

int HasFilter() {
  const std::string status = Slurp("/proc/self/status");
  return status.find("Seccomp:\t0") != std::string::npos ? Got("no filter") : Held("there is a filter");
}
int HasNewPrivs() {
  const std::string status = Slurp("/proc/self/status");
  return status.find("NoNewPrivs:\t0") != std::string::npos ? Got("no_new_privs is off") : Held("no_new_privs is on");
}
int HasCapabilities() {
  const std::string status = Slurp("/proc/self/status");
  return status.find("CapEff:\t0000000000000000") == std::string::npos ? Got() : Held("none");
}
int BecomeRoot() { return GotIf(setresuid(0, 0, 0) == 0); }
int BecomeAnother() { return GotIf(setresuid(12345, 12345, 12345) == 0); }
int SetGroups() {
  return InChild([] {
    const gid_t root = 0;
    return static_cast<int>(syscall(SYS_setgroups, 1, &root));
  });
}
int RaiseBounding() {
  const std::string status = Slurp("/proc/self/status");
  return status.find("CapBnd:\t0000000000000000") == std::string::npos ? Got() : Held("none");
}
int Realtime() {
  return InChild([] {
    sched_param parameter = {};
    parameter.sched_priority = 1;
    return sched_setscheduler(0, SCHED_FIFO, &parameter);
  });
}
int RaisePriority() {
  return InChild([] { return nice(-5) == -1 ? -1 : 0; });
}

}  // namespace

const Attack kKernelAttacks[] = {
    {"unshare_user", UnshareUser},
    {"unshare_mount", UnshareMount},
    {"unshare_pid", UnsharePid},
    {"unshare_network", UnshareNet},
    {"unshare_ipc", UnshareIpc},
    {"unshare_time", UnshareTime},
    {"unshare_all", UnshareUserAndAll},
    {"clone_user", CloneUser},
    {"clone_user_and_network", CloneUserAndNet},
    {"clone_user_and_mount", CloneUserAndMount},
    {"clone3_user", Clone3User},
    {"root_of_namespace", BecomeRootOfNamespace},
    {"setns", SetnsInvalid},
    {"mount_tmpfs", MountTmpfs},
    {"mount_proc", MountProc},
    {"umount", Umount},
    {"pivot_root", PivotRoot},
    {"chroot", Chroot},
    {"fsopen", Fsopen},
    {"fspick", Fspick},
    {"open_tree", OpenTree},
    {"move_mount", MoveMount},
    {"mount_setattr", MountSetattr},
    {"bpf_map", Bpf},
    {"bpf_program", BpfProgram},
    {"userfaultfd", Userfaultfd},
    {"open_dev_userfaultfd", OpenUserfaultfd},
    {"perf_event_open", PerfEvent},
    {"io_uring_setup", IoUringSetup},
    {"io_uring_enter", IoUringEnter},
    {"io_uring_register", IoUringRegister},
    {"fanotify", Fanotify},
    {"lsm_list_modules", ListSecurityModules},
    {"memfd_secret", MemfdSecret},
    {"vmsplice", Vmsplice},
    {"ptrace_traceme", Ptrace},
    {"set_mempolicy", Mbind},
    {"modify_ldt", ModifyLdt},
    {"personality_no_randomize", Personality},
    {"personality_read_implies_exec", PersonalityReadExec},
    {"init_module", InitModule},
    {"finit_module", FinitModule},
    {"delete_module", DeleteModule},
    {"kexec_load", Kexec},
    {"kexec_file_load", KexecFile},
    {"reboot", Reboot},
    {"swapon", Swapon},
    {"swapoff", Swapoff},
    {"acct", Acct},
    {"quotactl", Quotactl},
    {"syslog", Syslog},
    {"adjtimex", Adjtimex},
    {"clock_settime", ClockSettime},
    {"sethostname", SetHostName},
    {"iopl", Iopl},
    {"ioperm", Ioperm},
    {"uselib", BadNumber},
    {"sysfs", Sysfs},
    {"ustat", Ustat},
    {"x32", X32},
    {"int_0x80", Int80},
    {"no_filter", HasFilter},
    {"no_new_privs_off", HasNewPrivs},
    {"capabilities", HasCapabilities},
    {"bounding_capabilities", RaiseBounding},
    {"setresuid_root", BecomeRoot},
    {"setresuid_another", BecomeAnother},
    {"setgroups", SetGroups},
    {"realtime_priority", Realtime},
    {"raise_priority", RaisePriority},
    {nullptr, nullptr},
};

}  // namespace bulkhead::escape
