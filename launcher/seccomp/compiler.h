// Compiles a FilterList into the BPF program of one architecture. Pure: the numbers come in as a value.
#ifndef BULKHEAD_LAUNCHER_SECCOMP_COMPILER_H_
#define BULKHEAD_LAUNCHER_SECCOMP_COMPILER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bulkhead/launcher/seccomp/filters.h"
#include "bulkhead/launcher/seccomp/lists.h"

namespace bulkhead::launcher {

// The system calls of one architecture.
struct SyscallTable {
  std::uint32_t audit_arch = 0;  // linux/audit.h, AUDIT_ARCH_*
  // x86_64: the same audit_arch also carries x32's calls, marked by bit 30 of the number.
  bool has_x32 = false;
  std::map<std::string, std::uint32_t> numbers;
};

// The program loads the architecture and refuses any but the table's with ENOSYS, then finds the number by binary
// search over ranges of numbers with the same fate, and tests arguments only after that. A call that the table lacks is
// left out, since no architecture has every call: see UnknownCalls.
std::vector<BpfInstruction> CompileFilter(const FilterList& list, const SyscallTable& table);

// The same for several lists: does what their programs do together when they are installed in this order, with one
// program. The kernel runs all filters and takes the strictest answer; of several errnos, that of the last one
// installed (seccomp(2)). So an "allowed" of one list is no answer of the others.
std::vector<BpfInstruction> CompileFilters(const std::vector<FilterList>& lists, const SyscallTable& table);

// The names of the list that none of the tables has. A misspelt name would silently allow the call.
std::vector<std::string> UnknownCalls(const FilterList& list, const std::vector<SyscallTable>& tables);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_SECCOMP_COMPILER_H_
