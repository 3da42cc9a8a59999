// Session is a long-lived MCP conversation with one server that Bulkhead starts, in its jail, and starts again when it
// ends. A call is never sent twice: what was in flight when the server ended fails, with the reason.
//
//   mcp::Session session(io.get_executor(), policy, request, {});
//   session.AsyncConnect([&](absl::Status status) { ... session.AsyncCall("tools/list", "", {}, handler); });
//
// Operator configuration only: never build the policy or the command from a model's output or a server's answers.
#ifndef BULKHEAD_MCP_SESSION_H_
#define BULKHEAD_MCP_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "asio/any_io_executor.hpp"
#include "bulkhead/launcher/process.h"
#include "bulkhead/mcp/async.h"
#include "bulkhead/mcp/client.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::mcp {

// Why a run of the server ended.
enum class CloseReason {
  kExited,             // by itself, or by a signal that was not ours; also when it closed its stdin or stdout
  kWriteQueueFull,     // it did not read, and more than messages.max_queued_bytes waited
  kMessageTooLarge,    // it wrote a line longer than messages.max_message_bytes
  kJunkOutput,         // it wrote more than messages.max_junk_lines in a row that were no messages
  kStartFailed,        // it could not be started, or the handshake failed
  kStopped,            // AsyncClose
  kRestartsExhausted,  // one of the above, for the restart.max_in_a_row-th time in a row
};
absl::string_view CloseReasonName(CloseReason reason);  // "exited", "write queue full" ...

struct ServerEnd {
  CloseReason reason = CloseReason::kExited;
  // For people: how it ended, with the last lines of its stderr. What calls that were in flight fail with.
  absl::Status detail;
  std::optional<launcher::ExitStatus> exit;  // known when the whole tree was gone in time
  std::optional<absl::Duration> restart_in;  // absent: it is not started again
};

struct SessionOptions {
  ClientInfo client;
  EraChoice era = EraChoice::kAuto;
  bool restart = true;  // by the policy's `restart`; else the first end is final
  // See Client::Handlers. Without on_request, declare no capabilities.
  std::function<void(const ServerRequest& request, Responder respond)> on_request;
  std::function<void(absl::string_view method, absl::string_view params)> on_notification;
  std::function<void(absl::string_view line, absl::string_view why)> on_dropped;
  // The handshake is done; also after each restart.
  std::function<void()> on_ready;
  // A run of the server ended. After a start that failed, too.
  std::function<void(const ServerEnd& end)> on_end;
  // What the server writes to stderr, where the policy says "inherit", in pieces as they come. Absent: it is passed to
  // this process's stderr, as far as that takes it without blocking.
  std::function<void(absl::string_view text)> on_stderr;
};

// Threads: everything on one thread at a time, that of the executor (a strand, if several threads run it). Handlers run
// there too, unless they have an executor of their own, and never inside a call of this. They may destroy the Session;
// what they throw leaves the executor's run() and changes nothing else.
// BuildLaunchPlan and Launch run on that thread, too: some milliseconds a start.
//
// What a server answers is data: don't make policies, commands or CommandRequests of it (see SECURITY.md).
class Session {
 public:
  Session(asio::any_io_executor executor, policy::Policy policy, policy::CommandRequest request,
          SessionOptions options);
  // Kills the server's tree: at once, without grace; see AsyncClose. Handlers that wait get Cancelled.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Completes with void(absl::Status) when the server is ready for calls: at once if it is, after the handshake if it
  // is being started, after a later one while it is being restarted. Errors: those of ValidateCommand, BuildLaunchPlan
  // and Launch; FailedPrecondition (no common version); Unavailable (it ends again and again). After an error, or
  // AsyncClose, it starts anew.
  template <typename Token>
  auto AsyncConnect(Token&& token) {
    return Initiate<void(absl::Status)>([this](auto handler) { Connect(std::move(handler)); }, token);
  }

  // One request: completes with void(absl::StatusOr<Reply>); see client.h for the errors. `params` is a JSON object, or
  // empty; _meta is added. Fails at once with FailedPrecondition while no server is ready. A cancellation slot of the
  // token is honoured: the server is told.
  template <typename Token>
  auto AsyncCall(std::string method, std::string params, CallOptions options, Token&& token) {
    return InitiateCancellable<void(absl::StatusOr<Reply>)>(
        [this, method = std::move(method), params = std::move(params), options = std::move(options)](
            auto handler) mutable { return Call(method, std::move(params), options, std::move(handler)); },
        token);
  }

  // All pages of a list: completes with void(absl::StatusOr<std::vector<std::string>>), the JSON text of each element
  // of `member`: AsyncList("tools/list", "tools", {}, ...). An error of the server is Unknown, with its words.
  // `timeout` is for each page, `timeout_max` (zero: ten timeouts) for all together. ResourceExhausted after 10,000
  // pages, or when their elements would take more memory than eight messages of messages.max_message_bytes.
  template <typename Token>
  auto AsyncList(std::string method, std::string member, CallOptions options, Token&& token) {
    return Initiate<void(absl::StatusOr<std::vector<std::string>>)>(
        [this, method = std::move(method), member = std::move(member), options = std::move(options)](auto handler) {
          List(method, member, options, std::move(handler));
        },
        token);
  }

  // Completes with void(absl::Status) once it is queued.
  template <typename Token>
  auto AsyncNotify(std::string method, std::string params, Token&& token) {
    return Initiate<void(absl::Status)>([this, method = std::move(method), params = std::move(params)](
                                            auto handler) { Notify(method, params, std::move(handler)); },
                                        token);
  }

  // Stops the server gently: what is queued is written for half a second, stdin is closed, then the policy's graces.
  // Calls in flight fail with Cancelled at once; a restart that was waited for does not happen. Completes with
  // void(ServerEnd) when the tree is gone, in bounded time.
  template <typename Token>
  auto AsyncClose(Token&& token) {
    return Initiate<void(ServerEnd)>([this](auto handler) { Close(std::move(handler)); }, token);
  }

  // Asks for notifications as long as the Session lives: after a restart it asks again. `filter` is a
  // SubscriptionFilter of the specification (2026-07-28), e.g. {"resourceSubscriptions":["file:///srv/a"]}. A legacy
  // server gets resources/subscribe for each resource. They arrive through on_notification.
  using SubscriptionId = std::uint64_t;
  SubscriptionId Subscribe(std::string filter);
  void Unsubscribe(SubscriptionId id);

  bool is_ready() const;
  // Of the server that is ready, or was last.
  Era era() const;
  const ServerInfo& server_info() const;
  const launcher::EnforcementReport* report() const;  // absent before the first start
  std::string stderr_tail() const;                    // the last lines, at most 4 KiB

  using executor_type = asio::any_io_executor;
  executor_type get_executor() const;

 private:
  class Impl;

  template <typename Signature, typename Initiation, typename Token>
  auto Initiate(Initiation initiation, Token& token) {
    return StartAsync<Signature>(get_executor(), std::move(initiation), token);
  }
  template <typename Signature, typename Initiation, typename Token>
  auto InitiateCancellable(Initiation initiation, Token& token) {
    return StartCancellable<Signature>(
        get_executor(), std::move(initiation),
        [weak = std::weak_ptr<Impl>(impl_)](const Client::CallRef& call) { CancelCall(weak, call); }, token);
  }

  void Connect(absl::AnyInvocable<void(absl::Status)> handler);
  Client::CallRef Call(const std::string& method, std::string params, const CallOptions& options, CallHandler handler);
  void List(const std::string& method, const std::string& member, const CallOptions& options,
            absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>)> handler);
  void Notify(const std::string& method, const std::string& params, absl::AnyInvocable<void(absl::Status)> handler);
  void Close(absl::AnyInvocable<void(ServerEnd)> handler);
  static void CancelCall(const std::weak_ptr<Impl>& impl, const Client::CallRef& call);

  std::shared_ptr<Impl> impl_;
};

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_MCP_SESSION_H_
