// The filters in the kernel: real calls, made by children that have installed them. Control first: without the filter
// the call gives another answer.
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/bpf_common.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bulkhead/launcher/seccomp/filters.h"
#include "gtest/gtest.h"
#include "tests/launcher/seccomp/bpf_evaluator.h"
#include "tests/launcher/seccomp/filter_calls.h"
#include "tests/launcher/seccomp/kernel_child.h"

namespace bulkhead::launcher {
namespace {

constexpr char kNeedsRoot[] = "only root gets past the kernel's own check";
constexpr char kMayLack[] = "not every kernel is built with it";

// Each call is wrong in some way, so that without the filter it fails, and changes nothing.
std::vector<CallCase> BaselineCases() {
  return {
      {"clone3", {kBad, 0}, ENOSYS},
      {"clone", {0x10000 | 0x00020000}, EPERM},  // each CLONE_NEW* flag, with CLONE_THREAD alone
      {"clone", {0x10000 | 0x02000000}, EPERM},
      {"clone", {0x10000 | 0x04000000}, EPERM},
      {"clone", {0x10000 | 0x08000000}, EPERM},
      {"clone", {0x10000 | 0x10000000}, EPERM},
      {"clone", {0x10000 | 0x20000000}, EPERM},
      {"clone", {0x10000 | 0x40000000}, EPERM},
      {"clone", {0x10000 | 0x40000000 | kUpperHalf}, EPERM},
      {"unshare", {1}, EPERM},
      {"setns", {kNone, 0}, EPERM},
      {"listns", {kBad, kBad, 1, kOddFlags}, ENOSYS, kMayLack},
      {"io_uring_setup", {0, kBad}, ENOSYS, kMayLack},
      {"io_uring_enter", {kNone, 0, 0, 0}, ENOSYS, kMayLack},
      {"io_uring_register", {kNone, 0, 0, 0}, ENOSYS, kMayLack},
      {"ioctl", {kNone, 0x5412, kBad}, EPERM},
      {"ioctl", {kNone, 0x5412 | kUpperHalf, kBad}, EPERM},
      {"ioctl", {kNone, 0x541c, kBad}, EPERM},
      {"ioctl", {kNone, 0x5423, kBad}, EPERM},
      {"personality", {0x40000}, EPERM},
      {"personality", {0x400000}, EPERM},
      {"ptrace", {9999, kNobody}, EPERM},
      {"process_vm_readv", {kNobody, 0, 0, 0, 0, kOddFlags}, EPERM},
      {"process_vm_writev", {kNobody, 0, 0, 0, 0, kOddFlags}, EPERM},
      {"process_madvise", {kNone, 0, 0, 0, kOddFlags}, EPERM},
      {"pidfd_getfd", {kNone, 0, kOddFlags}, EPERM},
      {"kcmp", {kNobody, kNobody, 0, 0, 0}, EPERM},
      {"perf_event_open", {kBad, 0, 0, kNone, kOddFlags}, EPERM, kNeedsRoot},
      {"bpf", {9999, kBad, 0}, EPERM, kNeedsRoot},
      {"userfaultfd", {1 | kOddFlags}, EPERM},
      {"fanotify_init", {0x80000000, 0}, EPERM, kNeedsRoot},
      {"fanotify_mark", {kNone, 0, 0, kNone, 0}, EPERM},
      {"lsm_get_self_attr", {0, 0, 0, kOddFlags}, EPERM},
      {"lsm_set_self_attr", {0, 0, 0, kOddFlags}, EPERM},
      {"lsm_list_modules", {0, 0, kOddFlags}, EPERM},
      {"keyctl", {9999}, ENOSYS, kMayLack},
      {"add_key", {kBad, kBad, kBad, 1, 0}, ENOSYS, kMayLack},
      {"request_key", {kBad, kBad, kBad, 0}, ENOSYS, kMayLack},
      {"quotactl", {0xff, kBad, 0, kBad}, EPERM},
      {"quotactl_fd", {kNone, 0xff, 0, kBad}, EPERM},
      {"acct", {kBad}, EPERM, kNeedsRoot},
      {"syslog", {9999, 0, 0}, EPERM, kNeedsRoot},
      {"move_pages", {0, 0, 0, 0, 0, kOddFlags}, EPERM},
      {"migrate_pages", {0, 2, kBad, kBad}, EPERM},
      {"mbind", {0, 0, 99, 0, 0, kOddFlags}, EPERM},
      {"set_mempolicy", {99, 0, 0}, EPERM},
      {"set_mempolicy_home_node", {0, 0, 0, kOddFlags}, EPERM},
      {"memfd_secret", {kOddFlags}, ENOSYS, kMayLack},
      {"vmsplice", {kNone, 0, 0, 0}, ENOSYS},
      {"mount", {kBad, kBad, kBad, 0, 0}, EPERM},
      {"umount2", {kBad, kOddFlags}, EPERM},
      {"pivot_root", {kBad, kBad}, EPERM, kNeedsRoot},
      {"chroot", {kBad}, EPERM},
      {"open_tree", {kNone, kBad, kOddFlags}, EPERM},
      {"open_tree_attr", {kNone, kBad, kOddFlags, 0, 0}, EPERM},
      {"move_mount", {kNone, kBad, kNone, kBad, kOddFlags}, EPERM, kNeedsRoot},
      {"mount_setattr", {kNone, kBad, kOddFlags, 0, 0}, EPERM},
      {"fsopen", {kBad, 0}, EPERM, kNeedsRoot},
      {"fsconfig", {kNone, 0, 0, 0, 0}, EPERM},
      {"fsmount", {kNone, 0, 0}, EPERM, kNeedsRoot},
      {"fspick", {kNone, kBad, 0}, EPERM, kNeedsRoot},
      {"open_by_handle_at", {kNone, kBad, 0}, EPERM, kNeedsRoot},
      {"init_module", {kBad, 0, kBad}, EPERM, kNeedsRoot},
      {"finit_module", {kNone, kBad, 0}, EPERM, kNeedsRoot},
      {"delete_module", {kBad, 0}, EPERM, kNeedsRoot},
      {"kexec_load", {0, 0, 0, 0xff00}, EPERM, kNeedsRoot},
      {"kexec_file_load", {kNone, kNone, 0, 0, kOddFlags}, EPERM, kNeedsRoot},
      {"reboot", {0, 0, 0, 0}, EPERM, kNeedsRoot},
      {"swapon", {kBad, kOddFlags}, EPERM},
      {"swapoff", {kBad}, EPERM, kNeedsRoot},
      {"settimeofday", {kBad, 0}, EPERM},
      {"clock_settime", {99, kBad}, EPERM},
      {"clock_adjtime", {99, kBad}, EPERM},
      {"adjtimex", {kBad}, EPERM},
      {"iopl", {9}, EPERM},
      {"ioperm", {0xffffffff, 1, 1}, EPERM},
      {"modify_ldt", {0, kBad, 0}, ENOSYS, kMayLack},
      {"ustat", {0, kBad}, ENOSYS},
      {"sysfs", {9999}, ENOSYS, kMayLack},
      {"socket", {17, 3, 0}, EAFNOSUPPORT, kMayLack},
      {"socketpair", {10, 5, 0, kBad}, ESOCKTNOSUPPORT, kMayLack},
      {"socket", {16, 3, 15}, EPROTONOSUPPORT},
      {"socket", {2, 3, 1}, EPERM, kNeedsRoot},
      {"socket", {2, 1, 262}, EPROTONOSUPPORT, kMayLack},
      {"setsockopt", {kNone, 6, 31, kBad, 4}, ENOPROTOOPT},
      {"sendto", {kNone, kBad, 1, 0x20000000, 0, 0}, EOPNOTSUPP},
      {"sendmsg", {kNone, kBad, 0x20004000}, EOPNOTSUPP},
      {"sendmmsg", {kNone, kBad, 1, 0x20000000 | kUpperHalf}, EOPNOTSUPP},
  };
}

TEST(KernelTest, TakesTheFiltersOfBothArchitectures) {
  for (Arch arch : {Arch::kX86_64, Arch::kAarch64}) {
    for (FilterName filter : kFilters) {
      // The other architecture's filter refuses every call of this one, so that the child's exit must pass before it.
      Program program = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                         {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_exit_group},
                         {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
      Program tail = ProgramOf(FilterFor(filter, arch));
      program.insert(program.end(), tail.begin(), tail.end());
      EXPECT_EQ(RunRestricted({program}, [] { return 7; }), 7);
      program.back().code = 0xffff;
      EXPECT_EQ(RunRestricted({program}, [] { return 7; }), kInstallFailed);
    }
  }
}

struct Sample {
  std::uint32_t number;
  Arguments arguments;
  int error;  // what the kernel's run of the filter gave
};

std::vector<Sample> Samples(std::size_t count) {
  std::mt19937_64 random(1);
  const std::uint64_t interesting[] = {0,
                                       1,
                                       2,
                                       3,
                                       5,
                                       6,
                                       10,
                                       16,
                                       31,
                                       0x40,
                                       06000,
                                       04755,
                                       0x5412,
                                       0x541c,
                                       0x20000000,
                                       0x10000000,
                                       0x7e020000,
                                       0x400000,
                                       0xffffffff,
                                       kKeeperPidPlaceholder,
                                       kInitGroupPlaceholder,
                                       kUpperHalf};
  std::vector<Sample> samples(count);
  for (Sample& sample : samples) {
    sample.number = static_cast<std::uint32_t>(random() % 600);
    if (random() % 16 == 0) sample.number |= 0x40000000;
    if (random() % 16 == 0) sample.number = static_cast<std::uint32_t>(random());
    for (std::uint64_t& argument : sample.arguments) {
      argument = interesting[random() % std::size(interesting)];
      if (random() % 4 == 0) argument |= random() << 32;
    }
  }
  return samples;
}

// The child's exit, and the two calls of the kernel's own trampolines for probes, which pass every filter on newer
// kernels and end in SIGILL when made by hand.
bool NotFiltered(std::uint32_t number) {
  static const std::optional<std::uint32_t> uretprobe = NumberOf("uretprobe", kHere),
                                            uprobe = NumberOf("uprobe", kHere);
  return number == SYS_exit_group || number == uretprobe || number == uprobe;
}

// With "allowed" turned into an errno no call is ever made, so that any call can be tried.
TEST(KernelTest, AgreesWithTheEvaluator) {
  constexpr int kAllowed = 4000, kCount = 10000;
  std::size_t bytes = kCount * sizeof(Sample);
  auto* shared = static_cast<Sample*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(shared, MAP_FAILED);
  for (FilterName filter : kFilters) {
    Program program = ProgramOf(filter);
    for (BpfInstruction& i : program) {
      if (i.code == (BPF_RET | BPF_K) && i.k == SECCOMP_RET_ALLOW) i.k = SECCOMP_RET_ERRNO | kAllowed;
    }
    Program with_exit = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                         {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_exit_group},
                         {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    with_exit.insert(with_exit.end(), program.begin(), program.end());
    std::vector<Sample> samples = Samples(kCount);
    std::copy(samples.begin(), samples.end(), shared);
    ASSERT_EQ(RunRestricted({with_exit},
                            [&] {
                              for (int i = 0; i < kCount; ++i) {
                                Sample& s = shared[i];
                                if (NotFiltered(s.number)) continue;
                                const Arguments& a = s.arguments;
                                s.error = syscall(s.number, a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? errno : 0;
                              }
                              return 0;
                            }),
              0);
    for (int i = 0; i < kCount; ++i) {
      if (NotFiltered(shared[i].number)) continue;
      seccomp_data data = {};
      data.nr = static_cast<int>(shared[i].number);
      data.arch = AuditArch(kHere);
      std::copy(shared[i].arguments.begin(), shared[i].arguments.end(), data.args);
      std::uint32_t value = Evaluate({program.data(), program.size()}, data);
      ASSERT_EQ(shared[i].error, static_cast<int>(value & SECCOMP_RET_DATA)) << shared[i].number;
    }
  }
  munmap(shared, bytes);
}

TEST(KernelTest, BaselineRefusesWithTheListedErrno) {
  for (const CallCase& c : BaselineCases()) ExpectRefused({ProgramOf(FilterName::kBaseline)}, c);
}

TEST(KernelTest, BaselineRefusesTerminalInjection) {
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(master, 0);
  ASSERT_EQ(grantpt(master), 0);
  ASSERT_EQ(unlockpt(master), 0);
  std::string name = ptsname(master);
  auto inject = [&](unsigned long request) {
    return [&name, request] {
      int terminal = open(name.c_str(), O_RDWR);  // of a session leader: becomes its terminal
      char byte = 'x';
      return syscall(SYS_ioctl, terminal, request, &byte) < 0 ? errno : 0;
    };
  };
  // Without the right to type into a terminal at all (dev.tty.legacy_tiocsti is 0) the kernel says EIO.
  int control = RunRestricted({}, inject(0x5412));
  EXPECT_TRUE(control == 0 || control == EIO) << control;
  EXPECT_EQ(RunRestricted({ProgramOf(FilterName::kBaseline)}, inject(0x5412)), EPERM);
  EXPECT_EQ(RunRestricted({}, inject(0x5412 | kUpperHalf)), control) << "the kernel looks at the lower half only";
  EXPECT_EQ(RunRestricted({ProgramOf(FilterName::kBaseline)}, inject(0x5412 | kUpperHalf)), EPERM);
  close(master);
}

#if defined(__x86_64__)
// int $0x80 enters the kernel as an i386 program does; 20 is i386's getpid, and x86_64's writev.
long I386Getpid() {
  long result;
  asm volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
  return result;
}

TEST(KernelTest, EachRefusesI386) {
  constexpr int kSame = 77;
  int control = RunRestricted({}, [] { return I386Getpid() == getpid() ? kSame : 0; });
  if (control != kSame)
    GTEST_SKIP() << "this kernel does not take int $0x80: no CONFIG_IA32_EMULATION, or none in this virtual machine";
  for (FilterName filter : kFilters) {
    EXPECT_EQ(RunRestricted({ProgramOf(filter)}, [] { return static_cast<int>(-I386Getpid()); }), ENOSYS);
  }
}
#endif

// What a runtime does: threads, children, interfaces, its own limits.
TEST(KernelTest, RuntimesWorkUnderAllFiltersTogether) {
  std::vector<Program> all;
  for (FilterName filter : {FilterName::kSetidGuard, FilterName::kSocketsNoUnix, FilterName::kSupervisorGuard,
                            FilterName::kSignalGuard, FilterName::kBaseline}) {
    all.push_back(ProgramOf(filter));
  }
  auto runtime = [] {
    int seen = 0;
    std::thread([&seen] { seen = 1; }).join();
    if (seen != 1) return 1;
    pid_t child = 0;
    char name[] = "true";
    char* arguments[] = {name, nullptr};
    int status = 1;
    if (posix_spawnp(&child, "true", nullptr, nullptr, arguments, nullptr) != 0) return 2;
    if (waitpid(child, &status, 0) != child || status != 0) return 3;
    ifaddrs* interfaces = nullptr;
    if (getifaddrs(&interfaces) != 0) return 4;
    freeifaddrs(interfaces);
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return 5;
    rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || setrlimit(RLIMIT_NOFILE, &limit) != 0) return 6;
    if (kill(getpid(), 0) != 0 || raise(SIGCHLD) != 0) return 7;
    if (prctl(PR_SET_NAME, "runtime", 0, 0, 0) != 0) return 8;
    if (syscall(SYS_close_range, 100, 200, 0) != 0) return 9;
    return 0;
  };
  ASSERT_EQ(RunRestricted({}, runtime), 0);
  EXPECT_EQ(RunRestricted(all, runtime), 0);
}

}  // namespace
}  // namespace bulkhead::launcher
