// Memory for messages of megabytes. Where a page fault is slow (a virtual machine: up to 14 us for each 4 KiB),
// touching new memory takes ten times as long as moving the bytes through a pipe; a huge page is one fault for 2 MiB.
#ifndef BULKHEAD_JSONRPC_LARGE_MEMORY_H_
#define BULKHEAD_JSONRPC_LARGE_MEMORY_H_

#include <cstddef>
#include <utility>

namespace bulkhead::jsonrpc::internal {

// Below this, memory is the heap's.
inline constexpr std::size_t kLargeMemoryBytes = 512u << 10;

// Asks for huge pages where [memory, memory + size) has room for them. A hint: nothing else changes.
void PreferHugePages(void* memory, std::size_t size);

// A buffer that grows and keeps what was written to it. Only what is touched takes memory.
class GrowingBuffer {
 public:
  GrowingBuffer() = default;
  ~GrowingBuffer() { Release(); }
  GrowingBuffer(GrowingBuffer&& other) noexcept { Swap(other); }
  GrowingBuffer& operator=(GrowingBuffer&& other) noexcept {
    Release();
    Swap(other);
    return *this;
  }

  char* data() const { return memory_; }
  std::size_t size() const { return size_; }

  // To `size` bytes, of which the first `kept` stay as they are. Throws std::bad_alloc.
  void Resize(std::size_t size, std::size_t kept);
  void Release();

 private:
  void Swap(GrowingBuffer& other) {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
  }

  char* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace bulkhead::jsonrpc::internal

#endif  // BULKHEAD_JSONRPC_LARGE_MEMORY_H_
