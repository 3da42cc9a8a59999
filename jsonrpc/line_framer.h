// LineFramer turns a stream of bytes into lines, as MCP's stdio transport frames messages: 0x0A ends a line and nothing
// else does (U+2028, a lone CR or a form feed are data). One CR before the 0x0A is not part of the line, nor is a byte
// order mark at the very beginning. It does not decide what a line means: see message.h.
//
// Bytes are read straight into the framer's buffer and a complete line is a view of that buffer: nothing is copied, no
// byte is looked at twice for a newline. Between messages it holds no memory.
#ifndef BULKHEAD_JSONRPC_LINE_FRAMER_H_
#define BULKHEAD_JSONRPC_LINE_FRAMER_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bulkhead/jsonrpc/large_memory.h"

namespace bulkhead::jsonrpc {

// Not thread-safe.
class LineFramer {
 public:
  // A line may hold `line_bytes_max` bytes, its terminator, and a byte order mark before it, not counted.
  explicit LineFramer(std::size_t line_bytes_max);

  // Where the next bytes are to be read to: never empty. Valid until the next call of anything here. Call only when
  // Next() has said kNeedsMore. Grows with the line, so that a long one is read in few calls.
  absl::Span<char> Space();
  // `count` bytes were written to the beginning of Space().
  void Commit(std::size_t count);

  enum class Event {
    kLine,       // `line` is the next one
    kNeedsMore,  // the rest of the line has to be read first
    kTooLong,    // the line is longer than line_bytes_max, whether or not its end was seen. Final.
  };
  // The lines of what was committed, one a call, in order. `line` is valid until the next call of anything but empty().
  Event Next(absl::string_view* line);
  // `part` of the line that Next() gave last, for keeping. A large one does not take its memory twice: the line's bytes
  // are lost. Copied if it lies elsewhere.
  std::string MoveOut(absl::string_view part);

  // Whether nothing waits for the rest of its line.
  bool empty() const { return begin_ == end_; }

  // At the end of the stream: the bytes after the last newline, as a line. Absent if there are none.
  std::optional<absl::string_view> Tail();

 private:
  std::size_t pending() const { return end_ - begin_; }  // bytes of the line being accumulated
  bool IsTooLong() const;
  absl::string_view TakeLine(std::size_t end);
  Event TooLong();
  void MoveToFront();
  void Release();
  void ShrinkWhenMostlyFree();

  internal::GrowingBuffer buffer_;
  std::size_t begin_ = 0;    // of the line being accumulated
  std::size_t scanned_ = 0;  // no newline lies between begin_ and here
  std::size_t end_ = 0;      // of what was committed
  std::size_t line_bytes_max_;
  bool at_start_ = true;  // a byte order mark may still come
  bool too_long_ = false;
};

}  // namespace bulkhead::jsonrpc

#endif  // BULKHEAD_JSONRPC_LINE_FRAMER_H_
