// Documents, when they are wanted: the one place of this folder that knows nlohmann_json.
#ifndef BULKHEAD_JSONRPC_JSON_VALUE_H_
#define BULKHEAD_JSONRPC_JSON_VALUE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace bulkhead::jsonrpc {

// InvalidArgument where nlohmann can't hold it, which valid JSON text may be: see json_text.h.
absl::StatusOr<nlohmann::json> ToJson(absl::string_view text);
// One line of JSON. InvalidArgument if a string in it is not UTF-8.
absl::StatusOr<std::string> ToText(const nlohmann::json& json);

}  // namespace bulkhead::jsonrpc

#endif  // BULKHEAD_JSONRPC_JSON_VALUE_H_
