#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "bulkhead/jsonrpc/stream.h"
#include "bulkhead/jsonrpc/write_without_sigpipe.h"

namespace bulkhead::jsonrpc {
namespace {

#if defined(F_SETPIPE_SZ)
constexpr int kLargePipeBytes = 1 << 20;
#endif

}  // namespace

void MakeNonBlocking(Stream* stream) {
  asio::error_code ignored;  // EAGAIN is what is relied on; a descriptor that is none fails when it is used
  stream->native_non_blocking(true, ignored);
}

std::ptrdiff_t ReadSome(Stream* stream, absl::Span<char> space) {
  while (true) {
    const ssize_t count = read(stream->native_handle(), space.data(), space.size());
    if (count >= 0) return count;
    if (errno != EINTR) return -errno;
  }
}

std::ptrdiff_t WriteSome(Stream* stream, const absl::string_view* pieces, std::size_t count) {
  while (true) {
    const std::ptrdiff_t written = WriteWithoutSigpipe(stream->native_handle(), pieces, count);
    if (written != -EINTR) return written;
  }
}

bool PeerIsGone(Stream* to_peer) {
  pollfd poll_fd = {to_peer->native_handle(), 0, 0};
  return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & (POLLERR | POLLHUP)) != 0;
}

void PipeSize::Enlarge([[maybe_unused]] Stream* stream) {
#if defined(F_SETPIPE_SZ)
  if (is_tried_) return;
  is_tried_ = true;
  const int fd = stream->native_handle();
  const int bytes = fcntl(fd, F_GETPIPE_SZ);
  if (bytes > 0 && bytes < kLargePipeBytes && fcntl(fd, F_SETPIPE_SZ, kLargePipeBytes) >= 0) before_ = bytes;
#endif
}

void PipeSize::Restore([[maybe_unused]] Stream* stream) {
#if defined(F_SETPIPE_SZ)
  if (before_ != 0 && fcntl(stream->native_handle(), F_SETPIPE_SZ, before_) < 0) return;
  before_ = 0;
  is_tried_ = false;
#endif
}

}  // namespace bulkhead::jsonrpc
