// What a Process holds. Shared by launch.cc, which fills it, and process.cc.
#ifndef BULKHEAD_LAUNCHER_PROCESS_IMPL_H_
#define BULKHEAD_LAUNCHER_PROCESS_IMPL_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "asio/any_io_executor.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/steady_timer.hpp"
#include "bulkhead/launcher/plan_format.h"
#include "bulkhead/launcher/process.h"

namespace bulkhead::launcher {

struct Process::Impl {
  using Clock = std::chrono::steady_clock;

  // Set before anyone else sees it; closed with the last reference.
  UniqueFd control;  // our end of the control socket
  UniqueFd keeper;   // pidfd; empty when the keeper was gone, and reaped by others, before it could be opened
  UniqueFd init;     // pidfd of the jail init, if the keeper sent it: tells that the tree of a killed keeper is gone
  pid_t owner = 0;   // the process that launched: a fork of it owns nothing
  EnforcementReport report;
  asio::any_io_executor executor;
  Clock::duration stop_time_max{};  // the whole ladder, with some to spare

  // The host's ends of the stdio pipes: used by one thread at a time, like the Process itself.
  UniqueFd in, out, err;

  // Those who wait. Owned by the pending operation on the executor, not by the Impl: a handler may own the Process, and
  // a context that is destroyed must be able to destroy both.
  struct Watch {
    std::shared_ptr<Impl> impl;
    asio::posix::stream_descriptor descriptor;
    std::vector<std::unique_ptr<WaitHandler>> handlers;
  };

  std::mutex mutex;  // guards all below, and every use of a Watch or of the timer
  std::optional<wire::Message> exited;
  bool keeper_gone = false;
  std::optional<ExitStatus> status;  // set once, when the tree is gone
  std::weak_ptr<Watch> watch;
  std::weak_ptr<asio::steady_timer> stop_timer;

  // Looks without waiting whether the tree has ended. With the mutex held.
  bool Settle();
  // What to wait for next: becomes readable no later than when Settle should be called again. With the mutex held.
  int WaitFd() const;
  // Waits until the tree has ended, and completes the handlers. False: not by the deadline.
  bool AwaitEnd(std::optional<Clock::time_point> deadline);
  void Send(char order);
  void KillKeeper();

  static std::shared_ptr<Watch> StartWatch(const std::shared_ptr<Impl>& impl);
  static void Arm(const std::shared_ptr<Watch>& watch);
  static void WaitOnThread(const std::shared_ptr<Watch>& watch);
  static void OnReadable(const std::shared_ptr<Watch>& watch, bool failed);

 private:
  void ReadMessages();
};

class ProcessMaker {
 public:
  using Impl = Process::Impl;
  static Process Make(std::shared_ptr<Impl> impl) { return Process(std::move(impl)); }
  static Impl& ImplOfForTest(Process& process) { return *process.impl_; }
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_PROCESS_IMPL_H_
