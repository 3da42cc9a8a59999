#include "bulkhead/jsonrpc/write_queue.h"

#include <algorithm>
#include <utility>

namespace bulkhead::jsonrpc {
namespace {

// Lines are joined up to this size: some hundred of them then are one piece, and none is copied for long.
constexpr std::size_t kJoinedBytesMax = 16u << 10;

}  // namespace

bool WriteQueue::HasRoomFor(std::size_t size) const {
  return bytes_ == 0 || size <= bytes_max_ - std::min(bytes_, bytes_max_);
}

void WriteQueue::Append(std::string text) {
  bytes_ += text.size();
  if (first_ != chunks_.size() && chunks_.back().body == nullptr &&
      chunks_.back().text.size() + text.size() <= kJoinedBytesMax) {
    chunks_.back().text += text;
  } else {
    chunks_.push_back({std::move(text), nullptr});
  }
}

bool WriteQueue::Push(std::string line) {
  if (line.empty()) return true;
  if (!HasRoomFor(line.size())) return false;
  Append(std::move(line));
  return true;
}

bool WriteQueue::Push(std::string head, std::shared_ptr<const std::string> body, std::string tail) {
  if (!HasRoomFor(head.size() + body->size() + tail.size())) return false;
  Append(std::move(head));
  bytes_ += body->size();
  chunks_.push_back({"", std::move(body)});
  Append(std::move(tail));
  return true;
}

std::size_t WriteQueue::Front(absl::Span<absl::string_view> views) const {
  const std::size_t count = std::min(views.size(), chunks_.size() - first_);
  for (std::size_t i = 0; i != count; ++i) views[i] = chunks_[first_ + i].bytes();
  if (count != 0) views[0].remove_prefix(written_);
  return count;
}

void WriteQueue::Consume(std::size_t count) {
  bytes_ -= count;
  written_ += count;
  while (first_ != chunks_.size() && written_ >= chunks_[first_].bytes().size()) {
    written_ -= chunks_[first_].bytes().size();
    chunks_[first_++] = Chunk();
  }
  if (first_ == chunks_.size()) {
    Clear();  // an idle queue holds no memory
  } else if (first_ > chunks_.size() / 2) {
    chunks_.erase(chunks_.begin(), chunks_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

void WriteQueue::Clear() {
  std::vector<Chunk>().swap(chunks_);
  bytes_ = written_ = first_ = 0;
}

}  // namespace bulkhead::jsonrpc
