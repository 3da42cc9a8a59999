#include "bulkhead/mcp/backoff.h"

#include <algorithm>

namespace bulkhead::mcp {

std::optional<absl::Duration> Backoff::Next(absl::Duration uptime, double chance) {
  if (uptime > absl::ZeroDuration() && uptime >= rules_.healthy_after) failures_ = 0;
  if (++failures_ >= rules_.max_in_a_row) return std::nullopt;
  absl::Duration delay = rules_.backoff_initial;
  for (std::uint32_t i = 1; i < failures_ && delay < rules_.backoff_max; ++i) delay *= 2;
  return std::min(delay, rules_.backoff_max) * (0.5 + chance / 2);
}

}  // namespace bulkhead::mcp
