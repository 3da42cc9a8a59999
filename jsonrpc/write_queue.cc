#include "bulkhead/jsonrpc/write_queue.h"

#include <algorithm>
#include <utility>

namespace bulkhead::jsonrpc {
namespace {

// Lines are joined up to this size: some hundred of them then are one piece, and none is copied for long.
constexpr std::size_t kJoinedBytesMax = 16u << 10;

}  // namespace

bool WriteQueue::Push(std::string line) {
  if (line.empty()) return true;
  if (bytes_ != 0 && line.size() > bytes_max_ - std::min(bytes_, bytes_max_)) return false;
  bytes_ += line.size();
  if (first_ != chunks_.size() && chunks_.back().size() + line.size() <= kJoinedBytesMax) {
    chunks_.back() += line;
  } else {
    chunks_.push_back(std::move(line));
  }
  return true;
}

std::size_t WriteQueue::Front(absl::Span<absl::string_view> views) const {
  const std::size_t count = std::min(views.size(), chunks_.size() - first_);
  for (std::size_t i = 0; i != count; ++i) views[i] = chunks_[first_ + i];
  if (count != 0) views[0].remove_prefix(written_);
  return count;
}

void WriteQueue::Consume(std::size_t count) {
  bytes_ -= count;
  written_ += count;
  while (first_ != chunks_.size() && written_ >= chunks_[first_].size()) {
    written_ -= chunks_[first_].size();
    std::string().swap(chunks_[first_++]);
  }
  if (first_ == chunks_.size()) {
    Clear();  // an idle queue holds no memory
  } else if (first_ > chunks_.size() / 2) {
    chunks_.erase(chunks_.begin(), chunks_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
}

void WriteQueue::Clear() {
  std::vector<std::string>().swap(chunks_);
  bytes_ = written_ = first_ = 0;
}

}  // namespace bulkhead::jsonrpc
