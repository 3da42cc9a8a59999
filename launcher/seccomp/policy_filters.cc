#include "bulkhead/launcher/seccomp/policy_filters.h"

#include <linux/audit.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_join.h"
#include "bulkhead/launcher/seccomp/compiler.h"

namespace bulkhead::launcher {
namespace {

SyscallTable NativeTable() {
  SyscallTable table;
#if defined(__x86_64__)
  table.audit_arch = AUDIT_ARCH_X86_64;
  table.has_x32 = true;
#else
  table.audit_arch = AUDIT_ARCH_AARCH64;
#endif
  for (const NumberedCall& call : NativeCalls()) table.numbers[call.name] = call.number;
  return table;
}

bool IsIn(const std::string& call, absl::Span<const std::string> calls) {
  return std::find(calls.begin(), calls.end(), call) != calls.end();
}

}  // namespace

PolicyFilter::PolicyFilter(FilterSet set, absl::Span<const std::string> allow, absl::Span<const std::string> deny) {
  if (!deny.empty()) {
    calls_.push_back(absl::StrJoin(deny, " "));
    rules_.push_back({{calls_.back().c_str(), "", EPERM, "the policy denies it"}});
    lists_.push_back({"policy", false, rules_.back()});
  }
  for (const FilterName name : kInstallOrder) {
    if ((set & SetOf(name)) == 0) continue;
    FilterList list = ListOf(name);
    if (name == FilterName::kBaseline || name == FilterName::kStrict) {
      std::vector<Rule> rules;
      for (Rule rule : list.rules) {
        std::vector<std::string> calls = CallsOf(rule);
        calls.erase(std::remove_if(calls.begin(), calls.end(), [&](const auto& call) { return IsIn(call, allow); }),
                    calls.end());
        if (calls.empty()) continue;
        calls_.push_back(absl::StrJoin(calls, " "));
        rule.calls = calls_.back().c_str();
        rules.push_back(rule);
      }
      rules_.push_back(std::move(rules));
      list.rules = rules_.back();
    }
    lists_.push_back(list);
  }
}

std::vector<DeniedCall> PolicyFilter::Describe() const {
  std::vector<DeniedCall> denied;
  // The one installed last is asked first.
  for (auto list = lists_.rbegin(); list != lists_.rend(); ++list) {
    for (DeniedCall& entry : DescribeList(*list)) {
      const bool is_said =
          std::any_of(denied.begin(), denied.end(), [&](const DeniedCall& said) { return said.call == entry.call; });
      if (!is_said) denied.push_back(std::move(entry));
    }
  }
  return denied;
}

std::vector<BpfInstruction> PolicyFilter::Compile() const { return CompileFilters(lists_, NativeTable()); }

}  // namespace bulkhead::launcher
