#include "bulkhead/jsonrpc/json_value.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/jsonrpc/json_text.h"

namespace bulkhead::jsonrpc {
namespace {

// Whether there are at most `levels` arrays and objects inside one another: nlohmann's dump() recurses.
bool IsWithin(const nlohmann::json& json, int levels) {
  if (!json.is_structured()) return true;
  if (levels == 0) return false;
  for (const nlohmann::json& child : json) {
    if (!IsWithin(child, levels - 1)) return false;
  }
  return true;
}

absl::string_view WhyNot(JsonError error) {
  switch (error) {
    case JsonError::kNone:
    case JsonError::kDuplicateKey:
      break;
    case JsonError::kSyntax:
      return "it is not JSON (RFC 8259)";
    case JsonError::kUtf8:
      return "a string in it is not UTF-8";
    case JsonError::kTooDeep:
      return "it nests too deeply";
  }
  return "a number in it is beyond a double, or a string has half a surrogate pair, which nlohmann_json can't hold; "
         "use the "
         "text as it is";
}

}  // namespace

absl::StatusOr<nlohmann::json> ToJson(absl::string_view text) {
  const JsonError error = ValidateJson(text);
  nlohmann::json json(nlohmann::json::value_t::discarded);
  if (error == JsonError::kNone) json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_discarded()) return json;
  return absl::InvalidArgumentError(
      absl::StrCat("can't make a document of ", text.size(), " bytes of JSON: ", WhyNot(error)));
}

absl::StatusOr<std::string> ToText(const nlohmann::json& json) {
  constexpr absl::string_view kFailed = "can't write a document as JSON: ";
  if (json.is_discarded()) return absl::InvalidArgumentError(absl::StrCat(kFailed, "it is none"));
  if (!IsWithin(json, kNestingMax))
    return absl::InvalidArgumentError(absl::StrCat(kFailed, WhyNot(JsonError::kTooDeep)));
  try {
    return json.dump();
  } catch (const nlohmann::json::type_error&) {
    return absl::InvalidArgumentError(absl::StrCat(kFailed, WhyNot(JsonError::kUtf8)));
  }
}

}  // namespace bulkhead::jsonrpc
