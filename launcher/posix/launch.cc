// LaunchPosix: the library's way, with pipes.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "bulkhead/launcher/errors.h"
#include "bulkhead/launcher/folders.h"
#include "bulkhead/launcher/posix/child.h"
#include "bulkhead/launcher/posix/posix.h"
#include "bulkhead/launcher/posix/stdio.h"
#include "bulkhead/launcher/waitable_process.h"

namespace bulkhead::launcher {
namespace {

// ~Process has a second in all.
constexpr std::chrono::milliseconds kKillTime(900);

struct PosixProcess final : WaitableProcess {
  std::shared_ptr<Child> child;
  pid_t owner = 0;  // the process that launched: a fork of it owns nothing

  int EndFd() const override { return child->end_fd(); }
  void BeginStop(const std::shared_ptr<ProcessImpl>&) override {
    in.reset();
    Child::StartLadder(child, Child::From::kStdinClosed);
  }
  ExitStatus Stop() override {
    in.reset();
    child->RunLadder(Child::From::kStdinClosed);
    return Wait();
  }
  void Kill() override { child->Signal(SIGKILL); }
  void End() override {
    if (owner != getpid() || AwaitEnd(Clock::now())) return;
    Kill();
    AwaitEnd(Clock::now() + kKillTime);
  }

 private:
  bool Settle() override {
    if (!status.has_value()) status = child->result();
    return status.has_value();
  }
  int WaitFd() const override { return child->end_fd(); }
};

// `ours` gets the host's end, `theirs` the server's.
bool MakePipe(UniqueFd& reader, UniqueFd& writer) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const UniqueFd first(ends[0]), second(ends[1]);
  reader = CopyAboveStdio(first.get());
  writer = CopyAboveStdio(second.get());
  return reader.valid() && writer.valid();
}

}  // namespace

absl::StatusOr<Process> LaunchPosix(const LaunchPlan& plan, asio::any_io_executor executor,
                                    const LaunchOptions& options) {
  const absl::Status status = MakeFolders(plan.folders_to_make());
  if (!status.ok()) return status;
  auto impl = std::make_shared<PosixProcess>();
  impl->owner = getpid();
  impl->executor = std::move(executor);
  impl->report = plan.variants()[0].report;
  Stdio stdio;
  bool made = MakePipe(stdio.in, impl->in) && MakePipe(impl->out, stdio.out);
  if (options.stderr_to == LaunchOptions::Stderr::kPipe && plan.stderr_rules().mode == policy::StderrMode::kInherit) {
    made = made && MakePipe(impl->err, stdio.err);
  } else {
    absl::StatusOr<UniqueFd> err = OpenPosixStderr(plan.stderr_rules());
    if (!err.ok()) return err.status();
    stdio.err = *std::move(err);
  }
  if (!made) return OurError("cannot make the server's pipes", errno);
  absl::StatusOr<std::shared_ptr<Child>> child = Child::Start(plan, stdio, options.start_timeout);
  if (!child.ok()) return child.status();
  impl->child = *std::move(child);
  return ProcessMaker::Make(std::move(impl));
}

}  // namespace bulkhead::launcher
