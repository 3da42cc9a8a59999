// PendingCalls matches responses to the requests that are in flight. An id is registered before its request is written
// and never used again on this connection. An abandoned id (timed out, cancelled) is remembered for a while, so that
// its late answer is no surprise; how many are remembered is bounded. Pure: no clock, no I/O.
#ifndef BULKHEAD_JSONRPC_PENDING_CALLS_H_
#define BULKHEAD_JSONRPC_PENDING_CALLS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace bulkhead::jsonrpc {

inline constexpr std::size_t kAbandonedMax = 1024;

// `Call` is what is kept for each: movable. Not thread-safe.
template <typename Call>
class PendingCalls {
 public:
  // The id to write. Small integers, counted up from 1: other peers' numbers may be doubles.
  std::int64_t Register(Call call) {
    const std::int64_t id = next_id_++;
    calls_.emplace(id, std::move(call));
    return id;
  }

  // Valid until the next Register, Take or Abandon.
  Call* Find(std::int64_t id) {
    const auto found = calls_.find(id);
    return found == calls_.end() ? nullptr : &found->second;
  }

  // The call that a response with this id answers; it is pending no longer.
  std::optional<Call> Take(std::int64_t id) {
    const auto found = calls_.find(id);
    if (found == calls_.end()) return std::nullopt;
    std::optional<Call> call(std::move(found->second));
    calls_.erase(found);
    return call;
  }

  // Take, remembering that an answer may still come.
  std::optional<Call> Abandon(std::int64_t id) {
    std::optional<Call> call = Take(id);
    if (!call) return call;
    if (order_.size() == kAbandonedMax) {
      abandoned_.erase(order_.front());
      order_.pop_front();
    }
    order_.push_back(id);
    abandoned_.insert(id);
    return call;
  }
  // Whether an answer with this id comes too late: its call was one of the last kAbandonedMax that were abandoned.
  bool WasAbandoned(std::int64_t id) const { return abandoned_.contains(id); }

  // For an error without an id: the one call it can be about. Absent unless exactly one is pending.
  std::optional<std::int64_t> OnlyId() const {
    return calls_.size() == 1 ? std::optional<std::int64_t>(calls_.begin()->first) : std::nullopt;
  }

  // Everything that is in flight, in the order it was registered; nothing is pending afterwards.
  std::vector<Call> TakeAll() {
    std::vector<std::int64_t> ids;
    for (const auto& [id, call] : calls_) ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    std::vector<Call> calls;
    for (const std::int64_t id : ids) calls.push_back(std::move(calls_.find(id)->second));
    calls_.clear();
    return calls;
  }

  std::size_t size() const { return calls_.size(); }

 private:
  std::int64_t next_id_ = 1;
  absl::flat_hash_map<std::int64_t, Call> calls_;
  absl::flat_hash_set<std::int64_t> abandoned_;
  std::deque<std::int64_t> order_;  // of abandoned_, oldest first
};

}  // namespace bulkhead::jsonrpc

#endif  // BULKHEAD_JSONRPC_PENDING_CALLS_H_
