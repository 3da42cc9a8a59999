#include "tests/launcher/seccomp/bpf_evaluator.h"

#include <linux/bpf_common.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace bulkhead::launcher {
namespace {

constexpr std::size_t kInstructionsMax = 4096;  // linux/bpf_common.h, BPF_MAXINSNS

std::string At(std::size_t index, const std::string& what) {
  return "instruction " + std::to_string(index) + ": " + what;
}

}  // namespace

std::string FindFault(FilterView program) {
  if (program.count == 0 || program.count > kInstructionsMax) return "no or too many instructions";
  std::vector<bool> reached(program.count, false);
  reached[0] = true;
  for (std::size_t i = 0; i < program.count; ++i) {
    const BpfInstruction& instruction = program.instructions[i];
    if (!reached[i]) return At(i, "nothing leads here");
    std::vector<std::size_t> next;
    switch (instruction.code) {
      case BPF_RET | BPF_K:
        break;
      case BPF_LD | BPF_W | BPF_ABS:
        if (instruction.k % 4 != 0 || instruction.k >= sizeof(seccomp_data)) return At(i, "load outside seccomp_data");
        next = {i + 1};
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        next = {i + 1};
        break;
      case BPF_JMP | BPF_JA:
        next = {i + 1 + instruction.k};
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
      case BPF_JMP | BPF_JGE | BPF_K:
      case BPF_JMP | BPF_JSET | BPF_K:
        next = {i + 1 + instruction.jt, i + 1 + instruction.jf};
        break;
      default:
        return At(i, "unexpected code");
    }
    for (std::size_t target : next) {
      if (target >= program.count) return At(i, "leads past the end");
      reached[target] = true;
    }
  }
  return "";
}

std::uint32_t Evaluate(FilterView program, const seccomp_data& data) {
  std::uint32_t accumulator = 0;
  for (std::size_t i = 0;; ++i) {
    const BpfInstruction& instruction = program.instructions[i];
    bool yes = false;
    switch (instruction.code) {
      case BPF_RET | BPF_K:
        return instruction.k;
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&accumulator, reinterpret_cast<const char*>(&data) + instruction.k, sizeof accumulator);
        continue;
      case BPF_ALU | BPF_AND | BPF_K:
        accumulator &= instruction.k;
        continue;
      case BPF_JMP | BPF_JA:
        i += instruction.k;
        continue;
      case BPF_JMP | BPF_JEQ | BPF_K:
        yes = accumulator == instruction.k;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        yes = accumulator >= instruction.k;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        yes = (accumulator & instruction.k) != 0;
        break;
    }
    i += yes ? instruction.jt : instruction.jf;
  }
}

}  // namespace bulkhead::launcher
