#include "bulkhead/jsonrpc/large_memory.h"

#ifndef _WIN32
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace bulkhead::jsonrpc::internal {
namespace {

// Of x86-64, and of aarch64 with pages of 4 KiB. Where it is another, alignment costs address space only.
constexpr std::size_t kHugePageBytes = 2u << 20;

[[maybe_unused]] std::size_t RoundUp(std::uintptr_t value) {
  return (value + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

#ifdef _WIN32
char* MapLarge(std::size_t size) {
  char* const memory = static_cast<char*>(std::malloc(size));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void UnmapLarge(char* memory, std::size_t) { std::free(memory); }
#else
void UnmapLarge(char* memory, std::size_t size) { munmap(memory, RoundUp(size)); }

// A mapping that begins where a huge page may: one that is too long, of which the edges are given back.
char* MapLarge(std::size_t size) {
  const std::size_t length = RoundUp(size) + kHugePageBytes;
  void* const mapped = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(mapped);
  const std::size_t before = RoundUp(reinterpret_cast<std::uintptr_t>(begin)) - reinterpret_cast<std::uintptr_t>(begin);
  if (before != 0) munmap(begin, before);
  munmap(begin + before + RoundUp(size), length - before - RoundUp(size));
  PreferHugePages(begin + before, RoundUp(size));
  return begin + before;
}
#endif

}  // namespace

void PreferHugePages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t size) {
#if defined(MADV_HUGEPAGE)
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::size_t skipped = RoundUp(address) - address;
  if (size < skipped + kHugePageBytes) return;
  (void)madvise(static_cast<char*>(memory) + skipped, (size - skipped) / kHugePageBytes * kHugePageBytes,
                MADV_HUGEPAGE);
#endif
}

void GrowingBuffer::Release() {
  if (size_ >= kLargeMemoryBytes) {
    UnmapLarge(memory_, size_);
  } else {
    std::free(memory_);
  }
  memory_ = nullptr;
  size_ = 0;
}

void GrowingBuffer::Resize(std::size_t size, std::size_t kept) {
  char* memory;
  if (size >= kLargeMemoryBytes) {
    memory = MapLarge(size);
  } else {
    memory = static_cast<char*>(std::malloc(size));
    if (memory == nullptr) throw std::bad_alloc();
  }
  if (kept != 0) std::memcpy(memory, memory_, std::min(kept, size));
  Release();
  memory_ = memory;
  size_ = size;
}

}  // namespace bulkhead::jsonrpc::internal
