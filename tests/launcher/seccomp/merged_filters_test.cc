// The filters that launches install: each does, for every call and every argument that a rule looks at, what its parts
// do one after the other.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bulkhead/launcher/seccomp/filters.h"
#include "bulkhead/launcher/seccomp/lists.h"
#include "gmock/gmock.h"
#include "tests/launcher/seccomp/bpf_evaluator.h"
#include "tests/launcher/seccomp/filter_parts.h"
#include "tests/launcher/seccomp/filters_fixture.h"

namespace bulkhead::launcher {
namespace {

using MergedFiltersTest = FiltersTest;

INSTANTIATE_TEST_SUITE_P(Arch, MergedFiltersTest, ::testing::Values(Arch::kX86_64, Arch::kAarch64),
                         ::testing::PrintToStringParamName());

// What the kernel does with filters that are installed one after the other (seccomp(2)).
std::string FateOfParts(FilterSet set, Arch arch, std::uint32_t number, const Arguments& arguments) {
  std::string fate = "allowed";
  for (const FilterName name : kInstallOrder) {
    if ((set & SetOf(name)) == 0) continue;
    const std::string one = Fate(name, arch, number, arguments);
    if (one != "allowed") fate = one;
  }
  return fate;
}

// Values on either side of every test that a rule makes of this call, by argument.
std::map<int, std::set<std::uint64_t>> ValuesThatMatter(FilterSet set, const std::string& call) {
  std::map<int, std::set<std::uint64_t>> values;
  for (const FilterList& list : ListsOf(set)) {
    for (const Rule& rule : list.rules) {
      const std::vector<std::string> calls = CallsOf(rule);
      if (std::find(calls.begin(), calls.end(), call) == calls.end()) continue;
      for (int i = 0; i < rule.condition_count; ++i) {
        const Condition& condition = rule.conditions[i];
        std::set<std::uint64_t>& of_argument = values[condition.argument];
        of_argument.insert({0, 1, std::uint64_t{1} << 32, 0xffffffff});
        for (int k = 0; k < condition.value_count; ++k) of_argument.insert(condition.values[k]);
        if (condition.test == Condition::Test::kAnyBit) of_argument.insert(condition.mask & -condition.mask);
      }
    }
  }
  return values;
}

TEST_P(MergedFiltersTest, DoWhatTheirPartsDo) {
  for (const FilterSet set : MergedSets()) {
    const FilterView merged = FilterFor(set, GetParam());
    ASSERT_EQ(FindFault(merged), "") << set;
    for (const FilterName name : kFilters) {
      if ((set & SetOf(name)) == 0) continue;
      for (const std::uint32_t number : {kHighestNumber + 1, 0x40000000u, 0x40000000u + 41, 0xffffffffu}) {
        EXPECT_EQ(Fate(merged, AuditArch(GetParam()), number), FateOfParts(set, GetParam(), number, {}));
      }
    }
    EXPECT_EQ(Fate(merged, kAuditI386, 0), "ENOSYS");
    for (std::uint32_t number = 0; number <= kHighestNumber + 1; ++number) {
      for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{0x7f0012345678}, ~std::uint64_t{0}}) {
        const Arguments arguments = {value, value, value, value, value, value};
        ASSERT_EQ(Fate(merged, AuditArch(GetParam()), number, arguments),
                  FateOfParts(set, GetParam(), number, arguments))
            << set << " " << number << " " << value;
      }
    }
  }
}

TEST_P(MergedFiltersTest, DoWhatTheirPartsDoForEveryArgumentThatMatters) {
  for (const FilterSet set : MergedSets()) {
    const FilterView merged = FilterFor(set, GetParam());
    std::set<std::string> calls;
    for (const FilterList& list : ListsOf(set)) {
      for (const Rule& rule : list.rules) {
        if (rule.condition_count == 0) continue;
        for (const std::string& call : CallsOf(rule)) calls.insert(call);
      }
    }
    for (const std::string& call : calls) {
      const std::optional<std::uint32_t> number = NumberOf(call, GetParam());
      if (!number) continue;
      std::vector<Arguments> all = {{}};
      for (const auto& [argument, values] : ValuesThatMatter(set, call)) {
        std::vector<Arguments> more;
        for (const Arguments& before : all) {
          for (const std::uint64_t value : values) {
            more.push_back(before);
            more.back()[static_cast<std::size_t>(argument)] = value;
          }
        }
        all.swap(more);
      }
      for (const Arguments& arguments : all) {
        ASSERT_EQ(Fate(merged, AuditArch(GetParam()), *number, arguments),
                  FateOfParts(set, GetParam(), *number, arguments))
            << set << " " << call << " " << testing::PrintToString(arguments);
      }
    }
  }
}

// So that growth is seen: the smallest and the largest.
TEST(MergedFilterSizeTest, InstructionCounts) {
  for (const Arch arch : {Arch::kX86_64, Arch::kAarch64}) {
    std::vector<std::size_t> counts;
    for (const FilterSet set : MergedSets()) counts.push_back(FilterFor(set, arch).count);
    EXPECT_GE(*std::min_element(counts.begin(), counts.end()), FilterFor(FilterName::kBaseline, arch).count - 5);
    EXPECT_LE(*std::max_element(counts.begin(), counts.end()), 300u);
  }
}

TEST(MergedFilterTest, IsKnownByWhatItDoes) {
  for (const FilterSet set : MergedSets()) EXPECT_EQ(SetOfFilter(BuiltInFilter(set)), set);
  EXPECT_EQ(BuiltInFilter(SetOf(FilterName::kSocketsNone) | SetOf(FilterName::kSetidGuard)).count, 0u);
}

}  // namespace
}  // namespace bulkhead::launcher
