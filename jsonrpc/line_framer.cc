#include "bulkhead/jsonrpc/line_framer.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>

namespace bulkhead::jsonrpc {
namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

// What is read at once between large lines: some hundred messages.
constexpr std::size_t kSmallBytes = 16u << 10;

// What a long line's buffer grows by. Only what is touched of it takes memory.
constexpr std::size_t kGrowth = 8;

// What a line may need beside its own bytes: a byte order mark, CR and LF, and one byte so that Space() is never empty.
constexpr std::size_t kAroundBytes = 6;

}  // namespace

LineFramer::LineFramer(std::size_t line_bytes_max)
    : line_bytes_max_(std::min(line_bytes_max, std::numeric_limits<std::size_t>::max() / 4)) {}

void LineFramer::Release() {
  buffer_.Release();
  begin_ = scanned_ = end_ = 0;
}

// A byte is moved once when the lines before it were taken, and copied when the buffer grows: a constant number of
// times in all.
absl::Span<char> LineFramer::Space() {
  if (buffer_.size() == 0) buffer_.Resize(kSmallBytes, 0);
  const auto is_half_full = [this] { return end_ > buffer_.size() / 2; };
  if (is_half_full() && begin_ != 0) MoveToFront();
  if (is_half_full()) {
    const std::size_t needed_max = std::max(line_bytes_max_ + kAroundBytes, kSmallBytes);
    // The last step is not a small one: what is read already would be moved for little.
    const std::size_t larger = buffer_.size() * kGrowth;
    if (buffer_.size() < needed_max) buffer_.Resize(larger < needed_max / 4 ? larger : needed_max, end_);
  }
  return absl::MakeSpan(buffer_.data() + end_, buffer_.size() - end_);
}

void LineFramer::MoveToFront() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, pending());
  end_ -= begin_;
  scanned_ -= begin_;
  begin_ = 0;
}

void LineFramer::Commit(std::size_t count) { end_ += count; }

// Whether what was committed is more than a line may have, wherever its end is. A CR at the end may be half a
// terminator, and the first bytes may be a part of a byte order mark.
bool LineFramer::IsTooLong() const {
  absl::string_view line(buffer_.data() + begin_, pending());
  if (at_start_) {
    const std::size_t compared = std::min(line.size(), kByteOrderMark.size());
    if (line.substr(0, compared) == kByteOrderMark.substr(0, compared)) line.remove_prefix(compared);
  }
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line.size() > line_bytes_max_;
}

// The line up to `end`, where its newline is or the stream ends.
absl::string_view LineFramer::TakeLine(std::size_t end) {
  absl::string_view line(buffer_.data() + begin_, end - begin_);
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
  const void* const newline =
      scanned_ == end_ ? nullptr : std::memchr(buffer_.data() + scanned_, '\n', end_ - scanned_);
  if (newline == nullptr) {
    scanned_ = end_;
    if (pending() != 0 && IsTooLong()) return TooLong();
    ShrinkWhenMostlyFree();
    return Event::kNeedsMore;
  }
  const auto end = static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.data());
  const absl::string_view found = TakeLine(end);
  if (found.size() > line_bytes_max_) return TooLong();
  begin_ = scanned_ = end + 1;
  *line = found;
  return Event::kLine;
}

std::string LineFramer::MoveOut(absl::string_view part) {
  const std::less<const char*> is_before;
  if (part.empty() || buffer_.size() == 0 || is_before(part.data(), buffer_.data()) ||
      is_before(buffer_.data() + begin_, part.data() + part.size())) {
    return std::string(part);
  }
  return buffer_.MoveOut(static_cast<std::size_t>(part.data() - buffer_.data()), part.size());
}

// After a large line, what is left of its buffer is given back.
void LineFramer::ShrinkWhenMostlyFree() {
  if (pending() == 0) return Release();
  if (begin_ == 0 || buffer_.size() <= kSmallBytes || pending() > buffer_.size() / kGrowth) return;
  MoveToFront();
  buffer_.Resize(std::max(kSmallBytes, 2 * end_), end_);
}

std::optional<absl::string_view> LineFramer::Tail() {
  if (too_long_ || pending() == 0) return std::nullopt;
  const absl::string_view line = TakeLine(end_);
  begin_ = scanned_ = end_;
  if (line.empty() || line.size() > line_bytes_max_) return std::nullopt;
  return line;
}

}  // namespace bulkhead::jsonrpc
