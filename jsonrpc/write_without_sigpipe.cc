#include "bulkhead/jsonrpc/write_without_sigpipe.h"

#include <pthread.h>
#include <signal.h>
#include <sys/uio.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

namespace bulkhead::jsonrpc {
namespace {

// linux/fs.h of 6.18; Debian 12's does not have it.
constexpr int kRwfNoSignal = 0x100;

// What has turned out not to work is not tried again. The only state of this process that is kept: it can't be wrong
// for one caller and right for another.
std::atomic<bool> flag_is_unknown{false};

using Pieces = std::array<iovec, kPiecesMax>;

int ToVectors(const absl::string_view* pieces, std::size_t count, Pieces* vectors) {
  count = std::min(count, kPiecesMax);
  for (std::size_t i = 0; i != count; ++i) {
    (*vectors)[i] = {const_cast<char*>(pieces[i].data()), pieces[i].size()};
  }
  return static_cast<int>(count);
}

}  // namespace

std::ptrdiff_t internal::WriteWithNoSignalFlag(int fd, const absl::string_view* pieces, std::size_t count) {
  Pieces vectors;
  const int vector_count = ToVectors(pieces, count, &vectors);
#if defined(__linux__)
  // Offset -1: at the file's own position, which is what pipes and sockets need.
  const ssize_t written = pwritev2(fd, vectors.data(), vector_count, -1, kRwfNoSignal);
  return written < 0 ? -errno : written;
#else
  (void)fd, (void)vector_count;
  return -ENOSYS;
#endif
}

std::ptrdiff_t internal::WriteWithSigpipeBlocked(int fd, const absl::string_view* pieces, std::size_t count) {
  Pieces vectors;
  const int vector_count = ToVectors(pieces, count, &vectors);
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  // Pending already: then it is blocked, and there is nothing that a second one could add to it.
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  sigset_t sigpipe, before;
  sigemptyset(&sigpipe);
  sigaddset(&sigpipe, SIGPIPE);
  if (!was_pending) pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
  const ssize_t written = writev(fd, vectors.data(), vector_count);
  const std::ptrdiff_t result = written < 0 ? -errno : written;
  if (!was_pending) {
    // The signal was sent to this thread, before writev returned.
    constexpr timespec kAtOnce = {0, 0};
    while (result == -EPIPE && sigtimedwait(&sigpipe, nullptr, &kAtOnce) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  return result;
}

std::ptrdiff_t WriteWithoutSigpipe(int fd, const absl::string_view* pieces, std::size_t count) {
  if (!flag_is_unknown.load(std::memory_order_relaxed)) {
    const std::ptrdiff_t result = internal::WriteWithNoSignalFlag(fd, pieces, count);
    // EPERM: what a container's filter says of system calls that it does not know.
    if (result != -EOPNOTSUPP && result != -ENOSYS && result != -EPERM) return result;
    flag_is_unknown.store(true, std::memory_order_relaxed);
  }
  return internal::WriteWithSigpipeBlocked(fd, pieces, count);
}

}  // namespace bulkhead::jsonrpc
