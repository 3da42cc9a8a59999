#include "bulkhead/launcher/seccomp/lists.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bulkhead/policy/syscall_names.h"

namespace bulkhead::launcher {
namespace {

// The kernel's constants, the same on x86_64 and aarch64. Written out, since libc's headers lack some, spell some
// differently for each architecture, and describe the machine that runs the generator.
constexpr std::uint32_t kCloneNewFlags = 0x7e020000;  // NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET
constexpr std::uint32_t kAfUnix = 1, kAfInet = 2, kAfInet6 = 10, kAfNetlink = 16;
constexpr std::uint32_t kNetlinkRoute = 0;
constexpr std::uint32_t kSockTypeMask = 0xf;
constexpr std::uint32_t kSockStream = 1, kSockDgram = 2, kSockRaw = 3, kSockPacket = 10;
constexpr std::uint32_t kIpprotoIp = 0, kIpprotoIcmp = 1, kIpprotoTcp = 6, kIpprotoUdp = 17, kIpprotoIcmpv6 = 58;
constexpr std::uint32_t kMsgFastopen = 0x20000000;
constexpr std::uint32_t kSolTcp = 6, kTcpUlp = 31;
constexpr std::uint32_t kTiocsti = 0x5412, kTioclinux = 0x541c, kTiocsetd = 0x5423;
constexpr std::uint32_t kPerLinux = 0, kPerLinux32 = 8, kUname26 = 0x20000, kPersonalityQuery = 0xffffffff;
constexpr std::uint32_t kOpenCreates = 0x400000 | 0x40;  // __O_TMPFILE, O_CREAT
constexpr std::uint32_t kSetidBits = 06000;
constexpr std::uint32_t kPrioUser = 2, kIoprioWhoUser = 3;
constexpr std::uint32_t kFSetsig = 10;
constexpr std::uint32_t kEveryone = 0xffffffff;  // kill's pid -1

constexpr Condition Compare(Condition::Test test, std::uint8_t argument, std::uint32_t mask,
                            std::initializer_list<std::uint32_t> values) {
  Condition condition;
  condition.argument = argument;
  condition.test = test;
  condition.mask = mask;
  for (std::uint32_t value : values) condition.values[condition.value_count++] = value;
  return condition;
}

constexpr Condition In(std::uint8_t argument, std::initializer_list<std::uint32_t> values) {
  return Compare(Condition::Test::kIn, argument, 0xffffffff, values);
}

constexpr Condition NotIn(std::uint8_t argument, std::initializer_list<std::uint32_t> values) {
  return Compare(Condition::Test::kNotIn, argument, 0xffffffff, values);
}

constexpr Condition HasBit(std::uint8_t argument, std::uint32_t bits) {
  return Compare(Condition::Test::kAnyBit, argument, bits, {});
}

constexpr Condition NotZero(std::uint8_t argument) { return NotIn(argument, {0}); }

constexpr Condition UpperHalfNotZero(std::uint8_t argument) {
  Condition condition = NotIn(argument, {0});
  condition.upper_half = true;
  return condition;
}

constexpr Condition TypeIn(std::initializer_list<std::uint32_t> types) {
  return Compare(Condition::Test::kIn, 1, kSockTypeMask, types);
}

constexpr Condition TypeNotIn(std::initializer_list<std::uint32_t> types) {
  return Compare(Condition::Test::kNotIn, 1, kSockTypeMask, types);
}

// The errno: ENOSYS where callers know how to do without, or the thing counts as absent; EPERM for policy; for sockets
// what a kernel without the protocol says.
constexpr Rule kBaseline[] = {
    // Threads and namespaces.
    {"clone3", "", ENOSYS, "its flags are behind a pointer; libcs fall back to clone on ENOSYS, and on nothing else"},
    // CLONE_NEWTIME is not among the flags: clone takes that bit for a part of the exit signal.
    {"clone",
     "any CLONE_NEW* flag",
     EPERM,
     "a new namespace gives capabilities over much of the kernel",
     {HasBit(0, kCloneNewFlags)}},
    {"unshare setns", "", EPERM, "a new or another namespace gives capabilities over much of the kernel"},
    {"listns", "", ENOSYS, "finds the namespaces of others; too new for anything to need it"},

    // Ways around the other rules.
    {"io_uring_setup io_uring_enter io_uring_register", "", ENOSYS,
     "does what system calls do without passing a filter"},
    {"ioctl",
     "TIOCSTI",
     EPERM,
     "types into the terminal of whoever started us (CVE-2017-5226, CVE-2019-10063)",
     {In(1, {kTiocsti})}},
    {"ioctl", "TIOCLINUX", EPERM, "pastes into a console (CVE-2023-28100)", {In(1, {kTioclinux})}},
    {"ioctl", "TIOCSETD", EPERM, "loads line disciplines, a steady source of kernel bugs", {In(1, {kTiocsetd})}},
    {"personality",
     "other than PER_LINUX, PER_LINUX32, UNAME26",
     EPERM,
     "switches off address randomization and execute protection",
     {NotIn(0, {kPerLinux, kPerLinux32, kUname26, kUname26 | kPerLinux32, kPersonalityQuery})}},

    // Other processes.
    {"ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp", "", EPERM,
     "reads or changes other processes"},
    {"perf_event_open", "", EPERM, "watches other processes and the kernel"},

    // Kernel surface that servers have no use for.
    {"bpf userfaultfd", "", EPERM, "a favourite of kernel exploits"},
    {"fanotify_init fanotify_mark", "", EPERM, "watches whole file systems"},
    {"lsm_get_self_attr lsm_set_self_attr lsm_list_modules", "", EPERM, "speaks to security modules"},
    {"keyctl add_key request_key", "", ENOSYS, "the keyrings are the user's, not the jail's"},
    {"quotactl quotactl_fd acct syslog vhangup", "", EPERM, "administration"},
    {"move_pages migrate_pages mbind set_mempolicy set_mempolicy_home_node", "", EPERM, "moves memory between nodes"},
    {"memfd_secret", "", ENOSYS, "memory hidden from the kernel itself; programs do without"},
    {"vmsplice", "", ENOSYS, "shares live pages with pipes (CVE-2020-29374); programs fall back to write"},

    // Mounts, modules, the machine.
    {"mount umount2 pivot_root chroot open_tree open_tree_attr move_mount mount_setattr fsopen fsconfig fsmount fspick",
     "", EPERM, "changes what the jail is made of"},
    {"open_by_handle_at", "", EPERM, "opens files outside the jail's root"},
    {"init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff", "", EPERM,
     "changes the running kernel"},
    {"settimeofday clock_settime clock_adjtime adjtimex", "", EPERM, "sets the machine's clock"},
    {"iopl ioperm", "", EPERM, "reaches hardware"},
    {"modify_ldt uselib ustat sysfs _sysctl nfsservctl lookup_dcookie", "", ENOSYS,
     "obsolete; newer kernels lack most of these"},

    // Sockets. socketpair makes the socket, and loads its module, before it finds that the family has no pairs.
    {"socket socketpair", "AF_UNIX", 0, "", {In(0, {kAfUnix})}},
    {"socket socketpair",
     "AF_NETLINK, other than NETLINK_ROUTE",
     EPROTONOSUPPORT,
     "libcs list interfaces with NETLINK_ROUTE; the other protocols are administration",
     {In(0, {kAfNetlink}), NotIn(2, {kNetlinkRoute})}},
    {"socket socketpair", "AF_NETLINK, NETLINK_ROUTE", 0, "", {In(0, {kAfNetlink})}},
    {"socket socketpair",
     "other than AF_UNIX, AF_INET, AF_INET6, AF_NETLINK",
     EAFNOSUPPORT,
     "AF_VSOCK leaves a virtual machine, AF_ALG and the rare families are kernel surface",
     {NotIn(0, {kAfInet, kAfInet6})}},
    {"socket socketpair",
     "SOCK_RAW and SOCK_PACKET of AF_INET, AF_INET6",
     EPERM,
     "makes or reads packets past the protocol",
     {TypeIn({kSockRaw, kSockPacket})}},
    // The type alone selects SCTP and DCCP when the protocol is 0.
    {"socket socketpair",
     "other types of AF_INET, AF_INET6 (SCTP, DCCP)",
     ESOCKTNOSUPPORT,
     "Landlock sees TCP alone; rare protocols are kernel surface",
     {TypeNotIn({kSockStream, kSockDgram})}},
    {"socket socketpair",
     "IPPROTO_MPTCP, IPPROTO_SMC, IPPROTO_SCTP and all but TCP, UDP, ICMP",
     EPROTONOSUPPORT,
     "MPTCP and SMC reach TCP peers without Landlock's consent",
     {NotIn(2, {kIpprotoIp, kIpprotoIcmp, kIpprotoTcp, kIpprotoUdp, kIpprotoIcmpv6})}},
    {"setsockopt",
     "TCP_ULP",
     ENOPROTOOPT,
     "turns a TCP socket into SMC, past Landlock; loads kernel TLS",
     {In(1, {kSolTcp}), In(2, {kTcpUlp})}},
    {"sendto sendmmsg",
     "MSG_FASTOPEN",
     EOPNOTSUPP,
     "connects without Landlock's consent before Linux 7.2",
     {HasBit(3, kMsgFastopen)}},
    {"sendmsg",
     "MSG_FASTOPEN",
     EOPNOTSUPP,
     "connects without Landlock's consent before Linux 7.2",
     {HasBit(2, kMsgFastopen)}},
};

// What usual programs need, and runtimes such as Node and Python. Not: other users' ids, extended attributes to set,
// IPC of System V and POSIX message queues, nodes of memory, processes of others, and what administers the machine.
constexpr absl::string_view kStrictlyAllowed[] = {
    // Files.
    "access",
    "chdir",
    "chmod",
    "chown",
    "close",
    "close_range",
    "copy_file_range",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fallocate",
    "fchdir",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "fchown",
    "fchownat",
    "fcntl",
    "fdatasync",
    "fgetxattr",
    "file_getattr",
    "flistxattr",
    "flock",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "futimesat",
    "getcwd",
    "getdents",
    "getdents64",
    "getxattr",
    "getxattrat",
    "inotify_add_watch",
    "inotify_init",
    "inotify_init1",
    "inotify_rm_watch",
    "ioctl",
    "lchown",
    "lgetxattr",
    "link",
    "linkat",
    "listxattr",
    "listxattrat",
    "llistxattr",
    "lseek",
    "lstat",
    "memfd_create",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "pipe",
    "pipe2",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readahead",
    "readlink",
    "readlinkat",
    "readv",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sendfile",
    "splice",
    "stat",
    "statfs",
    "statx",
    "symlink",
    "symlinkat",
    "sync",
    "sync_file_range",
    "syncfs",
    "tee",
    "truncate",
    "umask",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
    "write",
    "writev",
    // Memory.
    "brk",
    "madvise",
    "membarrier",
    "mincore",
    "mlock",
    "mlock2",
    "mlockall",
    "mmap",
    "mprotect",
    "mremap",
    "mseal",
    "msync",
    "munlock",
    "munlockall",
    "munmap",
    "pkey_alloc",
    "pkey_free",
    "pkey_mprotect",
    // Processes and threads.
    "arch_prctl",
    "capget",
    "clone",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "fork",
    "futex",
    "futex_requeue",
    "futex_wait",
    "futex_waitv",
    "futex_wake",
    "get_robust_list",
    "get_thread_area",
    "getcpu",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getpriority",
    "getresgid",
    "getresuid",
    "getrlimit",
    "getrusage",
    "getsid",
    "gettid",
    "getuid",
    "personality",
    "pidfd_open",
    "prctl",
    "prlimit64",
    "restart_syscall",
    "rseq",
    "rseq_slice_yield",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getaffinity",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_setaffinity",
    "sched_setattr",
    "sched_setparam",
    "sched_setscheduler",
    "sched_yield",
    "set_robust_list",
    "set_thread_area",
    "set_tid_address",
    "setpgid",
    "setpriority",
    "setrlimit",
    "setsid",
    "sysinfo",
    "times",
    "uname",
    "uprobe",
    "uretprobe",
    "vfork",
    "wait4",
    "waitid",
    // Signals.
    "kill",
    "pause",
    "pidfd_send_signal",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_tgsigqueueinfo",
    "sigaltstack",
    "signalfd",
    "signalfd4",
    "tgkill",
    "tkill",
    // Time and waiting.
    "alarm",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "eventfd",
    "eventfd2",
    "getitimer",
    "gettimeofday",
    "nanosleep",
    "poll",
    "ppoll",
    "pselect6",
    "select",
    "setitimer",
    "time",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_settime",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    // Sockets.
    "accept",
    "accept4",
    "bind",
    "connect",
    "getpeername",
    "getsockname",
    "getsockopt",
    "listen",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    "socket",
    "socketpair",
    // And.
    "getrandom",
};

// Each known call that is not among them.
std::string StrictlyRefused() {
  std::string calls;
  for (const absl::string_view name : policy::SyscallNames()) {
    if (std::find(std::begin(kStrictlyAllowed), std::end(kStrictlyAllowed), name) != std::end(kStrictlyAllowed))
      continue;
    absl::StrAppend(&calls, calls.empty() ? "" : " ", name);
  }
  return calls;
}

absl::Span<const Rule> StrictRules() {
  static const std::string* const calls = new std::string(StrictlyRefused());
  static const auto* const rules =
      new std::vector<Rule>{{calls->c_str(), "", ENOSYS, "usual programs do without; the profile is strict"}};
  return *rules;
}

constexpr char kSetidReason[] = "through an idmapped mount the file would be setuid root on disk";

// mkdir and mkdirat are not here: the kernel drops both bits from their mode.
constexpr Rule kSetidGuard[] = {
    {"chmod fchmod creat mknod", "mode & 06000", EPERM, kSetidReason, {HasBit(1, kSetidBits)}},
    {"fchmodat fchmodat2 mknodat", "mode & 06000", EPERM, kSetidReason, {HasBit(2, kSetidBits)}},
    {"open",
     "O_CREAT or O_TMPFILE, mode & 06000",
     EPERM,
     kSetidReason,
     {HasBit(1, kOpenCreates), HasBit(2, kSetidBits)}},
    {"openat",
     "O_CREAT or O_TMPFILE, mode & 06000",
     EPERM,
     kSetidReason,
     {HasBit(2, kOpenCreates), HasBit(3, kSetidBits)}},
    {"openat2", "", ENOSYS, "its mode is behind a pointer; programs fall back to openat"},
};

constexpr Rule kSocketsNone[] = {
    {"socket", "", EACCES, "the policy grants no network; socketpair stays for talking to children"},
};

constexpr Rule kSocketsNoUnix[] = {
    {"socket",
     "AF_UNIX",
     EACCES,
     "reaches the user's agents, buses and container daemons; socketpair stays",
     {In(0, {kAfUnix})}},
};

// A supervisor runs as the same user, so that the kernel lets a server change its limits and its scheduling. Which pid
// is the caller's own can't be known here; 0 always means the caller.
constexpr Rule kSupervisorGuard[] = {
    {"prlimit64",
     "setting the limits of a pid",
     EPERM,
     "a supervisor that can open no file is blind",
     {NotZero(0), NotZero(2)}},
    {"prlimit64",
     "setting the limits of a pid",
     EPERM,
     "a supervisor that can open no file is blind",
     {NotZero(0), UpperHalfNotZero(2)}},
    {"setpriority", "of another, or of PRIO_USER", EPERM, "a starved supervisor ends nothing in time", {NotZero(1)}},
    {"setpriority",
     "of another, or of PRIO_USER",
     EPERM,
     "a starved supervisor ends nothing in time",
     {In(0, {kPrioUser})}},
    {"ioprio_set",
     "of another, or of IOPRIO_WHO_USER",
     EPERM,
     "a starved supervisor ends nothing in time",
     {NotZero(1)}},
    {"ioprio_set",
     "of another, or of IOPRIO_WHO_USER",
     EPERM,
     "a starved supervisor ends nothing in time",
     {In(0, {kIoprioWhoUser})}},
    {"sched_setscheduler sched_setparam sched_setattr",
     "of a pid",
     EPERM,
     "a supervisor in SCHED_IDLE ends nothing in time",
     {NotZero(0)}},
};

// The supervisors block every signal, so that of fcntl's only F_SETSIG, which can name SIGKILL and SIGSTOP, matters:
// without it F_SETOWN and FIOSETOWN send SIGIO and SIGURG.
constexpr Rule kSignalGuard[] = {
    {"kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo",
     "to the keeper or the jail init",
     EPERM,
     "a server that ends its supervisors outlives them",
     {In(0, {kKeeperPidPlaceholder, kInitPidPlaceholder, kEveryone, kKeeperGroupPlaceholder, kInitGroupPlaceholder})}},
    {"tgkill rt_tgsigqueueinfo",
     "to a thread of the keeper or the jail init",
     EPERM,
     "a server that ends its supervisors outlives them",
     {In(1, {kKeeperPidPlaceholder, kInitPidPlaceholder})}},
    {"pidfd_send_signal", "", ENOSYS, "whom a descriptor means can't be seen here; programs fall back to kill"},
    {"fcntl", "F_SETSIG", EPERM, "chooses the signal that a descriptor sends to any process", {In(1, {kFSetsig})}},
};

}  // namespace

FilterList ListOf(FilterName name) {
  switch (name) {
    case FilterName::kBaseline:
      return {"baseline", true, kBaseline};
    case FilterName::kStrict:
      return {"strict", false, StrictRules()};
    case FilterName::kSetidGuard:
      return {"setid_guard", false, kSetidGuard};
    case FilterName::kSocketsNone:
      return {"sockets_none", false, kSocketsNone};
    case FilterName::kSocketsNoUnix:
      return {"sockets_no_unix", false, kSocketsNoUnix};
    case FilterName::kSupervisorGuard:
      return {"supervisor_guard", false, kSupervisorGuard};
    case FilterName::kSignalGuard:
      return {"signal_guard", false, kSignalGuard};
  }
  return {"", true, {}};
}

std::vector<FilterSet> MergedSets() {
  constexpr FilterSet kSetid = SetOf(FilterName::kSetidGuard), kStrict = SetOf(FilterName::kStrict);
  std::vector<FilterSet> sets;
  for (const FilterSet more : {FilterSet{0}, kSetid, kStrict, kStrict | kSetid}) {
    const FilterSet jail = SetOf(FilterName::kBaseline) | more;
    if (more != 0) sets.push_back(jail);  // the baseline alone is there as itself
    for (const FilterSet sockets : {FilterSet{0}, SetOf(FilterName::kSocketsNone), SetOf(FilterName::kSocketsNoUnix)}) {
      for (const FilterSet signals : {FilterSet{0}, SetOf(FilterName::kSignalGuard)}) {
        sets.push_back(jail | SetOf(FilterName::kSupervisorGuard) | sockets | signals);
      }
    }
  }
  return sets;
}

absl::Span<const absl::string_view> StrictlyAllowed() { return kStrictlyAllowed; }

std::vector<FilterList> ListsOf(FilterSet set) {
  std::vector<FilterList> lists;
  for (const FilterName name : kInstallOrder) {
    if ((set & SetOf(name)) != 0) lists.push_back(ListOf(name));
  }
  return lists;
}

std::vector<std::string> CallsOf(const Rule& rule) { return absl::StrSplit(rule.calls, ' '); }

const char* ErrorName(int error) {
  switch (error) {
    case EPERM:
      return "EPERM";
    case EACCES:
      return "EACCES";
    case ENOSYS:
      return "ENOSYS";
    case ENOPROTOOPT:
      return "ENOPROTOOPT";
    case EPROTONOSUPPORT:
      return "EPROTONOSUPPORT";
    case ESOCKTNOSUPPORT:
      return "ESOCKTNOSUPPORT";
    case EOPNOTSUPP:
      return "EOPNOTSUPP";
    case EAFNOSUPPORT:
      return "EAFNOSUPPORT";
  }
  return nullptr;
}

}  // namespace bulkhead::launcher
