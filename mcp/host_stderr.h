// What a server says on its stderr, passed on to the host's.
#ifndef BULKHEAD_MCP_HOST_STDERR_H_
#define BULKHEAD_MCP_HOST_STDERR_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace bulkhead::mcp {

inline constexpr std::size_t kHostStderrBytesMax = 4096;  // of one call: PIPE_BUF

// `text`, of at most kHostStderrBytesMax bytes, is dropped rather than waited for. On Windows, where that can't be
// asked, it waits.
void PassToHostStderr(absl::string_view text);

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_MCP_HOST_STDERR_H_
