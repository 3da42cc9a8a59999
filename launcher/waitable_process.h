// A Process whose end shows on a descriptor: waiting for it, on an executor or by blocking.
#ifndef BULKHEAD_LAUNCHER_WAITABLE_PROCESS_H_
#define BULKHEAD_LAUNCHER_WAITABLE_PROCESS_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "bulkhead/launcher/process_impl.h"
#ifdef _WIN32
#include "asio/windows/object_handle.hpp"
#else
#include <signal.h>

#include "asio/posix/stream_descriptor.hpp"
#endif

namespace bulkhead::launcher {

struct WaitableProcess : ProcessImpl {
  using Clock = std::chrono::steady_clock;

  void StartWait(const std::shared_ptr<ProcessImpl>& self, std::unique_ptr<WaitHandler> handler) override;
  ExitStatus Wait() override;

 protected:
  // Looks without waiting whether the tree has ended, and sets `status`. With the mutex held.
  virtual bool Settle() = 0;
  // What to wait for next: becomes readable (an event of Windows: set) no later than when Settle should be called
  // again. With the mutex held.
  virtual NativeFd WaitFd() const = 0;
  // Waits until the tree has ended, and completes the handlers. False: not by the deadline.
  bool AwaitEnd(std::optional<Clock::time_point> deadline);

  std::mutex mutex;                  // guards all below, and what a derived class says
  std::optional<ExitStatus> status;  // set once, when the tree is gone

 private:
#ifdef _WIN32
  using Descriptor = asio::windows::object_handle;
#else
  using Descriptor = asio::posix::stream_descriptor;
#endif
  // Those who wait. Owned by the pending operation on the executor, not by the process: a handler may own the Process,
  // and a context that is destroyed must be able to destroy both.
  struct Watch {
    std::shared_ptr<WaitableProcess> impl;
    Descriptor descriptor;
    std::vector<std::unique_ptr<WaitHandler>> handlers;
  };
  static std::shared_ptr<Watch> StartWatch(const std::shared_ptr<WaitableProcess>& impl);
  static void Arm(const std::shared_ptr<Watch>& watch);
  static void WaitOnThread(const std::shared_ptr<Watch>& watch);
  static void OnReadable(const std::shared_ptr<Watch>& watch, bool failed);

  std::weak_ptr<Watch> watch;  // every use of it is guarded by the mutex, too
};

#ifdef _WIN32
class SignalsBlocked {
 public:
  SignalsBlocked() {}
};
#else
// Asio starts threads for the system executor when it is first used. The host's signals are not for them, nor for other
// threads of ours.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t old_;
};

// Whether poll(2) has anything to say of it.
bool IsReadable(int fd);
#endif

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_WAITABLE_PROCESS_H_
