// What a Process is to its backend. One class is derived from it for each way of starting a server.
#ifndef BULKHEAD_LAUNCHER_PROCESS_IMPL_H_
#define BULKHEAD_LAUNCHER_PROCESS_IMPL_H_

#include <memory>
#include <utility>

#include "asio/any_io_executor.hpp"
#include "bulkhead/launcher/process.h"
#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {

// The contract of each function, threads included, is that of its namesake in Process.
struct Process::Impl {
  using WaitHandler = Process::WaitHandler;

  virtual ~Impl() = default;
  virtual NativeFd EndFd() const = 0;  // Process::pidfd
  // `self` is this object: whoever waits for the end keeps it.
  virtual void StartWait(const std::shared_ptr<Impl>& self, std::unique_ptr<WaitHandler> handler) = 0;
  virtual void BeginStop(const std::shared_ptr<Impl>& self) = 0;
  virtual ExitStatus Wait() = 0;
  virtual ExitStatus Stop() = 0;
  virtual void Kill() = 0;
  // ~Process: ends the tree, within a second. The stdio is closed afterwards.
  virtual void End() = 0;

  // Set before anyone else sees it.
  EnforcementReport report;
  asio::any_io_executor executor;
  // The host's ends of the stdio pipes: used by one thread at a time, like the Process itself.
  UniqueFd in, out, err;
};

class ProcessMaker {
 public:
  using Impl = Process::Impl;
  static Process Make(std::shared_ptr<Impl> impl) { return Process(std::move(impl)); }
  static Impl& ImplOfForTest(Process& process) { return *process.impl_; }
};

using ProcessImpl = ProcessMaker::Impl;

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_PROCESS_IMPL_H_
