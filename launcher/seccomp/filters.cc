#include "bulkhead/launcher/seccomp/filters.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/seccomp/lists.h"

namespace bulkhead::launcher {
namespace {

struct BuiltIn {
  Arch arch;
  FilterSet set;
  FilterView view;
};

#include "launcher/seccomp/filters.inc"  // generated: kBuiltIn

#if defined(__x86_64__)
constexpr Arch kNativeArch = Arch::kX86_64;
#elif defined(__aarch64__)
constexpr Arch kNativeArch = Arch::kAarch64;
#else
#error "no filters for this architecture: add it to launcher/seccomp/generate.cc"
#endif

}  // namespace

FilterView FilterFor(FilterSet set, Arch arch) {
  for (const BuiltIn& built_in : kBuiltIn) {
    if (built_in.arch == arch && built_in.set == set) return built_in.view;
  }
  return {nullptr, 0};
}

FilterView FilterFor(FilterName name, Arch arch) { return FilterFor(SetOf(name), arch); }

FilterView BuiltInFilter(FilterName name) { return FilterFor(name, kNativeArch); }

FilterView BuiltInFilter(FilterSet set) { return FilterFor(set, kNativeArch); }

std::vector<NumberedCall> NativeCalls() {
  std::vector<NumberedCall> calls;
  for (const NumberedCall& call : kCalls) {
    if (call.arch == kNativeArch) calls.push_back(call);
  }
  return calls;
}

std::vector<DeniedCall> DescribeFilter(FilterName name) { return DescribeList(ListOf(name)); }

std::vector<DeniedCall> DescribeList(const FilterList& list) {
  std::vector<DeniedCall> denied;
  for (const Rule& rule : list.rules) {
    if (rule.error == 0) continue;
    for (std::string& call : CallsOf(rule)) {
      if (rule.condition_count != 0) absl::StrAppend(&call, "(", rule.what, ")");
      // Rules that differ in a detail only, such as one for each half of a pointer, read the same.
      bool seen = std::any_of(denied.begin(), denied.end(), [&](const DeniedCall& d) { return d.call == call; });
      if (!seen) denied.push_back({call, ErrorName(rule.error), list.name});
    }
  }
  if (list.refuses_unknown) denied.push_back({"any call newer than Linux 7.0", ErrorName(ENOSYS), list.name});
  denied.push_back({"any call of another architecture or ABI, such as i386 and x32", ErrorName(ENOSYS), list.name});
  return denied;
}

}  // namespace bulkhead::launcher
