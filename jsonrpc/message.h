// Message is one JSON-RPC 2.0 message as it lies on its line: one pass finds the envelope and checks the whole line
// against RFC 8259. It owns nothing; payloads are views of the line, as the bytes they came in. A line that is no
// message is junk: JunkReason says why.
#ifndef BULKHEAD_JSONRPC_MESSAGE_H_
#define BULKHEAD_JSONRPC_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bulkhead::jsonrpc {

// What the peer answered instead of a result. Not an error of ours: those are absl::Status.
struct ErrorObject {
  std::int64_t code = 0;
  std::string message;
  std::string data;  // JSON text; empty if there was none
};

enum class JunkReason {
  kNotJson,      // not RFC 8259, or not UTF-8
  kTooDeep,      // json_text.h, kNestingMax
  kNotAMessage,  // JSON, but not an object with "jsonrpc": "2.0" and the members of a request, notification or response
  kDuplicateKey,  // one of the envelope's keys twice, however written: two readers could read two messages
  kBatch,         // a JSON array, which only protocol version 2025-03-26 has: see SplitBatch
};
absl::string_view JunkReasonText(JunkReason reason);  // "is not JSON", for people

class Message {
 public:
  enum class Kind { kRequest, kNotification, kResult, kError };

  // `line` must outlive the Message. Whatever bytes it holds; it may hold newlines (as white space).
  static std::variant<Message, JunkReason> Parse(absl::string_view line);

  Kind kind() const { return kind_; }
  // As written: 7, 7.0, "7". Empty when absent or null, which only an error's may be.
  absl::string_view id() const { return id_; }
  // The integer that the id means: 7 for 7, 7.0 and "7", since some peers change an id's type. Absent for other ids.
  std::optional<std::int64_t> integer_id() const;

  // Requests and notifications. `method` is as written, without quotes; compare with Is().
  bool Is(absl::string_view method) const;
  std::string method() const;
  absl::string_view params() const { return payload_; }  // an object or array, or empty if absent

  absl::string_view result() const { return payload_; }  // kResult: any JSON value
  ErrorObject error() const;                             // kError

  absl::string_view line() const { return line_; }

 private:
  Message() = default;
  Kind kind_ = Kind::kNotification;
  absl::string_view line_, id_, method_, payload_;
};

// The elements of a batch, in order; InvalidArgument, before any is visited, if `line` is not a JSON array or is empty.
absl::Status SplitBatch(absl::string_view line, absl::FunctionRef<void(absl::string_view element)> visit);

// Lines to send, newline included. `method` is plain text; `params` is JSON text (an object or array) or empty; `id` is
// JSON text as Message::id() gives it. Newlines between tokens become spaces, so that whatever text comes in, one line
// goes out. InvalidArgument if params are no JSON object or array, a result is no JSON, an id is no string or integer,
// or a method is not UTF-8.
// `first_member` is one more member for params that are an object or empty, as text ("\"a\":1"); that params has none
// of that name is for the caller to see to. What is in params is copied once, into the line.
absl::StatusOr<std::string> RequestLine(std::int64_t id, absl::string_view method, absl::string_view params,
                                        absl::string_view first_member = "");

// A request with large params, as a line in three parts: head, params, tail. The params are not copied, but written
// from the memory that they came in, for which new memory costs more than all else that is done to them.
class LargeRequest {
 public:
  // From this size of the params on it is worth it.
  static constexpr std::size_t kParamsBytesMin = 512u << 10;

  // As RequestLine, of which head, params and tail together are the result, but for white space.
  static absl::StatusOr<LargeRequest> Make(std::int64_t id, absl::string_view method, std::string params,
                                           absl::string_view first_member = "");

  const std::string& head() const { return head_; }
  const std::shared_ptr<const std::string>& params() const { return params_; }
  const std::string& tail() const { return tail_; }
  std::size_t size() const { return head_.size() + params_->size() + tail_.size(); }
  // What was given to Make, but for white space.
  std::string OriginalParams() const;

 private:
  LargeRequest() = default;
  std::string head_, tail_;
  std::shared_ptr<const std::string> params_;
  std::size_t open_ = std::string::npos;  // where in params_ a comma took the place of the brace
};

absl::StatusOr<std::string> NotificationLine(absl::string_view method, absl::string_view params);
absl::StatusOr<std::string> ResultLine(absl::string_view id, absl::string_view result);
// Never fails: without a valid id it is null, and data that is not JSON is left out.
std::string ErrorLine(absl::string_view id, const ErrorObject& error);

}  // namespace bulkhead::jsonrpc

#endif  // BULKHEAD_JSONRPC_MESSAGE_H_
