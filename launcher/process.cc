#include "bulkhead/launcher/process.h"

#include <utility>

#include "bulkhead/launcher/process_impl.h"

namespace bulkhead::launcher {

asio::any_io_executor Process::ExecutorOf(const Impl& impl) { return impl.executor; }

void Process::StartWait(const std::shared_ptr<Impl>& impl, std::unique_ptr<WaitHandler> handler) {
  impl->StartWait(impl, std::move(handler));
}

void Process::BeginStop(const std::shared_ptr<Impl>& impl) { impl->BeginStop(impl); }

ExitStatus Process::Wait() { return impl_->Wait(); }
ExitStatus Process::Stop() { return impl_->Stop(); }
void Process::Kill() { impl_->Kill(); }

void Process::End() {
  if (!impl_) return;
  impl_->End();
  // A handler that waits still has its part of the rest. After the kill, or a server might see a SIGPIPE first.
  impl_->in.reset();
  impl_->out.reset();
  impl_->err.reset();
  impl_.reset();
}

Process::Process(Process&&) noexcept = default;
Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    End();
    impl_ = std::move(other.impl_);
  }
  return *this;
}
Process::~Process() { End(); }

NativeFd Process::pidfd() const { return impl_->EndFd(); }
UniqueFd& Process::stdin_fd() { return impl_->in; }
UniqueFd& Process::stdout_fd() { return impl_->out; }
UniqueFd& Process::stderr_fd() { return impl_->err; }
const EnforcementReport& Process::report() const { return impl_->report; }

}  // namespace bulkhead::launcher
