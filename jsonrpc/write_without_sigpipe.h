// Writing to a peer that may be gone, from a library that may not change what its host does with SIGPIPE.
#ifndef BULKHEAD_JSONRPC_WRITE_WITHOUT_SIGPIPE_H_
#define BULKHEAD_JSONRPC_WRITE_WITHOUT_SIGPIPE_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace bulkhead::jsonrpc {

inline constexpr std::size_t kPiecesMax = 64;  // of one write; more are left for the next

// write(2) of several pieces to a pipe or socket without SIGPIPE, whatever the process does with that signal. Returns
// the bytes written, or -errno. Any thread.
std::ptrdiff_t WriteWithoutSigpipe(int fd, const absl::string_view* pieces, std::size_t count);

namespace internal {

// The two ways, for tests. The first, RWF_NOSIGNAL, came with Linux 6.18: -EOPNOTSUPP before, and -ENOSYS without
// pwritev2. The second blocks the signal for this thread, and takes it back if the write caused it.
std::ptrdiff_t WriteWithNoSignalFlag(int fd, const absl::string_view* pieces, std::size_t count);
std::ptrdiff_t WriteWithSigpipeBlocked(int fd, const absl::string_view* pieces, std::size_t count);

}  // namespace internal
}  // namespace bulkhead::jsonrpc

#endif  // BULKHEAD_JSONRPC_WRITE_WITHOUT_SIGPIPE_H_
