// Client's handshake: the probe, what it shows, and initialize (DESIGN.md, "The era").
#include "absl/strings/str_cat.h"
#include "asio/post.hpp"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/mcp/client_impl.h"

namespace bulkhead::mcp {

void Client::Impl::Connect(absl::AnyInvocable<void(absl::Status)> handler) {
  state = State::kConnecting;
  on_connected = std::move(handler);
  const std::weak_ptr<Impl> weak = weak_from_this();
  start_timer.expires_at(After(Clock::now(), options.start_timeout));
  start_timer.async_wait([weak](asio::error_code cancelled) {
    const auto self = weak.lock();
    if (!self || cancelled) return;
    self->Connected(absl::DeadlineExceededError(absl::StrCat("the server did not finish the handshake within ",
                                                             absl::FormatDuration(self->options.start_timeout))));
  });
  if (options.era == EraChoice::kLegacy) {
    Initialize(std::string(kLegacyVersions[0]));
  } else {
    Probe(std::string(kModernVersions[0]), /*is_second=*/false);
  }
}

// Nothing but these is written before the handshake is done: there are servers that end on anything else.
void Client::Impl::Handshake(absl::string_view method, const std::string& params, absl::Duration timeout,
                             CallHandler handler) {
  const CallPtr call = MakeCall(method, timeout, timeout, std::move(handler));
  call->is_handshake = true;
  if (const absl::Status status = Send(call, params); !status.ok()) {
    if (absl::IsUnavailable(status)) return;  // the connection has closed: FailAll says why
    asio::post(timer.get_executor(), [self = shared_from_this(), status] { self->Connected(status); });
    return;
  }
  if (method == "server/discover") probe_id = call->id;
}

void Client::Impl::Probe(const std::string& probed_version, bool is_second) {
  was_probed_twice = is_second;
  // Where the era is not in question, a slow start is no answer.
  const absl::Duration timeout = options.era == EraChoice::kModern ? absl::InfiniteDuration() : options.probe_timeout;
  Handshake("server/discover", DiscoverParams(options.info, probed_version), timeout,
            [weak = weak_from_this(), is_second](absl::StatusOr<Reply> reply) {
              if (const auto self = weak.lock()) self->OnProbed(std::move(reply), is_second);
            });
}

void Client::Impl::OnProbed(absl::StatusOr<Reply> reply, bool is_second) {
  if (state != State::kConnecting) return;
  ProbeVerdict verdict;
  if (!reply.ok()) {
    if (!absl::IsDeadlineExceeded(reply.status())) return;  // FailAll says it all
    verdict = JudgeProbeSilence();
  } else {
    verdict = reply->error ? JudgeProbeError(*reply->error, is_second) : JudgeProbeResult(reply->result);
  }
  switch (verdict.kind) {
    case ProbeVerdict::Kind::kModern:
      SettleModern(verdict.version, reply->result);
      return;
    case ProbeVerdict::Kind::kProbeAgain:
      Probe(verdict.version, /*is_second=*/true);
      return;
    case ProbeVerdict::Kind::kFail:
      Connected(verdict.error);
      return;
    case ProbeVerdict::Kind::kLegacy:
      if (options.era == EraChoice::kModern) {
        Connected(absl::FailedPreconditionError(
            "the server does not speak the modern protocol (server/discover); allow the legacy one to use it"));
      } else {
        Initialize(verdict.version);
      }
      return;
  }
}

void Client::Impl::Initialize(const std::string& offered) {
  Handshake("initialize", InitializeParams(options.info, offered), absl::InfiniteDuration(),
            [weak = weak_from_this()](absl::StatusOr<Reply> reply) {
              if (const auto self = weak.lock()) self->OnInitialized(std::move(reply));
            });
}

void Client::Impl::OnInitialized(absl::StatusOr<Reply> reply) {
  if (state != State::kConnecting || !reply.ok()) return;
  if (reply->error) {
    // A modern server may have been too slow for the probe and answered it since.
    if (const ProbeVerdict late = JudgeProbeResult(late_discover_result); late.kind == ProbeVerdict::Kind::kModern) {
      SettleModern(late.version, late_discover_result);
      return;
    }
    const ProbeVerdict verdict = JudgeInitializeError(*reply->error, was_probed_twice);
    const bool probe_again = verdict.kind == ProbeVerdict::Kind::kProbeAgain;
    if (probe_again && options.era == EraChoice::kAuto) {
      Probe(verdict.version, /*is_second=*/true);
    } else if (probe_again) {
      Connected(absl::FailedPreconditionError("the server speaks only the modern protocol, which was not allowed"));
    } else {
      Connected(verdict.error);
    }
    return;
  }
  const ProbeVerdict verdict = JudgeInitializeResult(reply->result);
  if (verdict.kind == ProbeVerdict::Kind::kFail) {
    Connected(verdict.error);
    return;
  }
  era = Era::kLegacy;
  version = verdict.version;
  server_info = ReadServerInfo(reply->result);
  connection->set_accepts_batches(version == kBatchVersion);
  auto line = jsonrpc::NotificationLine("notifications/initialized", "");
  if (!line.ok() || !connection->Send(*std::move(line))) return;  // on_close follows
  state = State::kReady;
  Connected(absl::OkStatus());
}

void Client::Impl::SettleModern(const std::string& settled, absl::string_view discover_result) {
  era = Era::kModern;
  version = settled;
  server_info = ReadServerInfo(discover_result);
  server_info.protocol_version = settled;
  state = State::kReady;
  Connected(absl::OkStatus());
}

void Client::Impl::OnLateProbeAnswer(const jsonrpc::Message& message) {
  probe_id = 0;
  if (state == State::kConnecting && message.kind() == jsonrpc::Message::Kind::kResult) {
    late_discover_result = std::string(message.result());
  }
}

void Client::Impl::Connected(absl::Status status) {
  start_timer.cancel();
  if (state == State::kConnecting) state = State::kIdle;
  if (!on_connected) return;
  auto handler = std::move(on_connected);
  on_connected = nullptr;
  handler(std::move(status));
}

}  // namespace bulkhead::mcp
