// The texts that open a conversation, and metadata.
#include "bulkhead/mcp/protocol.h"

#include <map>
#include <string>
#include <variant>

#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/jsonrpc/message.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace bulkhead::mcp {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kVersionKey[] = "io.modelcontextprotocol/protocolVersion";
constexpr char kInfoKey[] = "io.modelcontextprotocol/clientInfo";
constexpr char kCapabilitiesKey[] = "io.modelcontextprotocol/clientCapabilities";

const ClientInfo kClient = {"tester", "1.2", R"({"roots":{}})"};

json Modern(absl::string_view params, std::int64_t token = -1) {
  const auto text = ModernParams(params, kClient, "2026-07-28", token);
  return text.ok() ? json::parse(*text) : json(std::string(text.status().message()));
}

json ThreeKeys() {
  return {{kVersionKey, "2026-07-28"},
          {kInfoKey, {{"name", "tester"}, {"version", "1.2"}}},
          {kCapabilitiesKey, {{"roots", json::object()}}}};
}

TEST(Versions, AreKnownInTheirEraOnly) {
  EXPECT_TRUE(IsKnown("2026-07-28", Era::kModern));
  EXPECT_FALSE(IsKnown("2026-07-28", Era::kLegacy));
  for (const char* version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    EXPECT_TRUE(IsKnown(version, Era::kLegacy)) << version;
    EXPECT_FALSE(IsKnown(version, Era::kModern)) << version;
  }
  for (const char* version : {"", "2024-10-07", "2025-11-2", "2025-11-255", "draft"}) {
    EXPECT_FALSE(IsKnown(version, Era::kLegacy)) << version;
    EXPECT_FALSE(IsKnown(version, Era::kModern)) << version;
  }
}

TEST(Versions, ArePreferredFirst) {
  EXPECT_THAT(kLegacyVersions, ElementsAre("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"));
  EXPECT_THAT(kModernVersions, ElementsAre("2026-07-28"));
}

TEST(Eras, HaveNames) {
  EXPECT_EQ(EraName(Era::kLegacy), "legacy");
  EXPECT_EQ(EraName(Era::kModern), "modern");
}

TEST(Initialize, SaysWhoIsSpeaking) {
  EXPECT_EQ(json::parse(InitializeParams(kClient, "2025-11-25")), json::parse(R"({
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {}},
    "clientInfo": {"name": "tester", "version": "1.2"}
  })"));
}

TEST(Initialize, NamesThatNeedEscapesAndNoVersionAreFine) {
  const json params = json::parse(InitializeParams({"a\"b\\c\n", "", "{}"}, "2025-11-25"));
  EXPECT_EQ(params["clientInfo"]["name"], "a\"b\\c\n");
  EXPECT_FALSE(params["clientInfo"]["version"].get<std::string>().empty());
}

TEST(Discover, CarriesTheThreeKeysAndNothingElse) {
  EXPECT_EQ(json::parse(DiscoverParams(kClient, "2026-07-28")), (json{{"_meta", ThreeKeys()}}));
}

TEST(ModernParams, AddsTheThreeKeys) {
  EXPECT_EQ(Modern(""), (json{{"_meta", ThreeKeys()}}));
  EXPECT_EQ(Modern("{}"), (json{{"_meta", ThreeKeys()}}));
  EXPECT_EQ(Modern(" \n{ \"cursor\" : \"c\" }\t"), (json{{"cursor", "c"}, {"_meta", ThreeKeys()}}));
}

TEST(ModernParams, KeepsWhatElseIsInTheMetadata) {
  json meta = ThreeKeys();
  meta["traceparent"] = "00-1-2-03";
  meta["progressToken"] = "mine";
  EXPECT_EQ(Modern(R"({"_meta":{"traceparent":"00-1-2-03","progressToken":"mine"},"name":"x"})"),
            (json{{"name", "x"}, {"_meta", meta}}));
}

TEST(ModernParams, ReplacesOurOwnKeysHoweverTheyAreWritten) {
  EXPECT_EQ(Modern(R"({"_meta":{"io.modelcontextprotocol\/protocolVersion":"1900-01-01",
                                 "io.modelcontextprotocol/client\u0049nfo":{"name":"other"}}})"),
            (json{{"_meta", ThreeKeys()}}));
  const auto text = ModernParams(R"({"\u005fmeta":{"a":1}})", kClient, "2026-07-28", -1);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->find("u005f"), std::string::npos);
  EXPECT_EQ(json::parse(*text)["_meta"]["a"], 1);
}

TEST(ModernParams, MetadataThatIsNoObjectIsReplaced) {
  for (const char* meta : {"5", "null", "[1]", "\"x\""}) {
    EXPECT_EQ(Modern(R"({"_meta":)" + std::string(meta) + "}"), (json{{"_meta", ThreeKeys()}}));
  }
}

TEST(ModernParams, AProgressTokenIsAddedFromZeroOn) {
  EXPECT_FALSE(Modern("", -1)["_meta"].contains("progressToken"));
  EXPECT_EQ(Modern("", 0)["_meta"]["progressToken"], 0);
  EXPECT_EQ(Modern(R"({"_meta":{"progressToken":"mine"}})", 7)["_meta"]["progressToken"], 7);
}

TEST(ModernParams, KeepsBytesThatParsersRefuse) {
  const auto text =
      ModernParams(R"({"n":123456789012345678901234567890,"e":1e400,"s":"\ud800"})", kClient, "2026-07-28", -1);
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, testing::HasSubstr(R"("n":123456789012345678901234567890)"));
  EXPECT_THAT(*text, testing::HasSubstr(R"("e":1e400)"));
  EXPECT_THAT(*text, testing::HasSubstr(R"("s":"\ud800")"));
}

TEST(Params, ThatAreNoObjectAreRefused) {
  for (const char* params : {"[]", "7", "null", "\"x\"", "{", "{}x", "{\"a\":}", "{\"a\":\"\xff\"}", "x"}) {
    EXPECT_EQ(ModernRequestLine(1, "m", params, kClient, "2026-07-28", -1).status().code(),
              absl::StatusCode::kInvalidArgument)
        << params;
    EXPECT_EQ(LegacyRequestLine(1, "m", params, -1).status().code(), absl::StatusCode::kInvalidArgument) << params;
    EXPECT_EQ(LegacyRequestLine(1, "m", params, 1).status().code(), absl::StatusCode::kInvalidArgument) << params;
  }
}

TEST(LegacyRequestLine, ParamsAreAsTheyWere) {
  EXPECT_EQ(*LegacyRequestLine(1, "m", "", -1), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n");
  EXPECT_EQ(*LegacyRequestLine(1, "m", "  \n", -1), *LegacyRequestLine(1, "m", "", -1));
  EXPECT_EQ(*LegacyRequestLine(1, "m", R"({ "_meta":{"a":1} })", -1),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{ \"_meta\":{\"a\":1} }}\n");
}

TEST(LegacyRequestLine, GetsAProgressTokenFromZeroOn) {
  const auto params = [](const char* given, std::int64_t token) {
    return json::parse(*LegacyRequestLine(1, "m", given, token))["params"];
  };
  EXPECT_EQ(params("", 0), json::parse(R"({"_meta":{"progressToken":0}})"));
  EXPECT_EQ(params(R"({"name":"x","_meta":{"a":1,"progressToken":"mine"}})", 3),
            json::parse(R"({"name":"x","_meta":{"a":1,"progressToken":3}})"));
}

TEST(ModernRequestLine, HasTheParamsOfModernParamsOnce) {
  for (const char* params : {"", " { } ", R"({"name":"x"})", "{\n\"name\" : \"x\"\n}", R"({"_meta":{"a":1},"b":2})",
                             R"({"b":2,"\u005fmeta":{"a":1}})", R"({"_meta":5})", R"({"s":"\ud800","n":1e400})"}) {
    for (const std::int64_t token : {-1, 0}) {
      const std::string line = *ModernRequestLine(7, "m", params, kClient, "2026-07-28", token);
      EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
      const auto message = jsonrpc::Message::Parse(absl::string_view(line).substr(0, line.size() - 1));
      ASSERT_TRUE(std::holds_alternative<jsonrpc::Message>(message)) << line;
      const std::string written(std::get<jsonrpc::Message>(message).params());
      const std::string wanted = *ModernParams(params, kClient, "2026-07-28", token);
      std::map<std::string, std::string> is, should_be;
      int members = 0;
      jsonrpc::ForEachMember(written, [&](const jsonrpc::JsonMember& member) {
        is[std::string(member.key)] = std::string(member.value);
        ++members;
        return true;
      });
      jsonrpc::ForEachMember(wanted, [&](const jsonrpc::JsonMember& member) {
        should_be[std::string(member.key)] = std::string(member.value);
        return true;
      });
      EXPECT_EQ(is, should_be) << params;
      EXPECT_EQ(members, static_cast<int>(should_be.size())) << line;
    }
  }
}

TEST(WithMember, SetsOneMemberOnce) {
  EXPECT_EQ(json::parse(WithMember("", "a", "1")), json::parse(R"({"a":1})"));
  EXPECT_EQ(json::parse(WithMember("{}", "a", "1")), json::parse(R"({"a":1})"));
  EXPECT_EQ(json::parse(WithMember(R"({"b":2,"a":3})", "a", "1")), json::parse(R"({"a":1,"b":2})"));
  EXPECT_EQ(WithMember(R"({"a":2,"\u0061":3})", "a", "1"), R"({"a":1})");
  EXPECT_EQ(WithMember(R"({"x\"y":2})", "a", "1"), R"({"a":1,"x\"y":2})");
}

TEST(ServerInfo, IsReadFromInitialize) {
  const ServerInfo info = ReadServerInfo(R"({"protocolVersion":"2025-06-18","capabilities":{"tools": {}},
      "serverInfo":{"name":"n\u00e9","version":"3"},"instructions":"read\nme"})");
  EXPECT_EQ(info.name, "né");
  EXPECT_EQ(info.version, "3");
  EXPECT_EQ(info.protocol_version, "2025-06-18");
  EXPECT_EQ(info.capabilities, R"({"tools": {}})");
  EXPECT_EQ(info.instructions, "read\nme");
}

TEST(ServerInfo, IsReadFromDiscover) {
  const ServerInfo info = ReadServerInfo(R"({"supportedVersions":["2026-07-28"],"capabilities":{},
      "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"m","version":"4"}}})");
  EXPECT_EQ(info.name, "m");
  EXPECT_EQ(info.version, "4");
  EXPECT_EQ(info.capabilities, "{}");
}

TEST(ServerInfo, WhatIsNotSaidIsEmpty) {
  for (const char* result : {"{}", "null", "[]", R"({"serverInfo":7,"_meta":[],"instructions":{}})",
                             R"({"serverInfo":{"name":1,"version":null}})"}) {
    const ServerInfo info = ReadServerInfo(result);
    EXPECT_EQ(info.name + info.version + info.protocol_version + info.capabilities + info.instructions, "") << result;
  }
}

TEST(StringArray, HoldsStringsOnly) {
  EXPECT_THAT(StringArray(R"(["a","\u0062"])"), ElementsAre("a", "b"));
  EXPECT_THAT(StringArray("[]"), IsEmpty());
  EXPECT_THAT(StringArray(R"(["a",1])"), IsEmpty());
  EXPECT_THAT(StringArray(R"({"0":"a"})"), IsEmpty());
  EXPECT_THAT(StringArray(""), IsEmpty());
  EXPECT_THAT(StringArray("null"), IsEmpty());
}

}  // namespace
}  // namespace bulkhead::mcp
