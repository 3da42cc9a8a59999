#include "bulkhead/jsonrpc/message.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/jsonrpc/json_scan.h"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/jsonrpc/large_memory.h"

namespace bulkhead::jsonrpc {
namespace {

using internal::Scanned;

// Members of an envelope that mean nothing to us. More than any peer writes: they are remembered to find the same one
// twice.
constexpr std::size_t kUnknownMembersMax = 16;

enum Key { kJsonrpc, kId, kMethod, kParams, kResult, kError, kKeys };
constexpr std::array<absl::string_view, kKeys> kNames = {"jsonrpc", "id", "method", "params", "result", "error"};

// Members as written; those that are absent are null.
struct Envelope {
  std::array<absl::string_view, kKeys> members;
  absl::string_view error_code, error_message;
  std::array<absl::string_view, kUnknownMembersMax> unknown;
  std::size_t unknown_count = 0;
  bool has_duplicate = false;
  bool has_too_many = false;

  bool Has(Key key) const { return members[key].data() != nullptr; }
};

Key KeyOf(absl::string_view key) {
  // By length first: a line has few keys, but every line has them.
  Key expected = kKeys;
  switch (key.size()) {
    case 2:
      expected = kId;
      break;
    case 5:
      expected = kError;
      break;
    case 6:
      expected = key[0] == 'm' ? kMethod : key[0] == 'p' ? kParams : kResult;
      break;
    case 7:
      expected = kJsonrpc;
      break;
    default:
      break;
  }
  if (expected != kKeys && key == kNames[expected]) return expected;
  if (key.empty() || std::memchr(key.data(), '\\', key.size()) == nullptr) return kKeys;
  for (int i = 0; i != kKeys; ++i) {
    if (JsonStringIs(key, kNames[static_cast<std::size_t>(i)])) return static_cast<Key>(i);
  }
  return kKeys;
}

void AddUnknown(absl::string_view key, Envelope* envelope) {
  const auto end = envelope->unknown.begin() + envelope->unknown_count;
  if (std::any_of(envelope->unknown.begin(), end,
                  [key](absl::string_view other) { return JsonStringsEqual(key, other); })) {
    envelope->has_duplicate = true;
  } else if (envelope->unknown_count == kUnknownMembersMax) {
    envelope->has_too_many = true;
  } else {
    envelope->unknown[envelope->unknown_count++] = key;
  }
}

absl::string_view Between(const char* begin, const char* end) {
  return absl::string_view(begin, static_cast<std::size_t>(end - begin));
}

// The error object, whose code and message are looked at on the way.
Scanned ScanErrorObject(const char* at, const char* end, Envelope* envelope) {
  envelope->error_code = envelope->error_message = absl::string_view();
  return internal::ScanMembers(at, end, [&](absl::string_view key, const char* value_begin) {
    const Scanned value = internal::ScanValue(value_begin, end, kNestingMax - 2);
    if (value.end == nullptr) return value;
    if (JsonStringIs(key, "code")) envelope->error_code = Between(value_begin, value.end);
    if (JsonStringIs(key, "message")) envelope->error_message = Between(value_begin, value.end);
    return value;
  });
}

Scanned ScanEnvelope(const char* at, const char* end, Envelope* envelope) {
  return internal::ScanMembers(at, end, [&](absl::string_view key, const char* value_begin) {
    const Key known = KeyOf(key);
    const Scanned value = known == kError && internal::CharAt(value_begin, end) == '{'
                              ? ScanErrorObject(value_begin, end, envelope)
                              : internal::ScanValue(value_begin, end, kNestingMax - 1);
    if (value.end == nullptr) return value;
    if (known == kKeys) {
      AddUnknown(key, envelope);
    } else {
      envelope->has_duplicate = envelope->has_duplicate || envelope->Has(known);
      envelope->members[known] = Between(value_begin, value.end);
    }
    return value;
  });
}

bool IsString(absl::string_view value) { return !value.empty() && value[0] == '"'; }
bool IsStructured(absl::string_view value) { return !value.empty() && (value[0] == '{' || value[0] == '['); }
bool IsId(absl::string_view value) { return IsString(value) || IsIntegral(value); }
// The same of text that nobody has looked at. Nothing may stand around it, or it could end the line.
bool IsIdText(absl::string_view text) {
  const char* const end = text.data() + text.size();
  return IsString(text) ? internal::ScanString(text.data(), end).end == end : IsIntegral(text);
}
absl::string_view Inside(absl::string_view string) { return string.substr(1, string.size() - 2); }

bool IsErrorObject(const Envelope& envelope) {
  const absl::string_view message = envelope.error_message;
  return envelope.members[kError][0] == '{' && IntegerValue(envelope.error_code).has_value() &&
         (message.data() == nullptr || IsString(message));
}

// The kind of the message that these members make; absent if they make none.
std::optional<Message::Kind> KindOf(const Envelope& envelope) {
  const auto& members = envelope.members;
  if (envelope.has_too_many || !IsString(members[kJsonrpc]) || !JsonStringIs(Inside(members[kJsonrpc]), "2.0")) {
    return std::nullopt;
  }
  if (envelope.Has(kMethod) + envelope.Has(kResult) + envelope.Has(kError) != 1) return std::nullopt;
  const bool has_id = envelope.Has(kId);
  if (envelope.Has(kMethod)) {
    if (!IsString(members[kMethod]) || (envelope.Has(kParams) && !IsStructured(members[kParams]))) return std::nullopt;
    if (!has_id) return Message::Kind::kNotification;
    return IsId(members[kId]) ? std::optional(Message::Kind::kRequest) : std::nullopt;
  }
  if (envelope.Has(kResult)) {
    return has_id && IsId(members[kId]) ? std::optional(Message::Kind::kResult) : std::nullopt;
  }
  if (!IsErrorObject(envelope) || (has_id && members[kId] != "null" && !IsId(members[kId]))) return std::nullopt;
  return Message::Kind::kError;
}

JunkReason JunkReasonOf(JsonError error) {
  return error == JsonError::kTooDeep ? JunkReason::kTooDeep : JunkReason::kNotJson;
}

absl::string_view WithoutSpaceAround(absl::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// So large a piece is still in the cache when it is looked at again.
constexpr std::size_t kPieceBytes = 64u << 10;

// Puts the valid JSON text in [begin, begin + size) on one line. In strings a line feed or carriage return is escaped:
// what stands raw is white space.
void PutOnOneLine(char* begin, std::size_t size) {
  const char* const end = begin + size;
  for (const char raw : {'\n', '\r'}) {
    char* at = begin;
    while ((at = static_cast<char*>(std::memchr(at, raw, static_cast<std::size_t>(end - at)))) != nullptr) *at = ' ';
  }
}

// Appends valid JSON text on one line, in pieces.
void AppendOnOneLine(absl::string_view json, std::string* line) {
  while (!json.empty()) {
    const absl::string_view piece = json.substr(0, kPieceBytes);
    const std::size_t begin = line->size();
    line->append(piece.data(), piece.size());
    PutOnOneLine(&(*line)[begin], piece.size());
    json.remove_prefix(piece.size());
  }
}

absl::Status CantWrite(absl::string_view what, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("can't write a JSON-RPC ", what, ": ", why));
}

// Whether a call can be made of them: `params` has no white space around it, or nothing else.
absl::Status CheckCall(absl::string_view what, absl::string_view method, absl::string_view params,
                       absl::string_view first_member) {
  if (!internal::IsUtf8(method)) return CantWrite(what, "its method is not UTF-8");
  if (params.empty()) return absl::OkStatus();
  if (ValidateJson(params) != JsonError::kNone || !IsStructured(params)) {
    return CantWrite(what, absl::StrCat("the params of ", QuoteJson(method), " are not a JSON object or array"));
  }
  if (!first_member.empty() && params.front() != '{') return CantWrite(what, "its params are not a JSON object");
  return absl::OkStatus();
}

// {"jsonrpc":"2.0" and `id_member`, method and params.
absl::StatusOr<std::string> CallLine(absl::string_view what, absl::string_view id_member, absl::string_view method,
                                     absl::string_view params, absl::string_view first_member) {
  if (const absl::string_view trimmed = WithoutSpaceAround(params); !trimmed.empty()) params = trimmed;
  if (absl::Status status = CheckCall(what, method, params, first_member); !status.ok()) return status;
  std::string line;
  internal::Reserve(params.size() + method.size() + id_member.size() + first_member.size() + 48, &line);
  absl::StrAppend(&line, "{\"jsonrpc\":\"2.0\"", id_member, ",\"method\":", QuoteJson(method));
  if (!first_member.empty()) {
    line += ",\"params\":{";
    AppendOnOneLine(first_member, &line);
    if (!params.empty()) params = WithoutSpaceAround(Inside(params));
    if (!params.empty()) line += ',';
    AppendOnOneLine(params, &line);
    line += '}';
  } else if (!params.empty()) {
    line += ",\"params\":";
    AppendOnOneLine(params, &line);
  }
  line += "}\n";
  return line;
}

}  // namespace

absl::string_view JunkReasonText(JunkReason reason) {
  switch (reason) {
    case JunkReason::kNotJson:
      return "is not JSON";
    case JunkReason::kTooDeep:
      return "nests too deeply";
    case JunkReason::kNotAMessage:
      return "is not a JSON-RPC 2.0 message";
    case JunkReason::kDuplicateKey:
      return "has a key twice";
    case JunkReason::kBatch:
      return "is a batch, which this protocol version doesn't have";
  }
  return "is not a message";
}

std::variant<Message, JunkReason> Message::Parse(absl::string_view line) {
  const char* const end = line.data() + line.size();
  const char* const begin = internal::SkipSpace(line.data(), end);
  const char open = internal::CharAt(begin, end);
  Envelope envelope;
  const Scanned scanned =
      open == '{' ? ScanEnvelope(begin, end, &envelope) : internal::ScanValue(begin, end, kNestingMax);
  if (scanned.end == nullptr) return JunkReasonOf(scanned.error);
  if (internal::SkipSpace(scanned.end, end) != end) return JunkReason::kNotJson;
  if (open == '[') return JunkReason::kBatch;
  if (open != '{') return JunkReason::kNotAMessage;
  if (envelope.has_duplicate) return JunkReason::kDuplicateKey;
  const std::optional<Kind> kind = KindOf(envelope);
  if (!kind) return JunkReason::kNotAMessage;

  Message message;
  message.kind_ = *kind;
  message.line_ = line;
  if (envelope.Has(kId) && envelope.members[kId] != "null") message.id_ = envelope.members[kId];
  if (envelope.Has(kMethod)) message.method_ = Inside(envelope.members[kMethod]);
  message.payload_ = envelope.members[*kind == Kind::kResult ? kResult : *kind == Kind::kError ? kError : kParams];
  return message;
}

std::optional<std::int64_t> Message::integer_id() const {
  if (!IsString(id_)) return IntegerValue(id_);
  const std::optional<std::string> text = StringValue(id_);
  if (!text || text->find_first_of(".eE") != std::string::npos) return std::nullopt;
  return IntegerValue(*text);
}

bool Message::Is(absl::string_view method) const { return !method_.empty() && JsonStringIs(method_, method); }

std::string Message::method() const { return StringValue(absl::StrCat("\"", method_, "\"")).value_or(""); }

ErrorObject Message::error() const {
  ErrorObject error;
  if (kind_ != Kind::kError) return error;
  ForEachMember(payload_, [&error](const JsonMember& member) {
    if (JsonStringIs(member.key, "code")) error.code = IntegerValue(member.value).value_or(0);
    if (JsonStringIs(member.key, "message")) error.message = StringValue(member.value).value_or("");
    if (JsonStringIs(member.key, "data")) error.data = std::string(member.value);
    return true;
  });
  return error;
}

absl::Status SplitBatch(absl::string_view line, absl::FunctionRef<void(absl::string_view element)> visit) {
  line = WithoutSpaceAround(line);
  if (line.empty() || line[0] != '[' || ValidateJson(line) != JsonError::kNone) {
    return absl::InvalidArgumentError("can't take a JSON-RPC batch apart: it is not a JSON array");
  }
  if (WithoutSpaceAround(Inside(line)).empty()) {
    return absl::InvalidArgumentError("can't take a JSON-RPC batch apart: it is empty");
  }
  ForEachMember(line, [&visit](const JsonMember& element) {
    visit(element.value);
    return true;
  });
  return absl::OkStatus();
}

absl::StatusOr<std::string> RequestLine(std::int64_t id, absl::string_view method, absl::string_view params,
                                        absl::string_view first_member) {
  return CallLine("request", absl::StrCat(",\"id\":", id), method, params, first_member);
}

absl::StatusOr<LargeRequest> LargeRequest::Make(std::int64_t id, absl::string_view method, std::string params,
                                                absl::string_view first_member) {
  const absl::string_view trimmed = WithoutSpaceAround(params);
  if (absl::Status status = CheckCall("request", method, trimmed.empty() ? " " : trimmed, first_member); !status.ok()) {
    return status;
  }
  LargeRequest request;
  absl::StrAppend(&request.head_, "{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"method\":", QuoteJson(method),
                  ",\"params\":");
  request.tail_ = "}\n";
  if (!first_member.empty()) {
    const std::size_t open = static_cast<std::size_t>(trimmed.data() - params.data());
    const bool is_alone = WithoutSpaceAround(Inside(trimmed)).empty();
    request.head_ += '{';
    AppendOnOneLine(first_member, &request.head_);
    params[open] = is_alone ? ' ' : ',';
    request.open_ = open;
  }
  for (std::size_t at = 0; at < params.size(); at += kPieceBytes) {
    PutOnOneLine(&params[at], std::min(kPieceBytes, params.size() - at));
  }
  request.params_ = std::make_shared<const std::string>(std::move(params));
  return request;
}

std::string LargeRequest::OriginalParams() const {
  std::string params = *params_;
  if (open_ != std::string::npos) params[open_] = '{';
  return params;
}

absl::StatusOr<std::string> NotificationLine(absl::string_view method, absl::string_view params) {
  return CallLine("notification", "", method, params, "");
}

absl::StatusOr<std::string> ResultLine(absl::string_view id, absl::string_view result) {
  if (!IsIdText(id)) return CantWrite("result", "its id is not a string or an integer");
  result = WithoutSpaceAround(result);
  if (ValidateJson(result) != JsonError::kNone) return CantWrite("result", "it is not JSON");
  std::string line;
  internal::Reserve(id.size() + result.size() + 40, &line);
  absl::StrAppend(&line, "{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"result\":");
  AppendOnOneLine(result, &line);
  line += "}\n";
  return line;
}

std::string ErrorLine(absl::string_view id, const ErrorObject& error) {
  const bool has_id = IsIdText(id);
  std::string line = absl::StrCat("{\"jsonrpc\":\"2.0\",\"id\":", has_id ? id : "null",
                                  ",\"error\":{\"code\":", error.code, ",\"message\":", QuoteJson(error.message));
  if (!error.data.empty() && ValidateJson(error.data) == JsonError::kNone) {
    line += ",\"data\":";
    AppendOnOneLine(WithoutSpaceAround(error.data), &line);
  }
  line += "}}\n";
  return line;
}

}  // namespace bulkhead::jsonrpc
