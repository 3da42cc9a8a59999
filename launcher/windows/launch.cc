// LaunchWindows: the library's way, with named pipes.
#include <windows.h>
// After windows.h.
#include <bcrypt.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/waitable_process.h"
#include "bulkhead/launcher/windows/job.h"
#include "bulkhead/launcher/windows/text.h"
#include "bulkhead/launcher/windows/windows.h"

namespace bulkhead::launcher {
namespace {

// ~Process has a second in all.
constexpr std::chrono::milliseconds kKillTime(900);
constexpr DWORD kPipeBytes = 64u << 10;

// Shared by the Process and by the thread that waits.
struct Tree {
  ServerInJob server;
  UniqueFd stop, ended;  // events, which stay set
  absl::Duration stdin_grace;
  std::mutex mutex;
  std::optional<ExitStatus> result;  // once `ended` is set

  void Kill() { TerminateJobObject(server.job.get(), kTerminatedCode); }

  // On a thread of its own, until the job is empty.
  void Watch() {
    const HANDLE handles[] = {server.server.get(), stop.get()};
    if (WaitForMultipleObjects(2, handles, FALSE, INFINITE) == WAIT_OBJECT_0 + 1) {
      WaitForSingleObject(server.server.get(), static_cast<DWORD>(absl::ToInt64Milliseconds(stdin_grace)));
    }
    ExitStatus status = EndJob(server);
    if (is_killed && status.code == static_cast<int>(kTerminatedCode)) {
      status.kind = ExitStatus::Kind::kSignaled;
      status.signal = 9;
    }
    const std::lock_guard<std::mutex> lock(mutex);
    result = status;
    SetEvent(ended.get());
  }

  std::atomic<bool> is_killed{false};
};

struct WindowsProcess final : WaitableProcess {
  std::shared_ptr<Tree> tree;

  NativeFd EndFd() const override { return tree->ended.get(); }
  void BeginStop(const std::shared_ptr<ProcessImpl>&) override {
    in.reset();
    SetEvent(tree->stop.get());
  }
  ExitStatus Stop() override {
    in.reset();
    SetEvent(tree->stop.get());
    return Wait();
  }
  void Kill() override {
    tree->is_killed = true;
    tree->Kill();
  }
  void End() override {
    if (AwaitEnd(Clock::now())) return;
    Kill();
    AwaitEnd(Clock::now() + kKillTime);
  }

 private:
  bool Settle() override {
    if (!status.has_value()) {
      const std::lock_guard<std::mutex> lock(tree->mutex);
      status = tree->result;
    }
    return status.has_value();
  }
  NativeFd WaitFd() const override { return tree->ended.get(); }
};

// Two ends of a pipe, `theirs` to be inherited: an anonymous pipe can't be waited for with others. Nobody else gets an
// end: there is one instance, its name can't be guessed, and both ends are taken when this returns.
absl::Status MakePipe(bool server_reads, UniqueFd& ours, UniqueFd& theirs) {
  char random[16];
  if (BCryptGenRandom(nullptr, reinterpret_cast<PUCHAR>(random), sizeof(random), BCRYPT_USE_SYSTEM_PREFERRED_RNG) !=
      0) {
    return WindowsError("cannot get random bytes");
  }
  const std::wstring name =
      ToWide(absl::StrCat("\\\\.\\pipe\\bulkhead-", absl::BytesToHexString(absl::string_view(random, sizeof(random)))));
  // Readable where it is written to, too: a read that waits there ends when the server closes its stdin.
  ours.reset(CreateNamedPipeW(
      name.c_str(),
      (server_reads ? PIPE_ACCESS_DUPLEX : PIPE_ACCESS_INBOUND) | FILE_FLAG_OVERLAPPED | FILE_FLAG_FIRST_PIPE_INSTANCE,
      PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS, 1, kPipeBytes, kPipeBytes, 0,
      nullptr));
  if (!ours.valid()) return WindowsError("cannot make the server's pipes");
  SECURITY_ATTRIBUTES inherit = {sizeof(inherit), nullptr, TRUE};
  // The rights that the ends of CreatePipe have.
  theirs.reset(CreateFileW(name.c_str(),
                           server_reads ? GENERIC_READ | FILE_WRITE_ATTRIBUTES : GENERIC_WRITE | FILE_READ_ATTRIBUTES,
                           0, &inherit, OPEN_EXISTING, SECURITY_SQOS_PRESENT | SECURITY_ANONYMOUS, nullptr));
  if (!theirs.valid()) return WindowsError("cannot open the server's pipes");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Process> LaunchWindows(const LaunchPlan& plan, asio::any_io_executor executor,
                                      const LaunchOptions& options) {
  auto impl = std::make_shared<WindowsProcess>();
  impl->executor = std::move(executor);
  impl->report = plan.variants()[0].report;
  WindowsStdio stdio;
  absl::Status status = MakePipe(/*server_reads=*/true, impl->in, stdio.in);
  if (status.ok()) status = MakePipe(/*server_reads=*/false, impl->out, stdio.out);
  if (options.stderr_to == LaunchOptions::Stderr::kPipe && plan.stderr_rules().mode == policy::StderrMode::kInherit) {
    if (status.ok()) status = MakePipe(/*server_reads=*/false, impl->err, stdio.err);
  } else if (status.ok()) {
    absl::StatusOr<UniqueFd> err = OpenWindowsStderr(plan.stderr_rules());
    status = err.status();
    if (err.ok()) stdio.err = *std::move(err);
  }
  if (!status.ok()) return status;
  auto tree = std::make_shared<Tree>();
  tree->stop.reset(CreateEventW(nullptr, TRUE, FALSE, nullptr));
  tree->ended.reset(CreateEventW(nullptr, TRUE, FALSE, nullptr));
  tree->stdin_grace = plan.windows()->stdin_grace;
  if (!tree->stop.valid() || !tree->ended.valid()) return WindowsError("cannot make an event");
  absl::StatusOr<ServerInJob> server = StartInJob(plan, stdio);
  if (!server.ok()) return server.status();
  tree->server = *std::move(server);
  std::thread([tree] { tree->Watch(); }).detach();
  impl->tree = std::move(tree);
  return ProcessMaker::Make(std::move(impl));
}

}  // namespace bulkhead::launcher
