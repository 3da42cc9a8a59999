// What each filter does with a call, for both architectures, by the evaluator. The expected answers are written here
// anew, not read from lists.cc.
#include "bulkhead/launcher/seccomp/filters.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/launcher/seccomp/bpf_evaluator.h"
#include "tests/launcher/seccomp/filters_fixture.h"
#include "tests/launcher/seccomp/syscall_numbers.h"

namespace bulkhead::launcher {

namespace {

using ::testing::Contains;
using ::testing::UnorderedElementsAre;

// Refused whatever the arguments.
const std::map<std::string, std::set<std::string>> kBaselineAlways = {
    {"ENOSYS",
     {"clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "keyctl", "add_key", "request_key",
      "modify_ldt", "uselib", "ustat", "sysfs", "_sysctl", "nfsservctl", "lookup_dcookie", "memfd_secret", "vmsplice",
      "listns"}},
    {"EPERM",
     {"unshare",
      "setns",
      "ptrace",
      "process_vm_readv",
      "process_vm_writev",
      "kcmp",
      "pidfd_getfd",
      "process_madvise",
      "perf_event_open",
      "bpf",
      "userfaultfd",
      "fanotify_init",
      "fanotify_mark",
      "quotactl",
      "quotactl_fd",
      "acct",
      "syslog",
      "vhangup",
      "lsm_get_self_attr",
      "lsm_set_self_attr",
      "lsm_list_modules",
      "mount",
      "umount2",
      "pivot_root",
      "chroot",
      "open_tree",
      "open_tree_attr",
      "move_mount",
      "fsopen",
      "fsconfig",
      "fsmount",
      "fspick",
      "mount_setattr",
      "open_by_handle_at",
      "init_module",
      "finit_module",
      "delete_module",
      "kexec_load",
      "kexec_file_load",
      "reboot",
      "swapon",
      "swapoff",
      "settimeofday",
      "clock_settime",
      "clock_adjtime",
      "adjtimex",
      "iopl",
      "ioperm",
      "move_pages",
      "migrate_pages",
      "mbind",
      "set_mempolicy",
      "set_mempolicy_home_node"}},
};

struct FilterSpec {
  FilterName filter;
  std::map<std::string, std::set<std::string>> always;
  std::set<std::string> by_arguments;
};

const FilterSpec kSpecs[] = {
    {FilterName::kBaseline,
     kBaselineAlways,
     {"clone", "ioctl", "personality", "socket", "socketpair", "setsockopt", "sendto", "sendmsg", "sendmmsg"}},
    {FilterName::kSetidGuard,
     {{"ENOSYS", {"openat2"}}},
     {"chmod", "fchmod", "fchmodat", "fchmodat2", "creat", "mknod", "mknodat", "open", "openat"}},
    {FilterName::kSocketsNone, {{"EACCES", {"socket"}}}, {}},
    {FilterName::kSocketsNoUnix, {}, {"socket"}},
    {FilterName::kSupervisorGuard,
     {},
     {"prlimit64", "setpriority", "ioprio_set", "sched_setscheduler", "sched_setparam", "sched_setattr"}},
    {FilterName::kSignalGuard,
     {{"ENOSYS", {"pidfd_send_signal"}}},
     {"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "fcntl"}},
};

INSTANTIATE_TEST_SUITE_P(Arch, FiltersTest, ::testing::Values(Arch::kX86_64, Arch::kAarch64),
                         ::testing::PrintToStringParamName());

TEST_P(FiltersTest, AreProgramsThatTheKernelTakes) {
  for (FilterName filter : kFilters) EXPECT_EQ(FindFault(FilterFor(filter, GetParam())), "");
}

TEST_P(FiltersTest, RefuseTheListedCallsWhateverTheArguments) {
  for (const FilterSpec& spec : kSpecs) {
    for (const auto& [error, calls] : spec.always) {
      for (const std::string& call : calls) {
        std::optional<std::uint32_t> number = NumberOf(call, GetParam());
        if (!number) continue;
        EXPECT_THAT(OfMany(spec.filter, *number), UnorderedElementsAre(error)) << call;
      }
    }
  }
}

// Everything the kernel has that is not refused above or by its arguments below: the default is written in one place.
TEST_P(FiltersTest, AllowEveryOtherCall) {
  for (const FilterSpec& spec : kSpecs) {
    std::set<std::string> listed = spec.by_arguments;
    for (const auto& [error, calls] : spec.always) listed.insert(calls.begin(), calls.end());
    for (const SyscallNumber& row : kSyscallNumbers) {
      std::optional<std::uint32_t> number = NumberOf(row.name, GetParam());
      if (!number || listed.count(row.name) != 0) continue;
      EXPECT_THAT(OfMany(spec.filter, *number), UnorderedElementsAre("allowed")) << row.name;
    }
  }
}

// What the launch does after the filters are installed, and what libcs, node, V8 and CPython look for.
TEST_P(FiltersTest, KeepWhatLaunchingAndRuntimesNeed) {
  for (const char* call : {"execve",
                           "execveat",
                           "close_range",
                           "prctl",
                           "seccomp",
                           "landlock_create_ruleset",
                           "landlock_add_rule",
                           "landlock_restrict_self",
                           "memfd_create",
                           "membarrier",
                           "rseq",
                           "set_robust_list",
                           "sched_setaffinity",
                           "sched_getaffinity",
                           "name_to_handle_at",
                           "copy_file_range",
                           "statx",
                           "faccessat2",
                           "pidfd_open",
                           "futex_waitv",
                           "mseal",
                           "cachestat",
                           "setxattrat",
                           "get_mempolicy",
                           "statmount",
                           "listmount",
                           "exit_group",
                           "rt_sigreturn"}) {
    for (FilterName filter : kFilters) {
      EXPECT_THAT(OfMany(filter, *NumberOf(call, GetParam())), UnorderedElementsAre("allowed")) << call;
    }
  }
  for (const char* call :
       {"openat2", "pidfd_send_signal", "prlimit64", "kill", "fcntl", "openat", "sched_setscheduler"}) {
    EXPECT_THAT(OfMany(FilterName::kBaseline, *NumberOf(call, GetParam())), UnorderedElementsAre("allowed")) << call;
  }
}

TEST_P(FiltersTest, BaselineRefusesNumbersItHasNoNameFor) {
  EXPECT_EQ(Fate(FilterName::kBaseline, GetParam(), kHighestNumber), "allowed");
  EXPECT_EQ(Fate(FilterName::kBaseline, GetParam(), kHighestNumber + 1), "ENOSYS");
  std::set<std::uint32_t> known;
  for (const SyscallNumber& row : kSyscallNumbers) {
    if (std::optional<std::uint32_t> number = NumberOf(row.name, GetParam())) known.insert(*number);
  }
  ASSERT_EQ(*known.rbegin(), kHighestNumber);
  // To 600: beyond the gaps, and beyond 512 to 547, which x86_64 once took for x32's without the bit.
  for (std::uint32_t number = 0; number < 600; ++number) {
    if (known.count(number) != 0) continue;
    EXPECT_THAT(OfMany(FilterName::kBaseline, number), UnorderedElementsAre("ENOSYS")) << number;
  }
  for (std::uint32_t number : {0x3fffffffu, 0x40000000u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    EXPECT_EQ(Fate(FilterName::kBaseline, GetParam(), number), "ENOSYS") << number;
  }
}

TEST_P(FiltersTest, GuardsLeaveUnknownNumbersToTheBaseline) {
  for (FilterName filter : kFilters) {
    if (filter == FilterName::kBaseline) continue;
    EXPECT_EQ(Fate(filter, GetParam(), kHighestNumber + 1), "allowed");
    EXPECT_EQ(Fate(filter, GetParam(), 0x3fffffff), "allowed");
  }
}

TEST_P(FiltersTest, EachRefusesOtherArchitectures) {
  Arch other = GetParam() == Arch::kX86_64 ? Arch::kAarch64 : Arch::kX86_64;
  for (FilterName filter : kFilters) {
    for (std::uint32_t number : {0u, 1u, 20u, 39u, 172u, kHighestNumber}) {
      for (std::uint32_t arch : {kAuditI386, kAuditArm, AuditArch(other), 0u}) {
        EXPECT_EQ(Fate(FilterFor(filter, GetParam()), arch, number, {}), "ENOSYS") << arch << " " << number;
      }
    }
  }
}

TEST(FiltersX32Test, EachRefusesX32) {
  for (FilterName filter : kFilters) {
    for (std::uint32_t number : {0u, 39u, 59u, 512u, 547u, 0x3fffffffu}) {
      EXPECT_EQ(Fate(filter, Arch::kX86_64, 0x40000000 + number), "ENOSYS") << number;
    }
    EXPECT_EQ(Fate(filter, Arch::kX86_64, 0xffffffff), "ENOSYS");
  }
}

TEST_P(FiltersTest, PlaceholdersAreInTheSignalGuardOnly) {
  const std::set<std::uint32_t> kPlaceholders = {kKeeperPidPlaceholder, kKeeperGroupPlaceholder, kInitPidPlaceholder,
                                                 kInitGroupPlaceholder};
  for (FilterName filter : kFilters) {
    FilterView view = FilterFor(filter, GetParam());
    std::set<std::uint32_t> found;
    for (std::size_t i = 0; i < view.count; ++i) {
      if (kPlaceholders.count(view.instructions[i].k) == 0) continue;
      found.insert(view.instructions[i].k);
      EXPECT_EQ(view.instructions[i].code, 0x15) << "a placeholder is compared, nothing else";
    }
    EXPECT_EQ(found, filter == FilterName::kSignalGuard ? kPlaceholders : std::set<std::uint32_t>());
  }
}

// So that growth is seen: every launch pays for the instructions (installing and translating them).
TEST(FilterSizeTest, InstructionCounts) {
  auto counts = [](Arch arch) {
    std::vector<std::size_t> result;
    for (FilterName filter : kFilters) result.push_back(FilterFor(filter, arch).count);
    return result;
  };
  EXPECT_THAT(counts(Arch::kX86_64), ::testing::ElementsAre(149, 35, 9, 11, 36, 38));
  EXPECT_THAT(counts(Arch::kAarch64), ::testing::ElementsAre(141, 25, 8, 10, 34, 34));
}

TEST(BuiltInFilterTest, IsTheOneOfThisArchitecture) {
#if defined(__x86_64__)
  constexpr Arch kHere = Arch::kX86_64;
#else
  constexpr Arch kHere = Arch::kAarch64;
#endif
  for (FilterName filter : kFilters) {
    EXPECT_EQ(BuiltInFilter(filter).instructions, FilterFor(filter, kHere).instructions);
    EXPECT_EQ(BuiltInFilter(filter).count, FilterFor(filter, kHere).count);
  }
}

MATCHER_P2(Denies, call, error, "") { return arg.call == call && arg.error == error; }

TEST(DescribeFilterTest, NamesTheCallTheArgumentsAndTheErrno) {
  std::vector<DeniedCall> baseline = DescribeFilter(FilterName::kBaseline);
  EXPECT_THAT(baseline, Contains(Denies("ptrace", "EPERM")));
  EXPECT_THAT(baseline, Contains(Denies("clone3", "ENOSYS")));
  EXPECT_THAT(baseline, Contains(Denies("ioctl(TIOCSTI)", "EPERM")));
  EXPECT_THAT(baseline, Contains(Denies("clone(any CLONE_NEW* flag)", "EPERM")));
  EXPECT_THAT(baseline, Contains(Denies("socket(other than AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)", "EAFNOSUPPORT")));
  EXPECT_THAT(baseline, Contains(Denies("any call newer than Linux 7.0", "ENOSYS")));
  EXPECT_THAT(DescribeFilter(FilterName::kSocketsNone), Contains(Denies("socket", "EACCES")));
}

TEST(DescribeFilterTest, TellsAllThatIsRefusedOnce) {
  for (const FilterSpec& spec : kSpecs) {
    std::vector<DeniedCall> denied = DescribeFilter(spec.filter);
    std::set<std::string> texts;
    for (const DeniedCall& entry : denied) EXPECT_TRUE(texts.insert(entry.call).second) << entry.call;
    for (const auto& [error, calls] : spec.always) {
      for (const std::string& call : calls) EXPECT_THAT(denied, Contains(Denies(call, error)));
    }
    for (const std::string& call : spec.by_arguments) {
      bool told = std::any_of(texts.begin(), texts.end(),
                              [&](const std::string& text) { return text.rfind(call + "(", 0) == 0; });
      EXPECT_TRUE(told) << call;
    }
  }
}

}  // namespace
}  // namespace bulkhead::launcher
