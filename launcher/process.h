// Process is a running server and everything it started. Holding it is owning the tree: destroying it ends the tree.
//
// The server's parent is not the host but a keeper (see DESIGN.md), so the host's signal handlers, SIGCHLD and SIGPIPE
// settings are neither used nor changed, the thread that launched may end, and the tree ends even when the host is
// killed.
#ifndef BULKHEAD_LAUNCHER_PROCESS_H_
#define BULKHEAD_LAUNCHER_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "asio/any_io_executor.hpp"
#include "asio/associated_executor.hpp"
#include "asio/async_result.hpp"
#include "asio/executor_work_guard.hpp"
#include "asio/post.hpp"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {

// How the server itself ended (not its helpers), and what the tree used.
struct ExitStatus {
  enum class Kind { kExited, kSignaled, kKeeperLost };
  // kKeeperLost: the keeper, or the jail init, was killed; the tree is gone, the server's own status is not known.
  Kind kind = Kind::kExited;
  int code = 0;                           // kExited
  int signal = 0;                         // kSignaled
  absl::Duration user_time, system_time;  // of all processes of the tree that were reaped
  std::uint64_t max_resident_bytes = 0;   // of the largest process
  // Of a server with a cgroup (the report's layer "cgroup"); else 0.
  std::uint64_t memory_kills = 0;       // processes that the kernel killed since the tree reached limits.memory
  std::uint64_t refused_processes = 0;  // how often a new process was refused because of limits.processes
  // What a shell would show: the code, or 128 + signal; 137 for kKeeperLost.
  int shell_code() const { return kind == Kind::kExited ? code : 128 + (kind == Kind::kSignaled ? signal : 9); }
  std::string ToString() const;  // "exited with code 7", "killed by signal 9 (SIGKILL)"
};

// Threads: Kill() and AsyncWait() may be called from any thread, also at the same time; everything else from one thread
// at a time. Moved-from Processes may only be assigned to or destroyed. In a child that the host forks, destroying the
// copy ends nothing.
class Process {
 public:
  Process(Process&&) noexcept;
  Process& operator=(Process&&) noexcept;  // ends the tree that was held before
  ~Process();  // SIGKILL to the whole tree, and reaps it; returns within a second. AsyncWait handlers still complete.

  // Readable once the keeper has ended, which it does after the whole tree is reaped. Borrowed. On Windows an event
  // that is set then.
  NativeFd pidfd() const;

  // The host's ends of the server's stdio; owned by the Process until taken. Blocking descriptors with CLOEXEC; on
  // Windows named pipes opened with FILE_FLAG_OVERLAPPED, of which stdin's is readable, too, to notice that the server
  // closed it.
  UniqueFd& stdin_fd();
  UniqueFd& stdout_fd();
  UniqueFd& stderr_fd();  // empty unless the policy's stderr is "inherit" and LaunchOptions asked for a pipe

  // The tier that was reached, and what its layers do.
  const EnforcementReport& report() const;

  // Where handlers without an executor of their own run.
  using executor_type = asio::any_io_executor;
  executor_type get_executor() const { return ExecutorOf(*impl_); }

  // Completes once, with void(ExitStatus), after no process of the tree is alive; never from inside this call. Any
  // completion token. A handler that is still waiting when its executor's context is destroyed is destroyed uncalled.
  template <typename Token>
  auto AsyncWait(Token&& token) {
    return asio::async_initiate<Token, void(ExitStatus)>(
        [impl = impl_](auto handler) { StartWait(impl, Wrap(std::move(handler), ExecutorOf(*impl))); }, token);
  }

  // The gentle way: closes stdin (if it wasn't taken), waits stdin_grace, SIGTERM to all, waits term_grace, SIGKILL to
  // all; on Windows the job is terminated after stdin_grace. Completes like AsyncWait. Calling it again, or after the
  // end, is harmless.
  template <typename Token>
  auto AsyncStop(Token&& token) {
    return asio::async_initiate<Token, void(ExitStatus)>(
        [impl = impl_](auto handler) {
          BeginStop(impl);
          StartWait(impl, Wrap(std::move(handler), ExecutorOf(*impl)));
        },
        token);
  }

  // Blocking forms; they need no executor to be running. Never call them on a thread that runs other people's handlers.
  ExitStatus Wait();
  ExitStatus Stop();
  void Kill();  // starts SIGKILL to the tree at once; does not wait

 private:
  struct Impl;
  friend class ProcessMaker;

  // A completion handler of any type, with its executor kept busy until it was called.
  struct WaitHandler {
    virtual ~WaitHandler() = default;
    virtual void Complete(const ExitStatus& status) = 0;  // posts; called at most once
  };
  template <typename H>
  struct WaitHandlerOf final : WaitHandler {
    using Executor = asio::associated_executor_t<H, asio::any_io_executor>;
    WaitHandlerOf(H h, const asio::any_io_executor& fallback)
        : handler(std::move(h)), work(asio::get_associated_executor(handler, fallback)) {}
    void Complete(const ExitStatus& status) override {
      asio::post(work.get_executor(), [handler = std::move(handler), status]() mutable { std::move(handler)(status); });
      work.reset();
    }
    H handler;
    asio::executor_work_guard<Executor> work;
  };
  template <typename H>
  static std::unique_ptr<WaitHandler> Wrap(H handler, const asio::any_io_executor& fallback) {
    return std::make_unique<WaitHandlerOf<H>>(std::move(handler), fallback);
  }
  static asio::any_io_executor ExecutorOf(const Impl& impl);
  static void StartWait(const std::shared_ptr<Impl>& impl, std::unique_ptr<WaitHandler> handler);
  static void BeginStop(const std::shared_ptr<Impl>& impl);
  void End();

  explicit Process(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

struct LaunchOptions {
  // kPipe: where the policy says "inherit", a pipe whose reading end is Process::stderr_fd().
  enum class Stderr { kPolicy, kPipe };
  Stderr stderr_to = Stderr::kPolicy;
  // How long building the jail and the exec may take, e.g. on a network file system that doesn't answer.
  absl::Duration start_timeout = absl::Seconds(60);
};

// Starts the server. Returns when it runs (its exec succeeded) or the launch failed; a failure names the step, with the
// codes of BuildLaunchPlan, and DeadlineExceeded after start_timeout. Nothing is left of a failed launch. Any thread,
// which may end afterwards. The plan may be used again, also at the same time.
absl::StatusOr<Process> Launch(const LaunchPlan& plan, const LaunchOptions& options = {});
// The same, with AsyncWait and AsyncStop completing on `executor` unless the token's handler has its own.
absl::StatusOr<Process> Launch(const LaunchPlan& plan, asio::any_io_executor executor,
                               const LaunchOptions& options = {});

// `bulkhead run`: this process becomes the keeper. Returns only on failure. `report_path` may be empty.
absl::Status BecomeKeeper(const LaunchPlan& plan, const std::string& report_path);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_PROCESS_H_
