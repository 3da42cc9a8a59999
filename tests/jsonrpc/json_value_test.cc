// Documents, and the texts that can't be one.
#include "bulkhead/jsonrpc/json_value.h"

#include <string>

#include "bulkhead/jsonrpc/json_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::jsonrpc {
namespace {

using testing::HasSubstr;

TEST(ToJson, ReadsADocument) {
  const absl::StatusOr<nlohmann::json> json = ToJson(R"( {"a":[1,2.5,"x\u00e9"]} )");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(*ToText(*json), "{\"a\":[1,2.5,\"x\xC3\xA9\"]}");
}

TEST(ToJson, SaysWhatCanNotBeHeld) {
  for (const absl::string_view text : {"1e400", "\"\\ud800\""}) {
    ASSERT_EQ(ValidateJson(text), JsonError::kNone) << text;
    EXPECT_THAT(std::string(ToJson(text).status().message()), HasSubstr("use the text as it is")) << text;
  }
  EXPECT_THAT(std::string(ToJson("{").status().message()), HasSubstr("not JSON"));
  EXPECT_THAT(std::string(ToJson("\"\xFF\"").status().message()), HasSubstr("not UTF-8"));
  EXPECT_THAT(std::string(ToJson(std::string(100'000, '[')).status().message()), HasSubstr("too deeply"));
}

nlohmann::json Nested(int depth) {
  nlohmann::json json = nlohmann::json::array();
  for (int i = 1; i != depth; ++i) json = nlohmann::json::array({std::move(json)});
  return json;
}

TEST(ToText, HasTheSameLimits) {
  EXPECT_TRUE(ToText(Nested(kNestingMax)).ok());
  EXPECT_THAT(std::string(ToText(Nested(kNestingMax + 1)).status().message()), HasSubstr("too deeply"));
  EXPECT_EQ(ToText(nlohmann::json("\xFF")).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ToText(nlohmann::json(nlohmann::json::value_t::discarded)).ok());
}

}  // namespace
}  // namespace bulkhead::jsonrpc
