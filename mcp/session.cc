#include "bulkhead/mcp/session.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "bulkhead/jsonrpc/call_out.h"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/mcp/backoff.h"
#include "bulkhead/mcp/deadline.h"
#include "bulkhead/mcp/pages.h"
#include "bulkhead/mcp/server_run.h"

namespace bulkhead::mcp {
namespace {

constexpr int kListTimeoutsMax = 10;  // timeout_max of one AsyncList, unless it is given

CloseReason ReasonOf(jsonrpc::CloseReason reason) {
  switch (reason) {
    case jsonrpc::CloseReason::kEndOfInput:
    case jsonrpc::CloseReason::kReadFailed:
    case jsonrpc::CloseReason::kWriteFailed:
      return CloseReason::kExited;
    case jsonrpc::CloseReason::kWriteQueueFull:
      return CloseReason::kWriteQueueFull;
    case jsonrpc::CloseReason::kMessageTooLarge:
      return CloseReason::kMessageTooLarge;
    case jsonrpc::CloseReason::kJunkOutput:
      return CloseReason::kJunkOutput;
    case jsonrpc::CloseReason::kClosed:
      return CloseReason::kStopped;
  }
  return CloseReason::kExited;
}

}  // namespace

absl::string_view CloseReasonName(CloseReason reason) {
  switch (reason) {
    case CloseReason::kExited:
      return "exited";
    case CloseReason::kWriteQueueFull:
      return "write queue full";
    case CloseReason::kMessageTooLarge:
      return "message too large";
    case CloseReason::kJunkOutput:
      return "junk output";
    case CloseReason::kStartFailed:
      return "start failed";
    case CloseReason::kStopped:
      return "stopped";
    case CloseReason::kRestartsExhausted:
      return "restarts exhausted";
  }
  return "";
}

class Session::Impl : public std::enable_shared_from_this<Session::Impl> {
 public:
  enum class State { kStopped, kStarting, kReady, kWaiting };

  Impl(asio::any_io_executor the_executor, policy::Policy the_policy, policy::CommandRequest the_request,
       SessionOptions the_options)
      : executor(the_executor),
        policy(std::move(the_policy)),
        request(std::move(the_request)),
        options(std::move(the_options)),
        backoff(policy->restart),
        timer(the_executor) {}

  void Connect(absl::AnyInvocable<void(absl::Status)> handler);
  void Close(absl::AnyInvocable<void(ServerEnd)> handler);
  void Abandon();  // the Session is gone

  void Start(EraChoice era);
  void OnConnected(absl::Status status);
  std::shared_ptr<ServerRun> TakeRun();  // it is current no longer
  void OnEnd(const ServerRun::End& end);
  absl::Duration Uptime() const;
  // A run has ended, or could not begin: tells everyone, and starts the next one or not.
  void AfterEnd(CloseReason reason, absl::Status detail, std::optional<launcher::ExitStatus> exit, bool is_final,
                absl::Duration uptime);
  void CompleteConnects(const absl::Status& status);
  void TellEnd(const ServerEnd& end);

  ServerRun::Handlers MakeHandlers();

  void Listen(SubscriptionId id);
  void ForgetListen(SubscriptionId id);

  asio::any_io_executor executor;
  policy::Policy policy;
  policy::CommandRequest request;
  SessionOptions options;
  Backoff backoff;
  asio::steady_timer timer;  // of the next start
  State state = State::kStopped;
  std::shared_ptr<ServerRun> run;                 // the current one, from its start on
  std::vector<std::weak_ptr<ServerRun>> retired;  // earlier ones, whose trees may not have ended yet
  std::weak_ptr<ServerRun> stopping;              // the one of them that AsyncClose waits for
  std::optional<launcher::EnforcementReport> last_report;
  std::string last_stderr_tail;
  std::vector<absl::AnyInvocable<void(absl::Status)>> connects;
  // What earlier attempts showed, with EraChoice::kAuto: a legacy server is not probed again. A server that has died
  // both of the probe and without it is met with one of them an attempt, in turn.
  std::optional<Era> expected_era;
  bool is_unprobed = false;  // the attempt under way began with initialize because of that
  Era era = Era::kLegacy;
  ServerInfo server_info;
  Clock::time_point ready_at;
  std::minstd_rand chance{std::random_device{}()};
  bool is_gone = false;

  struct Subscription {
    std::string filter;
    Client::CallRef call;
  };
  std::map<SubscriptionId, Subscription> subscriptions;
  SubscriptionId next_subscription = 1;
};

// --- Start ---

void Session::Impl::Connect(absl::AnyInvocable<void(absl::Status)> handler) {
  if (state == State::kReady) {
    asio::post(executor, [handler = std::move(handler)]() mutable { handler(absl::OkStatus()); });
    return;
  }
  connects.push_back(std::move(handler));
  if (state != State::kStopped) return;  // the start that is under way, or waited for
  backoff = Backoff(policy->restart);
  is_unprobed = false;
  state = State::kStarting;
  // Not inside this call.
  asio::post(executor, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self && self->state == State::kStarting && !self->run) self->Start(self->options.era);
  });
}

ServerRun::Handlers Session::Impl::MakeHandlers() {
  // A run may outlive the Session, whose handlers must not be called any more then.
  const auto guarded = [weak = weak_from_this()](auto handler) {
    return [weak, handler](auto&&... arguments) {
      const auto self = weak.lock();
      if (!self || self->is_gone) return;
      jsonrpc::CallOut(self->executor, handler, std::forward<decltype(arguments)>(arguments)...);
    };
  };
  ServerRun::Handlers handlers;
  if (options.on_request) handlers.client.on_request = guarded(options.on_request);
  if (options.on_notification) handlers.client.on_notification = guarded(options.on_notification);
  if (options.on_dropped) handlers.client.on_dropped = guarded(options.on_dropped);
  if (options.on_stderr) handlers.on_stderr = guarded(options.on_stderr);
  handlers.on_end = [weak = weak_from_this()](const ServerRun::End& end) {
    if (const auto self = weak.lock()) self->OnEnd(end);
  };
  return handlers;
}

void Session::Impl::Start(EraChoice era_choice) {
  state = State::kStarting;
  auto started = ServerRun::Start(executor, policy, request, MakeClientOptions(policy, options.client, era_choice),
                                  policy->timeouts.start, MakeHandlers());
  if (!started.ok()) {
    // What is wrong with the command does not get better by itself; at a restart it may, e.g. while it is upgraded.
    const bool is_final = backoff.failures_in_a_row() == 0;
    AfterEnd(CloseReason::kStartFailed, started.status(), std::nullopt, is_final, absl::ZeroDuration());
    return;
  }
  run = *std::move(started);
  last_report = run->report();
  run->client().Connect([weak = weak_from_this(), this_run = std::weak_ptr<ServerRun>(run)](absl::Status status) {
    const auto self = weak.lock();
    const auto current = this_run.lock();
    if (self && current && current == self->run) self->OnConnected(std::move(status));
  });
}

void Session::Impl::OnConnected(absl::Status status) {
  if (!status.ok()) {
    const auto failed = TakeRun();
    status = failed->Explain(status);
    failed->Stop([](const launcher::ExitStatus&) {});
    // A server without a common version will not have one after a restart, unless it was not asked which it has.
    if (is_unprobed) expected_era.reset();
    const bool is_final = absl::IsFailedPrecondition(status) && !is_unprobed;
    AfterEnd(CloseReason::kStartFailed, std::move(status), std::nullopt, is_final, absl::ZeroDuration());
    return;
  }
  state = State::kReady;
  ready_at = Clock::now();
  era = run->client().era();
  expected_era = era == Era::kLegacy ? std::optional<Era>(era) : std::nullopt;
  server_info = run->client().server_info();
  for (const auto& [id, subscription] : subscriptions) Listen(id);
  const auto self = shared_from_this();
  CompleteConnects(absl::OkStatus());
  if (state == State::kReady && options.on_ready) jsonrpc::CallOut(executor, options.on_ready);
}

void Session::Impl::CompleteConnects(const absl::Status& status) {
  for (auto& handler : std::exchange(connects, {})) handler(status);
}

// --- End ---

std::shared_ptr<ServerRun> Session::Impl::TakeRun() {
  if (run) {
    last_stderr_tail = run->stderr_tail();
    retired.erase(std::remove_if(retired.begin(), retired.end(), [](const auto& weak) { return weak.expired(); }),
                  retired.end());
    retired.push_back(run);
  }
  return std::exchange(run, nullptr);
}

absl::Duration Session::Impl::Uptime() const {
  return state == State::kReady ? absl::FromChrono(Clock::now() - ready_at) : absl::ZeroDuration();
}

void Session::Impl::OnEnd(const ServerRun::End& end) {
  const auto ended = TakeRun();
  if (!ended) return;
  const CloseReason reason = ReasonOf(end.reason);
  if (state == State::kStarting && reason == CloseReason::kExited && options.era == EraChoice::kAuto) {
    const bool was_probed = ended->client().has_unanswered_probe();
    const bool is_first_death = was_probed && !expected_era;
    if (was_probed || expected_era == Era::kLegacy) expected_era = was_probed ? Era::kLegacy : Era::kModern;
    // There are servers that end on anything but initialize. They get one more start, which is no restart.
    if (is_first_death) return Start(EraChoice::kLegacy);
  }
  const auto self = shared_from_this();
  const absl::Duration uptime = Uptime();
  state = State::kWaiting;  // also for the handlers: no server is ready
  ended->client().FailAll(end.detail);
  if (state != State::kWaiting) {  // one of them has destroyed, or closed, the Session
    TellEnd(ServerEnd{reason, end.detail, end.exit, std::nullopt});
    return;
  }
  AfterEnd(reason, end.detail, end.exit, /*is_final=*/false, uptime);
}

void Session::Impl::AfterEnd(CloseReason reason, absl::Status detail, std::optional<launcher::ExitStatus> exit,
                             bool is_final, absl::Duration uptime) {
  ServerEnd end{reason, std::move(detail), exit, std::nullopt};
  if (options.restart && !is_final) {
    const double random = static_cast<double>(chance() - chance.min()) / (chance.max() - chance.min() + 1.0);
    end.restart_in = backoff.Next(uptime, random);
    if (!end.restart_in) end.reason = CloseReason::kRestartsExhausted;
  }
  const auto self = shared_from_this();
  if (end.restart_in) {
    state = State::kWaiting;
    timer.expires_at(After(Clock::now(), *end.restart_in));
    timer.async_wait([weak = weak_from_this()](asio::error_code cancelled) {
      const auto impl = weak.lock();
      if (!impl || cancelled || impl->state != State::kWaiting) return;
      impl->is_unprobed = impl->options.era == EraChoice::kAuto && impl->expected_era == Era::kLegacy;
      impl->Start(impl->is_unprobed ? EraChoice::kLegacy : impl->options.era);
    });
  } else {
    state = State::kStopped;
    if (!retired.empty()) stopping = retired.back();  // who closes waits for its end
    if (end.reason == CloseReason::kRestartsExhausted) {
      end.detail = absl::Status(end.detail.code(), absl::StrCat("gave up after ", backoff.failures_in_a_row(),
                                                                " failures in a row: ", end.detail.message()));
    }
    expected_era.reset();
    CompleteConnects(end.detail);
  }
  TellEnd(end);
}

void Session::Impl::TellEnd(const ServerEnd& end) {
  if (!is_gone && options.on_end) jsonrpc::CallOut(executor, options.on_end, end);
}

void Session::Impl::Close(absl::AnyInvocable<void(ServerEnd)> handler) {
  const auto self = shared_from_this();
  const absl::Status why = absl::CancelledError("the session was closed");
  timer.cancel();
  state = State::kStopped;
  expected_era.reset();
  const bool is_first = run != nullptr;
  const auto ending = is_first ? TakeRun() : stopping.lock();
  stopping = ending;
  // Never inside this call.
  asio::post(executor, [self, ending, why] {
    if (ending) ending->FailAll(why);
    if (self->state == State::kStopped) self->CompleteConnects(why);
  });
  if (!ending) {
    asio::post(executor, [handler = std::move(handler)]() mutable {
      handler(ServerEnd{CloseReason::kStopped, absl::OkStatus(), std::nullopt, std::nullopt});
    });
    return;
  }
  ending->Stop([self, is_first, handler = std::move(handler)](launcher::ExitStatus status) mutable {
    const ServerEnd end{CloseReason::kStopped, absl::OkStatus(), status, std::nullopt};
    handler(end);
    if (is_first) self->TellEnd(end);
  });
}

void Session::Impl::Abandon() {
  is_gone = true;
  state = State::kStopped;
  timer.cancel();
  const auto ended = TakeRun();
  // The handlers that wait get their answer, but not inside the destructor.
  if (ended || !connects.empty()) {
    asio::post(executor, [self = shared_from_this(), ended] {
      const absl::Status why = absl::CancelledError("the session was destroyed");
      self->CompleteConnects(why);
      if (ended) ended->FailAll(why);
    });
  }
  for (const auto& weak : retired) {
    if (const auto one = weak.lock()) one->Kill();
  }
}

// --- Subscriptions ---

void Session::Impl::Listen(SubscriptionId id) {
  Subscription& subscription = subscriptions.at(id);
  CallOptions for_ever;
  for_ever.timeout = absl::InfiniteDuration();
  for_ever.timeout_max = absl::InfiniteDuration();
  if (era == Era::kModern) {
    subscription.call =
        run->client().Call("subscriptions/listen", absl::StrCat("{\"notifications\":", subscription.filter, "}"),
                           for_ever, [](const absl::StatusOr<Reply>&) {});
    return;
  }
  // In the legacy era changed lists are told to everyone.
  for (const std::string& uri :
       StringArray(jsonrpc::FindMember(subscription.filter, "resourceSubscriptions").value_or(""))) {
    run->client().Call("resources/subscribe", absl::StrCat("{\"uri\":", jsonrpc::QuoteJson(uri), "}"), {},
                       [](const absl::StatusOr<Reply>&) {});
  }
}

void Session::Impl::ForgetListen(SubscriptionId id) {
  const auto found = subscriptions.find(id);
  if (found == subscriptions.end()) return;
  const Subscription subscription = std::move(found->second);
  subscriptions.erase(found);
  if (state != State::kReady) return;
  if (era == Era::kModern) {
    run->client().Cancel(subscription.call, "unsubscribed");
    return;
  }
  for (const std::string& uri :
       StringArray(jsonrpc::FindMember(subscription.filter, "resourceSubscriptions").value_or(""))) {
    run->client().Call("resources/unsubscribe", absl::StrCat("{\"uri\":", jsonrpc::QuoteJson(uri), "}"), {},
                       [](const absl::StatusOr<Reply>&) {});
  }
}

// --- Session ---

Session::Session(asio::any_io_executor executor, policy::Policy policy, policy::CommandRequest request,
                 SessionOptions options)
    : impl_(std::make_shared<Impl>(std::move(executor), std::move(policy), std::move(request), std::move(options))) {}
Session::~Session() { impl_->Abandon(); }

void Session::Connect(absl::AnyInvocable<void(absl::Status)> handler) { impl_->Connect(std::move(handler)); }

Client::CallRef Session::Call(const std::string& method, std::string params, const CallOptions& options,
                              CallHandler handler) {
  if (impl_->state == Impl::State::kReady) {
    return impl_->run->client().Call(method, std::move(params), options, std::move(handler));
  }
  const absl::string_view where = impl_->state == Impl::State::kWaiting    ? "the server is being restarted"
                                  : impl_->state == Impl::State::kStarting ? "the server is being started"
                                                                           : "no server is running; connect first";
  absl::Status why = absl::FailedPreconditionError(absl::StrCat("cannot call ", method, ": ", where));
  asio::post(impl_->executor, [handler = std::move(handler), why]() mutable { handler(why); });
  return {};
}

void Session::CancelCall(const std::weak_ptr<Impl>& weak, const Client::CallRef& call) {
  const auto impl = weak.lock();
  if (impl && impl->run) impl->run->client().Cancel(call, "cancelled by the host");
}

namespace {

struct Listing {
  Pages pages;
  CallOptions options;  // timeouts are settled
  Clock::time_point deadline;
  absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)> handler;

  absl::Duration time_left() const {
    return deadline == Clock::time_point::max() ? absl::InfiniteDuration() : absl::FromChrono(deadline - Clock::now());
  }
};

}  // namespace

void Session::List(const std::string& method, const std::string& member, const CallOptions& options,
                   absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)> handler) {
  auto listing = std::make_shared<Listing>(
      Listing{Pages(method, member, impl_->policy->messages.max_message_bytes), options, {}, std::move(handler)});
  CallOptions& own = listing->options;
  if (own.timeout == absl::ZeroDuration()) own.timeout = impl_->policy->timeouts.request;
  if (own.timeout_max == absl::ZeroDuration()) own.timeout_max = kListTimeoutsMax * own.timeout;
  listing->deadline = After(Clock::now(), own.timeout_max);
  struct Step {
    static void Next(const std::weak_ptr<Impl>& weak, const std::shared_ptr<Listing>& listing) {
      const auto impl = weak.lock();
      const std::string& method = listing->pages.method();
      if (!impl || !impl->run || impl->state != Impl::State::kReady) {
        listing->handler(
            absl::FailedPreconditionError(absl::StrCat("cannot call ", method, ": no server is ready; connect first")));
        return;
      }
      CallOptions page = listing->options;
      page.timeout_max = listing->time_left();
      if (page.timeout_max <= absl::ZeroDuration()) {
        listing->handler(absl::DeadlineExceededError(absl::StrCat("the server's answers to ", method,
                                                                  " did not come to an end within ",
                                                                  absl::FormatDuration(listing->options.timeout_max))));
        return;
      }
      impl->run->client().Call(method, listing->pages.Params(), page,
                               [weak, listing](const absl::StatusOr<Reply>& reply) {
                                 const auto more = reply.ok() ? listing->pages.Take(*reply) : reply.status();
                                 if (!more.ok()) {
                                   listing->handler(more.status());
                                 } else if (*more) {
                                   Next(weak, listing);
                                 } else {
                                   listing->handler(listing->pages.TakeElements());
                                 }
                               });
    }
  };
  asio::post(impl_->executor, [weak = std::weak_ptr<Impl>(impl_), listing] { Step::Next(weak, listing); });
}

void Session::Notify(const std::string& method, const std::string& params,
                     absl::AnyInvocable<void(absl::Status)> handler) {
  absl::Status status =
      impl_->state == Impl::State::kReady
          ? impl_->run->client().Notify(method, params)
          : absl::FailedPreconditionError(absl::StrCat("cannot notify ", method, ": no server is ready"));
  asio::post(impl_->executor, [handler = std::move(handler), status]() mutable { handler(status); });
}

void Session::Close(absl::AnyInvocable<void(ServerEnd)> handler) { impl_->Close(std::move(handler)); }

Session::SubscriptionId Session::Subscribe(std::string filter) {
  const SubscriptionId id = impl_->next_subscription++;
  impl_->subscriptions[id].filter = std::move(filter);
  if (impl_->state == Impl::State::kReady) impl_->Listen(id);
  return id;
}
void Session::Unsubscribe(SubscriptionId id) { impl_->ForgetListen(id); }

bool Session::is_ready() const { return impl_->state == Impl::State::kReady; }
Era Session::era() const { return impl_->era; }
const ServerInfo& Session::server_info() const { return impl_->server_info; }
const launcher::EnforcementReport* Session::report() const {
  return impl_->last_report ? &*impl_->last_report : nullptr;
}
std::string Session::stderr_tail() const { return impl_->run ? impl_->run->stderr_tail() : impl_->last_stderr_tail; }
Session::executor_type Session::get_executor() const { return impl_->executor; }

}  // namespace bulkhead::mcp
