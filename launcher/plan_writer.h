// Puts together the bytes of a plan (plan_format.h): texts once each, arrays at the offsets that refer to them.
#ifndef BULKHEAD_LAUNCHER_PLAN_WRITER_H_
#define BULKHEAD_LAUNCHER_PLAN_WRITER_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/launcher/plan_format.h"

namespace bulkhead::launcher {

class PlanWriter {
 public:
  PlanWriter() : slots_(kSlotsAtFirst) {
    bytes_.reserve(kBytesUsual);
    bytes_.resize(sizeof(wire::Plan));
  }

  // The offset of `text` followed by a zero byte. The same text is stored once.
  wire::Offset Text(const std::string& text) {
    if (2 * ++texts_ > slots_.size()) Rehash();
    wire::Offset& slot = SlotOf(text);
    if (slot == 0) slot = OwnText(text);
    return slot;
  }
  // A copy of its own, for a text that the keeper patches.
  wire::Offset OwnText(const std::string& text) { return Append(text.c_str(), text.size() + 1, 1); }

  template <typename T>
  wire::Offset Array(const std::vector<T>& items) {
    return Append(items.data(), items.size() * sizeof(T), alignof(T) < 8 ? 8 : alignof(T));
  }
  wire::Offset Append(const void* data, std::size_t bytes, std::size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment, '\0');
    const auto at = static_cast<wire::Offset>(bytes_.size());
    bytes_.append(static_cast<const char*>(data), bytes);
    return at;
  }
  // The texts' offsets as 64-bit words, ending with 0: becomes an argv or envp in the keeper.
  wire::Offset Pointers(const std::vector<std::string>& texts) {
    std::vector<std::uint64_t> words;
    for (const std::string& text : texts) words.push_back(Text(text));
    words.push_back(0);
    return Array(words);
  }

  std::size_t size() const { return bytes_.size(); }
  std::string Finish(wire::Plan plan) {
    plan.magic = wire::kMagic;
    plan.version = wire::kVersion;
    plan.bytes = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &plan, sizeof plan);
    return std::move(bytes_);
  }

 private:
  static constexpr std::size_t kBytesUsual = 32 << 10;  // untouched memory costs nothing, a copy when it grows does
  static constexpr std::size_t kSlotsAtFirst = 512;     // a power of two

  // Where the text's offset is, or goes. Texts end at their first zero byte: none of ours has one.
  wire::Offset& SlotOf(const std::string& text) {
    std::size_t at = std::hash<std::string>()(text);
    while (slots_[at &= slots_.size() - 1] != 0 && text != bytes_.data() + slots_[at]) ++at;
    return slots_[at];
  }
  void Rehash() {
    const std::vector<wire::Offset> old = std::exchange(slots_, std::vector<wire::Offset>(2 * slots_.size()));
    for (const wire::Offset offset : old) {
      if (offset != 0) SlotOf(bytes_.data() + offset) = offset;
    }
  }

  std::string bytes_;
  std::vector<wire::Offset> slots_;  // a hash table of the texts' offsets; 0: free
  std::size_t texts_ = 0;            // at most
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_PLAN_WRITER_H_
