// Names the system calls of the test tables, and asks the built-in filters what becomes of them.
#ifndef BULKHEAD_TESTS_LAUNCHER_SECCOMP_FILTER_CALLS_H_
#define BULKHEAD_TESTS_LAUNCHER_SECCOMP_FILTER_CALLS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "bulkhead/launcher/seccomp/filters.h"

namespace bulkhead::launcher {

inline constexpr std::uint32_t kAuditX86_64 = 0xc000003e, kAuditAarch64 = 0xc00000b7;  // linux/audit.h
inline constexpr std::uint32_t kAuditI386 = 0x40000003, kAuditArm = 0x40000028;
inline constexpr std::uint32_t kHighestNumber = 471;  // rseq_slice_yield, of both architectures

inline constexpr FilterName kFilters[] = {FilterName::kBaseline,        FilterName::kSetidGuard,
                                          FilterName::kSocketsNone,     FilterName::kSocketsNoUnix,
                                          FilterName::kSupervisorGuard, FilterName::kSignalGuard};

using Arguments = std::array<std::uint64_t, 6>;

std::uint32_t AuditArch(Arch arch);

// Nothing if the architecture has no such call. Aborts on a name that no architecture has.
std::optional<std::uint32_t> NumberOf(const std::string& call, Arch arch);

// "allowed", the name of the errno, or the number of any other action.
std::string Fate(FilterView filter, std::uint32_t audit_arch, std::uint32_t number, const Arguments& arguments = {});
std::string Fate(FilterName filter, Arch arch, std::uint32_t number, const Arguments& arguments = {});

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_TESTS_LAUNCHER_SECCOMP_FILTER_CALLS_H_
