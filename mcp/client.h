// Client is one MCP conversation over one connection: it settles the era, opens the conversation, matches answers to
// calls, times them out and cancels them, and answers what the server may ask. It knows nothing of processes and never
// reconnects: see session.h, which is what hosts use.
#ifndef BULKHEAD_MCP_CLIENT_H_
#define BULKHEAD_MCP_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "bulkhead/jsonrpc/connection.h"
#include "bulkhead/jsonrpc/message.h"
#include "bulkhead/mcp/protocol.h"

namespace bulkhead::mcp {

// What the server answered to a call: a result, or an error of its own. That there was no answer is an absl::Status.
struct Reply {
  std::string result;                         // JSON text as it came; empty if there is an error
  std::optional<jsonrpc::ErrorObject> error;  // the server's, never ours
};

// notifications/progress of one call.
struct Progress {
  double progress = 0;
  std::optional<double> total;
  std::string message;
};

struct CallOptions {
  // How long to wait for the answer. Zero: the policy's timeouts.request. Infinite: for as long as the server lives. It
  // does not run while the server waits for input from this side.
  absl::Duration timeout = absl::ZeroDuration();
  // Each progress notification lets the timeout begin anew, but never beyond this, counted from the start. Zero: ten
  // timeouts.
  absl::Duration timeout_max = absl::ZeroDuration();
  // Asks the server for progress.
  std::function<void(const Progress&)> on_progress;
};

// Errors: DeadlineExceeded (the call was cancelled at the server), Cancelled, Unavailable (the server ended, or the
// connection closed; the message says how), InvalidArgument (the params are no JSON object), FailedPrecondition (not
// connected; or the server asked for input that nobody gives), DataLoss (the answer's resultType makes no sense).
using CallHandler = absl::AnyInvocable<void(absl::StatusOr<Reply>)>;

// A request of the server: sampling/createMessage, roots/list or elicitation/create; in the modern era as part of an
// answer (input_required).
struct ServerRequest {
  std::string method;
  std::string params;  // JSON text, empty if absent
};

// Call once, with the result as the text of a JSON object or an error; from any handler of the same executor, at any
// time. Dropped uncalled, it answers with an internal error, so that no server waits for ever.
using Responder = absl::AnyInvocable<void(std::variant<std::string, jsonrpc::ErrorObject>)>;

enum class EraChoice { kAuto, kLegacy, kModern };

struct ClientOptions {
  jsonrpc::ConnectionOptions connection;
  ClientInfo info;
  EraChoice era = EraChoice::kAuto;
  absl::Duration probe_timeout = absl::Seconds(3);
  absl::Duration start_timeout = absl::Seconds(60);  // of the whole handshake
  absl::Duration request_timeout = absl::Seconds(30);
};

// Threads: as Connection's: one at a time, handlers run on the streams' executor and never inside a call of this.
// Handlers may destroy the Client.
class Client {
 public:
  struct Handlers {
    // Absent: every request but ping is answered with "method not found".
    std::function<void(const ServerRequest& request, Responder respond)> on_request;
    // Log messages, changed lists, updated resources; all but the progress of calls that want it. `params` is valid
    // during the call only.
    std::function<void(absl::string_view method, absl::string_view params)> on_notification;
    // Lines on the server's stdout that are no messages, and messages that make no sense, for logs.
    std::function<void(absl::string_view line, absl::string_view why)> on_dropped;
    // Each request that is sent and each answer to one, the handshake's included, as lines without their newline.
    // on_request_sent is called from inside Connect and Call: the only one that must not destroy the Client.
    std::function<void(absl::string_view line)> on_request_sent;
    std::function<void(absl::string_view line)> on_answer;
    // The conversation is over. What is in flight has not failed yet: the owner knows why, and calls FailAll.
    std::function<void(jsonrpc::CloseReason reason, absl::Status detail)> on_close;
  };

  Client(jsonrpc::Stream from_server, jsonrpc::Stream to_server, ClientOptions options, Handlers handlers);
  ~Client();  // handlers of calls in flight are destroyed uncalled: call FailAll first
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // The handshake, once. DeadlineExceeded after start_timeout; FailedPrecondition when there is no common version or
  // the server refuses. If the connection closes first, the handler is called by FailAll.
  void Connect(absl::AnyInvocable<void(absl::Status)> handler);
  // That a probe was sent and nothing has answered it: a server that ended now may be one that dies of the probe, and
  // deserves another start with EraChoice::kLegacy.
  bool has_unanswered_probe() const;

  // After Connect.
  Era era() const;
  const ServerInfo& server_info() const;

  struct PendingCall;
  using CallRef = std::weak_ptr<PendingCall>;
  // Sends one request. The handler is called exactly once, unless the Client is destroyed before.
  CallRef Call(absl::string_view method, std::string params, const CallOptions& options, CallHandler handler);
  // Instead of Connect: one request as it is, e.g. an `initialize` that a host has made itself.
  CallRef CallWithoutHandshake(absl::string_view method, absl::string_view params, absl::Duration timeout,
                               CallHandler handler);
  // Tells the server and completes the call with Cancelled. Harmless when it has completed.
  void Cancel(const CallRef& call, absl::string_view reason);
  absl::Status Notify(absl::string_view method, absl::string_view params);

  // Completes everything that is open, Connect included, with `why`; all of it even if a handler destroys the Client.
  // What has already failed in another way, and would have been told so soon, is told that.
  void FailAll(const absl::Status& why);
  // The end: see Connection.
  void CloseInput(bool at_once);
  void Drain();

  const jsonrpc::JunkReport& junk() const;
  std::size_t calls_in_flight() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_MCP_CLIENT_H_
