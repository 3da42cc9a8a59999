// UniqueFd owns one file descriptor and closes it. An empty one holds -1.
#ifndef BULKHEAD_LAUNCHER_UNIQUE_FD_H_
#define BULKHEAD_LAUNCHER_UNIQUE_FD_H_

#include <errno.h>
#include <unistd.h>

namespace bulkhead::launcher {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  explicit operator bool() const { return valid(); }

  // The caller closes it.
  [[nodiscard]] int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

  // Closes the one held and takes `fd`. Leaves errno as it was. A close that fails is not tried again: Linux has freed
  // the number even then (close(2)).
  void reset(int fd = -1) {
    const int old = fd_;
    fd_ = fd;
    if (old < 0) return;
    const int saved = errno;
    ::close(old);
    errno = saved;
  }

 private:
  int fd_ = -1;
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_UNIQUE_FD_H_
