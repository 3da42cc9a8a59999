// Writes a classic BPF program from its end to its beginning: jumps only go forward, so that whatever an instruction
// leads to is already there when it is written. Equal instructions that lead to equal places are written once.
#ifndef BULKHEAD_LAUNCHER_SECCOMP_BPF_ASSEMBLER_H_
#define BULKHEAD_LAUNCHER_SECCOMP_BPF_ASSEMBLER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "bulkhead/launcher/seccomp/filters.h"

namespace bulkhead::launcher {

class BpfAssembler {
 public:
  // An instruction, counted from the end of the program.
  using Label = std::size_t;
  enum class Compare { kEqual, kGreaterOrEqual, kAnyBit };

  // Ends the program with `value` (linux/seccomp.h, SECCOMP_RET_*).
  Label Return(std::uint32_t value);
  // Loads the word at `offset` of struct seccomp_data into the accumulator.
  Label Load(std::uint32_t offset, Label next);
  Label And(std::uint32_t mask, Label next);
  Label Jump(Compare compare, std::uint32_t value, Label yes, Label no);

  // The program that begins at `entry`, in the order in which it runs. `entry` must be the last label made.
  std::vector<BpfInstruction> Finish(Label entry) const;

 private:
  using Key = std::tuple<std::uint16_t, std::uint32_t, Label, Label>;

  Label Add(const Key& key, BpfInstruction instruction);
  // The instruction after which `next` runs: `next` itself if it was written last, or a copy or a jump to it.
  Label Follow(Label next);
  // A label that runs as `target` does and lies within `distance` of the place where the next instruction goes.
  Label Near(Label target, std::size_t distance);
  bool IsReturn(Label label) const;

  std::vector<BpfInstruction> reversed_;
  std::map<Key, Label> written_;
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_SECCOMP_BPF_ASSEMBLER_H_
