// What is a JSON-RPC message, what it says, and the lines that are sent.
#include "bulkhead/jsonrpc/message.h"

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "bulkhead/jsonrpc/json_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::jsonrpc {

std::ostream& operator<<(std::ostream& out, JunkReason reason) {
  const absl::string_view text = JunkReasonText(reason);
  return out.write(text.data(), static_cast<std::streamsize>(text.size()));
}

namespace {

using testing::ElementsAre;

Message MustParse(absl::string_view line) {
  const auto parsed = Message::Parse(line);
  if (const Message* const message = std::get_if<Message>(&parsed)) return *message;
  ADD_FAILURE() << line << " " << std::get<JunkReason>(parsed);
  return std::get<Message>(Message::Parse(R"({"jsonrpc":"2.0","method":"none"})"));
}

// Absent if it is a message.
std::optional<JunkReason> WhyJunk(absl::string_view line) {
  const auto parsed = Message::Parse(line);
  const JunkReason* const reason = std::get_if<JunkReason>(&parsed);
  return reason == nullptr ? std::nullopt : std::optional(*reason);
}

// A message with these members beside "jsonrpc".
std::string With(absl::string_view members) { return absl::StrCat(R"({"jsonrpc":"2.0",)", members, "}"); }

TEST(Message, Request) {
  const std::string line = With(R"("id":7,"method":"tools/call","params":{"a": [1]})");
  const Message message = MustParse(line);
  EXPECT_EQ(message.kind(), Message::Kind::kRequest);
  EXPECT_EQ(message.id(), "7");
  EXPECT_EQ(message.integer_id(), 7);
  EXPECT_TRUE(message.Is("tools/call"));
  EXPECT_FALSE(message.Is("tools/cal"));
  EXPECT_EQ(message.method(), "tools/call");
  EXPECT_EQ(message.params(), "{\"a\": [1]}");
  EXPECT_EQ(message.line(), line);
  EXPECT_EQ(message.params().data(), line.data() + line.find("{\"a\"")) << "a view, not a copy";
}

TEST(Message, Notification) {
  const std::string line = With(R"("method":"a\/b\"")");
  const Message message = MustParse(line);
  EXPECT_EQ(message.kind(), Message::Kind::kNotification);
  EXPECT_EQ(message.id(), "");
  EXPECT_EQ(message.integer_id(), std::nullopt);
  EXPECT_EQ(message.params(), "");
  EXPECT_TRUE(message.Is("a/b\""));
  EXPECT_EQ(message.method(), "a/b\"");
}

TEST(Message, Result) {
  for (const absl::string_view result : {"{}", "null", "[1,2]", "\"x\"", "1e400", "false", "\"\\ud800\""}) {
    const std::string line = With(absl::StrCat(R"("id":"x","result":)", result));
    const Message message = MustParse(line);
    EXPECT_EQ(message.kind(), Message::Kind::kResult);
    EXPECT_EQ(message.id(), "\"x\"");
    EXPECT_EQ(message.integer_id(), std::nullopt);
    EXPECT_EQ(message.result(), result);
    EXPECT_FALSE(message.Is(""));
  }
}

TEST(Message, Error) {
  const std::string line = With(R"("id":1,"error":{"code":-32601,"message":"no \u00e9","data":{"a":1}})");
  const Message message = MustParse(line);
  EXPECT_EQ(message.kind(), Message::Kind::kError);
  EXPECT_EQ(message.error().code, -32601);
  EXPECT_EQ(message.error().message, "no \xC3\xA9");
  EXPECT_EQ(message.error().data, "{\"a\":1}");
}

TEST(Message, AnErrorMayLackIdMessageAndData) {
  for (const absl::string_view id : {R"("id":null,)", ""}) {
    const std::string line = With(absl::StrCat(id, R"("error":{"code":-32700.0})"));
    const Message message = MustParse(line);
    EXPECT_EQ(message.kind(), Message::Kind::kError);
    EXPECT_EQ(message.id(), "");
    EXPECT_EQ(message.error().code, -32700);
    EXPECT_EQ(message.error().message, "");
    EXPECT_EQ(message.error().data, "");
  }
}

TEST(Message, TheOrderOfMembersAndSpaceIsFree) {
  const Message message =
      MustParse(" { \"result\" : { } ,\t\"other\" : [ ] , \"id\" : 7.0 ,\r\n \"jsonrpc\" : \"2.0\" } ");
  EXPECT_EQ(message.kind(), Message::Kind::kResult);
  EXPECT_EQ(message.result(), "{ }");
  EXPECT_EQ(message.integer_id(), 7);
  EXPECT_EQ(message.id(), "7.0");
}

TEST(Message, KeysAndValuesMayBeWrittenWithEscapes) {
  const Message message = MustParse(R"({"\u006asonrpc":"\u0032.0","i\u0064":1,"m\u0065thod":"pin\u0067"})");
  EXPECT_EQ(message.kind(), Message::Kind::kRequest);
  EXPECT_TRUE(message.Is("ping"));
}

TEST(Message, IdsThatMeanAnInteger) {
  const auto integer_id = [](absl::string_view id) {
    return MustParse(With(absl::StrCat(R"("result":1,"id":)", id))).integer_id();
  };
  for (const absl::string_view id : {"7", "7.0", "\"7\"", "70e-1", "\"\\u0037\""}) EXPECT_EQ(integer_id(id), 7) << id;
  EXPECT_EQ(integer_id("\"-7\""), -7);
  for (const absl::string_view id :
       {"\"\"", "\" 7\"", "\"07\"", "\"7x\"", "\"7.0\"", "\"7e0\"", "1e40", "12345678901234567890"}) {
    EXPECT_EQ(integer_id(id), std::nullopt) << id;
  }
}

TEST(Message, WhatIsNotJsonIsJunk) {
  ASSERT_EQ(WhyJunk(With(R"("method":"x")")), std::nullopt);
  for (const absl::string_view line :
       {"", "Starting...", "{", R"({"jsonrpc":"2.0","method":"x"}})", R"({"jsonrpc":"2.0","method":"x"} x)",
        R"({"jsonrpc":"2.0","method":"x",})", R"({"jsonrpc":"2.0","method":"x","params":[NaN]})",
        "{\"jsonrpc\":\"2.0\",\"method\":\"\xFF\"}", R"({"jsonrpc":"2.0","id":1,"error":{"code":1,}})"}) {
    EXPECT_EQ(WhyJunk(line), JunkReason::kNotJson) << line;
  }
}

TEST(Message, JsonThatIsNoMessageIsJunk) {
  for (const std::string& line : {
           std::string("null"),
           std::string("42"),
           std::string("\"x\""),
           std::string("{}"),
           // jsonrpc
           std::string(R"({"method":"x"})"),
           std::string(R"({"jsonrpc":"1.0","method":"x"})"),
           std::string(R"({"jsonrpc":2.0,"method":"x"})"),
           std::string(R"({"jsonrpc":"2.0"})"),
           // method and params
           With(R"("method":1)"),
           With(R"("method":null)"),
           With(R"("method":"x","params":null)"),
           With(R"("method":"x","params":"x")"),
           // ids
           With(R"("method":"x","id":null)"),
           With(R"("method":"x","id":1.5)"),
           With(R"("method":"x","id":true)"),
           With(R"("method":"x","id":{})"),
           With(R"("result":1)"),
           With(R"("result":1,"id":null)"),
           With(R"("result":1,"id":0.1)"),
           With(R"("error":{"code":1},"id":1.5)"),
           With(R"("error":{"code":1},"id":[])"),
           With(R"("id":1)"),
           // error objects
           With(R"("id":1,"error":null)"),
           With(R"("id":1,"error":[])"),
           With(R"("id":1,"error":"x")"),
           With(R"("id":1,"error":{})"),
           With(R"("id":1,"error":{"code":"1"})"),
           With(R"("id":1,"error":{"code":1.5})"),
           With(R"("id":1,"error":{"code":1,"message":1})"),
           // more than one kind
           With(R"("id":1,"method":"x","result":1)"),
           With(R"("id":1,"method":"x","error":{"code":1})"),
           With(R"("id":1,"result":1,"error":{"code":1})"),
           With(R"("id":1,"result":1,"error":null)"),
       }) {
    EXPECT_EQ(WhyJunk(line), JunkReason::kNotAMessage) << line;
  }
}

TEST(Message, AKeyTwiceIsJunk) {
  ASSERT_EQ(WhyJunk(With(R"("id":1,"method":"x","params":{"a":1,"a":2},"b":1,"c":2)")), std::nullopt);
  for (const absl::string_view members :
       {R"("id":1,"id":1,"method":"x")", R"("id":1,"method":"x","\u0069d":2)", R"("jsonrpc":"2.0","id":1,"method":"x")",
        R"("id":1,"result":1,"result":2)", R"("method":"x","b":1,"b":1)", R"("method":"x","b":1,"\u0062":1)"}) {
    EXPECT_EQ(WhyJunk(With(members)), JunkReason::kDuplicateKey) << members;
  }
}

TEST(Message, UnknownMembersAreBounded) {
  const auto with_unknown = [](int count) {
    std::string members = R"("method":"x")";
    for (int i = 0; i != count; ++i) absl::StrAppend(&members, ",\"k", i, "\":1");
    return With(members);
  };
  EXPECT_EQ(WhyJunk(with_unknown(15)), std::nullopt);
  EXPECT_EQ(WhyJunk(with_unknown(16)), std::nullopt);
  EXPECT_EQ(WhyJunk(with_unknown(17)), JunkReason::kNotAMessage);
}

TEST(Message, ABatchIsJunkOfItsOwnKind) {
  EXPECT_EQ(WhyJunk("[]"), JunkReason::kBatch);
  EXPECT_EQ(WhyJunk(absl::StrCat(" [", With(R"("method":"x")"), "] ")), JunkReason::kBatch);
  EXPECT_EQ(WhyJunk("[1"), JunkReason::kNotJson);
}

TEST(Message, NestsAsDeepAsJsonMay) {
  const auto nested = [](absl::string_view before, int depth) {
    const auto size = static_cast<std::size_t>(depth);
    return absl::StrCat(before, std::string(size, '['), std::string(size, ']'));
  };
  // The envelope is one level, an error object another.
  for (const auto& [before, after, around] :
       {std::tuple(R"({"jsonrpc":"2.0","id":1,"result":)", "}", 1),
        std::tuple(R"({"jsonrpc":"2.0","id":1,"error":{"code":1,"data":)", "}}", 2)}) {
    EXPECT_EQ(WhyJunk(nested(before, kNestingMax - around - 1) + after), std::nullopt);
    EXPECT_EQ(WhyJunk(nested(before, kNestingMax - around) + after), std::nullopt);
    EXPECT_EQ(WhyJunk(nested(before, kNestingMax - around + 1) + after), JunkReason::kTooDeep);
    EXPECT_EQ(WhyJunk(nested(before, 100'000) + after), JunkReason::kTooDeep);
  }
  EXPECT_EQ(WhyJunk(std::string(100'000, '[')), JunkReason::kTooDeep);
}

std::vector<std::string> Elements(absl::string_view line) {
  std::vector<std::string> elements;
  const absl::Status split = SplitBatch(line, [&](absl::string_view element) { elements.emplace_back(element); });
  if (!split.ok()) elements.emplace_back(split.message());
  return elements;
}

TEST(SplitBatch, GivesTheElementsInOrderOrNoneOfThem) {
  EXPECT_THAT(Elements(" [ {\"a\":1} ,2,[3]] "), ElementsAre("{\"a\":1}", "2", "[3]"));
  for (const absl::string_view line : {"", "1", "{}", "[1,2", "[1,]", "[1] x"}) {
    EXPECT_THAT(Elements(line), ElementsAre("can't take a JSON-RPC batch apart: it is not a JSON array")) << line;
  }
  EXPECT_THAT(Elements("[ \n]"), ElementsAre("can't take a JSON-RPC batch apart: it is empty"));
}

TEST(Lines, AreWhatParseReads) {
  EXPECT_EQ(*RequestLine(1, "tools/list", ""), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n");
  EXPECT_EQ(*RequestLine(-2, "a\"b", "[]"), "{\"jsonrpc\":\"2.0\",\"id\":-2,\"method\":\"a\\\"b\",\"params\":[]}\n");
  EXPECT_EQ(*NotificationLine("x", " {\"a\":1}\n"), "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{\"a\":1}}\n");
  EXPECT_EQ(*ResultLine("\"s1\"", "{}"), "{\"jsonrpc\":\"2.0\",\"id\":\"s1\",\"result\":{}}\n");
  EXPECT_EQ(*ResultLine("7.0", "null"), "{\"jsonrpc\":\"2.0\",\"id\":7.0,\"result\":null}\n");
  EXPECT_EQ(ErrorLine("3", {-32601, "Method \"x\" not found", ""}),
            "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32601,\"message\":\"Method \\\"x\\\" not found\"}}\n");
  EXPECT_EQ(ErrorLine("\"a\"", {1, "", "[1,\n2]"}),
            "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":1,\"message\":\"\",\"data\":[1, 2]}}\n");
}

TEST(Lines, AreOneLineWhateverComesIn) {
  EXPECT_EQ(*RequestLine(1, "a\nb\r", "{\n \"k\" :\r\n[1,\n\"\\n\"]\n}"),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u000ab\\u000d\",\"params\":{  \"k\" :  [1, \"\\n\"] }}\n");
  EXPECT_EQ(*ResultLine("1", "\n{\n}\n"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{ }}\n");
}

TEST(Lines, AMemberMayBeAddedToParams) {
  const std::string head = R"({"jsonrpc":"2.0","id":1,"method":"x","params":)";
  const std::string member = R"("a":1)";
  EXPECT_EQ(*RequestLine(1, "x", "", member), head + "{\"a\":1}}\n");
  EXPECT_EQ(*RequestLine(1, "x", "{ }", member), head + "{\"a\":1}}\n");
  EXPECT_EQ(*RequestLine(1, "x", "\n{\n\"b\":\n2}", member), head + "{\"a\":1,\"b\": 2}}\n");
  EXPECT_EQ(RequestLine(1, "x", "[1]", member).status().code(), absl::StatusCode::kInvalidArgument);
}

std::string TextOf(const LargeRequest& request) { return request.head() + *request.params() + request.tail(); }

// Whatever RequestLine makes of a text, the three parts together mean the same, on one line, and say how long they are.
TEST(LargeRequests, AreTheLineOfRequestLine) {
  for (const char* params :
       {"{}", " { } ", "{\"a\":1}", "\r\n{\n\"a\" :\r[1,\n2] }\n", "{\"\\n\":\"\\ud800\"}", "[]", "[1]"}) {
    for (const char* first : {"", "\"m\":{\"n\":\n1}"}) {
      const auto line = RequestLine(7, "a\"b", params, first);
      const auto large = LargeRequest::Make(7, "a\"b", params, first);
      ASSERT_EQ(large.ok(), line.ok()) << params;
      if (!line.ok()) continue;
      const std::string text = TextOf(*large);
      EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
      EXPECT_EQ(text.find('\r'), std::string::npos) << text;
      EXPECT_EQ(text.size(), large->size());
      const auto without_space = [](const std::string& from) { return absl::StrReplaceAll(from, {{" ", ""}}); };
      EXPECT_EQ(without_space(text), without_space(*line));
      EXPECT_EQ(large->OriginalParams(), absl::StrReplaceAll(params, {{"\n", " "}, {"\r", " "}}));
    }
  }
}

TEST(LargeRequests, AreNotMadeOfWhatIsNoJson) {
  for (const char* params : {"", " ", "7", "{", "{}x", "{\"a\":}", "{\"a\":\"\xff\"}", "[1] 2"}) {
    EXPECT_EQ(LargeRequest::Make(1, "x", params).status().code(), absl::StatusCode::kInvalidArgument) << params;
    EXPECT_EQ(LargeRequest::Make(1, "x", params, "\"a\":1").status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(LargeRequest::Make(1, "x", "[1]", "\"a\":1").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LargeRequest::Make(1, "\xFF", "{}").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(LargeRequests, AreOneLineWhereverTheNewlinesAre) {
  for (const std::size_t at : {1u, 65534u, 65535u, 65536u, 65537u, 200000u}) {
    std::string params = "{" + std::string(200'010, ' ') + "\"a\":1}";
    params[at] = '\n';
    params[at + 1] = '\r';
    const char* const bytes = params.data();
    const auto large = LargeRequest::Make(1, "x", std::move(params), "\"b\":2");
    ASSERT_TRUE(large.ok());
    EXPECT_EQ(large->params()->data(), bytes) << "not copied";
    const std::string text = TextOf(*large);
    EXPECT_EQ(text.find_first_of("\r\n"), text.size() - 1) << at;
  }
}

TEST(Lines, AreNotMadeOfWhatIsNoJson) {
  for (const absl::string_view params :
       {"1", "null", "\"{}\"", "{", "{}{}", "[1,]", "}", " ", "{},\"id\":2", "{\"a\":\"\xFF\"}"}) {
    EXPECT_EQ(RequestLine(1, "x", params).status().code(), absl::StatusCode::kInvalidArgument) << params;
    EXPECT_EQ(NotificationLine("x", params).status().code(), absl::StatusCode::kInvalidArgument) << params;
  }
  EXPECT_EQ(RequestLine(1, "\xFF", "").status().message(), "can't write a JSON-RPC request: its method is not UTF-8");
  for (const absl::string_view result : {"", "{", "1 2"}) EXPECT_FALSE(ResultLine("1", result).ok()) << result;
  for (const absl::string_view id : {"", "null", "1.5", "{}", "1,", "\"a", "\"a\"\"b\"", "\"a\"\n", "\n1", "1 "}) {
    EXPECT_FALSE(ResultLine(id, "{}").ok()) << id;
    EXPECT_EQ(ErrorLine(id, {1, "m", "{"}),
              "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"m\"}}\n")
        << id;
  }
}

}  // namespace
}  // namespace bulkhead::jsonrpc
