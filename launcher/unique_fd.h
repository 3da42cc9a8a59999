// UniqueFd owns one file descriptor, on Windows one HANDLE, and closes it. An empty one holds -1.
#ifndef BULKHEAD_LAUNCHER_UNIQUE_FD_H_
#define BULKHEAD_LAUNCHER_UNIQUE_FD_H_

#ifndef _WIN32
#include <errno.h>
#include <unistd.h>
#endif

namespace bulkhead::launcher {

#ifdef _WIN32
using NativeFd = void*;
inline NativeFd NoFd() { return reinterpret_cast<NativeFd>(-1); }  // INVALID_HANDLE_VALUE
inline bool IsFd(NativeFd fd) { return fd != nullptr && fd != NoFd(); }
void CloseFd(NativeFd fd);  // keeps GetLastError()
#else
using NativeFd = int;
constexpr NativeFd NoFd() { return -1; }
constexpr bool IsFd(NativeFd fd) { return fd >= 0; }
// Leaves errno as it was. A close that fails is not tried again: Linux has freed the number even then (close(2)).
inline void CloseFd(NativeFd fd) {
  const int saved = errno;
  ::close(fd);
  errno = saved;
}
#endif

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(NativeFd fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  NativeFd get() const { return fd_; }
  bool valid() const { return IsFd(fd_); }
  explicit operator bool() const { return valid(); }

  // The caller closes it.
  [[nodiscard]] NativeFd release() {
    const NativeFd fd = fd_;
    fd_ = NoFd();
    return fd;
  }

  // Closes the one held and takes `fd`.
  void reset(NativeFd fd = NoFd()) {
    const NativeFd old = fd_;
    fd_ = fd;
    if (IsFd(old)) CloseFd(old);
  }

 private:
  NativeFd fd_ = NoFd();
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_UNIQUE_FD_H_
