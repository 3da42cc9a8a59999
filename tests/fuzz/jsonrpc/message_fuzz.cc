// What Message says of a line is what ValidateJson and nlohmann_json say of it, and lines that are made can be read.
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/jsonrpc/message.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/jsonrpc/check.h"

namespace bulkhead::jsonrpc {
namespace {

bool IsWithin(absl::string_view part, absl::string_view whole) {
  return part.empty() || (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void CheckJunk(absl::string_view line, JunkReason reason) {
  const JsonError error = ValidateJson(line);
  const std::size_t begin = line.find_first_not_of(" \t\r\n");
  const bool is_array = begin != absl::string_view::npos && line[begin] == '[';
  switch (reason) {
    case JunkReason::kNotJson:
      FUZZ_CHECK(error == JsonError::kSyntax || error == JsonError::kUtf8);
      return;
    case JunkReason::kTooDeep:
      FUZZ_CHECK(error == JsonError::kTooDeep);
      return;
    case JunkReason::kBatch:
      FUZZ_CHECK(error == JsonError::kNone && is_array);
      return;
    case JunkReason::kNotAMessage:
    case JunkReason::kDuplicateKey:
      FUZZ_CHECK(error == JsonError::kNone && !is_array);
      return;
  }
}

void CheckMessage(const Message& message, absl::string_view line) {
  FUZZ_CHECK(ValidateJson(line) == JsonError::kNone);
  FUZZ_CHECK(message.line() == line);
  FUZZ_CHECK(IsWithin(message.id(), line) && IsWithin(message.params(), line));
  const std::string method = message.method();
  const bool is_call = message.kind() == Message::Kind::kRequest || message.kind() == Message::Kind::kNotification;
  FUZZ_CHECK(!message.params().empty() || is_call);
  const nlohmann::json json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  if (json.is_discarded()) return;  // valid by RFC 8259, but more than nlohmann can hold
  FUZZ_CHECK(json["jsonrpc"] == "2.0");
  FUZZ_CHECK(json.contains("method") == is_call);
  FUZZ_CHECK(json.contains("result") == (message.kind() == Message::Kind::kResult));
  FUZZ_CHECK(json.contains("error") == (message.kind() == Message::Kind::kError));
  if (is_call) FUZZ_CHECK(json["method"] == method && (method.empty() || message.Is(method)));
  if (message.kind() == Message::Kind::kError) FUZZ_CHECK(json["error"]["code"] == message.error().code);
  if (!message.id().empty()) FUZZ_CHECK(json["id"] == nlohmann::json::parse(message.id().begin(), message.id().end()));
  // What it says, said again, is one line that says the same.
  std::string again;
  switch (message.kind()) {
    case Message::Kind::kRequest:
      again = *RequestLine(message.integer_id().value_or(0), method, message.params());
      break;
    case Message::Kind::kNotification:
      again = *NotificationLine(method, message.params());
      break;
    case Message::Kind::kResult:
      again = *ResultLine(message.id(), message.result());
      break;
    case Message::Kind::kError:
      again = ErrorLine(message.id(), message.error());
      break;
  }
  FUZZ_CHECK(again.find('\n') == again.size() - 1);
  const auto parsed = Message::Parse(again);
  FUZZ_CHECK(std::holds_alternative<Message>(parsed));
  FUZZ_CHECK(std::get<Message>(parsed).kind() == message.kind());
  FUZZ_CHECK(std::get<Message>(parsed).method() == method);
}

}  // namespace
// The line in three parts is there for the same params, is one line, and means the same.
void CheckLargeRequest(absl::string_view params, absl::string_view first_member) {
  if (params.empty()) return;
  const auto line = RequestLine(1, "m", params, first_member);
  const auto large = LargeRequest::Make(1, "m", std::string(params), first_member);
  FUZZ_CHECK(line.ok() == large.ok());
  if (!line.ok()) return;
  const std::string text = large->head() + *large->params() + large->tail();
  FUZZ_CHECK(text.size() == large->size() && text.find_first_of("\r\n") == text.size() - 1);
  const auto is = Message::Parse(text), should_be = Message::Parse(*line);
  FUZZ_CHECK(is.index() == should_be.index());
  const auto* const message = std::get_if<Message>(&is);
  if (message == nullptr) return;
  std::vector<std::string> members, wanted;
  const auto collect = [](absl::string_view of, std::vector<std::string>* into) {
    FUZZ_CHECK(ForEachMember(of, [into](const JsonMember& member) {
      into->push_back(absl::StrCat(member.key, ":", member.value));
      return true;
    }));
  };
  collect(message->params(), &members);
  collect(std::get<Message>(should_be).params(), &wanted);
  FUZZ_CHECK(members == wanted);
  FUZZ_CHECK(ValidateJson(large->OriginalParams()) == JsonError::kNone);
}

}  // namespace bulkhead::jsonrpc

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace jsonrpc = bulkhead::jsonrpc;
  const absl::string_view line(reinterpret_cast<const char*>(data), size);
  const auto parsed = jsonrpc::Message::Parse(line);
  if (const auto* message = std::get_if<jsonrpc::Message>(&parsed)) {
    jsonrpc::CheckMessage(*message, line);
  } else {
    jsonrpc::CheckJunk(line, std::get<jsonrpc::JunkReason>(parsed));
  }
  (void)jsonrpc::SplitBatch(line, [](absl::string_view element) {
    FUZZ_CHECK(jsonrpc::ValidateJson(element) == jsonrpc::JsonError::kNone);
    (void)jsonrpc::Message::Parse(element);
  });
  // As params, result and data, whatever the bytes are.
  const auto request = jsonrpc::RequestLine(1, "m", line);
  if (request.ok()) FUZZ_CHECK(std::holds_alternative<jsonrpc::Message>(jsonrpc::Message::Parse(*request)));
  jsonrpc::CheckLargeRequest(line, "");
  jsonrpc::CheckLargeRequest(line, "\"_\":1");
  const auto result = jsonrpc::ResultLine(line, line);
  if (result.ok()) FUZZ_CHECK(std::holds_alternative<jsonrpc::Message>(jsonrpc::Message::Parse(*result)));
  const std::string error = jsonrpc::ErrorLine(line, {1, std::string(line), std::string(line)});
  FUZZ_CHECK(error.find('\n') == error.size() - 1);
  // Data of kNestingMax levels is two levels deeper here.
  const auto error_parsed = jsonrpc::Message::Parse(error);
  FUZZ_CHECK(std::holds_alternative<jsonrpc::Message>(error_parsed) ||
             std::get<jsonrpc::JunkReason>(error_parsed) == jsonrpc::JunkReason::kTooDeep);
  return 0;
}
