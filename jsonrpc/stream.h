// Stream is one direction of a conversation, as this system has it: a descriptor of POSIX, or one end of a named pipe
// of Windows. It says when there is something to do; the functions below do it without waiting.
#ifndef BULKHEAD_JSONRPC_STREAM_H_
#define BULKHEAD_JSONRPC_STREAM_H_

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bulkhead/jsonrpc/write_without_sigpipe.h"
#ifdef _WIN32
#include "bulkhead/jsonrpc/stream_windows.h"
#else
#include "asio/posix/stream_descriptor.hpp"
#endif

namespace bulkhead::jsonrpc {

#ifndef _WIN32
// Owns its descriptor; made for an executor, on which everything here runs.
using Stream = asio::posix::stream_descriptor;
#endif

// Before the first of the others.
void MakeNonBlocking(Stream* stream);
// Into `space`, which is not empty: the bytes read, 0 at the end, -EAGAIN while there is nothing, or another -errno.
std::ptrdiff_t ReadSome(Stream* stream, absl::Span<char> space);
// The first kPiecesMax of `count` pieces, or as much of them as there is room for: the bytes taken, -EAGAIN while there
// is no room, or another -errno. Never a SIGPIPE.
std::ptrdiff_t WriteSome(Stream* stream, const absl::string_view* pieces, std::size_t count);
// After wait_error: whether nobody will read any more what is written.
bool PeerIsGone(Stream* to_peer);

// A pipe that is larger for as long as it has large messages to carry: what a user's pipes hold together is limited
// (pipe(7), pipe-user-pages-soft), and then new ones get less. May be refused, and does nothing for what is no pipe of
// Linux.
class PipeSize {
 public:
  void Enlarge(Stream* stream);
  // Fails while more is in the pipe than fits; to be called again.
  void Restore(Stream* stream);
  bool is_tried() const { return is_tried_; }

 private:
  bool is_tried_ = false;
  int before_ = 0;  // 0: as it was
};

}  // namespace bulkhead::jsonrpc

#endif  // BULKHEAD_JSONRPC_STREAM_H_
