#include "bulkhead/mcp/deliver.h"

#ifndef _WIN32
#include <pthread.h>
#include <signal.h>
#endif

#include <algorithm>
#include <memory>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "asio/use_future.hpp"
#include "bulkhead/mcp/deadline.h"
#include "bulkhead/mcp/server_run.h"

namespace bulkhead::mcp {
namespace {

// One delivery. Kept alive by the handlers that it waits with.
class Delivery : public std::enable_shared_from_this<Delivery> {
 public:
  using Handler = absl::AnyInvocable<void(absl::StatusOr<DeliverResult>)>;

  Delivery(asio::any_io_executor executor, policy::Policy policy, policy::CommandRequest command,
           DeliverRequest request, absl::Duration timeout, DeliverOptions options, Handler handler)
      : executor_(executor),
        policy_(std::move(policy)),
        command_(std::move(command)),
        request_(std::move(request)),
        timeout_(timeout),
        options_(std::move(options)),
        handler_(std::move(handler)),
        timer_(executor),
        result_{{}, {}, {}, {}, exit_.get_future().share()} {}

  void Begin() {
    if (!handler_) return;  // cancelled already
    timer_.expires_at(After(Clock::now(), timeout_));
    timer_.async_wait([self = shared_from_this()](asio::error_code cancelled) {
      if (!cancelled) {
        self->Finish(absl::DeadlineExceededError(
            absl::StrCat("no answer to ", self->request_.method, " within ", absl::FormatDuration(self->timeout_))));
      }
    });
    Start(request_.method == "initialize" ? EraChoice::kLegacy : options_.era);
  }

  void Cancel() {
    constexpr absl::string_view kWhy = "cancelled by the host";
    if (run_) run_->client().Cancel(call_, kWhy);  // if it was sent; never completes inside this call
    asio::post(executor_, [self = shared_from_this(), kWhy] {
      self->Finish(absl::CancelledError(absl::StrCat(self->request_.method, " was ", kWhy)));
    });
  }

 private:
  absl::Duration TimeLeft() const {
    if (timer_.expiry() == Clock::time_point::max()) return absl::InfiniteDuration();
    return std::max(absl::FromChrono(timer_.expiry() - Clock::now()), absl::Milliseconds(1));
  }

  void Start(EraChoice era) {
    ClientOptions client = MakeClientOptions(policy_, options_.client, era);
    client.start_timeout = absl::InfiniteDuration();  // the one deadline is ours
    auto run = ServerRun::Start(executor_, policy_, command_, std::move(client), TimeLeft(), MakeHandlers());
    if (!run.ok()) {
      Finish(run.status());
      return;
    }
    run_ = *std::move(run);
    if (request_.method == "initialize") {
      call_ =
          run_->client().CallWithoutHandshake(request_.method, request_.params, absl::InfiniteDuration(), OnReply());
      return;
    }
    run_->client().Connect([weak = weak_from_this(), this_run = std::weak_ptr<ServerRun>(run_)](absl::Status status) {
      const auto self = weak.lock();
      if (!self || self->run_ != this_run.lock()) return;
      if (!status.ok()) {
        self->Finish(std::move(status));
        return;
      }
      CallOptions call;
      call.timeout = call.timeout_max = absl::InfiniteDuration();
      call.on_progress = self->options_.on_progress;
      self->call_ = self->run_->client().Call(self->request_.method, self->request_.params, call, self->OnReply());
    });
  }

  CallHandler OnReply() {
    return [weak = weak_from_this()](absl::StatusOr<Reply> reply) {
      const auto self = weak.lock();
      if (!self) return;
      if (!reply.ok()) {
        self->Finish(reply.status());
        return;
      }
      self->result_.reply = *std::move(reply);
      self->Finish(absl::OkStatus());
    };
  }

  ServerRun::Handlers MakeHandlers() {
    const auto weak = weak_from_this();
    ServerRun::Handlers handlers;
    handlers.client.on_request_sent = [weak](absl::string_view line) {
      if (const auto self = weak.lock()) self->result_.raw_request = std::string(line);
    };
    handlers.client.on_answer = [weak](absl::string_view line) {
      if (const auto self = weak.lock()) self->result_.raw_response = std::string(line);
    };
    handlers.on_stderr = [weak](absl::string_view text) {
      if (const auto self = weak.lock()) self->KeepStderr(text);
    };
    handlers.on_end = [weak](const ServerRun::End& end) {
      if (const auto self = weak.lock()) self->OnEnd(end);
    };
    return handlers;
  }

  void KeepStderr(absl::string_view text) {
    stderr_.append(text.data(), text.size());
    if (stderr_.size() > 2 * kDeliverStderrBytesMax) stderr_.erase(0, stderr_.size() - kDeliverStderrBytesMax);
  }

  void OnEnd(const ServerRun::End& end) {
    const auto run = std::exchange(run_, nullptr);
    if (!run || !handler_) return;
    if (end.exit && options_.era == EraChoice::kAuto && run->client().has_unanswered_probe() && !has_tried_legacy_) {
      has_tried_legacy_ = true;
      Start(EraChoice::kLegacy);
      return;
    }
    AwaitEnd(run);
    Finish(end.detail);
  }

  void AwaitEnd(const std::shared_ptr<ServerRun>& run) {
    is_awaited_ = true;
    run->Stop([self = shared_from_this(), run](const launcher::ExitStatus& exit) {
      self->exit_.set_value(exit);
      if (self->options_.on_gone) self->options_.on_gone();
    });
  }

  void Finish(absl::Status status) {
    if (!handler_) return;
    timer_.cancel();
    const auto self = shared_from_this();
    auto handler = std::exchange(handler_, nullptr);
    if (run_) {
      run_->DrainStderr();
      if (!status.ok()) status = run_->Explain(status);
      AwaitEnd(std::exchange(run_, nullptr));
    }
    if (!is_awaited_ && options_.on_gone) asio::post(executor_, [self] { self->options_.on_gone(); });
    if (!status.ok()) {
      handler(status);
      return;
    }
    absl::string_view text = stderr_;
    if (text.size() > kDeliverStderrBytesMax) text.remove_prefix(text.size() - kDeliverStderrBytesMax);
    text = absl::StripAsciiWhitespace(text);
    if (!text.empty()) result_.stderr_text = std::string(text);
    handler(std::move(result_));
  }

  asio::any_io_executor executor_;
  policy::Policy policy_;
  policy::CommandRequest command_;
  DeliverRequest request_;
  absl::Duration timeout_;
  DeliverOptions options_;
  Handler handler_;
  asio::steady_timer timer_;
  std::shared_ptr<ServerRun> run_;
  Client::CallRef call_;  // the request, once it was sent
  std::string stderr_;
  bool has_tried_legacy_ = false;
  bool is_awaited_ = false;  // the end of what was started
  std::promise<launcher::ExitStatus> exit_;
  DeliverResult result_;
};

}  // namespace

namespace internal {

DeliveryRef StartDeliver(asio::any_io_executor executor, const policy::Policy& policy,
                         const policy::CommandRequest& command, DeliverRequest request, absl::Duration timeout,
                         DeliverOptions options, absl::AnyInvocable<void(absl::StatusOr<DeliverResult>)> handler) {
  const auto delivery = std::make_shared<Delivery>(executor, policy, command, std::move(request), timeout,
                                                   std::move(options), std::move(handler));
  asio::post(executor, [delivery] { delivery->Begin(); });
  return delivery;
}

void CancelDelivery(const DeliveryRef& ref) {
  if (const auto delivery = std::static_pointer_cast<Delivery>(ref.lock())) delivery->Cancel();
}

}  // namespace internal

absl::StatusOr<DeliverResult> Deliver(const policy::Policy& policy, const policy::CommandRequest& command,
                                      const DeliverRequest& request, absl::Duration timeout,
                                      const DeliverOptions& options) {
  const auto io = std::make_shared<asio::io_context>();
  auto result = AsyncDeliver(io->get_executor(), policy, command, request, timeout, options, asio::use_future);
#ifndef _WIN32
  // The host's signals are not for the thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
  std::thread([io] { io->run(); }).detach();
#ifndef _WIN32
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
  return result.get();
}

}  // namespace bulkhead::mcp
