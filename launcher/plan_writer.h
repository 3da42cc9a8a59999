// Puts together the bytes of a plan (plan_format.h): texts once each, arrays at the offsets that refer to them.
#ifndef BULKHEAD_LAUNCHER_PLAN_WRITER_H_
#define BULKHEAD_LAUNCHER_PLAN_WRITER_H_

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "bulkhead/launcher/plan_format.h"

namespace bulkhead::launcher {

class PlanWriter {
 public:
  PlanWriter() : bytes_(sizeof(wire::Plan), '\0') {}

  // The offset of `text` followed by a zero byte. The same text is stored once.
  wire::Offset Text(const std::string& text) {
    auto [at, is_new] = texts_.try_emplace(text, 0);
    if (is_new) at->second = Append(text.c_str(), text.size() + 1, 1);
    return at->second;
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
  std::string bytes_;
  std::map<std::string, wire::Offset> texts_;
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_PLAN_WRITER_H_
