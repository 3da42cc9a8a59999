// What a policy changes in the filters, asked of the compiled programs for every call there is; and the names that it
// may use.
#include "bulkhead/launcher/seccomp/policy_filters.h"

#include <set>
#include <string>
#include <vector>

#include "bulkhead/policy/syscall_names.h"
#include "gmock/gmock.h"
#include "tests/launcher/seccomp/bpf_evaluator.h"
#include "tests/launcher/seccomp/filter_calls.h"
#include "tests/launcher/seccomp/syscall_numbers.h"

namespace bulkhead::launcher {
namespace {

using testing::Contains;

#if defined(__x86_64__)
constexpr Arch kHere = Arch::kX86_64;
#else
constexpr Arch kHere = Arch::kAarch64;
#endif
constexpr FilterSet kBaseline = SetOf(FilterName::kBaseline), kStrict = kBaseline | SetOf(FilterName::kStrict);
constexpr std::uint64_t kNewUser = 0x10000000;

class Filter {
 public:
  Filter(FilterSet set, const std::vector<std::string>& allow, const std::vector<std::string>& deny)
      : filter_(set, allow, deny), program_(filter_.Compile()) {
    EXPECT_EQ(FindFault(View()), "");
  }

  FilterView View() const { return {program_.data(), program_.size()}; }
  std::string Of(std::uint32_t number, const Arguments& arguments = {}) const {
    return Fate(View(), AuditArch(kHere), number, arguments);
  }
  std::string Of(const std::string& call, const Arguments& arguments = {}) const {
    return Of(NumberOf(call, kHere).value(), arguments);
  }

 private:
  PolicyFilter filter_;
  std::vector<BpfInstruction> program_;
};

std::string OfBuiltIn(FilterSet set, std::uint32_t number, const Arguments& arguments = {}) {
  return Fate(BuiltInFilter(set), AuditArch(kHere), number, arguments);
}

TEST(PolicyFilterTest, ChangesNothingButWhatIsNamed) {
  for (const FilterSet set : {kBaseline, kStrict}) {
    const Filter filter(set, {"keyctl", "userfaultfd"}, {"mkdirat", "getrandom"});
    std::set<std::uint32_t> named;
    for (const char* call : {"keyctl", "userfaultfd"}) {
      named.insert(*NumberOf(call, kHere));
      EXPECT_NE(OfBuiltIn(set, *NumberOf(call, kHere)), "allowed") << call;
      EXPECT_EQ(filter.Of(call), "allowed") << call;
    }
    for (const char* call : {"mkdirat", "getrandom"}) {
      named.insert(*NumberOf(call, kHere));
      EXPECT_EQ(OfBuiltIn(set, *NumberOf(call, kHere)), "allowed") << call;
      EXPECT_EQ(filter.Of(call), "EPERM") << call;
    }
    for (std::uint32_t number = 0; number <= kHighestNumber + 1; ++number) {
      if (named.count(number) != 0) continue;
      for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{0x7f0012345678}, ~std::uint64_t{0}}) {
        const Arguments arguments = {value, value, value, value, value, value};
        ASSERT_EQ(filter.Of(number, arguments), OfBuiltIn(set, number, arguments)) << set << " " << number;
      }
    }
  }
}

TEST(PolicyFilterTest, AllowLiftsARuleOnArguments) {
  EXPECT_EQ(Filter(kBaseline, {}, {}).Of("clone", {kNewUser}), "EPERM");
  EXPECT_EQ(Filter(kBaseline, {"clone"}, {}).Of("clone", {kNewUser}), "allowed");
  EXPECT_EQ(Filter(kBaseline, {"clone"}, {}).Of("unshare", {kNewUser}), "EPERM");
}

TEST(PolicyFilterTest, WhatIsAllowedAndDeniedIsDenied) {
  EXPECT_EQ(Filter(kBaseline, {"keyctl"}, {"keyctl"}).Of("keyctl"), "EPERM");
  EXPECT_EQ(Filter(kBaseline, {}, {"keyctl"}).Of("keyctl"), "ENOSYS") << "the errno that callers know";
}

TEST(PolicyFilterTest, AllowLeavesBulkheadsOwnPromises) {
  const FilterSet root = kBaseline | SetOf(FilterName::kSetidGuard);
  EXPECT_EQ(Filter(root, {"chmod", "fchmodat", "openat2"}, {}).Of("fchmodat", {0, 0, 04755}), "EPERM");
  EXPECT_EQ(Filter(root, {"openat2"}, {}).Of("openat2"), "ENOSYS");
  const FilterSet closed = kBaseline | SetOf(FilterName::kSocketsNone) | SetOf(FilterName::kSupervisorGuard) |
                           SetOf(FilterName::kSignalGuard);
  const Filter filter(closed, {"socket", "kill", "prlimit64", "setpriority"}, {});
  EXPECT_EQ(filter.Of("socket", {1, 1, 0}), "EACCES");
  EXPECT_EQ(filter.Of("kill", {kKeeperPidPlaceholder, 9}), "EPERM");
  EXPECT_EQ(filter.Of("prlimit64", {5, 7, 1}), "EPERM");
}

TEST(PolicyFilterTest, AnUnknownNumberAndAnotherArchitectureStayRefused) {
  const Filter filter(kStrict, {"keyctl"}, {"mkdirat"});
  EXPECT_EQ(filter.Of(kHighestNumber + 1), "ENOSYS");
  EXPECT_EQ(Fate(filter.View(), kAuditI386, 0), "ENOSYS");
#if defined(__x86_64__)
  EXPECT_EQ(filter.Of(0x40000000u + 41), "ENOSYS");
#endif
}

TEST(PolicyFilterTest, EachNameThatAPolicyMayUseCanBeCompiled) {
  std::vector<std::string> allow, deny;
  for (const absl::string_view name : policy::SyscallNames()) {
    if (policy::WhyNotAllowed(name).empty()) allow.emplace_back(name);
    if (policy::WhyNotDenied(name).empty()) deny.emplace_back(name);
  }
  EXPECT_EQ(Filter(kBaseline, {}, deny).Of("execve"), "allowed");
  EXPECT_EQ(Filter(kBaseline, {}, deny).Of("read"), "EPERM");
  const Filter open(kStrict, allow, {});
  for (const SyscallNumber& row : kSyscallNumbers) {
    const auto number = NumberOf(row.name, kHere);
    if (!number || policy::WhyNotAllowed(row.name).empty()) continue;
    EXPECT_EQ(open.Of(*number, {99, 99, 99, ~std::uint64_t{0}}),
              OfBuiltIn(kStrict, *number, {99, 99, 99, ~std::uint64_t{0}}))
        << row.name;
  }
}

TEST(PolicyFilterTest, IsDescribed) {
  const std::vector<std::string> allow = {"keyctl"}, deny = {"mkdirat"};
  std::set<std::string> calls;
  for (const DeniedCall& denied : PolicyFilter(kStrict, allow, deny).Describe()) {
    EXPECT_TRUE(calls.insert(denied.call).second) << denied.call;
    if (denied.call == "mkdirat") {
      EXPECT_EQ(denied.error, "EPERM");
      EXPECT_EQ(denied.by, "policy");
    }
    if (denied.call == "shmget") {
      EXPECT_EQ(denied.error, "ENOSYS");
      EXPECT_EQ(denied.by, "strict");
    }
  }
  EXPECT_THAT(calls, testing::AllOf(Contains("mkdirat"), Contains("shmget"), Contains("ptrace"),
                                    testing::Not(Contains("keyctl")), testing::Not(Contains("read"))));
}

// The policy's table of names against that of the kernel's headers.
TEST(SyscallNamesTest, AreAllThereAre) {
  std::set<std::string> names, expected;
  for (const absl::string_view name : policy::SyscallNames()) names.emplace(name);
  for (const SyscallNumber& row : kSyscallNumbers) expected.insert(row.name);
  EXPECT_EQ(names, expected);
}

TEST(StrictTest, NamesCallsThatThereAreAndLeavesTheOthers) {
  std::set<std::string> strict;
  for (const absl::string_view name : StrictlyAllowed()) {
    EXPECT_TRUE(strict.emplace(name).second) << name << " twice";
    EXPECT_TRUE(policy::WhyNotAllowed(name).empty() ||
                policy::WhyNotAllowed(name).find("is not the name") == std::string::npos)
        << name;
  }
  for (const SyscallNumber& row : kSyscallNumbers) {
    const auto number = NumberOf(row.name, kHere);
    if (!number) continue;
    const std::string baseline = OfBuiltIn(kBaseline, *number);
    EXPECT_EQ(OfBuiltIn(kStrict, *number), strict.count(row.name) != 0 || baseline != "allowed" ? baseline : "ENOSYS")
        << row.name;
  }
}

}  // namespace
}  // namespace bulkhead::launcher
