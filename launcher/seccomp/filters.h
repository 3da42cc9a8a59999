// The system call filters, compiled at build time for the architecture we run on. Data only: nothing here installs a
// filter. The lists, with the reason for each errno, are in launcher/seccomp/lists.h.
#ifndef BULKHEAD_LAUNCHER_SECCOMP_FILTERS_H_
#define BULKHEAD_LAUNCHER_SECCOMP_FILTERS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead::launcher {

// The layout of struct sock_filter (linux/filter.h).
struct BpfInstruction {
  std::uint16_t code;
  std::uint8_t jt, jf;
  std::uint32_t k;
};

enum class FilterName {
  kBaseline,       // the deny-list of `syscalls.profile: baseline`; every launch has it
  kStrict,         // `syscalls.profile: strict`: every known call that is not on a list gives ENOSYS
  kSetidGuard,     // started as root: no process may make a setuid or setgid file
  kSocketsNone,    // tier B and C, network none: socket() gives EACCES for every family (socketpair stays)
  kSocketsNoUnix,  // tier B and C, network host, Landlock below ABI 9: socket(AF_UNIX) gives EACCES (socketpair stays)
  kSupervisorGuard,  // tier B and C: setting limits, priority or scheduler of another process gives EPERM
  kSignalGuard,      // tier B and C, Landlock below ABI 6: no signal reaches the keeper or the jail init, which must
                     // block all that can be blocked (SIGIO and SIGURG still come through F_SETOWN)
};

// Stand in for process ids that only the keeper knows; it replaces `k` in its own copy. Instructions of kSignalGuard
// alone hold them. A group that the server can't name (getpgrp() is 0: its leader is in another PID namespace) is
// replaced by the process's id, since kill(0) must stay.
inline constexpr std::uint32_t kKeeperPidPlaceholder = 0xbead0001;
inline constexpr std::uint32_t kKeeperGroupPlaceholder = 0xbead0002;  // minus the keeper's process group id
inline constexpr std::uint32_t kInitPidPlaceholder = 0xbead0003;
inline constexpr std::uint32_t kInitGroupPlaceholder = 0xbead0004;  // minus the jail init's process group id

struct FilterView {
  const BpfInstruction* instructions;
  std::size_t count;
};

// Filters that are installed as one: a bit for each. A merged filter does what its parts do when they are installed one
// after the other, in the order of kInstallOrder (lists.h).
using FilterSet = std::uint32_t;
inline constexpr FilterSet SetOf(FilterName name) { return 1u << static_cast<unsigned>(name); }

// The filter for the architecture that this code is compiled for. Each filter stands by itself: it allows what it does
// not name, and refuses other architectures with ENOSYS. Where several refuse a call, the errno is that of the one
// installed last.
FilterView BuiltInFilter(FilterName name);
// A merged one, of those that a launch can need (MergedSets in lists.h); of others {nullptr, 0}.
FilterView BuiltInFilter(FilterSet set);

// The same for a chosen architecture, for tests.
enum class Arch { kX86_64, kAarch64 };
FilterView FilterFor(FilterName name, Arch arch);
FilterView FilterFor(FilterSet set, Arch arch);

// The system calls that this architecture has, by the numbers that the filters above were compiled with.
struct NumberedCall {
  Arch arch;
  const char* name;
  std::uint32_t number;
};
std::vector<NumberedCall> NativeCalls();

// For explain: "ptrace" -> "EPERM". A rule on arguments is written out: "ioctl(TIOCSTI)".
struct DeniedCall {
  std::string call;
  std::string error;
  std::string by;  // the list: "baseline", "setid_guard"; "policy" for what a policy denies
};
std::vector<DeniedCall> DescribeFilter(FilterName name);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_SECCOMP_FILTERS_H_
