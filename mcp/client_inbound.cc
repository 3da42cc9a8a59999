// What the server sends: answers, requests, notifications, and answers that ask for input.
#include <map>

#include "absl/strings/str_cat.h"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/mcp/client_impl.h"

namespace bulkhead::mcp {
namespace {

using jsonrpc::FindMember;
using jsonrpc::StringValue;
using Kind = jsonrpc::Message::Kind;

constexpr int kInputRoundsMax = 10;             // of one call; the specification leaves it to the client
constexpr std::size_t kOpenRequestsMax = 1024;  // of the server, unanswered; and in one answer that asks for input
constexpr std::size_t kOpenMessagesMax = 2;     // what those may take together, in messages of the largest size

// The integer of a progress token or request id that we made up, which a server may give back as a string.
std::optional<std::int64_t> OurId(absl::string_view value) {
  if (const auto text = StringValue(value)) return jsonrpc::IntegerValue(*text);
  return jsonrpc::IntegerValue(value);
}

// A member that is null says as much as one that is not there.
absl::string_view Given(absl::string_view object, absl::string_view key) {
  const absl::string_view value = FindMember(object, key).value_or("");
  return value == "null" ? "" : value;
}

// Answers with an internal error if it is dropped uncalled.
class Answering {
 public:
  using Value = std::variant<std::string, jsonrpc::ErrorObject>;
  explicit Answering(std::function<void(Value)> answer) : answer_(std::move(answer)) {}
  Answering(Answering&& other) noexcept : answer_(std::exchange(other.answer_, nullptr)) {}
  ~Answering() { (*this)(jsonrpc::ErrorObject{kInternalError, "the client gave no answer", ""}); }
  void operator()(Value value) {
    if (auto answer = std::exchange(answer_, nullptr)) answer(std::move(value));
  }

 private:
  std::function<void(Value)> answer_;
};

}  // namespace

void Client::Impl::OnMessage(const jsonrpc::Message& message) {
  switch (message.kind()) {
    case Kind::kResult:
    case Kind::kError:
      OnReply(message);
      return;
    case Kind::kRequest:
      OnRequest(message);
      return;
    case Kind::kNotification:
      OnNotification(message);
      return;
  }
}

void Client::Impl::OnReply(const jsonrpc::Message& message) {
  std::optional<std::int64_t> id = message.integer_id();
  // An error that names no request can only be about the one that there is; but a probe that was given up may be older.
  if (message.kind() == Kind::kError && message.id().empty()) {
    id = pending.WasAbandoned(probe_id) ? probe_id : pending.OnlyId();
  }
  if (id && *id == probe_id && probe_id != 0 && pending.WasAbandoned(*id)) {
    OnLateProbeAnswer(message);
    return;
  }
  const CallPtr call = id ? TakeFromFlight(*id, /*abandon=*/false) : nullptr;
  if (!call) {
    if (!id || !pending.WasAbandoned(*id)) Drop(message.line(), "answers nothing that was asked");
    return;
  }
  if (*id == probe_id) probe_id = 0;
  if (handlers.on_answer) handlers.on_answer(message.line());
  if (state == State::kClosed) return;  // the handler destroyed the Client
  if (message.kind() == Kind::kError) {
    Complete(call, Reply{"", message.error()});
  } else if (era == Era::kModern && !call->is_handshake) {
    OnResult(call, message.result());
  } else {
    Complete(call, Reply{connection->MoveOut(message.result()), std::nullopt});
  }
}

// 2026-07-28, basic/index: a resultType that is absent is "complete"; one that is not known makes the result invalid.
void Client::Impl::OnResult(const CallPtr& call, absl::string_view result) {
  const auto type = FindMember(result, "resultType");
  const std::string word = type ? StringValue(*type).value_or(std::string(*type)) : "complete";
  if (word == "complete") {
    Complete(call, Reply{connection->MoveOut(result), std::nullopt});
  } else if (word == "input_required" && call->may_need_input) {
    OnInputRequired(call, result);
  } else {
    Complete(call, absl::DataLossError(absl::StrCat("the server's answer to ", call->method,
                                                    " has a resultType that makes no sense: ", word)));
  }
}

bool Client::Impl::IsProbing() { return pending.Find(probe_id) != nullptr; }

void Client::Impl::OnRequest(const jsonrpc::Message& message) {
  // A modern server must not send requests, and nothing may be answered (2026-07-28, basic/transports/stdio). While the
  // era is open, what we write could end the server.
  if (era == Era::kModern || IsProbing()) {
    Drop(message.line(), "is a request, which a server may not send here");
    return;
  }
  const std::string id(message.id());
  if (message.Is("ping")) {
    if (auto line = jsonrpc::ResultLine(id, "{}"); line.ok()) connection->Send(*std::move(line));
    return;
  }
  if (!handlers.on_request || state != State::kReady) {
    connection->Send(jsonrpc::ErrorLine(id, {kMethodNotFound, "Method not found", ""}));
    return;
  }
  const std::size_t bytes = message.line().size();
  const bool has_room = open_requests_.size() < kOpenRequestsMax &&
                        open_bytes_ + bytes <= kOpenMessagesMax * options.connection.message_bytes_max;
  const std::uint64_t serial = next_serial_++;
  if (!has_room || !open_requests_.emplace(id, OpenRequest{serial, bytes}).second) {
    connection->Send(jsonrpc::ErrorLine(id, {kInternalError, "too many requests at once, or one id twice", ""}));
    return;
  }
  open_bytes_ += bytes;
  Answering answering([weak = weak_from_this(), id, serial](Answering::Value value) {
    const auto self = weak.lock();
    // Not for a request that the server has cancelled since.
    if (!self || !self->connection || !self->CloseRequest(id, serial)) return;
    if (auto* result = std::get_if<std::string>(&value)) {
      if (auto line = jsonrpc::ResultLine(id, *result); line.ok() && IsJsonObject(*result)) {
        self->connection->Send(*std::move(line));
        return;
      }
      value = jsonrpc::ErrorObject{kInternalError, "the client's answer is no JSON object", ""};
    }
    self->connection->Send(jsonrpc::ErrorLine(id, std::get<jsonrpc::ErrorObject>(value)));
  });
  handlers.on_request({message.method(), std::string(message.params())}, std::move(answering));
}

bool Client::Impl::CloseRequest(const std::string& id, std::optional<std::uint64_t> serial) {
  const auto found = open_requests_.find(id);
  if (found == open_requests_.end() || (serial && found->second.serial != *serial)) return false;
  open_bytes_ -= found->second.bytes;
  open_requests_.erase(found);
  return true;
}

void Client::Impl::OnNotification(const jsonrpc::Message& message) {
  if (message.Is("notifications/progress") && OnProgress(message.params())) return;
  if (message.Is("notifications/cancelled") && OnCancelled(message.params())) return;
  if (handlers.on_notification) handlers.on_notification(message.method(), message.params());
}

bool Client::Impl::OnProgress(absl::string_view params) {
  const auto id = OurId(FindMember(params, "progressToken").value_or(""));
  CallPtr* found = id ? pending.Find(*id) : nullptr;
  if (found == nullptr || !(*found)->on_progress) return false;
  const CallPtr call = *found;
  Progress progress;
  progress.progress = jsonrpc::NumberValue(FindMember(params, "progress").value_or("")).value_or(0);
  progress.total = jsonrpc::NumberValue(FindMember(params, "total").value_or(""));
  progress.message = StringValue(FindMember(params, "message").value_or("")).value_or("");
  if (call->deadline != Clock::time_point::max()) {
    SetDeadline(*call, NextDeadline(*call));
  }
  // A copy: the handler may complete the call.
  const auto on_progress = call->on_progress;
  on_progress(progress);
  return true;
}

// Legacy: the server takes back a request of its own. Modern: it ends a subscription of ours.
bool Client::Impl::OnCancelled(absl::string_view params) {
  const absl::string_view id_text = FindMember(params, "requestId").value_or("");
  if (era == Era::kLegacy) {
    CloseRequest(std::string(id_text), std::nullopt);
    return false;
  }
  const auto id = OurId(id_text);
  CallPtr* found = id ? pending.Find(*id) : nullptr;
  if (found == nullptr || (*found)->method != "subscriptions/listen") return false;
  Complete(TakeFromFlight(*id, /*abandon=*/true), absl::CancelledError("the server ended the subscription"));
  return true;
}

// --- Input ---

struct Client::Impl::InputRound {
  CallPtr call;
  std::string state;                             // JSON text to be echoed; empty if there is none
  std::map<std::string, std::string> responses;  // by key as written
  std::size_t missing = 0;
};

void Client::Impl::OnInputRequired(const CallPtr& call, absl::string_view result) {
  const absl::string_view requests = Given(result, "inputRequests");
  auto round = std::make_shared<InputRound>();
  round->call = call;
  round->state = std::string(Given(result, "requestState"));
  const auto fail = [&](absl::string_view why) {
    Complete(call, absl::FailedPreconditionError(
                       absl::StrCat("the server asks for input to answer ", call->method, " ", why)));
  };
  if (++call->rounds > kInputRoundsMax) return fail(absl::StrCat("more than ", kInputRoundsMax, " times"));
  std::vector<std::pair<std::string, ServerRequest>> asked;
  bool are_requests = requests.empty() || requests.front() == '{';
  if (are_requests && !requests.empty()) {
    jsonrpc::ForEachMember(requests, [&](const jsonrpc::JsonMember& member) {
      const std::string method = StringValue(FindMember(member.value, "method").value_or("")).value_or("");
      const absl::string_view params = FindMember(member.value, "params").value_or("");
      are_requests = !method.empty() && (params.empty() || params.front() == '{');
      asked.emplace_back(std::string(member.key), ServerRequest{method, std::string(params)});
      return are_requests && asked.size() <= kOpenRequestsMax;
    });
  }
  if (asked.size() > kOpenRequestsMax) return fail(absl::StrCat("with more than ", kOpenRequestsMax, " requests"));
  if (!are_requests || (asked.empty() && round->state.empty())) return fail("but does not say which");
  if (!asked.empty() && !handlers.on_request) return fail("and nobody is there to give it");
  round->missing = asked.size();
  call->asked_at = Clock::now();
  detached_.insert(call);
  if (asked.empty()) return RepeatWithInput(round);
  const auto self = shared_from_this();
  for (auto& [key, request] : asked) {
    const std::string method = request.method;
    Answering answering([weak = weak_from_this(), round, key = key, method](Answering::Value value) {
      const auto client = weak.lock();
      if (!client || !client->IsWaitingForInput(round->call)) return;
      const auto* error = std::get_if<jsonrpc::ErrorObject>(&value);
      if (error != nullptr || !IsJsonObject(std::get<std::string>(value))) {
        client->CompleteSoon(round->call, absl::FailedPreconditionError(
                                              absl::StrCat("the server's ", method, " was not answered: ",
                                                           error ? error->message : "the answer is no JSON object")));
        return;
      }
      round->responses[key] = std::get<std::string>(std::move(value));
      if (--round->missing == 0) client->RepeatWithInput(round);
    });
    self->handlers.on_request(request, std::move(answering));
    if (!IsWaitingForInput(call)) return;  // the handler has failed the call, or destroyed the Client
  }
}

// The same request under a new id, with the answers and the server's state, byte by byte as it was.
void Client::Impl::RepeatWithInput(const std::shared_ptr<InputRound>& round) {
  const CallPtr& call = round->call;
  std::string params = call->large ? call->large->OriginalParams() : call->params.empty() ? "{}" : call->params;
  if (!round->responses.empty()) {
    std::string responses;
    for (const auto& [key, value] : round->responses) {
      absl::StrAppend(&responses, responses.empty() ? "{\"" : ",\"", key, "\":", value);
    }
    params = WithMember(params, "inputResponses", absl::StrCat(responses, "}"));
  }
  if (!round->state.empty()) params = WithMember(params, "requestState", round->state);
  if (call->deadline_max != Clock::time_point::max()) call->deadline_max += Clock::now() - call->asked_at;
  call->deadline = NextDeadline(*call);
  detached_.erase(call);
  if (absl::Status status = Send(call, params); !status.ok()) CompleteSoon(call, std::move(status));
}

}  // namespace bulkhead::mcp
