#include "tests/launcher/seccomp/filter_parts.h"

#include <algorithm>

#include "bulkhead/launcher/seccomp/compiler.h"
#include "bulkhead/launcher/seccomp/lists.h"
#include "tests/launcher/seccomp/filter_calls.h"
#include "tests/launcher/seccomp/syscall_numbers.h"

namespace bulkhead::launcher {
namespace {

#if defined(__x86_64__)
constexpr Arch kHere = Arch::kX86_64;
#else
constexpr Arch kHere = Arch::kAarch64;
#endif

bool Equal(FilterView a, FilterView b) {
  return std::equal(a.instructions, a.instructions + a.count, b.instructions, b.instructions + b.count,
                    [](const BpfInstruction& x, const BpfInstruction& y) {
                      return x.code == y.code && x.jt == y.jt && x.jf == y.jf && x.k == y.k;
                    });
}

SyscallTable Table() {
  SyscallTable table;
  table.audit_arch = AuditArch(kHere);
  table.has_x32 = kHere == Arch::kX86_64;
  for (const SyscallNumber& row : kSyscallNumbers) {
    const int number = kHere == Arch::kX86_64 ? row.x86_64 : row.aarch64;
    if (number >= 0) table.numbers[row.name] = static_cast<std::uint32_t>(number);
  }
  return table;
}

}  // namespace

std::optional<FilterSet> SetOfFilter(FilterView filter) {
  std::vector<FilterSet> sets = MergedSets();
  for (const FilterName name : kAllFilters) sets.push_back(SetOf(name));
  for (const FilterSet set : sets) {
    if (Equal(filter, BuiltInFilter(set))) return set;
  }
  return std::nullopt;
}

std::vector<BpfInstruction> FilterWithout(FilterSet set, FilterName part) {
  return CompileFilters(ListsOf(set & ~SetOf(part)), Table());
}

}  // namespace bulkhead::launcher
