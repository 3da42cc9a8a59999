// The rules that look at arguments, at their edges, for both architectures, by the evaluator.
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "bulkhead/launcher/seccomp/filters.h"
#include "gtest/gtest.h"
#include "tests/launcher/seccomp/filters_fixture.h"

namespace bulkhead::launcher {
namespace {

constexpr std::uint64_t kUpperHalf = 0x100000000;  // what the kernel does not look at in an int

using ArgumentsTest = FiltersTest;

INSTANTIATE_TEST_SUITE_P(Arch, ArgumentsTest, ::testing::Values(Arch::kX86_64, Arch::kAarch64),
                         ::testing::PrintToStringParamName());

TEST_P(ArgumentsTest, CloneIsRefusedForNamespacesOnly) {
  const std::set<int> kNamespaceBits = {17, 25, 26, 27, 28, 29, 30};  // linux/sched.h, CLONE_NEW*
  for (int bit = 0; bit < 64; ++bit) {
    std::string expected = kNamespaceBits.count(bit) != 0 ? "EPERM" : "allowed";
    std::uint64_t flag = std::uint64_t{1} << bit;
    EXPECT_EQ(Of(FilterName::kBaseline, "clone", {flag}), expected) << bit;
    EXPECT_EQ(Of(FilterName::kBaseline, "clone", {flag | kUpperHalf | 17}), expected) << bit;
  }
  EXPECT_EQ(Of(FilterName::kBaseline, "clone", {0x7e020000}), "EPERM");
  EXPECT_EQ(Of(FilterName::kBaseline, "clone", {0x003d0f00}), "allowed");  // pthread_create
  EXPECT_EQ(Of(FilterName::kBaseline, "clone", {0x01200011}), "allowed");  // fork
  EXPECT_EQ(Of(FilterName::kBaseline, "clone", {0x00004111}), "allowed");  // posix_spawn
}

TEST_P(ArgumentsTest, IoctlIsRefusedByTheLowerHalfOfTheRequest) {
  for (std::uint64_t request : {0x5412, 0x541c, 0x5423}) {
    for (std::uint64_t upper : {std::uint64_t{0}, kUpperHalf, std::uint64_t{0xffffffff00000000}}) {
      EXPECT_EQ(Of(FilterName::kBaseline, "ioctl", {0, request | upper}), "EPERM") << request << " " << upper;
    }
    EXPECT_EQ(Of(FilterName::kBaseline, "ioctl", {request, request - 1, request}), "allowed") << request;
    EXPECT_EQ(Of(FilterName::kBaseline, "ioctl", {request, request + 1, request}), "allowed") << request;
  }
  for (std::uint64_t request :
       {0x5401, 0x5413, 0x541b, 0x5421, 0x5451}) {  // TCGETS TIOCGWINSZ FIONREAD FIONBIO FIOCLEX
    EXPECT_EQ(Of(FilterName::kBaseline, "ioctl", {0, request}), "allowed") << request;
  }
}

TEST_P(ArgumentsTest, PersonalityIsLimitedToHarmlessOnes) {
  for (std::uint64_t persona : {0x0u, 0x8u, 0x20000u, 0x20008u, 0xffffffffu}) {
    EXPECT_EQ(Of(FilterName::kBaseline, "personality", {persona}), "allowed") << persona;
    EXPECT_EQ(Of(FilterName::kBaseline, "personality", {persona | kUpperHalf}), "allowed") << persona;
  }
  // ADDR_NO_RANDOMIZE, READ_IMPLIES_EXEC, and neighbours of the allowed ones.
  for (std::uint64_t persona : {0x40000u, 0x400000u, 0x1u, 0x7u, 0x9u, 0x1ffffu, 0x20001u, 0x20009u, 0xfffffffeu}) {
    EXPECT_EQ(Of(FilterName::kBaseline, "personality", {persona}), "EPERM") << persona;
  }
}

struct SocketCase {
  std::uint64_t family, type, protocol;
  const char* fate;
};

TEST_P(ArgumentsTest, SocketsAreLimitedByFamilyTypeAndProtocol) {
  constexpr std::uint64_t kFlags = 02000000 | 04000;  // SOCK_CLOEXEC, SOCK_NONBLOCK
  const SocketCase cases[] = {
      {1, 1, 0, "allowed"},             // AF_UNIX
      {1, 2, 0, "allowed"},             //
      {1, 5, 0, "allowed"},             //   SOCK_SEQPACKET
      {2, 1, 0, "allowed"},             // AF_INET
      {2, 1, 6, "allowed"},             //   TCP
      {2, 2, 0, "allowed"},             //
      {2, 2, 17, "allowed"},            //   UDP
      {2, 2, 1, "allowed"},             //   ICMP, of the unprivileged kind
      {10, 1, 6, "allowed"},            // AF_INET6
      {10, 2, 58, "allowed"},           //   ICMPv6
      {16, 3, 0, "allowed"},            // AF_NETLINK, SOCK_RAW, NETLINK_ROUTE: getifaddrs
      {16, 2, 0, "allowed"},            //
      {16, 3, 1, "EPROTONOSUPPORT"},    //   the next
      {16, 3, 12, "EPROTONOSUPPORT"},   //   NETLINK_NETFILTER
      {16, 2, 15, "EPROTONOSUPPORT"},   //   NETLINK_KOBJECT_UEVENT
      {2, 3, 1, "EPERM"},               // SOCK_RAW
      {10, 3, 58, "EPERM"},             //
      {2, 10, 0, "EPERM"},              // SOCK_PACKET, which the kernel takes for AF_PACKET
      {2, 5, 0, "ESOCKTNOSUPPORT"},     // SOCK_SEQPACKET: SCTP by type alone
      {2, 5, 132, "ESOCKTNOSUPPORT"},   //
      {10, 6, 0, "ESOCKTNOSUPPORT"},    // SOCK_DCCP
      {2, 4, 0, "ESOCKTNOSUPPORT"},     // SOCK_RDM
      {2, 0, 0, "ESOCKTNOSUPPORT"},     //
      {2, 1, 262, "EPROTONOSUPPORT"},   // IPPROTO_MPTCP
      {10, 1, 256, "EPROTONOSUPPORT"},  // IPPROTO_SMC
      {2, 1, 132, "EPROTONOSUPPORT"},   // IPPROTO_SCTP
      {2, 2, 33, "EPROTONOSUPPORT"},    // IPPROTO_DCCP
      {2, 2, 136, "EPROTONOSUPPORT"},   // IPPROTO_UDPLITE
      {10, 2, 115, "EPROTONOSUPPORT"},  // IPPROTO_L2TP
      {2, 1, 5, "EPROTONOSUPPORT"},     // beside IPPROTO_TCP
      {2, 1, 7, "EPROTONOSUPPORT"},     //
      {0, 1, 0, "EAFNOSUPPORT"},        // AF_UNSPEC
      {3, 1, 0, "EAFNOSUPPORT"},        // beside AF_INET
      {9, 1, 0, "EAFNOSUPPORT"},        // beside AF_INET6
      {11, 1, 0, "EAFNOSUPPORT"},       //
      {15, 3, 2, "EAFNOSUPPORT"},       // AF_KEY
      {17, 3, 0, "EAFNOSUPPORT"},       // AF_PACKET
      {29, 3, 1, "EAFNOSUPPORT"},       // AF_CAN
      {30, 1, 0, "EAFNOSUPPORT"},       // AF_TIPC, the other family with socketpair
      {31, 3, 1, "EAFNOSUPPORT"},       // AF_BLUETOOTH
      {38, 5, 0, "EAFNOSUPPORT"},       // AF_ALG
      {40, 1, 0, "EAFNOSUPPORT"},       // AF_VSOCK
      {43, 1, 0, "EAFNOSUPPORT"},       // AF_SMC
      {44, 3, 0, "EAFNOSUPPORT"},       // AF_XDP
      {0xffffffff, 1, 0, "EAFNOSUPPORT"},
  };
  for (const char* call : {"socket", "socketpair"}) {
    for (const SocketCase& c : cases) {
      Arguments plain = {c.family, c.type, c.protocol};
      Arguments flagged = {c.family | kUpperHalf, c.type | kFlags | kUpperHalf, c.protocol | kUpperHalf};
      EXPECT_EQ(Of(FilterName::kBaseline, call, plain), c.fate)
          << call << c.family << "," << c.type << "," << c.protocol;
      EXPECT_EQ(Of(FilterName::kBaseline, call, flagged), c.fate)
          << call << c.family << "," << c.type << "," << c.protocol << " with flags";
    }
  }
}

TEST_P(ArgumentsTest, TcpUlpIsRefused) {
  EXPECT_EQ(Of(FilterName::kBaseline, "setsockopt", {3, 6, 31}), "ENOPROTOOPT");
  EXPECT_EQ(Of(FilterName::kBaseline, "setsockopt", {3, 6 | kUpperHalf, 31 | kUpperHalf}), "ENOPROTOOPT");
  EXPECT_EQ(Of(FilterName::kBaseline, "setsockopt", {3, 6, 1}), "allowed");    // TCP_NODELAY
  EXPECT_EQ(Of(FilterName::kBaseline, "setsockopt", {3, 6, 30}), "allowed");   // TCP_FASTOPEN_CONNECT: Landlock sees it
  EXPECT_EQ(Of(FilterName::kBaseline, "setsockopt", {3, 1, 31}), "allowed");   // SO_PEERSEC, of SOL_SOCKET
  EXPECT_EQ(Of(FilterName::kBaseline, "setsockopt", {3, 41, 31}), "allowed");  // of IPPROTO_IPV6
}

TEST_P(ArgumentsTest, FastOpenIsRefusedInTheFlagsOfEachSend) {
  constexpr std::uint64_t kFastOpen = 0x20000000, kOthers = 0xdfffffff;
  const std::map<std::string, std::size_t> flag_argument = {{"sendto", 3}, {"sendmsg", 2}, {"sendmmsg", 3}};
  for (const auto& [call, index] : flag_argument) {
    for (std::size_t argument = 0; argument < 6; ++argument) {
      Arguments arguments = {};
      arguments[argument] = kFastOpen;
      EXPECT_EQ(Of(FilterName::kBaseline, call, arguments), argument == index ? "EOPNOTSUPP" : "allowed")
          << call << argument;
    }
    Arguments arguments = {};
    arguments[index] = kFastOpen | 0x4000 | kUpperHalf;  // MSG_NOSIGNAL
    EXPECT_EQ(Of(FilterName::kBaseline, call, arguments), "EOPNOTSUPP") << call;
    arguments[index] = kOthers | kUpperHalf;
    EXPECT_EQ(Of(FilterName::kBaseline, call, arguments), "allowed") << call;
    arguments[index] = kFastOpen << 32;
    EXPECT_EQ(Of(FilterName::kBaseline, call, arguments), "allowed") << call;
  }
}

TEST_P(ArgumentsTest, SetidGuardRefusesSetidModes) {
  const std::map<std::string, std::size_t> mode_argument = {
      {"chmod", 1}, {"fchmod", 1}, {"creat", 1}, {"mknod", 1}, {"fchmodat", 2}, {"fchmodat2", 2}, {"mknodat", 2}};
  for (const auto& [call, index] : mode_argument) {
    if (!NumberOf(call, GetParam())) continue;
    for (std::uint64_t mode : {04000, 02000, 06000, 04755, 02755, 07777, 0104755}) {
      Arguments arguments = {06000, 06000, 06000, 06000};
      arguments[index] = mode;
      EXPECT_EQ(Of(FilterName::kSetidGuard, call, arguments), "EPERM") << call << std::oct << mode;
      arguments[index] = mode | kUpperHalf;
      EXPECT_EQ(Of(FilterName::kSetidGuard, call, arguments), "EPERM") << call << std::oct << mode;
    }
    for (std::uint64_t mode : {0, 0755, 01777, 0100644, 0171777}) {
      Arguments arguments = {06000, 06000, 06000, 06000};
      arguments[index] = mode | (std::uint64_t{06000} << 32);
      EXPECT_EQ(Of(FilterName::kSetidGuard, call, arguments), "allowed") << call << std::oct << mode;
    }
  }
  for (const char* call : {"mkdir", "mkdirat", "umask"}) {  // the kernel drops the bits
    if (!NumberOf(call, GetParam())) continue;
    EXPECT_EQ(Of(FilterName::kSetidGuard, call, {06777, 06777, 06777}), "allowed");
  }
}

TEST_P(ArgumentsTest, SetidGuardRefusesSetidFilesAtTheirCreation) {
  constexpr std::uint64_t kCreat = 0x40, kTmpfile = 0x400000;
  for (std::size_t flags_at : {1, 2}) {  // open, openat
    std::string call = flags_at == 1 ? "open" : "openat";
    if (!NumberOf(call, GetParam())) continue;
    auto fate = [&](std::uint64_t flags, std::uint64_t mode) {
      Arguments arguments = {06000};
      arguments[flags_at] = flags;
      arguments[flags_at + 1] = mode;
      return Of(FilterName::kSetidGuard, call, arguments);
    };
    for (std::uint64_t mode : {04000, 02000, 06755}) {
      EXPECT_EQ(fate(kCreat, mode), "EPERM");
      EXPECT_EQ(fate(kCreat | 02 | kUpperHalf, mode | kUpperHalf), "EPERM");
      EXPECT_EQ(fate(kTmpfile, mode), "EPERM");
      EXPECT_EQ(fate(kTmpfile | 0200000 | 02, mode), "EPERM");  // O_TMPFILE as x86_64 spells it
      EXPECT_EQ(fate(kTmpfile | 040000 | 02, mode), "EPERM");   // and as aarch64 does
      // The mode means nothing without either, and holds whatever was in the register.
      EXPECT_EQ(fate(0, mode), "allowed");
      EXPECT_EQ(fate(0xffbfffbf, mode), "allowed");
      EXPECT_EQ(fate(kCreat << 32, mode), "allowed");
    }
    EXPECT_EQ(fate(kCreat, 01777), "allowed");
    EXPECT_EQ(fate(kTmpfile, 0644), "allowed");
    EXPECT_EQ(fate(kCreat, std::uint64_t{06000} << 32), "allowed");
  }
}

TEST_P(ArgumentsTest, SocketsNoneLeavesSocketpair) {
  for (std::uint64_t family : {1, 2, 10, 16, 40}) {
    EXPECT_EQ(Of(FilterName::kSocketsNone, "socket", {family, 1, 0}), "EACCES");
    EXPECT_EQ(Of(FilterName::kSocketsNone, "socketpair", {family, 1, 0}), "allowed");
  }
}

TEST_P(ArgumentsTest, SocketsNoUnixRefusesThatFamilyOnly) {
  EXPECT_EQ(Of(FilterName::kSocketsNoUnix, "socket", {1, 1, 0}), "EACCES");
  EXPECT_EQ(Of(FilterName::kSocketsNoUnix, "socket", {1 | kUpperHalf, 2, 0}), "EACCES");
  EXPECT_EQ(Of(FilterName::kSocketsNoUnix, "socketpair", {1, 1, 0}), "allowed");
  for (std::uint64_t family : {0, 2, 10, 16}) {
    EXPECT_EQ(Of(FilterName::kSocketsNoUnix, "socket", {family, 1, 0}), "allowed");
  }
}

TEST_P(ArgumentsTest, SupervisorGuardRefusesNewLimitsForAPid) {
  constexpr std::uint64_t kResource = 7;
  for (std::uint64_t limit : {std::uint64_t{1}, std::uint64_t{0x7f0000001000}, kUpperHalf, ~std::uint64_t{0}}) {
    EXPECT_EQ(Of(FilterName::kSupervisorGuard, "prlimit64", {1, kResource, limit}), "EPERM") << limit;
    EXPECT_EQ(Of(FilterName::kSupervisorGuard, "prlimit64", {0xffffffff, kResource, limit}), "EPERM") << limit;
    EXPECT_EQ(Of(FilterName::kSupervisorGuard, "prlimit64", {kUpperHalf | 1, kResource, limit}), "EPERM") << limit;
    EXPECT_EQ(Of(FilterName::kSupervisorGuard, "prlimit64", {0, kResource, limit}), "allowed") << limit;
    EXPECT_EQ(Of(FilterName::kSupervisorGuard, "prlimit64", {kUpperHalf, kResource, limit}), "allowed") << limit;
  }
  EXPECT_EQ(Of(FilterName::kSupervisorGuard, "prlimit64", {1, kResource, 0, 0x7f0000001000}), "allowed");  // reading
}

TEST_P(ArgumentsTest, SupervisorGuardRefusesSchedulingOthers) {
  for (const char* call : {"setpriority", "ioprio_set"}) {
    std::uint64_t base = call[0] == 's' ? 0 : 1;  // PRIO_PROCESS, IOPRIO_WHO_PROCESS; then the group, then the user
    for (std::uint64_t which : {base, base + 1, base + 2}) {
      EXPECT_EQ(Of(FilterName::kSupervisorGuard, call, {which, 1, 19}), "EPERM") << call << which;
      EXPECT_EQ(Of(FilterName::kSupervisorGuard, call, {which, 0xffffffff, 19}), "EPERM") << call << which;
      EXPECT_EQ(Of(FilterName::kSupervisorGuard, call, {which | kUpperHalf, kUpperHalf, 19}),
                which == base + 2 ? "EPERM" : "allowed")
          << call << which;
    }
  }
  for (const char* call : {"sched_setscheduler", "sched_setparam", "sched_setattr"}) {
    EXPECT_EQ(Of(FilterName::kSupervisorGuard, call, {1, 5, 0x7f0000001000}), "EPERM") << call;
    EXPECT_EQ(Of(FilterName::kSupervisorGuard, call, {0, 5, 0x7f0000001000}), "allowed") << call;
    EXPECT_EQ(Of(FilterName::kSupervisorGuard, call, {kUpperHalf, 5, 0x7f0000001000}), "allowed") << call;
  }
}

TEST_P(ArgumentsTest, SignalGuardProtectsTheSupervisors) {
  const std::uint32_t kProtected[] = {kKeeperPidPlaceholder, kKeeperGroupPlaceholder, kInitPidPlaceholder,
                                      kInitGroupPlaceholder, 0xffffffff};
  for (const char* call : {"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"}) {
    for (std::uint64_t pid : kProtected) {
      EXPECT_EQ(Of(FilterName::kSignalGuard, call, {pid, 9, 9}), "EPERM") << call << pid;
      EXPECT_EQ(Of(FilterName::kSignalGuard, call, {pid | 0xabcd00000000, 9, 9}), "EPERM") << call << pid;
      EXPECT_EQ(Of(FilterName::kSignalGuard, call, {9, 9, pid}), "allowed") << call << pid;
    }
    for (std::uint64_t pid :
         {std::uint64_t{0}, std::uint64_t{kKeeperPidPlaceholder - 1}, kUpperHalf, std::uint64_t{0xfffffffe}}) {
      EXPECT_EQ(Of(FilterName::kSignalGuard, call, {pid, 9, 9}), "allowed") << call << pid;
    }
  }
  for (const char* call : {"tgkill", "rt_tgsigqueueinfo"}) {
    for (std::uint64_t thread : {kKeeperPidPlaceholder, kInitPidPlaceholder}) {
      EXPECT_EQ(Of(FilterName::kSignalGuard, call, {9, thread, 9}), "EPERM") << call;
      EXPECT_EQ(Of(FilterName::kSignalGuard, call, {0xffffffff00000000 | 9, thread | kUpperHalf, 9}), "EPERM") << call;
    }
  }
  EXPECT_EQ(Of(FilterName::kSignalGuard, "kill", {9, kKeeperPidPlaceholder}), "allowed");  // there it is the signal
}

TEST_P(ArgumentsTest, SignalGuardRefusesTheChoiceOfADescriptorsSignal) {
  EXPECT_EQ(Of(FilterName::kSignalGuard, "fcntl", {3, 10, 9}), "EPERM");
  EXPECT_EQ(Of(FilterName::kSignalGuard, "fcntl", {3, 10 | kUpperHalf, 9}), "EPERM");
  for (std::uint64_t command : {1, 4, 8, 9, 11, 15}) {  // F_GETFD F_SETFL F_SETOWN F_GETOWN F_GETSIG F_SETOWN_EX
    EXPECT_EQ(Of(FilterName::kSignalGuard, "fcntl", {3, command, 10}), "allowed") << command;
  }
}

}  // namespace
}  // namespace bulkhead::launcher
