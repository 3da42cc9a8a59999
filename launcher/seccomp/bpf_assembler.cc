#include "bulkhead/launcher/seccomp/bpf_assembler.h"

#include <linux/bpf_common.h>

#include <algorithm>

namespace bulkhead::launcher {
namespace {

// The offsets of a conditional jump have 8 bits; those of BPF_JA have 32.
constexpr std::size_t kJumpMax = 255;

}  // namespace

BpfAssembler::Label BpfAssembler::Add(const Key& key, BpfInstruction instruction) {
  reversed_.push_back(instruction);
  Label label = reversed_.size() - 1;
  written_[key] = label;
  return label;
}

bool BpfAssembler::IsReturn(Label label) const { return reversed_[label].code == (BPF_RET | BPF_K); }

BpfAssembler::Label BpfAssembler::Return(std::uint32_t value) {
  Key key(BPF_RET | BPF_K, value, 0, 0);
  auto found = written_.find(key);
  if (found != written_.end()) return found->second;
  return Add(key, {BPF_RET | BPF_K, 0, 0, value});
}

BpfAssembler::Label BpfAssembler::Near(Label target, std::size_t distance) {
  auto is_near = [&](Label label) { return reversed_.size() - label - 1 <= distance; };
  if (is_near(target)) return target;
  // A return is copied; anything else is reached through a jump. Both serve those that follow.
  bool copy = IsReturn(target);
  Key key = copy ? Key(BPF_RET | BPF_K, reversed_[target].k, 0, 0) : Key(BPF_JMP | BPF_JA, 0, target, 0);
  auto found = written_.find(key);
  if (found != written_.end() && is_near(found->second)) return found->second;
  std::uint32_t offset = static_cast<std::uint32_t>(reversed_.size() - target - 1);
  return Add(key, copy ? reversed_[target] : BpfInstruction{BPF_JMP | BPF_JA, 0, 0, offset});
}

BpfAssembler::Label BpfAssembler::Follow(Label next) { return Near(next, 0); }

BpfAssembler::Label BpfAssembler::Load(std::uint32_t offset, Label next) {
  Key key(BPF_LD | BPF_W | BPF_ABS, offset, next, 0);
  auto found = written_.find(key);
  if (found != written_.end()) return found->second;
  Follow(next);
  return Add(key, {BPF_LD | BPF_W | BPF_ABS, 0, 0, offset});
}

BpfAssembler::Label BpfAssembler::And(std::uint32_t mask, Label next) {
  Key key(BPF_ALU | BPF_AND | BPF_K, mask, next, 0);
  auto found = written_.find(key);
  if (found != written_.end()) return found->second;
  Follow(next);
  return Add(key, {BPF_ALU | BPF_AND | BPF_K, 0, 0, mask});
}

BpfAssembler::Label BpfAssembler::Jump(Compare compare, std::uint32_t value, Label yes, Label no) {
  if (yes == no) return yes;
  std::uint16_t code = BPF_JMP | BPF_K;
  switch (compare) {
    case Compare::kEqual:
      code |= BPF_JEQ;
      break;
    case Compare::kGreaterOrEqual:
      code |= BPF_JGE;
      break;
    case Compare::kAnyBit:
      code |= BPF_JSET;
      break;
  }
  Key key(code, value, yes, no);
  auto found = written_.find(key);
  if (found != written_.end()) return found->second;
  // Bringing one of the two near moves the place of the jump by one, so that the other must leave room for it.
  Label near_yes = Near(yes, kJumpMax - 1);
  Label near_no = Near(no, kJumpMax);
  std::size_t here = reversed_.size();
  return Add(key, {code, static_cast<std::uint8_t>(here - near_yes - 1), static_cast<std::uint8_t>(here - near_no - 1),
                   value});
}

std::vector<BpfInstruction> BpfAssembler::Finish(Label entry) const {
  std::vector<BpfInstruction> program(reversed_.begin(), reversed_.begin() + static_cast<std::ptrdiff_t>(entry) + 1);
  std::reverse(program.begin(), program.end());
  return program;
}

}  // namespace bulkhead::launcher
