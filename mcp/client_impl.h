// The inside of Client: shared by client.cc (calls), client_inbound.cc (what the server sends) and handshake.cc.
#ifndef BULKHEAD_MCP_CLIENT_IMPL_H_
#define BULKHEAD_MCP_CLIENT_IMPL_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "asio/steady_timer.hpp"
#include "bulkhead/jsonrpc/pending_calls.h"
#include "bulkhead/mcp/client.h"
#include "bulkhead/mcp/deadline.h"
#include "bulkhead/mcp/era.h"

namespace bulkhead::mcp {

// One call, through all rounds of input_required; its JSON-RPC id changes with each.
struct Client::PendingCall {
  std::string method;
  // Kept only where the server may ask for input and the call then has to be repeated: one of the two.
  std::string params;
  std::optional<jsonrpc::LargeRequest> large;
  CallHandler handler;
  std::function<void(const Progress&)> on_progress;
  Clock::duration timeout{};  // zero: none but deadline_max
  Clock::time_point deadline, deadline_max;
  Clock::time_point asked_at;  // when the server asked for input last
  std::int64_t id = 0;         // 0: not in flight, see Impl::detached_
  absl::Status failure;        // how it will be completed, if that is settled
  int rounds = 0;
  bool may_need_input = false;
  bool is_handshake = false;  // must not be cancelled at the server (2025-11-25, basic/utilities/cancellation)
};

class Client::Impl : public std::enable_shared_from_this<Client::Impl> {
 public:
  using CallPtr = std::shared_ptr<PendingCall>;

  Impl(asio::any_io_executor executor, ClientOptions options, Handlers handlers);
  void Start(jsonrpc::Stream from_server, jsonrpc::Stream to_server);
  void Shutdown();  // the Client is gone

  void Connect(absl::AnyInvocable<void(absl::Status)> handler);
  CallRef Call(absl::string_view method, std::string params, const CallOptions& options, CallHandler handler);
  CallRef CallWithoutHandshake(absl::string_view method, absl::string_view params, absl::Duration timeout,
                               CallHandler handler);
  void Cancel(const CallRef& call, absl::string_view reason);
  absl::Status Notify(absl::string_view method, absl::string_view params);
  void FailAll(const absl::Status& why);

  // The rest is for the parts of this class only; it is all in one place so that they can be files of their own.
  enum class State { kIdle, kConnecting, kReady, kClosed };

  // client.cc
  CallPtr MakeCall(absl::string_view method, absl::Duration timeout, absl::Duration timeout_max, CallHandler handler);
  absl::Status Send(const CallPtr& call, absl::string_view params);  // registers, then writes
  absl::Status SendLarge(const CallPtr& call, std::string params);
  absl::Status Sent(const CallPtr& call, absl::Status status);
  void Complete(const CallPtr& call, absl::StatusOr<Reply> reply);
  void CompleteSoon(const CallPtr& call, absl::Status failure);  // not inside this call
  CallPtr TakeFromFlight(std::int64_t id, bool abandon);
  static Clock::time_point NextDeadline(const PendingCall& call);
  void SetDeadline(PendingCall& call, Clock::time_point deadline);
  void ArmTimer();
  void OnTimer();
  void TimeOut(std::int64_t id);
  void SendCancelled(std::int64_t id, absl::string_view reason);
  void Drop(absl::string_view line, absl::string_view why);

  // client_inbound.cc
  void OnMessage(const jsonrpc::Message& message);
  void OnReply(const jsonrpc::Message& message);
  void OnResult(const CallPtr& call, absl::string_view result);
  void OnRequest(const jsonrpc::Message& message);
  void OnNotification(const jsonrpc::Message& message);
  bool OnProgress(absl::string_view params);
  bool OnCancelled(absl::string_view params);
  bool IsProbing();
  void OnInputRequired(const CallPtr& call, absl::string_view result);
  struct InputRound;
  bool IsWaitingForInput(const CallPtr& call) const { return detached_.contains(call) && call->failure.ok(); }
  void RepeatWithInput(const std::shared_ptr<InputRound>& round);

  // handshake.cc
  void Probe(const std::string& version, bool is_second);
  void OnProbed(absl::StatusOr<Reply> reply, bool is_second);
  void Initialize(const std::string& version);
  void OnInitialized(absl::StatusOr<Reply> reply);
  void SettleModern(const std::string& version, absl::string_view discover_result);
  void OnLateProbeAnswer(const jsonrpc::Message& message);
  void Connected(absl::Status status);
  void Handshake(absl::string_view method, const std::string& params, absl::Duration timeout, CallHandler handler);

  const ClientOptions options;
  const Handlers handlers;
  State state = State::kIdle;
  Era era = Era::kLegacy;
  ServerInfo server_info;
  std::string version;  // of the protocol; empty before it is settled
  std::unique_ptr<jsonrpc::Connection> connection;
  jsonrpc::PendingCalls<CallPtr> pending;
  asio::steady_timer timer, start_timer;

  absl::AnyInvocable<void(absl::Status)> on_connected;
  std::int64_t probe_id = 0;  // not yet answered; 0: none
  bool was_probed_twice = false;
  std::string late_discover_result;  // came after initialize was sent

 private:
  absl::btree_set<std::pair<Clock::time_point, std::int64_t>> deadlines_;  // of what is in flight, with its id
  absl::flat_hash_set<CallPtr> detached_;  // open but not in flight: input is collected, or it is completed soon
  Clock::time_point armed_at_ = Clock::time_point::max();
  // Requests of the server that the host has not answered yet, by id as written. One that the server has taken back may
  // be followed by another of the same id.
  struct OpenRequest {
    std::uint64_t serial;
    std::size_t bytes;
  };
  absl::flat_hash_map<std::string, OpenRequest> open_requests_;
  std::uint64_t next_serial_ = 0;
  std::size_t open_bytes_ = 0;
  bool CloseRequest(const std::string& id, std::optional<std::uint64_t> serial);  // whether it was open
};

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_MCP_CLIENT_IMPL_H_
