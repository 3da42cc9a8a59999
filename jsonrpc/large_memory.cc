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
void GiveBack(char*, std::size_t) {}
#else
void UnmapLarge(char* memory, std::size_t size) { munmap(memory, RoundUp(size)); }

// Pages of a mapping of ours, which read as zeros from then on. Whether it works is no matter: it is unmapped later.
void GiveBack(char* pages, std::size_t size) { (void)madvise(pages, size, MADV_DONTNEED); }

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

void Reserve(std::size_t size, std::string* text) {
  text->reserve(size);
  if (size >= kLargeMemoryBytes) PreferHugePages(&(*text)[0], size);
}

// Calls `copy` for one piece after the other, and gives the memory of each back. Only whole huge pages, which cost
// nothing to take apart then: what else is in the buffer stays.
template <typename Copy>
void GrowingBuffer::TakePieces(std::size_t begin, std::size_t size, Copy copy) {
  const std::size_t end = begin + size;
  while (begin != end) {
    // The mapping begins where a huge page may.
    const std::size_t piece_end = std::min(end, (begin / kHugePageBytes + 1) * kHugePageBytes);
    const std::size_t count = piece_end - begin;
    copy(memory_ + begin, count);
    if (count == kHugePageBytes && size_ >= kLargeMemoryBytes) GiveBack(memory_ + begin, count);
    begin = piece_end;
  }
}

std::string GrowingBuffer::MoveOut(std::size_t begin, std::size_t size) {
  std::string text;
  Reserve(size, &text);
  TakePieces(begin, size, [&text](const char* piece, std::size_t count) { text.append(piece, count); });
  return text;
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
  TakePieces(0, std::min(kept, size), [to = memory](const char* piece, std::size_t count) mutable {
    std::memcpy(to, piece, count);
    to += count;
  });
  Release();
  memory_ = memory;
  size_ = size;
}

}  // namespace bulkhead::jsonrpc::internal
