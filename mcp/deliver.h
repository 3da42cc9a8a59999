// Deliver is the one-shot form, for servers that keep no state: start the server in its jail, open the conversation,
// send one request, take the answer, stop the server. All of it within one deadline. See session.h for everything else:
// a start per call is slow.
//
// Operator configuration only: never build the policy or the command from a model's output or a server's answers.
#ifndef BULKHEAD_MCP_DELIVER_H_
#define BULKHEAD_MCP_DELIVER_H_

#include <functional>
#include <future>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "asio/any_io_executor.hpp"
#include "bulkhead/launcher/process.h"
#include "bulkhead/mcp/async.h"
#include "bulkhead/mcp/client.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::mcp {

struct DeliverRequest {
  std::string method;  // `initialize` is sent as it is, without a handshake before it
  std::string params;  // a JSON object, or empty
};

struct DeliverOptions {
  ClientInfo client;
  EraChoice era = EraChoice::kAuto;
  std::function<void(const Progress&)> on_progress;  // asks for progress; the deadline stays
  // Called last, after a failure, too: nothing is left of what was started.
  std::function<void()> on_gone;
};

struct DeliverResult {
  Reply reply;
  std::string raw_request, raw_response;   // the lines, without their newline
  std::optional<std::string> stderr_text;  // trimmed, the last kDeliverStderrBytesMax; absent when there is none
  // How the server ended. Ready when its tree is gone; the result comes before that.
  std::shared_future<launcher::ExitStatus> exit;
};

inline constexpr absl::Duration kDeliverTime = absl::Seconds(30);
inline constexpr std::size_t kDeliverStderrBytesMax = 64 * 1024;

// Errors: those of ValidateCommand, BuildLaunchPlan and Launch, of Session::AsyncConnect and of a call;
// DeadlineExceeded when all of it took longer than `timeout`, also when the server does not read; Cancelled.
namespace internal {
using DeliveryRef = std::weak_ptr<void>;
DeliveryRef StartDeliver(asio::any_io_executor executor, const policy::Policy& policy,
                         const policy::CommandRequest& command, DeliverRequest request, absl::Duration timeout,
                         DeliverOptions options, absl::AnyInvocable<void(absl::StatusOr<DeliverResult>)> handler);
void CancelDelivery(const DeliveryRef& delivery);
}  // namespace internal

// Completes with void(absl::StatusOr<DeliverResult>). The executor must run until `exit` is ready; otherwise the server
// is killed with it. A cancellation slot of the token is honoured: the server is told, and stopped.
template <typename Token>
auto AsyncDeliver(asio::any_io_executor executor, policy::Policy policy, policy::CommandRequest command,
                  DeliverRequest request, absl::Duration timeout, DeliverOptions options, Token&& token) {
  return StartCancellable<void(absl::StatusOr<DeliverResult>)>(
      executor,
      [executor, policy = std::move(policy), command = std::move(command), request = std::move(request), timeout,
       options = std::move(options)](auto handler) mutable {
        return internal::StartDeliver(executor, policy, command, std::move(request), timeout, std::move(options),
                                      std::move(handler));
      },
      internal::CancelDelivery, token);
}

// Blocks until the result is there, not for the server's end: a thread of its own sees to that, and to everything else.
absl::StatusOr<DeliverResult> Deliver(const policy::Policy& policy, const policy::CommandRequest& command,
                                      const DeliverRequest& request, absl::Duration timeout = kDeliverTime,
                                      const DeliverOptions& options = {});

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_MCP_DELIVER_H_
