#include "bulkhead/launcher/seccomp/compiler.h"

#include <linux/seccomp.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <set>
#include <utility>

#include "bulkhead/launcher/seccomp/bpf_assembler.h"

namespace bulkhead::launcher {
namespace {

using Label = BpfAssembler::Label;
using Rules = std::vector<const Rule*>;

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t kAllBits = 0xffffffff;
constexpr std::uint32_t kX32Bit = 0x40000000;

std::uint32_t ActionOf(int error) {
  return error == 0 ? kAllow : SECCOMP_RET_ERRNO | (static_cast<std::uint32_t>(error) & SECCOMP_RET_DATA);
}

// What one list says of some calls.
struct Verdict {
  std::uint32_t action;  // when no rule matches
  Rules rules;           // in order, each with conditions
  bool operator==(const Verdict& other) const { return action == other.action && rules == other.rules; }
};

// What becomes of the numbers from `first` up to the next segment: the verdicts of all lists, the one that is asked
// first (installed last) first. The first that refuses decides.
struct Segment {
  std::uint32_t first;
  std::vector<Verdict> verdicts;
};

// The rules of each call that the table has, by number.
std::map<std::uint32_t, Rules> RulesByNumber(const FilterList& list, const SyscallTable& table) {
  std::map<std::uint32_t, Rules> by_number;
  for (const Rule& rule : list.rules) {
    for (const std::string& call : CallsOf(rule)) {
      auto found = table.numbers.find(call);
      if (found != table.numbers.end()) by_number[found->second].push_back(&rule);
    }
  }
  return by_number;
}

// A rule without conditions ends the list of rules: it is what becomes of the call when those before it don't match.
Verdict VerdictOf(const Rules& rules) {
  Verdict verdict{kAllow, {}};
  for (const Rule* rule : rules) {
    if (rule->condition_count == 0) {
      verdict.action = ActionOf(rule->error);
      break;
    }
    verdict.rules.push_back(rule);
  }
  return verdict;
}

// What comes after a verdict that refuses in any case is never asked.
void DropUnasked(std::vector<Verdict>& verdicts) {
  const auto last = std::find_if(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.action != kAllow; });
  if (last != verdicts.end()) verdicts.erase(last + 1, verdicts.end());
}

// All 2^32 numbers, in order. `lists`: the one that is asked first, first.
std::vector<Segment> Segments(const std::vector<FilterList>& lists, const SyscallTable& table) {
  std::vector<Verdict> unknown;
  std::vector<std::map<std::uint32_t, Rules>> by_number;
  for (const FilterList& list : lists) {
    unknown.push_back({list.refuses_unknown ? ActionOf(ENOSYS) : kAllow, {}});
    by_number.push_back(RulesByNumber(list, table));
  }
  DropUnasked(unknown);
  std::set<std::uint32_t> known;
  for (const auto& [name, number] : table.numbers) known.insert(number);

  std::vector<Segment> segments;
  auto append = [&segments](Segment segment) {
    if (segments.empty() || segments.back().verdicts != segment.verdicts) segments.push_back(std::move(segment));
  };
  std::uint32_t next = 0;
  for (std::uint32_t number : known) {
    if (number > next) append({next, unknown});
    Segment segment{number, {}};
    for (auto& rules : by_number) segment.verdicts.push_back(VerdictOf(rules[number]));
    DropUnasked(segment.verdicts);
    append(std::move(segment));
    next = number + 1;
  }
  append({next, unknown});
  if (table.has_x32) append({kX32Bit, {{ActionOf(ENOSYS), {}}}});
  return segments;
}

class FilterCompiler {
 public:
  std::vector<BpfInstruction> Compile(const std::vector<Segment>& segments, std::uint32_t audit_arch) {
    Label tree = Search(segments, 0, segments.size());
    Label load_number = code_.Load(offsetof(seccomp_data, nr), tree);
    Label arch = code_.Jump(BpfAssembler::Compare::kEqual, audit_arch, load_number, code_.Return(ActionOf(ENOSYS)));
    return code_.Finish(code_.Load(offsetof(seccomp_data, arch), arch));
  }

 private:
  // What the accumulator holds: a masked half of an argument. The number, at first.
  struct Held {
    std::uint32_t offset = offsetof(seccomp_data, nr);
    std::uint32_t mask = kAllBits;
  };

  Label Search(const std::vector<Segment>& segments, std::size_t begin, std::size_t end) {
    if (end - begin == 1) return Decide(segments[begin], 0, 0, Held());
    std::size_t middle = begin + (end - begin) / 2;
    Label right = Search(segments, middle, end);
    Label left = Search(segments, begin, middle);
    return code_.Jump(BpfAssembler::Compare::kGreaterOrEqual, segments[middle].first, right, left);
  }

  Label Decide(const Segment& segment, std::size_t list, std::size_t rule, Held held) {
    if (list == segment.verdicts.size()) return code_.Return(kAllow);
    const Verdict& verdict = segment.verdicts[list];
    if (rule < verdict.rules.size()) return Match(segment, list, rule, 0, held);
    return verdict.action == kAllow ? Decide(segment, list + 1, 0, held) : code_.Return(verdict.action);
  }

  Label Match(const Segment& segment, std::size_t list, std::size_t rule, std::size_t index, Held held) {
    const Rule& current = *segment.verdicts[list].rules[rule];
    if (index == current.condition_count) {
      return current.error == 0 ? Decide(segment, list + 1, 0, held) : code_.Return(ActionOf(current.error));
    }
    const Condition& condition = current.conditions[index];
    Held needed;
    needed.offset = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * condition.argument +
                                               (condition.upper_half ? 4 : 0));  // both architectures: little endian
    if (condition.test != Condition::Test::kAnyBit) needed.mask = condition.mask;

    Label no = Decide(segment, list, rule + 1, needed);
    Label yes = Match(segment, list, rule, index + 1, needed);
    Label test = Test(condition, yes, no);
    if (held.offset == needed.offset && held.mask == needed.mask) return test;
    if (needed.mask != kAllBits) test = code_.And(needed.mask, test);
    if (held.offset == needed.offset && held.mask == kAllBits) return test;
    return code_.Load(needed.offset, test);
  }

  Label Test(const Condition& condition, Label yes, Label no) {
    if (condition.test == Condition::Test::kAnyBit) {
      return code_.Jump(BpfAssembler::Compare::kAnyBit, condition.mask, yes, no);
    }
    Label in = condition.test == Condition::Test::kIn ? yes : no;
    Label next = condition.test == Condition::Test::kIn ? no : yes;
    for (std::size_t i = condition.value_count; i > 0; --i) {
      next = code_.Jump(BpfAssembler::Compare::kEqual, condition.values[i - 1], in, next);
    }
    return next;
  }

  BpfAssembler code_;
};

}  // namespace

std::vector<BpfInstruction> CompileFilter(const FilterList& list, const SyscallTable& table) {
  return CompileFilters({list}, table);
}

std::vector<BpfInstruction> CompileFilters(const std::vector<FilterList>& lists, const SyscallTable& table) {
  const std::vector<FilterList> last_first(lists.rbegin(), lists.rend());
  return FilterCompiler().Compile(Segments(last_first, table), table.audit_arch);
}

std::vector<std::string> UnknownCalls(const FilterList& list, const std::vector<SyscallTable>& tables) {
  std::vector<std::string> unknown;
  for (const Rule& rule : list.rules) {
    for (const std::string& call : CallsOf(rule)) {
      bool known = false;
      for (const SyscallTable& table : tables) known = known || table.numbers.count(call) != 0;
      if (!known) unknown.push_back(call);
    }
  }
  return unknown;
}

}  // namespace bulkhead::launcher
