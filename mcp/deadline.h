// Points in time that a duration of any length leads to.
#ifndef BULKHEAD_MCP_DEADLINE_H_
#define BULKHEAD_MCP_DEADLINE_H_

#include <chrono>

#include "absl/time/time.h"

namespace bulkhead::mcp {

using Clock = std::chrono::steady_clock;

// Infinite, and whatever else is too long for the clock, is the end of time.
inline Clock::time_point After(Clock::time_point start, absl::Duration time) {
  if (time >= absl::Hours(24 * 365 * 10)) return Clock::time_point::max();
  return start + absl::ToChronoNanoseconds(time);
}

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_MCP_DEADLINE_H_
