#include "bulkhead/mcp/server_run.h"

#include <errno.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "asio/post.hpp"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/mcp/host_stderr.h"

namespace bulkhead::mcp {
namespace {

using Reason = jsonrpc::CloseReason;
using Stream = jsonrpc::Stream;

constexpr std::size_t kStderrPieceBytes = kHostStderrBytesMax;
constexpr int kStderrDrainPiecesMax = 64;

bool IsStdioEnd(Reason reason) {
  return reason == Reason::kEndOfInput || reason == Reason::kReadFailed || reason == Reason::kWriteFailed;
}

}  // namespace

ClientOptions MakeClientOptions(const policy::Policy& policy, ClientInfo info, EraChoice era) {
  ClientOptions options;
  options.connection.message_bytes_max = policy->messages.max_message_bytes;
  options.connection.junk_lines_max = policy->messages.max_junk_lines;
  options.connection.queued_bytes_max = policy->messages.max_queued_bytes;
  options.info = std::move(info);
  options.era = era;
  options.probe_timeout = policy->timeouts.probe;
  options.start_timeout = policy->timeouts.start;
  options.request_timeout = policy->timeouts.request;
  return options;
}

absl::StatusOr<std::shared_ptr<ServerRun>> ServerRun::Start(asio::any_io_executor executor,
                                                            const policy::Policy& policy,
                                                            const policy::CommandRequest& request,
                                                            ClientOptions options, absl::Duration launch_timeout,
                                                            Handlers handlers) {
  const auto command = policy::ValidateCommand(policy, request);
  if (!command.ok()) return command.status();
  const auto plan = launcher::BuildLaunchPlan(policy, *command, launcher::DetectKernelFeatures());
  if (!plan.ok()) return plan.status();
  launcher::LaunchOptions launch_options;
  launch_options.stderr_to = launcher::LaunchOptions::Stderr::kPipe;
  launch_options.start_timeout = launch_timeout;
  auto process = launcher::Launch(*plan, executor, launch_options);
  if (!process.ok()) return process.status();
  std::shared_ptr<ServerRun> run(
      new ServerRun(std::move(executor), *std::move(process), plan->program(), plan->hints(), std::move(handlers)));
  run->Converse(std::move(options));
  return run;
}

ServerRun::ServerRun(asio::any_io_executor executor, launcher::Process process, std::string program,
                     std::vector<std::string> hints, Handlers handlers)
    : executor_(std::move(executor)),
      process_(std::move(process)),
      program_(std::move(program)),
      hints_(std::move(hints)),
      handlers_(std::move(handlers)),
      stderr_(executor_),
      timer_(executor_) {}

ServerRun::~ServerRun() = default;

void ServerRun::Converse(ClientOptions options) {
  Client::Handlers inner = handlers_.client;
  inner.on_close = [weak = weak_from_this()](Reason reason, absl::Status detail) {
    if (const auto self = weak.lock()) self->OnClose(reason, std::move(detail));
  };
  client_ =
      std::make_unique<Client>(Stream(executor_, process_->stdout_fd().release()),
                               Stream(executor_, process_->stdin_fd().release()), std::move(options), std::move(inner));
  process_->AsyncWait([weak = weak_from_this()](const launcher::ExitStatus& status) {
    if (const auto self = weak.lock()) self->OnExit(status);
  });
  if (process_->stderr_fd().valid()) {
    stderr_.assign(process_->stderr_fd().release());
    jsonrpc::MakeNonBlocking(&stderr_);
    ReadStderr();
  }
}

void ServerRun::ReadStderr() {
  stderr_.async_wait(Stream::wait_read, [weak = weak_from_this()](asio::error_code error) {
    const auto self = weak.lock();
    if (self && !error && self->ReadStderrPiece() != Piece::kEnd) self->ReadStderr();
  });
}

ServerRun::Piece ServerRun::ReadStderrPiece() {
  char piece[kStderrPieceBytes];
  const std::ptrdiff_t count = jsonrpc::ReadSome(&stderr_, absl::MakeSpan(piece));
  if (count <= 0) return count == -EAGAIN ? Piece::kNone : Piece::kEnd;
  const absl::string_view text(piece, static_cast<std::size_t>(count));
  tail_.append(text.data(), text.size());
  // Cut now and then only, so that it is not moved with each piece.
  if (tail_.size() > 4 * kStderrTailBytes) tail_.erase(0, tail_.size() - kStderrTailBytes);
  handlers_.on_stderr ? handlers_.on_stderr(text) : PassToHostStderr(text);
  return Piece::kText;
}

// What an ended server wrote last is still in the pipe.
void ServerRun::DrainStderr() {
  for (int piece = 0; piece < kStderrDrainPiecesMax && stderr_.is_open(); ++piece) {
    if (ReadStderrPiece() != Piece::kText) return;
  }
}

std::string ServerRun::stderr_tail() const {
  absl::string_view tail = tail_;
  if (tail.size() > kStderrTailBytes) tail.remove_prefix(tail.size() - kStderrTailBytes);
  return std::string(absl::StripAsciiWhitespace(tail));
}

absl::Status ServerRun::Explain(const absl::Status& why) const {
  std::string tail = stderr_tail();
  // The last lines are what a person looks at first; the rest is in stderr_tail().
  constexpr int kLines = 10;
  std::size_t begin = tail.size();
  for (int line = 0; line < kLines && begin != std::string::npos && begin > 0; ++line)
    begin = tail.rfind('\n', begin - 1);
  if (begin != std::string::npos && begin > 0) tail.erase(0, begin + 1);
  std::string text = absl::StrCat("server ", program_, ": ", why.message());
  if (absl::IsDeadlineExceeded(why) && !exit_) text += "; it is running";
  if (!tail.empty()) absl::StrAppend(&text, "; the last of its stderr:\n", tail);
  for (const std::string& hint : hints_) absl::StrAppend(&text, "\nnote: ", hint);
  return absl::Status(why.code(), text);
}

// --- The end ---

void ServerRun::OnClose(Reason reason, absl::Status detail) {
  closed_ = reason;
  close_detail_ = std::move(detail);
  AwaitOther();
}

void ServerRun::OnExit(const launcher::ExitStatus& status) {
  exit_ = status;
  ended_at_ = std::chrono::steady_clock::now();
  AwaitOther();
}

// The exit and the end of stdout come in any order: a helper may hold the pipe, and what is in the pipe comes first.
void ServerRun::AwaitOther() {
  if (is_over_) return;
  const bool is_ours = closed_ && !IsStdioEnd(*closed_);
  if (is_ours || (exit_ && closed_)) {
    timer_.cancel();
    Ended();
    return;
  }
  timer_.expires_after(kSettleTime);
  timer_.async_wait([weak = weak_from_this()](asio::error_code cancelled) {
    const auto self = weak.lock();
    if (self && !cancelled && !self->is_over_) self->Ended();
  });
}

void ServerRun::Ended() {
  is_over_ = true;
  const auto self = shared_from_this();
  DrainStderr();
  End end{closed_.value_or(Reason::kEndOfInput), {}, exit_};
  if (exit_) {
    const double seconds = std::chrono::duration<double>(*ended_at_ - started_).count();
    end.detail = absl::UnavailableError(absl::StrFormat("%s %.1f s after its start", exit_->ToString(), seconds));
  } else if (closed_ && IsStdioEnd(*closed_)) {
    end.detail = absl::UnavailableError(absl::StrCat(
        *closed_ == Reason::kWriteFailed ? "closed its stdin" : "closed its stdout", " and is being stopped"));
  } else {
    end.detail = absl::UnavailableError(close_detail_.message());
  }
  end.detail = Explain(end.detail);
  client_->CloseInput(/*at_once=*/true);
  client_->Drain();
  // Retired: it ends by the ladder, and nobody waits for it.
  process_->AsyncStop([self](const launcher::ExitStatus&) {});
  if (handlers_.on_end) handlers_.on_end(end);
}

void ServerRun::Stop(absl::AnyInvocable<void(launcher::ExitStatus)> handler) {
  const auto self = shared_from_this();
  is_over_ = true;
  client_->Drain();
  client_->CloseInput(/*at_once=*/false);
  timer_.expires_after(kFlushTime);
  timer_.async_wait([self](asio::error_code cancelled) {
    if (!cancelled && self->client_) self->client_->CloseInput(/*at_once=*/true);
  });
  process_->AsyncStop([self, handler = std::move(handler)](const launcher::ExitStatus& status) mutable {
    self->timer_.cancel();
    handler(status);
  });
}

void ServerRun::FailAll(const absl::Status& why) {
  if (client_) client_->FailAll(why);
}

void ServerRun::Kill() {
  is_over_ = true;
  timer_.cancel();
  process_->Kill();
  // One of the handlers may be what calls this.
  asio::post(executor_, [self = shared_from_this()] {
    self->handlers_ = {};
    self->client_.reset();
    asio::error_code ignored;
    self->stderr_.close(ignored);
  });
  process_->AsyncWait([self = shared_from_this()](const launcher::ExitStatus&) {});
}

}  // namespace bulkhead::mcp
