// How long to wait before a server that ended is started again, and when to give up. Pure: time and chance come in.
#ifndef BULKHEAD_MCP_BACKOFF_H_
#define BULKHEAD_MCP_BACKOFF_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::mcp {

class Backoff {
 public:
  explicit Backoff(const policy::RestartRules& rules) : rules_(rules) {}

  // The server ended, or could not be started, after it had been ready for `uptime` (zero: it never was). Returns the
  // delay before the next start; absent: this was failure number max_in_a_row without being healthy in between.
  // `chance` is in [0, 1): the delay grows twofold from backoff_initial to backoff_max and is then taken between its
  // half and its whole, so that servers that fell together don't come back together.
  std::optional<absl::Duration> Next(absl::Duration uptime, double chance);

  std::uint32_t failures_in_a_row() const { return failures_; }

 private:
  policy::RestartRules rules_;
  std::uint32_t failures_ = 0;
};

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_MCP_BACKOFF_H_
