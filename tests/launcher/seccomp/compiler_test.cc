// The compiler on lists and tables made for the test.
#include "bulkhead/launcher/seccomp/compiler.h"

#include <linux/seccomp.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "bulkhead/launcher/seccomp/bpf_assembler.h"
#include "bulkhead/launcher/seccomp/lists.h"
#include "gtest/gtest.h"
#include "tests/launcher/seccomp/bpf_evaluator.h"

namespace bulkhead::launcher {
namespace {

constexpr std::uint32_t kArch = 0x1234;
constexpr std::uint32_t kAllowed = SECCOMP_RET_ALLOW;

std::uint32_t Refused(int error) { return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error); }

FilterView View(const std::vector<BpfInstruction>& program) { return {program.data(), program.size()}; }

std::uint32_t Outcome(const std::vector<BpfInstruction>& program, std::uint32_t number, std::uint64_t first = 0,
                      std::uint64_t second = 0) {
  seccomp_data data = {};
  data.nr = static_cast<int>(number);
  data.arch = kArch;
  data.args[0] = first;
  data.args[1] = second;
  return Evaluate(View(program), data);
}

Condition When(Condition::Test test, std::uint8_t argument, std::uint32_t mask, std::uint32_t value) {
  Condition condition;
  condition.test = test;
  condition.argument = argument;
  condition.mask = mask;
  if (test != Condition::Test::kAnyBit) condition.values[condition.value_count++] = value;
  return condition;
}

// As many calls as wanted, "c0" to "cN" with those numbers.
SyscallTable Table(std::uint32_t count) {
  SyscallTable table;
  table.audit_arch = kArch;
  for (std::uint32_t i = 0; i < count; ++i) table.numbers["c" + std::to_string(i)] = i;
  return table;
}

TEST(CompilerTest, TheFirstRuleThatMatchesDecides) {
  const Rule rules[] = {
      {"c1", "", 0, "", {When(Condition::Test::kIn, 0, 0xffffffff, 5)}},
      {"c1", "", EACCES, "", {When(Condition::Test::kAnyBit, 0, 4, 0), When(Condition::Test::kNotIn, 1, 0xf0, 0x10)}},
      {"c1 c2", "", EPERM, ""},
      {"c1 c2", "", ENOSYS, ""},
  };
  std::vector<BpfInstruction> program = CompileFilter({"test", false, rules}, Table(4));
  ASSERT_EQ(FindFault(View(program)), "");
  EXPECT_EQ(Outcome(program, 0), kAllowed);
  EXPECT_EQ(Outcome(program, 1, 5), kAllowed);
  EXPECT_EQ(Outcome(program, 1, 4, 0x20), Refused(EACCES));
  EXPECT_EQ(Outcome(program, 1, 4, 0x1f), Refused(EPERM));
  EXPECT_EQ(Outcome(program, 1, 3, 0x20), Refused(EPERM));
  EXPECT_EQ(Outcome(program, 2, 5), Refused(EPERM));
  EXPECT_EQ(Outcome(program, 3, 5), kAllowed);
}

TEST(CompilerTest, AMaskedArgumentIsLoadedAgainForTheNextRule) {
  const Rule rules[] = {
      {"c1", "", EPERM, "", {When(Condition::Test::kIn, 0, 0xf, 1)}},
      {"c1", "", EACCES, "", {When(Condition::Test::kIn, 0, 0xffffffff, 0x22)}},
      {"c1", "", ENOSYS, "", {When(Condition::Test::kIn, 0, 0xf0, 0x40)}},
  };
  std::vector<BpfInstruction> program = CompileFilter({"test", false, rules}, Table(2));
  EXPECT_EQ(Outcome(program, 1, 0x21), Refused(EPERM));
  EXPECT_EQ(Outcome(program, 1, 0x22), Refused(EACCES));
  EXPECT_EQ(Outcome(program, 1, 0x02), kAllowed);
  EXPECT_EQ(Outcome(program, 1, 0x42), Refused(ENOSYS));
}

TEST(CompilerTest, TheUpperHalfIsTestedWhenAskedFor) {
  Condition upper = When(Condition::Test::kIn, 0, 0xffffffff, 7);
  upper.upper_half = true;
  const Rule rules[] = {{"c1", "", EPERM, "", {upper}}};
  std::vector<BpfInstruction> program = CompileFilter({"test", false, rules}, Table(2));
  EXPECT_EQ(Outcome(program, 1, 7), kAllowed);
  EXPECT_EQ(Outcome(program, 1, std::uint64_t{7} << 32), Refused(EPERM));
}

TEST(CompilerTest, SeveralListsDoTogetherWhatTheirProgramsDo) {
  const Rule first[] = {{"c1 c2", "", EPERM, ""}, {"c3", "", EPERM, "", {When(Condition::Test::kIn, 0, 0xff, 1)}}};
  const Rule last[] = {{"c1", "", 0, "", {When(Condition::Test::kIn, 0, 0xff, 1)}},
                       {"c1", "", EACCES, "", {When(Condition::Test::kIn, 0, 0xf, 2)}},
                       {"c2", "", EACCES, ""},
                       {"c3", "", EACCES, "", {When(Condition::Test::kIn, 1, 0xff, 1)}}};
  std::vector<BpfInstruction> program = CompileFilters({{"first", false, first}, {"last", true, last}}, Table(4));
  ASSERT_EQ(FindFault(View(program)), "");
  EXPECT_EQ(Outcome(program, 0), kAllowed);
  EXPECT_EQ(Outcome(program, 1, 1), Refused(EPERM)) << "allowed by the one, refused by the other";
  EXPECT_EQ(Outcome(program, 1, 2), Refused(EACCES)) << "the one installed last names the errno";
  EXPECT_EQ(Outcome(program, 1, 3), Refused(EPERM));
  EXPECT_EQ(Outcome(program, 2), Refused(EACCES));
  EXPECT_EQ(Outcome(program, 3, 1, 0), Refused(EPERM));
  EXPECT_EQ(Outcome(program, 3, 1, 1), Refused(EACCES));
  EXPECT_EQ(Outcome(program, 3, 0, 1), Refused(EACCES));
  EXPECT_EQ(Outcome(program, 3, 0, 0), kAllowed);
  EXPECT_EQ(Outcome(program, 4), Refused(ENOSYS)) << "unknown to the table";
}

TEST(CompilerTest, UnknownNumbersAreRefusedOnlyIfTheListSaysSo) {
  SyscallTable table = Table(3);
  table.numbers.erase("c1");
  for (bool refuses : {false, true}) {
    std::vector<BpfInstruction> program = CompileFilter({"test", refuses, {}}, table);
    std::uint32_t unknown = refuses ? Refused(ENOSYS) : kAllowed;
    EXPECT_EQ(Outcome(program, 0), kAllowed);
    EXPECT_EQ(Outcome(program, 1), unknown);
    EXPECT_EQ(Outcome(program, 2), kAllowed);
    EXPECT_EQ(Outcome(program, 3), unknown);
    EXPECT_EQ(Outcome(program, 0xffffffff), unknown);
  }
}

TEST(CompilerTest, NumberZeroAndTheLastOneAreReached) {
  const Rule rules[] = {{"c0", "", EPERM, ""}, {"last", "", EACCES, ""}};
  SyscallTable table = Table(2);
  table.numbers["last"] = 0xfffffffe;
  std::vector<BpfInstruction> program = CompileFilter({"test", true, rules}, table);
  EXPECT_EQ(Outcome(program, 0), Refused(EPERM));
  EXPECT_EQ(Outcome(program, 1), kAllowed);
  EXPECT_EQ(Outcome(program, 0xfffffffd), Refused(ENOSYS));
  EXPECT_EQ(Outcome(program, 0xfffffffe), Refused(EACCES));
  EXPECT_EQ(Outcome(program, 0xffffffff), Refused(ENOSYS));
}

TEST(CompilerTest, NeighboursWithTheSameFateShareOneRange) {
  const Rule rules[] = {{"c1 c2 c3", "", EPERM, ""}};
  std::vector<BpfInstruction> program = CompileFilter({"test", false, rules}, Table(5));
  // Two loads, the architecture, the two ends of the range, and three returns at most.
  EXPECT_LE(program.size(), 8u);
  for (std::uint32_t number = 0; number < 6; ++number) {
    EXPECT_EQ(Outcome(program, number), number >= 1 && number <= 3 ? Refused(EPERM) : kAllowed);
  }
}

// Conditional jumps reach 255 instructions; a program of several thousand needs copies of returns and longer jumps.
TEST(CompilerTest, LongProgramsAreRight) {
  constexpr std::uint32_t kCalls = 600;
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < kCalls; ++i) names.push_back("c" + std::to_string(i));
  std::vector<Rule> rules;
  for (std::uint32_t i = 0; i < kCalls; ++i) {
    if (i % 3 == 0) rules.push_back({names[i].c_str(), "", static_cast<int>(1 + i % 50), ""});
    if (i % 3 == 1) {
      rules.push_back({names[i].c_str(), "", EPERM, "", {When(Condition::Test::kIn, 0, 0xff, i % 7)}});
      rules.push_back({names[i].c_str(), "", EACCES, "", {When(Condition::Test::kAnyBit, 1, 1u << (i % 32), 0)}});
    }
  }
  std::vector<BpfInstruction> program = CompileFilter({"test", true, rules}, Table(kCalls));
  ASSERT_EQ(FindFault(View(program)), "");
  ASSERT_GT(program.size(), 1000u);
  for (std::uint32_t i = 0; i < kCalls; ++i) {
    for (std::uint64_t first = 0; first < 8; ++first) {
      std::uint64_t second = std::uint64_t{1} << (i % 32);
      std::uint32_t expected = kAllowed;
      if (i % 3 == 0) expected = Refused(static_cast<int>(1 + i % 50));
      if (i % 3 == 1 && first == i % 7) expected = Refused(EPERM);
      ASSERT_EQ(Outcome(program, i, first, 0), expected) << i;
      if (i % 3 == 1 && first != i % 7) expected = Refused(EACCES);
      ASSERT_EQ(Outcome(program, i, first, second), expected) << i;
    }
  }
}

TEST(CompilerTest, MisspeltCallsAreFound) {
  const Rule rules[] = {{"c1 mispelt c2", "", EPERM, ""}, {"c7", "", EPERM, ""}};
  FilterList list = {"test", false, rules};
  EXPECT_EQ(UnknownCalls(list, {Table(3)}), (std::vector<std::string>{"mispelt", "c7"}));
  EXPECT_EQ(UnknownCalls(list, {Table(3), Table(8)}), (std::vector<std::string>{"mispelt"}));
}

// A return `distance` instructions ahead, in a jump of either sense.
TEST(BpfAssemblerTest, JumpsReachTheirTargetsAtTheEdge) {
  for (std::uint32_t distance : {254u, 255u, 256u, 257u}) {
    for (bool taken : {true, false}) {
      BpfAssembler code;
      BpfAssembler::Label far = code.And(0xff, code.Return(1));
      BpfAssembler::Label near = code.Return(2);
      for (std::uint32_t i = 1; i < distance; ++i) near = code.And(i, near);
      BpfAssembler::Label yes = taken ? far : near, no = taken ? near : far;
      BpfAssembler::Label jump = code.Jump(BpfAssembler::Compare::kEqual, 3, yes, no);
      std::vector<BpfInstruction> program = code.Finish(code.Load(0, jump));
      ASSERT_EQ(FindFault(View(program)), "") << distance;
      EXPECT_EQ(Outcome(program, 3), taken ? 1u : 2u) << distance;
      EXPECT_EQ(Outcome(program, 4), taken ? 2u : 1u) << distance;
    }
  }
}

// Bringing one target near must not push the other out of reach.
TEST(BpfAssemblerTest, BothTargetsOfAJumpMayBeFar) {
  for (std::uint32_t filler = 248; filler < 260; ++filler) {
    for (bool swapped : {true, false}) {
      BpfAssembler code;
      BpfAssembler::Label one = code.And(0xff, code.Return(1));
      BpfAssembler::Label two = code.And(0xff, code.Return(2));
      BpfAssembler::Label rest = code.Return(3);
      for (std::uint32_t i = 0; i < filler; ++i) rest = code.And(i, rest);
      BpfAssembler::Label jump = code.Jump(BpfAssembler::Compare::kEqual, 4, swapped ? one : two, swapped ? two : one);
      std::vector<BpfInstruction> program =
          code.Finish(code.Load(0, code.Jump(BpfAssembler::Compare::kGreaterOrEqual, 5, rest, jump)));
      EXPECT_EQ(Outcome(program, 4), swapped ? 1u : 2u) << filler;
      EXPECT_EQ(Outcome(program, 3), swapped ? 2u : 1u) << filler;
      EXPECT_EQ(Outcome(program, 5), 3u) << filler;
    }
  }
}

TEST(ListsTest, EveryErrnoHasAName) {
  for (FilterName name : kAllFilters) {
    for (const Rule& rule : ListOf(name).rules) {
      EXPECT_TRUE(rule.error == 0 || ErrorName(rule.error) != nullptr) << rule.calls;
    }
  }
}

TEST(ListsTest, EveryRefusalHasAReasonAndEveryConditionWords) {
  for (FilterName name : kAllFilters) {
    for (const Rule& rule : ListOf(name).rules) {
      EXPECT_TRUE(rule.error == 0 || *rule.reason != '\0') << rule.calls;
      EXPECT_EQ(rule.condition_count == 0, std::string(rule.what).empty()) << rule.calls;
    }
  }
}

}  // namespace
}  // namespace bulkhead::launcher
