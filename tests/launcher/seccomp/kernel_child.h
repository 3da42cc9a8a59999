// Children that restrict themselves with filters, so that the test process stays free.
#ifndef BULKHEAD_TESTS_LAUNCHER_SECCOMP_KERNEL_CHILD_H_
#define BULKHEAD_TESTS_LAUNCHER_SECCOMP_KERNEL_CHILD_H_

#include <functional>
#include <vector>

#include "bulkhead/launcher/seccomp/filters.h"

namespace bulkhead::launcher {

#if defined(__x86_64__)
inline constexpr Arch kHere = Arch::kX86_64;
#else
inline constexpr Arch kHere = Arch::kAarch64;
#endif
inline constexpr unsigned long kUpperHalf = 0x100000000;
inline constexpr unsigned long kBad = 1;              // no memory is there
inline constexpr unsigned long kNone = ~0ul;          // no such descriptor
inline constexpr unsigned long kNobody = 0x7ffffff0;  // no such process
inline constexpr unsigned long kOddFlags = 0x8000000;

using Program = std::vector<BpfInstruction>;

Program ProgramOf(FilterView view);
inline Program ProgramOf(FilterName name) { return ProgramOf(BuiltInFilter(name)); }

inline constexpr int kInstallFailed = 254, kChildDied = 255;

// Forks; the child leaves the terminal's session, sets no_new_privs, installs the programs in order and runs `body`.
// What that returns (0 to 253), or one of the two above.
int RunRestricted(const std::vector<Program>& programs, const std::function<int()>& body);

// The errno of one system call made under the programs; 0 if it succeeds.
int ErrorUnder(const std::vector<Program>& programs, long number, const std::vector<unsigned long>& arguments);

struct CallCase {
  const char* call;
  std::vector<unsigned long> arguments;
  int error;
  // Why the kernel may give the same answer without the filter; empty: it must not.
  const char* may_agree = "";
};

// `programs` refuse the call with its errno, and the same call without them ends otherwise. Nothing is asked of a call
// that this architecture lacks.
void ExpectRefused(const std::vector<Program>& programs, const CallCase& c);

// The call succeeds with and without `programs`.
void ExpectAllowed(const std::vector<Program>& programs, const char* call, const std::vector<unsigned long>& arguments);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_TESTS_LAUNCHER_SECCOMP_KERNEL_CHILD_H_
