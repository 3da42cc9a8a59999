// Pages puts the pages of a list together (2025-11-25, server/utilities/pagination), within limits: a server's cursors
// may have no end. Pure.
#ifndef BULKHEAD_MCP_PAGES_H_
#define BULKHEAD_MCP_PAGES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bulkhead/mcp/client.h"

namespace bulkhead::mcp {

inline constexpr int kPagesMax = 10'000;
// Of all pages together, in messages of the largest size: what their elements take in memory.
inline constexpr std::size_t kPagesMessagesMax = 8;

class Pages {
 public:
  // `method` answers with a list under the name `member`.
  Pages(std::string method, std::string member, std::size_t message_bytes_max);

  const std::string& method() const { return method_; }
  std::string Params() const;  // of the next request; empty for the first

  // One page: whether there is another. Unknown (the server's error, with its words), DataLoss (no list, or a cursor
  // that leads back to its own page), ResourceExhausted (beyond the limits).
  absl::StatusOr<bool> Take(const Reply& reply);

  // The JSON text of each element so far.
  std::vector<std::string> TakeElements() { return std::move(elements_); }

 private:
  std::string method_, member_, cursor_;
  std::size_t bytes_left_;
  int pages_ = 0;
  std::vector<std::string> elements_;
};

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_MCP_PAGES_H_
