#include "bulkhead/mcp/client.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "asio/post.hpp"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/mcp/client_impl.h"

namespace bulkhead::mcp {
namespace {

constexpr int kTimeoutsMax = 10;  // CallOptions::timeout_max, unless it is given

// In the modern era an answer to these may ask for input (2026-07-28, basic/patterns/mrtr).
bool MayNeedInput(absl::string_view method) {
  return method == "tools/call" || method == "prompts/get" || method == "resources/read";
}

absl::Status ConnectionIsClosed(const Client::PendingCall& call) {
  return absl::UnavailableError(absl::StrCat("cannot send ", call.method, ": the connection is closed"));
}

}  // namespace

Client::Impl::Impl(asio::any_io_executor executor, ClientOptions the_options, Handlers the_handlers)
    : options(std::move(the_options)), handlers(std::move(the_handlers)), timer(executor), start_timer(executor) {}

void Client::Impl::Start(jsonrpc::Stream from_server, jsonrpc::Stream to_server) {
  jsonrpc::Connection::Handlers inner;
  std::weak_ptr<Impl> weak = weak_from_this();
  inner.on_message = [weak](const jsonrpc::Message& message) {
    if (const auto self = weak.lock()) self->OnMessage(message);
  };
  inner.on_junk = [weak](absl::string_view line, jsonrpc::JunkReason reason) {
    if (const auto self = weak.lock()) self->Drop(line, jsonrpc::JunkReasonText(reason));
  };
  inner.on_close = [weak](jsonrpc::CloseReason reason, absl::Status detail) {
    const auto self = weak.lock();
    if (self && self->handlers.on_close) self->handlers.on_close(reason, std::move(detail));
  };
  connection = std::make_unique<jsonrpc::Connection>(std::move(from_server), std::move(to_server), options.connection,
                                                     std::move(inner));
  connection->Start();
}

void Client::Impl::Shutdown() {
  state = State::kClosed;
  timer.cancel();
  start_timer.cancel();
  deadlines_.clear();
  detached_.clear();
  open_requests_.clear();
  open_bytes_ = 0;
  connection.reset();
  pending.TakeAll();
  on_connected = nullptr;
}

void Client::Impl::Drop(absl::string_view line, absl::string_view why) {
  if (handlers.on_dropped) handlers.on_dropped(line, why);
}

// --- Calls ---

Client::Impl::CallPtr Client::Impl::MakeCall(absl::string_view method, absl::Duration timeout,
                                             absl::Duration timeout_max, CallHandler handler) {
  auto call = std::make_shared<PendingCall>();
  const Clock::time_point now = Clock::now();
  call->method = std::string(method);
  call->handler = std::move(handler);
  call->deadline = After(now, timeout);
  call->deadline_max = After(now, timeout_max);
  if (call->deadline != Clock::time_point::max()) call->timeout = call->deadline - now;
  call->deadline = std::min(call->deadline, call->deadline_max);
  return call;
}

Client::CallRef Client::Impl::Call(absl::string_view method, std::string params, const CallOptions& call_options,
                                   CallHandler handler) {
  const absl::Duration timeout =
      call_options.timeout == absl::ZeroDuration() ? options.request_timeout : call_options.timeout;
  const absl::Duration timeout_max =
      call_options.timeout_max == absl::ZeroDuration() ? kTimeoutsMax * timeout : call_options.timeout_max;
  const CallPtr call = MakeCall(method, timeout, timeout_max, std::move(handler));
  call->on_progress = call_options.on_progress;
  absl::Status status;
  if (state != State::kReady) {
    status = absl::FailedPreconditionError(absl::StrCat("cannot call ", method, ": not connected to a server"));
  } else {
    call->may_need_input = era == Era::kModern && MayNeedInput(method);
    if (params.size() >= jsonrpc::LargeRequest::kParamsBytesMin && !handlers.on_request_sent) {
      status = SendLarge(call, std::move(params));
    } else {
      status = Send(call, params);
      if (call->may_need_input) call->params = std::move(params);
    }
  }
  if (!status.ok()) CompleteSoon(call, std::move(status));
  return call;
}

Client::CallRef Client::Impl::CallWithoutHandshake(absl::string_view method, absl::string_view params,
                                                   absl::Duration timeout, CallHandler handler) {
  const CallPtr call = MakeCall(method, timeout, timeout, std::move(handler));
  call->is_handshake = true;
  if (absl::Status status = Send(call, params); !status.ok()) CompleteSoon(call, std::move(status));
  return call;
}

absl::Status Client::Impl::Send(const CallPtr& call, absl::string_view params) {
  call->id = pending.Register(call);
  const std::int64_t token = call->on_progress ? call->id : -1;
  absl::StatusOr<std::string> line;
  if (call->is_handshake) {
    line = jsonrpc::RequestLine(call->id, call->method, params);
  } else {
    line = era == Era::kModern ? ModernRequestLine(call->id, call->method, params, options.info, version, token)
                               : LegacyRequestLine(call->id, call->method, params, token);
  }
  absl::Status status = line.status();
  if (status.ok() && handlers.on_request_sent) {
    handlers.on_request_sent(absl::string_view(*line).substr(0, line->size() - 1));
  }
  if (status.ok() && !connection->Send(*std::move(line))) {
    status = ConnectionIsClosed(*call);
  }
  return Sent(call, std::move(status));
}

absl::Status Client::Impl::SendLarge(const CallPtr& call, std::string params) {
  call->id = pending.Register(call);
  const std::int64_t token = call->on_progress ? call->id : -1;
  auto request = era == Era::kModern
                     ? ModernLargeRequest(call->id, call->method, std::move(params), options.info, version, token)
                     : LegacyLargeRequest(call->id, call->method, std::move(params), token);
  absl::Status status = request.status();
  if (status.ok()) {
    if (call->may_need_input) call->large = *request;
    if (!connection->Send(*request)) status = ConnectionIsClosed(*call);
  }
  return Sent(call, std::move(status));
}

absl::Status Client::Impl::Sent(const CallPtr& call, absl::Status status) {
  if (!status.ok()) {
    pending.Take(call->id);
    call->id = 0;
    return status;
  }
  if (call->deadline != Clock::time_point::max()) {
    deadlines_.emplace(call->deadline, call->id);
    ArmTimer();
  }
  return absl::OkStatus();
}

void Client::Impl::Complete(const CallPtr& call, absl::StatusOr<Reply> reply) {
  detached_.erase(call);
  if (!call->handler) return;
  CallHandler handler = std::move(call->handler);
  call->handler = nullptr;
  call->on_progress = nullptr;
  handler(std::move(reply));
}

void Client::Impl::CompleteSoon(const CallPtr& call, absl::Status failure) {
  call->failure = std::move(failure);
  detached_.insert(call);
  asio::post(timer.get_executor(), [self = shared_from_this(), call] {
    // Otherwise FailAll was faster, or the Client is gone.
    if (self->detached_.contains(call)) self->Complete(call, call->failure);
  });
}

Client::Impl::CallPtr Client::Impl::TakeFromFlight(std::int64_t id, bool abandon) {
  auto call = abandon ? pending.Abandon(id) : pending.Take(id);
  if (!call) return nullptr;
  deadlines_.erase({(*call)->deadline, id});
  (*call)->id = 0;
  return *std::move(call);
}

void Client::Impl::Cancel(const CallRef& ref, absl::string_view reason) {
  const CallPtr call = ref.lock();
  if (!call || !call->handler || !call->failure.ok()) return;
  if (call->id != 0) {
    const std::int64_t id = call->id;
    TakeFromFlight(id, /*abandon=*/true);
    if (!call->is_handshake) SendCancelled(id, reason);
  }
  CompleteSoon(call, absl::CancelledError(absl::StrCat(call->method, " was cancelled: ", reason)));
}

void Client::Impl::SendCancelled(std::int64_t id, absl::string_view reason) {
  auto line = jsonrpc::NotificationLine(
      "notifications/cancelled", absl::StrCat("{\"requestId\":", id, ",\"reason\":", jsonrpc::QuoteJson(reason), "}"));
  if (line.ok() && connection) connection->Send(*std::move(line));
}

absl::Status Client::Impl::Notify(absl::string_view method, absl::string_view params) {
  if (state != State::kReady) {
    return absl::FailedPreconditionError(absl::StrCat("cannot notify ", method, ": not connected to a server"));
  }
  if (era == Era::kModern && method != "notifications/cancelled") {
    return absl::InvalidArgumentError(absl::StrCat("cannot notify ", method, ": protocol version ", version,
                                                   " has no such notification from a client"));
  }
  if (!params.empty() && !IsJsonObject(params)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot notify ", method, ": its params must be a JSON object"));
  }
  auto line = jsonrpc::NotificationLine(method, params);
  if (!line.ok()) return line.status();
  if (connection->Send(*std::move(line))) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot notify ", method, ": the connection is closed"));
}

void Client::Impl::FailAll(const absl::Status& why) {
  const auto self = shared_from_this();  // a handler may destroy the Client
  deadlines_.clear();
  const auto calls = pending.TakeAll();
  const auto detached = std::exchange(detached_, {});
  Connected(why);
  for (const CallPtr& call : calls) {
    call->id = 0;
    Complete(call, why);
  }
  for (const CallPtr& call : detached) Complete(call, call->failure.ok() ? why : call->failure);
}

// --- Time ---

Clock::time_point Client::Impl::NextDeadline(const PendingCall& call) {
  if (call.timeout == Clock::duration::zero()) return call.deadline_max;
  return std::min(Clock::now() + call.timeout, call.deadline_max);
}

void Client::Impl::SetDeadline(PendingCall& call, Clock::time_point deadline) {
  deadlines_.erase({call.deadline, call.id});
  call.deadline = deadline;
  deadlines_.emplace(deadline, call.id);
  ArmTimer();
}

void Client::Impl::ArmTimer() {
  if (deadlines_.empty()) return;
  const Clock::time_point first = deadlines_.begin()->first;
  if (first >= armed_at_) return;  // the earlier wake-up arms it again
  armed_at_ = first;
  timer.expires_at(first);
  timer.async_wait([weak = weak_from_this()](asio::error_code cancelled) {
    const auto self = weak.lock();
    if (self && !cancelled) self->OnTimer();
  });
}

void Client::Impl::OnTimer() {
  armed_at_ = Clock::time_point::max();
  const Clock::time_point now = Clock::now();
  while (state != State::kClosed && !deadlines_.empty() && deadlines_.begin()->first <= now) {
    TimeOut(deadlines_.begin()->second);
  }
  if (state != State::kClosed) ArmTimer();
}

void Client::Impl::TimeOut(std::int64_t id) {
  const CallPtr call = TakeFromFlight(id, /*abandon=*/true);
  if (!call) return;
  if (!call->is_handshake) SendCancelled(id, "timeout");
  Complete(call, absl::DeadlineExceededError(absl::StrCat("the server did not answer ", call->method, " in time")));
}

// --- Client ---

Client::Client(jsonrpc::Stream from_server, jsonrpc::Stream to_server, ClientOptions options, Handlers handlers)
    : impl_(std::make_shared<Impl>(from_server.get_executor(), std::move(options), std::move(handlers))) {
  impl_->Start(std::move(from_server), std::move(to_server));
}
Client::~Client() { impl_->Shutdown(); }
void Client::Connect(absl::AnyInvocable<void(absl::Status)> handler) { impl_->Connect(std::move(handler)); }
bool Client::has_unanswered_probe() const { return impl_->probe_id != 0; }
Era Client::era() const { return impl_->era; }
const ServerInfo& Client::server_info() const { return impl_->server_info; }
Client::CallRef Client::Call(absl::string_view method, std::string params, const CallOptions& options,
                             CallHandler handler) {
  return impl_->Call(method, std::move(params), options, std::move(handler));
}
Client::CallRef Client::CallWithoutHandshake(absl::string_view method, absl::string_view params, absl::Duration timeout,
                                             CallHandler handler) {
  return impl_->CallWithoutHandshake(method, params, timeout, std::move(handler));
}
void Client::Cancel(const CallRef& call, absl::string_view reason) { impl_->Cancel(call, reason); }
absl::Status Client::Notify(absl::string_view method, absl::string_view params) {
  return impl_->Notify(method, params);
}
void Client::FailAll(const absl::Status& why) { impl_->FailAll(why); }
void Client::CloseInput(bool at_once) { impl_->connection->CloseInput(at_once); }
void Client::Drain() { impl_->connection->Drain(); }
const jsonrpc::JunkReport& Client::junk() const { return impl_->connection->junk(); }
std::size_t Client::calls_in_flight() const { return impl_->pending.size(); }

}  // namespace bulkhead::mcp
