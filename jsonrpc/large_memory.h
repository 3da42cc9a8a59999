// Memory for messages of megabytes. Where a page fault is slow (a virtual machine: up to 14 us for each 4 KiB),
// touching new memory takes ten times as long as moving the bytes through a pipe; a huge page is one fault for 2 MiB.
#ifndef BULKHEAD_JSONRPC_LARGE_MEMORY_H_
#define BULKHEAD_JSONRPC_LARGE_MEMORY_H_

#include <cstddef>
#include <string>
#include <utility>

namespace bulkhead::jsonrpc::internal {

// Below this, memory is the heap's.
inline constexpr std::size_t kLargeMemoryBytes = 512u << 10;

// Asks for huge pages where [memory, memory + size) has room for them. A hint: nothing else changes.
void PreferHugePages(void* memory, std::size_t size);

// std::string::reserve, with huge pages for a large one.
void Reserve(std::size_t size, std::string* text);

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

  // To `size` bytes, of which the first `kept` stay as they are. Throws std::bad_alloc: then nothing has changed.
  void Resize(std::size_t size, std::size_t kept);
  // The bytes [begin, begin + size), for keeping. Large ones take memory once: what has been copied is given back on
  // the way. The buffer stays as large as it is, but what it holds there is lost. Throws std::bad_alloc: then nothing
  // is.
  std::string MoveOut(std::size_t begin, std::size_t size);
  void Release();

 private:
  template <typename Copy>
  void TakePieces(std::size_t begin, std::size_t size, Copy copy);
  void Swap(GrowingBuffer& other) {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
  }

  char* memory_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace bulkhead::jsonrpc::internal

#endif  // BULKHEAD_JSONRPC_LARGE_MEMORY_H_
