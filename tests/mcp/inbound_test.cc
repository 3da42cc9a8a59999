// What the server may send on its own: requests, notifications, batches, and answers that ask for input.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/mcp/client_fixture.h"

namespace bulkhead::mcp {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kTool[] = R"({"name":"t","arguments":{}})";
constexpr char kRoots[] = R"({"roots":[{"uri":"file:///srv"}]})";

// A host that answers later, as hosts with people in front of them do.
class Asking : public ClientTest {
 protected:
  Asking() {
    handlers.on_request = [this](const ServerRequest& request, Responder respond) {
      asked.push_back(request);
      responders.push_back(std::move(respond));
    };
  }
  void Respond(std::size_t index, std::variant<std::string, jsonrpc::ErrorObject> with) {
    ASSERT_GT(responders.size(), index);
    Responder respond = std::move(responders[index]);
    respond(std::move(with));
  }

  std::vector<ServerRequest> asked;
  std::vector<Responder> responders;
};
class LegacyRequest : public Asking {};
class ModernRequest : public Asking {};
class Notifications : public ClientTest {};
class Batches : public Asking {};
class Input : public Asking {
 protected:
  void SetUp() override { StartModern(); }
  // A call that the server answers with `result` at once.
  Json BeginWith(absl::string_view result, const CallOptions& call_options = {}) {
    call = Call("tools/call", kTool, call_options);
    const Json request = Hear("tools/call");
    Answer(request, result);
    return request;
  }
  std::shared_ptr<Outcome> call;
};

// --- Requests of a legacy server ---

TEST_F(LegacyRequest, APingIsAnsweredWithTheIdAsItWasWritten) {
  StartLegacy();
  for (const std::string id : {"\"a\"", "7", "1.0", "\"\\u0041\"", "-1", "9007199254740991"}) {
    Ask(id, "ping");
    EXPECT_THAT(HearLine(), HasSubstr("\"id\":" + id + ",")) << id;
  }
  EXPECT_THAT(asked, IsEmpty());
}

// One of every kind of line that a client writes, for schema/ to check in each version.
class EveryLegacyVersion : public Asking, public testing::WithParamInterface<absl::string_view> {};

TEST_P(EveryLegacyVersion, SpeaksAllOfIt) {
  StartLegacy(GetParam());
  CallOptions with_progress;
  with_progress.on_progress = [](const Progress&) {};
  const std::pair<const char*, const char*> calls[] = {
      {"ping", ""},
      {"logging/setLevel", R"({"level":"error"})"},
      {"tools/list", R"({"cursor":"2"})"},
      {"tools/call", kTool},
      {"resources/list", ""},
      {"resources/templates/list", ""},
      {"resources/read", R"({"uri":"file:///a"})"},
      {"resources/subscribe", R"({"uri":"file:///a"})"},
      {"resources/unsubscribe", R"({"uri":"file:///a"})"},
      {"prompts/list", ""},
      {"prompts/get", R"({"name":"p"})"},
      {"completion/complete", R"({"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b"}})"}};
  for (const auto& [method, params] : calls) {
    const auto call = Call(method, params, with_progress);
    const Json request = Hear(method);
    EXPECT_TRUE(request["params"]["_meta"].contains("progressToken")) << request;
    Answer(request, "{}");
    EXPECT_EQ(call->result(), "{}");
  }
  Call("tools/call", kTool);
  Hear("tools/call");
  client->Cancel(last_call, "a \"reason\"");
  Hear("notifications/cancelled");
  for (const char* note : {"notifications/initialized", "notifications/roots/list_changed"}) {
    EXPECT_TRUE(client->Notify(note, "").ok());
    Hear(note);
  }
  Ask("\"a\"", "ping");
  EXPECT_EQ(Hear()["result"], Json::object());
  const std::pair<const char*, const char*> answers[] = {
      {"roots/list", kRoots},
      {"sampling/createMessage", R"({"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"})"}};
  for (const auto& [method, answer] : answers) {
    Ask(absl::StrCat("\"", method, "\""), method, "{}");
    Respond(asked.size() - 1, std::string(answer));
    EXPECT_EQ(Hear()["result"], Json::parse(answer));
  }
  Ask("7", "roots/list");
  Respond(asked.size() - 1, jsonrpc::ErrorObject{-32000, "no", R"({"why":1})"});
  EXPECT_EQ(Hear()["error"]["code"], -32000);
}

INSTANTIATE_TEST_SUITE_P(, EveryLegacyVersion, testing::ValuesIn(kLegacyVersions), [](const auto& info) {
  return absl::StrReplaceAll(info.param, {{"-", "_"}});
});

class WithoutHandler : public ClientTest {};

TEST_F(WithoutHandler, RequestsAreNotFoundButPingIsAnswered) {
  StartLegacy();
  for (const char* method : {"roots/list", "sampling/createMessage", "elicitation/create", "x/y", "pings"}) {
    Ask("\"s2\"", method, "{}");
    EXPECT_EQ(Hear(),
              Json::parse(R"({"jsonrpc":"2.0","id":"s2","error":{"code":-32601,"message":"Method not found"}})"));
  }
  Ask("1", "ping");
  EXPECT_EQ(Hear()["result"], Json::object());
}

TEST_F(LegacyRequest, TheHostAnswersWhenItCan) {
  StartLegacy();
  Ask("1", "roots/list");
  Ask("\"two\"", "sampling/createMessage", R"({"messages":[],"maxTokens": 5})");
  Ask("3.0", "elicitation/create", R"({"message":"name?","requestedSchema":{"type":"object","properties":{}}})");
  ASSERT_THAT(asked, SizeIs(3));
  EXPECT_EQ(asked[0].method, "roots/list");
  EXPECT_EQ(asked[0].params, "");
  EXPECT_EQ(asked[1].params, R"({"messages":[],"maxTokens": 5})");
  EXPECT_TRUE(HearsNothing());
  Respond(2, R"({"action":"decline"})");
  EXPECT_THAT(HearLine(), testing::AllOf(HasSubstr(R"("id":3.0)"), HasSubstr(R"("result":{"action":"decline"})")));
  Respond(1, R"({"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"})");
  EXPECT_EQ(Hear()["id"], "two");
  Respond(0, kRoots);
  EXPECT_EQ(Hear(), (Json{{"jsonrpc", "2.0"}, {"id", 1}, {"result", Json::parse(kRoots)}}));
}

TEST_F(LegacyRequest, TheHostsErrorIsPassedOn) {
  StartLegacy();
  Ask("1", "sampling/createMessage", "{}");
  Respond(0, jsonrpc::ErrorObject{-1, "User rejected sampling request", R"({"by":"user"})"});
  EXPECT_EQ(Hear()["error"],
            Json::parse(R"({"code":-1,"message":"User rejected sampling request","data":{"by":"user"}})"));
}

TEST_F(LegacyRequest, ADroppedResponderAnswersWithAnInternalError) {
  StartLegacy();
  Ask("1", "roots/list");
  responders.clear();
  EXPECT_EQ(Hear()["error"]["code"], -32603);
  EXPECT_TRUE(HearsNothing());
}

TEST_F(LegacyRequest, AnAnswerThatIsNoObjectIsAnInternalError) {
  StartLegacy();
  for (const char* answer : {"", "{", "[]", "7", "null"}) {
    responders.clear();
    Ask("1", "roots/list");
    Respond(0, answer);
    EXPECT_EQ(Hear()["error"]["code"], -32603) << answer;
  }
}

TEST_F(LegacyRequest, OneThatTheServerCancelledIsNotAnswered) {
  StartLegacy();
  Ask("1", "roots/list");
  Ask("\"b\"", "roots/list");
  Say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  Respond(0, kRoots);
  EXPECT_TRUE(HearsNothing());
  Respond(1, kRoots);  // the control
  EXPECT_EQ(Hear()["id"], "b");
}

TEST_F(LegacyRequest, OneIdTwiceIsAnErrorAndSoAreTooManyAtOnce) {
  StartLegacy();
  Ask("0", "roots/list");
  Ask("0", "roots/list");
  EXPECT_EQ(Hear()["error"]["code"], -32603);
  for (int i = 1; i < 1024; ++i) Ask(absl::StrCat(i), "roots/list");
  EXPECT_TRUE(HearsNothing());
  Ask("1024", "roots/list");
  EXPECT_EQ(Hear()["error"]["code"], -32603);
  Respond(0, kRoots);
  EXPECT_EQ(Hear()["id"], 0);
  Ask("1025", "roots/list");
  EXPECT_TRUE(HearsNothing());
  EXPECT_THAT(asked, SizeIs(1025));
}

// Else the host would answer a question that it has not seen.
TEST_F(LegacyRequest, AnAnswerToOneThatWasTakenBackIsNoAnswerToTheNextOfItsId) {
  StartLegacy();
  Ask("1", "elicitation/create", R"({"message":"May I read the diary?"})");
  Say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  Ask("1", "elicitation/create", R"({"message":"May I burn the diary?"})");
  ASSERT_THAT(asked, SizeIs(2));
  Respond(0, R"({"action":"accept"})");
  EXPECT_TRUE(HearsNothing());
  Respond(1, R"({"action":"decline"})");
  EXPECT_EQ(Hear()["result"]["action"], "decline");
}

TEST_F(LegacyRequest, WhatWaitsForTheHostHasALimitInBytes) {
  options.connection.message_bytes_max = 1000;
  StartLegacy();
  const auto ask = [this](int id, std::size_t bytes) {
    const std::string head = absl::StrCat(R"({"jsonrpc":"2.0","id":)", id, R"(,"method":"roots/list","params":{"x":")");
    Say(head + std::string(bytes - head.size() - 3, 'x') + "\"}}");
  };
  ask(1, 1000);
  ask(2, 1000);
  EXPECT_TRUE(HearsNothing());
  ask(3, 100);
  EXPECT_EQ(Hear()["error"]["code"], -32603);
  Respond(0, kRoots);
  EXPECT_EQ(Hear()["id"], 1);
  ask(4, 900);
  ask(5, 100);
  EXPECT_TRUE(HearsNothing());
  ask(6, 100);
  EXPECT_EQ(Hear()["error"]["code"], -32603);
  Say(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}})");
  ask(7, 101);
  EXPECT_EQ(Hear()["error"]["code"], -32603);
  ask(8, 100);
  EXPECT_TRUE(HearsNothing());
  EXPECT_THAT(asked, SizeIs(5));
}

TEST_F(LegacyRequest, AnAnswerAfterTheClientIsGoneIsHarmless) {
  StartLegacy();
  Ask("1", "roots/list");
  ASSERT_THAT(responders, SizeIs(1));
  client.reset();
  Respond(0, kRoots);
  Run();
}

// --- Requests of a modern server ---

TEST_F(ModernRequest, IsDroppedAndNothingIsWritten) {
  StartModern();
  Ask("1", "ping");
  Ask("2", "roots/list");
  Ask("\"x\"", "sampling/createMessage", "{}");
  EXPECT_TRUE(HearsNothing());
  EXPECT_THAT(asked, IsEmpty());
  EXPECT_THAT(dropped, SizeIs(3));
  const auto call = Call("tools/list");  // the conversation goes on
  Answer(Hear(), R"({"resultType":"complete","tools":[]})");
  EXPECT_TRUE(call->reply.ok());
}

// --- Notifications ---

TEST_F(Notifications, AreHandedOnWithTheirParamsAsTheyCame) {
  std::vector<std::string> seen;
  handlers.on_notification = [&seen](absl::string_view method, absl::string_view params) {
    seen.push_back(absl::StrCat(method, " ", params));
  };
  StartLegacy();
  Say(R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  Say(R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info", "data":1e400}})");
  Say(R"({"jsonrpc":"2.0","method":"x\/y"})");
  EXPECT_THAT(seen, ElementsAre("notifications/tools/list_changed ",
                                R"(notifications/message {"level":"info", "data":1e400})", "x/y "));
  EXPECT_TRUE(HearsNothing());
}

TEST_F(Notifications, WithoutAHandlerAreHarmless) {
  handlers = Client::Handlers();
  StartLegacy();
  Say(R"({"jsonrpc":"2.0","method":"notifications/message","params":{}})");
  Say("junk");
  Ask("1", "ping");
  Hear();
  HangUp();
  Run();
}

// --- Batches ---

TEST_F(Batches, AreUnderstoodInTheVersionThatHasThem) {
  StartLegacy("2025-03-26");
  const auto first = Call("ping"), second = Call("ping");
  const std::string one = Hear()["id"].dump(), two = Hear()["id"].dump();
  Say(absl::StrCat(R"([{"jsonrpc":"2.0","id":)", two, R"(,"result":{"n":2}},)",
                   R"({"jsonrpc":"2.0","id":"p","method":"ping"},)", R"({"jsonrpc":"2.0","id":)", one,
                   R"(,"result":{"n":1}}])"));
  EXPECT_EQ(first->result(), R"({"n":1})");
  EXPECT_EQ(second->result(), R"({"n":2})");
  EXPECT_EQ(Hear()["id"], "p");
  EXPECT_THAT(dropped, IsEmpty());
}

class NoBatches : public Asking, public testing::WithParamInterface<const char*> {};

TEST_P(NoBatches, AreJunkInEveryOther) {
  if (GetParam() == std::string("2026-07-28")) {
    StartModern();
  } else {
    StartLegacy(GetParam());
  }
  const auto call = Call("tools/list");
  const Json request = Hear();
  Say(absl::StrCat(R"([{"jsonrpc":"2.0","id":)", request["id"].dump(), R"(,"result":{}}])"));
  EXPECT_EQ(call->count, 0);
  EXPECT_THAT(dropped, SizeIs(1));
  Answer(request, R"({"tools":[]})");
  EXPECT_TRUE(call->reply.ok());
}

INSTANTIATE_TEST_SUITE_P(Batches, NoBatches, testing::Values("2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"));

// --- Input ---

constexpr char kAsksTwice[] = R"({"resultType":"input_required","inputRequests":{
    "login":{"method":"elicitation/create","params":{"message":"who?"}},
    "r\u006fots":{"method":"roots/list"}},"requestState":"a\u0062\/c=="})";

std::string OnOneLine(std::string text) {
  for (char& c : text) {
    if (c == '\n') c = ' ';
  }
  return text;
}

TEST_F(Input, IsGivenUnderTheSameKeysAndANewId) {
  const Json first = BeginWith(OnOneLine(kAsksTwice));
  ASSERT_THAT(asked, SizeIs(2));
  EXPECT_EQ(asked[0].method, "elicitation/create");
  EXPECT_EQ(asked[0].params, R"({"message":"who?"})");
  EXPECT_EQ(asked[1].method, "roots/list");
  Respond(1, kRoots);
  EXPECT_TRUE(HearsNothing()) << "one answer is missing";
  Respond(0, R"({"action":"accept","content":{"name":"octocat"}})");
  const std::string line = HearLine();
  EXPECT_THAT(line, HasSubstr(R"("requestState":"a\u0062\/c==")")) << "byte by byte";
  const Json second = Json::parse(line);
  EXPECT_NE(second["id"], first["id"]);
  EXPECT_EQ(second["method"], "tools/call");
  EXPECT_EQ(second["params"]["name"], "t");
  EXPECT_EQ(second["params"]["_meta"], first["params"]["_meta"]);
  EXPECT_EQ(
      second["params"]["inputResponses"],
      (Json{{"login", {{"action", "accept"}, {"content", {{"name", "octocat"}}}}}, {"roots", Json::parse(kRoots)}}));
  EXPECT_EQ(call->count, 0);
  Answer(second, R"({"resultType":"complete","content":[]})");
  EXPECT_EQ(call->count, 1);
  EXPECT_EQ(call->result(), R"({"resultType":"complete","content":[]})");
}

TEST_F(Input, LargeParamsAreRepeatedAsTheyWere) {
  const std::string text(jsonrpc::LargeRequest::kParamsBytesMin, 'x');
  call = Call("tools/call", absl::StrCat(R"({"name":"t","arguments":{"x":")", text, R"("}})"));
  Json request = Hear("tools/call");
  for (int round = 0; round < 2; ++round) {
    Answer(request, R"({"resultType":"input_required","requestState":"s)" + std::to_string(round) + "\"}");
    const Json again = Hear("tools/call");
    EXPECT_NE(again["id"], request["id"]);
    EXPECT_EQ(again["params"]["requestState"], "s" + std::to_string(round));
    EXPECT_EQ(again["params"]["name"], "t");
    EXPECT_EQ(again["params"]["arguments"]["x"], text);
    request = again;
  }
  Answer(request, R"({"resultType":"complete","content":[]})");
  EXPECT_EQ(call->count, 1);
}

TEST_F(Input, OnlyAStateIsRepeatedAtOnce) {
  BeginWith(R"({"resultType":"input_required","requestState":"s1"})");
  const Json second = Hear("tools/call");
  EXPECT_EQ(second["params"]["requestState"], "s1");
  EXPECT_FALSE(second["params"].contains("inputResponses"));
  // A later round without a state does not repeat the earlier one.
  Answer(second, R"({"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}})");
  Respond(0, kRoots);
  const Json third = Hear("tools/call");
  EXPECT_FALSE(third["params"].contains("requestState"));
  EXPECT_EQ(third["params"]["inputResponses"]["r"], Json::parse(kRoots));
}

TEST_F(Input, NullIsAsGoodAsAbsent) {
  BeginWith(R"({"resultType":"input_required","inputRequests":null,"requestState":"s1"})");
  const Json second = Hear("tools/call");
  EXPECT_EQ(second["params"]["requestState"], "s1");
  Answer(second,
         R"({"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}},"requestState":null})");
  Respond(0, kRoots);
  EXPECT_FALSE(Hear("tools/call")["params"].contains("requestState"));
}

TEST_F(Input, TenRoundsAreGivenAndTheEleventhFails) {
  Json request = BeginWith(R"({"resultType":"input_required","requestState":"1"})");
  for (int round = 2; round <= 10; ++round) {
    request = Hear("tools/call");
    Answer(request, R"({"resultType":"input_required","requestState":"x"})");
    EXPECT_EQ(call->count, 0) << round;
  }
  request = Hear("tools/call");
  Answer(request, R"({"resultType":"input_required","requestState":"x"})");
  EXPECT_EQ(call->code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(call->message(), HasSubstr("10 times"));
  EXPECT_TRUE(HearsNothing());
}

TEST_F(Input, TheTenthRoundMayComplete) {
  BeginWith(R"({"resultType":"input_required","requestState":"1"})");
  for (int round = 2; round <= 10; ++round) {
    Answer(Hear("tools/call"), R"({"resultType":"input_required","requestState":"x"})");
  }
  Answer(Hear("tools/call"), R"({"resultType":"complete","content":[]})");
  EXPECT_TRUE(call->reply.ok());
}

TEST_F(Input, ThatIsNotSaidFailsTheCall) {
  for (const char* result :
       {R"({"resultType":"input_required"})", R"({"resultType":"input_required","inputRequests":{}})",
        R"({"resultType":"input_required","inputRequests":[]})",
        R"({"resultType":"input_required","inputRequests":7,"requestState":"s"})",
        R"({"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{}},"requestState":"s"})",
        R"({"resultType":"input_required","inputRequests":{"a":{"method":""}}})",
        R"({"resultType":"input_required","inputRequests":{"a":{"method":7}}})",
        R"({"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":[]}}})",
        R"({"resultType":"input_required","inputRequests":{"a":"roots/list"}})"}) {
    BeginWith(result);
    EXPECT_THAT(asked, IsEmpty());
    EXPECT_EQ(call->count, 1);
    EXPECT_EQ(call->code(), StatusCode::kFailedPrecondition) << result;
    EXPECT_TRUE(HearsNothing());
  }
}

TEST_F(Input, ForTooManyThingsAtOnceFailsTheCall) {
  const auto result = [](int count) {
    std::string requests;
    for (int i = 0; i != count; ++i) {
      absl::StrAppend(&requests, i == 0 ? "" : ",", "\"", i, R"(":{"method":"roots/list"})");
    }
    return absl::StrCat(R"({"resultType":"input_required","inputRequests":{)", requests, "}}");
  };
  BeginWith(result(1024));
  EXPECT_EQ(call->count, 0);
  EXPECT_THAT(asked, SizeIs(1024));
  BeginWith(result(1025));
  EXPECT_EQ(call->count, 1);
  EXPECT_EQ(call->code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(asked, SizeIs(1024));
}

TEST_F(Input, ADroppedResponderFailsTheCall) {
  BeginWith(R"({"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}})");
  responders.clear();
  Run();
  EXPECT_EQ(call->count, 1);
  EXPECT_EQ(call->code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(call->message(), HasSubstr("roots/list"));
  EXPECT_TRUE(HearsNothing());
}

TEST_F(Input, AnErrorOfTheHostFailsTheCallOnce) {
  BeginWith(OnOneLine(kAsksTwice));
  Respond(0, jsonrpc::ErrorObject{-1, "no thanks", ""});
  Respond(1, kRoots);
  Run();
  EXPECT_EQ(call->count, 1);
  EXPECT_THAT(call->message(), HasSubstr("no thanks"));
  EXPECT_TRUE(HearsNothing());
}

TEST_F(Input, AnAnswerThatIsNoObjectFailsTheCall) {
  for (const char* answer : {"", "{", "[]", "{},\"x\":{}"}) {
    responders.clear();
    BeginWith(R"({"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}})");
    Respond(0, answer);
    Run();
    EXPECT_EQ(call->count, 1) << answer;
    EXPECT_EQ(call->code(), StatusCode::kFailedPrecondition) << answer;
    EXPECT_THAT(call->message(), HasSubstr("roots/list"));
    EXPECT_TRUE(HearsNothing());
  }
}

TEST_F(Input, TheTimeoutDoesNotRunMeanwhile) {
  BeginWith(R"({"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}})",
            CallOptions{absl::Milliseconds(500), absl::Milliseconds(500), nullptr});
  RunFor(absl::Milliseconds(550));
  EXPECT_EQ(call->count, 0);
  Respond(0, kRoots);
  const Json second = Hear("tools/call");
  EXPECT_EQ(call->count, 0) << call->message();
  Answer(second, R"({"resultType":"complete","content":[]})");
  EXPECT_TRUE(call->reply.ok());
}

TEST_F(Input, TheTimeoutRunsAfterwards) {
  BeginWith(R"({"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}})",
            CallOptions{absl::Milliseconds(300), absl::ZeroDuration(), nullptr});
  Respond(0, kRoots);
  const Json second = Hear("tools/call");
  RunUntilEnded(call);
  EXPECT_EQ(call->code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Hear("notifications/cancelled")["params"]["requestId"], second["id"]);
}

TEST_F(Input, ACancelledCallIsNotRepeated) {
  BeginWith(R"({"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}})");
  client->Cancel(last_call, "enough");
  Respond(0, kRoots);  // before anything else runs
  Run();
  EXPECT_EQ(call->count, 1);
  EXPECT_EQ(call->code(), StatusCode::kCancelled);
  EXPECT_TRUE(HearsNothing()) << "nothing is in flight at the server";
}

TEST_F(Input, TheCallFailsWithTheServerMeanwhile) {
  BeginWith(R"({"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}})");
  client->FailAll(absl::UnavailableError("it ended"));
  EXPECT_EQ(call->count, 1);
  EXPECT_EQ(call->reply.status(), absl::UnavailableError("it ended"));
  Respond(0, kRoots);
  EXPECT_TRUE(HearsNothing());
  EXPECT_EQ(call->count, 1);
}

TEST_F(Input, IsAskedForOnlyWhereTheSpecificationAllowsIt) {
  const auto list = Call("tools/list");
  Answer(Hear(), R"({"resultType":"input_required","requestState":"s"})");
  Run();
  EXPECT_EQ(list->count, 1);
  EXPECT_EQ(list->code(), StatusCode::kDataLoss);
  EXPECT_TRUE(HearsNothing());
}

class InputWithoutHandler : public ClientTest {};

TEST_F(InputWithoutHandler, FailsTheCallUnlessThereIsOnlyAState) {
  StartModern();
  const auto call = Call("tools/call", kTool);
  Answer(Hear(), R"({"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}})");
  EXPECT_EQ(call->code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(HearsNothing());
  Call("tools/call", kTool);
  Answer(Hear(), R"({"resultType":"input_required","requestState":"s"})");
  EXPECT_EQ(Hear("tools/call")["params"]["requestState"], "s");
}

TEST_F(InputWithoutHandler, AHandlerThatAnswersAtOnceIsFine) {
  handlers.on_request = [](const ServerRequest&, Responder respond) { respond(kRoots); };
  StartModern();
  const auto call = Call("tools/call", kTool);
  Answer(Hear(), R"({"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},)"
                 R"("b":{"method":"roots/list"}}})");
  const Json second = Hear("tools/call");
  EXPECT_EQ(second["params"]["inputResponses"].size(), 2u);
  EXPECT_TRUE(HearsNothing());
}

TEST_F(InputWithoutHandler, NothingMoreIsAskedOnceTheCallHasFailed) {
  int asked = 0;
  handlers.on_request = [&asked](const ServerRequest&, Responder respond) {
    ++asked;
    respond(jsonrpc::ErrorObject{-1, "no", ""});
  };
  StartModern();
  const auto call = Call("tools/call", kTool);
  Answer(Hear(), R"({"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},)"
                 R"("b":{"method":"roots/list"}}})");
  EXPECT_EQ(call->count, 1);
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace bulkhead::mcp
