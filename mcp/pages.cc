#include "bulkhead/mcp/pages.h"

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bulkhead/jsonrpc/json_text.h"

namespace bulkhead::mcp {

Pages::Pages(std::string method, std::string member, std::size_t message_bytes_max)
    : method_(std::move(method)),
      member_(std::move(member)),
      bytes_left_(message_bytes_max > std::numeric_limits<std::size_t>::max() / kPagesMessagesMax
                      ? std::numeric_limits<std::size_t>::max()
                      : message_bytes_max * kPagesMessagesMax) {}

std::string Pages::Params() const {
  return cursor_.empty() ? "" : absl::StrCat("{\"cursor\":", jsonrpc::QuoteJson(cursor_), "}");
}

absl::StatusOr<bool> Pages::Take(const Reply& reply) {
  if (reply.error) {
    return absl::UnknownError(
        absl::StrCat("the server answered ", method_, ": ", reply.error->message, " (code ", reply.error->code, ")"));
  }
  const absl::string_view list = jsonrpc::FindMember(reply.result, member_).value_or("");
  if (list.empty() || list.front() != '[') {
    return absl::DataLossError(absl::StrCat("the server's answer to ", method_, " has no list \"", member_, "\""));
  }
  bool has_room = true;
  jsonrpc::ForEachMember(list, [&](const jsonrpc::JsonMember& element) {
    const std::size_t bytes = element.value.size() + sizeof(std::string);
    has_room = bytes <= bytes_left_;
    if (!has_room) return false;
    bytes_left_ -= bytes;
    elements_.emplace_back(element.value);
    return true;
  });
  std::string next = jsonrpc::StringValue(jsonrpc::FindMember(reply.result, "nextCursor").value_or("")).value_or("");
  if (!has_room || (!next.empty() && ++pages_ >= kPagesMax)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the server's answers to ", method_, " have no end: ", elements_.size(), " elements on ", pages_, " pages"));
  }
  if (!next.empty() && next == cursor_) {
    return absl::DataLossError(
        absl::StrCat("the server's answers to ", method_, " have no end: a page names itself as the next"));
  }
  cursor_ = std::move(next);
  return !cursor_.empty();
}

}  // namespace bulkhead::mcp
