// WriteQueue holds what was not written yet, bounded in bytes. Pure: it knows no descriptor.
#ifndef BULKHEAD_JSONRPC_WRITE_QUEUE_H_
#define BULKHEAD_JSONRPC_WRITE_QUEUE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace bulkhead::jsonrpc {

// Not thread-safe.
class WriteQueue {
 public:
  explicit WriteQueue(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // False, and the line is not taken, if more than bytes_max would wait; unless nothing waits: a message that is longer
  // than the queue may still be sent alone. Short lines are joined, so that many of them are one write.
  [[nodiscard]] bool Push(std::string line);
  // The same for a line in three parts, of which `body` is not copied.
  [[nodiscard]] bool Push(std::string head, std::shared_ptr<const std::string> body, std::string tail);

  // What to write next: up to `views.size()` pieces, in order. Valid until Push, Consume or Clear. Returns how many.
  std::size_t Front(absl::Span<absl::string_view> views) const;
  // `count` bytes of it were written.
  void Consume(std::size_t count);
  void Clear();

  std::size_t bytes() const { return bytes_; }

 private:
  struct Chunk {
    std::string text;
    std::shared_ptr<const std::string> body;  // instead of it
    const std::string& bytes() const { return body == nullptr ? text : *body; }
  };
  bool HasRoomFor(std::size_t size) const;
  void Append(std::string text);

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::size_t written_ = 0;  // of the first chunk that is left
  std::size_t first_ = 0;    // chunks before it are written, and empty
  std::vector<Chunk> chunks_;
};

}  // namespace bulkhead::jsonrpc

#endif  // BULKHEAD_JSONRPC_WRITE_QUEUE_H_
