// What each filter refuses, with which errno and why, as data for people and for two readers: the generator, which
// compiles it into BPF at build time, and DescribeFilter. It holds names only; numbers belong to the architecture and
// are looked up by the generator.
#ifndef BULKHEAD_LAUNCHER_SECCOMP_LISTS_H_
#define BULKHEAD_LAUNCHER_SECCOMP_LISTS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bulkhead/launcher/seccomp/filters.h"

namespace bulkhead::launcher {

// A test of one half of one argument. Every argument tested here is an int, an unsigned int or a umode_t to the kernel,
// which ignores the upper half of the register; comparing 64 bits would be a way around the rule (CVE-2019-10063).
// Only a pointer needs its upper half as well.
struct Condition {
  enum class Test : std::uint8_t { kIn, kNotIn, kAnyBit };
  static constexpr std::size_t kValuesMax = 5;

  std::uint8_t argument = 0;  // 0 to 5
  bool upper_half = false;
  Test test = Test::kIn;
  std::uint8_t value_count = 0;
  std::uint32_t mask = 0xffffffff;  // kIn, kNotIn: applied before comparing; kAnyBit: the bits
  std::uint32_t values[kValuesMax] = {};
};

struct Rule {
  static constexpr std::size_t kConditionsMax = 3;

  const char* calls;   // the kernel's names, separated by one space
  const char* what;    // what the conditions say, for people; empty when there are none
  int error;           // 0: allowed
  const char* reason;  // one line
  // All must hold; none: always.
  std::uint8_t condition_count = 0;
  Condition conditions[kConditionsMax] = {};

  constexpr Rule(const char* calls_in, const char* what_in, int error_in, const char* reason_in,
                 std::initializer_list<Condition> conditions_in = {})
      : calls(calls_in), what(what_in), error(error_in), reason(reason_in) {
    for (const Condition& condition : conditions_in) conditions[condition_count++] = condition;
  }
};

// For each system call the first rule that matches decides. A call that no rule matches is allowed.
struct FilterList {
  const char* name;
  // Numbers that the generator has no name for, and all above the highest one, give ENOSYS. Otherwise they are left to
  // the other filters.
  bool refuses_unknown;
  absl::Span<const Rule> rules;
};

FilterList ListOf(FilterName name);

// What DescribeFilter says of it.
std::vector<DeniedCall> DescribeList(const FilterList& list);

// The names in `rule.calls`.
std::vector<std::string> CallsOf(const Rule& rule);

// What kStrict allows, as far as the other lists do.
absl::Span<const absl::string_view> StrictlyAllowed();

inline constexpr FilterName kAllFilters[] = {
    FilterName::kBaseline,      FilterName::kStrict,          FilterName::kSetidGuard, FilterName::kSocketsNone,
    FilterName::kSocketsNoUnix, FilterName::kSupervisorGuard, FilterName::kSignalGuard};

// Where several refuse a call, the one installed last, which is the baseline, names the errno.
inline constexpr FilterName kInstallOrder[] = {
    FilterName::kSocketsNone, FilterName::kSocketsNoUnix, FilterName::kSupervisorGuard, FilterName::kSignalGuard,
    FilterName::kSetidGuard,  FilterName::kStrict,        FilterName::kBaseline};

// What a launch can need, merged: always the baseline; by the policy's profile the strict list; as root the setid
// guard; without a jail the supervisor guard, and by Landlock's ABI and the policy's network one of the socket filters
// and the signal guard.
std::vector<FilterSet> MergedSets();

// The lists of a set, in kInstallOrder.
std::vector<FilterList> ListsOf(FilterSet set);

// "EPERM"; nullptr for an errno that no rule uses.
const char* ErrorName(int error);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_SECCOMP_LISTS_H_
