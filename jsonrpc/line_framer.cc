#include "bulkhead/jsonrpc/line_framer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace bulkhead::jsonrpc {
namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// What is read at once between large lines: some hundred messages.
constexpr std::size_t kSmallBytes = 16u << 10;

// What a line may need beside its own bytes: a byte order mark, CR and LF, and one byte so that Space() is never empty.
constexpr std::size_t kAroundBytes = 6;

// From here on the buffer is its own mapping, and page faults are what it costs: a huge page takes 512 of them at once.
constexpr std::size_t kHugePageBytes = 2u << 20;

void PreferHugePages([[maybe_unused]] char* buffer, [[maybe_unused]] std::size_t size) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (size < 2 * kHugePageBytes) return;
  const auto address = reinterpret_cast<std::uintptr_t>(buffer);
  const std::size_t skipped = (kHugePageBytes - address % kHugePageBytes) % kHugePageBytes;
  // Only a hint: a failure costs nothing but time.
  (void)madvise(buffer + skipped, (size - skipped) / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
#endif
}

}  // namespace

LineFramer::LineFramer(std::size_t line_bytes_max)
    : line_bytes_max_(std::min(line_bytes_max, std::numeric_limits<std::size_t>::max() / 4)) {}

void LineFramer::Resize(std::size_t capacity) {
  char* const buffer = static_cast<char*>(std::realloc(buffer_.get(), capacity));
  if (buffer == nullptr) throw std::bad_alloc();
  (void)buffer_.release();
  buffer_.reset(buffer);
  if (capacity > capacity_) PreferHugePages(buffer, capacity);
  capacity_ = capacity;
}

void LineFramer::Release() {
  buffer_.reset();
  capacity_ = begin_ = scanned_ = end_ = 0;
}

absl::Span<char> LineFramer::Space() {
  if (capacity_ == 0) Resize(kSmallBytes);
  // Moving costs at most as many bytes as lines were taken from the buffer since the last move, or as it has grown by:
  // in all, each byte is moved a constant number of times.
  if (capacity_ - end_ < capacity_ / 2 && begin_ != 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, pending());
    end_ -= begin_;
    scanned_ -= begin_;
    begin_ = 0;
  }
  if (capacity_ - end_ < capacity_ / 2) {
    const std::size_t needed_max = std::max(line_bytes_max_ + kAroundBytes, kSmallBytes);
    if (capacity_ < needed_max) Resize(std::min(capacity_ * 2, needed_max));
  }
  return absl::MakeSpan(buffer_.get() + end_, capacity_ - end_);
}

void LineFramer::Commit(std::size_t count) { end_ += count; }

// Whether what was committed is more than a line may have, wherever its end is. A CR at the end may be half a
// terminator, and the first bytes may be a part of a byte order mark.
bool LineFramer::IsTooLong() const {
  absl::string_view line(buffer_.get() + begin_, pending());
  if (at_start_) {
    const std::size_t compared = std::min(line.size(), kByteOrderMark.size());
    if (line.substr(0, compared) == kByteOrderMark.substr(0, compared)) line.remove_prefix(compared);
  }
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line.size() > line_bytes_max_;
}

// The line up to `end`, where its newline is or the stream ends.
absl::string_view LineFramer::TakeLine(std::size_t end) {
  absl::string_view line(buffer_.get() + begin_, end - begin_);
  if (at_start_ && line.substr(0, kByteOrderMark.size()) == kByteOrderMark) line.remove_prefix(kByteOrderMark.size());
  at_start_ = false;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

LineFramer::Event LineFramer::TooLong() {
  too_long_ = true;
  Release();
  return Event::kTooLong;
}

LineFramer::Event LineFramer::Next(absl::string_view* line) {
  if (too_long_) return Event::kTooLong;
  const void* const newline = scanned_ == end_ ? nullptr : std::memchr(buffer_.get() + scanned_, '\n', end_ - scanned_);
  if (newline == nullptr) {
    scanned_ = end_;
    if (pending() != 0 && IsTooLong()) return TooLong();
    ShrinkWhenMostlyFree();
    return Event::kNeedsMore;
  }
  const auto end = static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.get());
  const absl::string_view found = TakeLine(end);
  if (found.size() > line_bytes_max_) return TooLong();
  begin_ = scanned_ = end + 1;
  *line = found;
  return Event::kLine;
}

// After a large line, what is left of its buffer is given back.
void LineFramer::ShrinkWhenMostlyFree() {
  if (pending() == 0) return Release();
  if (begin_ == 0 || capacity_ <= kSmallBytes || pending() > capacity_ / 4) return;
  std::memmove(buffer_.get(), buffer_.get() + begin_, pending());
  end_ = scanned_ = pending();
  begin_ = 0;
  Resize(std::max(kSmallBytes, 2 * end_));
}

std::optional<absl::string_view> LineFramer::Tail() {
  if (too_long_ || pending() == 0) return std::nullopt;
  const absl::string_view line = TakeLine(end_);
  begin_ = scanned_ = end_;
  if (line.empty() || line.size() > line_bytes_max_) return std::nullopt;
  return line;
}

}  // namespace bulkhead::jsonrpc
