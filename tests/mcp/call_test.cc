// Client's calls: what is sent, what answers them, how long they may take, and how they are cancelled.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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

class LegacyCall : public ClientTest {
 protected:
  void SetUp() override { StartLegacy(); }
};
class ModernCall : public ClientTest {
 protected:
  void SetUp() override { StartModern(); }
};
class Ids : public LegacyCall {};
class Timeouts : public LegacyCall {};
class ProgressOfCalls : public LegacyCall {};
class Cancelling : public LegacyCall {};
class Notifying : public ClientTest {};
class WithoutHandshake : public ClientTest {};
class Observers : public ClientTest {};

constexpr char kTool[] = R"({"name":"t","arguments":{}})";

CallOptions Within(absl::Duration timeout, absl::Duration timeout_max = absl::ZeroDuration()) {
  CallOptions options;
  options.timeout = timeout;
  options.timeout_max = timeout_max;
  return options;
}

// --- What is sent, what comes back ---

TEST_F(LegacyCall, IsSentAsItIsAndAnswered) {
  const auto call = Call("tools/call", R"({ "name":"t", "arguments":{"n":12345678901234567890123} })");
  const std::string line = HearLine();
  EXPECT_THAT(line, HasSubstr(R"("params":{ "name":"t", "arguments":{"n":12345678901234567890123} })"));
  EXPECT_EQ(client->calls_in_flight(), 1u);
  Answer(Json::parse(line), R"({ "content":[],"x":1e400 })");
  EXPECT_EQ(call->count, 1);
  EXPECT_EQ(call->result(), R"({ "content":[],"x":1e400 })");
  EXPECT_FALSE(call->reply->error);
  EXPECT_EQ(client->calls_in_flight(), 0u);
}

TEST_F(LegacyCall, WithoutParamsSendsNone) {
  const auto call = Call("tools/list");
  const Json request = Hear("tools/list");
  EXPECT_FALSE(request.contains("params"));
  Answer(request, R"({"tools":[]})");
  EXPECT_EQ(call->result(), R"({"tools":[]})");
}

TEST_F(LegacyCall, ParamsOnSeveralLinesAreSentOnOne) {
  Call("tools/call", "{\n  \"name\": \"t\",\r\n  \"arguments\": {}\n}");
  EXPECT_EQ(Hear("tools/call")["params"], Json::parse(kTool));
  EXPECT_TRUE(HearsNothing());
}

TEST_F(LegacyCall, TheServersErrorIsAReply) {
  const auto call = Call("tools/call", kTool);
  Refuse(Hear(), -32602, R"({"why":[1]})");
  ASSERT_TRUE(call->reply.ok());
  ASSERT_TRUE(call->reply->error);
  EXPECT_EQ(call->reply->error->code, -32602);
  EXPECT_EQ(call->reply->error->message, "refused");
  EXPECT_EQ(call->reply->error->data, R"({"why":[1]})");
  EXPECT_EQ(call->reply->result, "");
}

TEST_F(LegacyCall, ResultTypeMeansNothing) {
  const auto call = Call("tools/call", kTool);
  Answer(Hear(), R"({"resultType":"input_required"})");
  EXPECT_EQ(call->result(), R"({"resultType":"input_required"})");
}

TEST_F(LegacyCall, ParamsThatAreNoObjectAreRefusedAndNotSent) {
  std::vector<std::shared_ptr<Outcome>> calls;
  for (const char* params : {"[]", "7", "null", "{", "{\"a\":1}}"}) calls.push_back(Call("tools/call", params));
  EXPECT_TRUE(HearsNothing());
  for (const auto& call : calls) {
    EXPECT_EQ(call->count, 1);
    EXPECT_EQ(call->code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(client->calls_in_flight(), 0u);
}

TEST_F(LegacyCall, AnAnswerToNothingIsDropped) {
  Say(R"({"jsonrpc":"2.0","id":99,"result":{}})");
  Say(R"({"jsonrpc":"2.0","id":"x","result":{}})");
  Say(R"({"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}})");
  EXPECT_THAT(dropped, SizeIs(3));
  EXPECT_EQ(client->junk().lines, 0u) << "these are messages";
}

constexpr std::size_t kLarge = jsonrpc::LargeRequest::kParamsBytesMin;

// On both sides of the size from which params are not copied.
TEST_F(LegacyCall, LargeParamsAreSentAsTheyAre) {
  CallOptions with_progress;
  with_progress.on_progress = [](const Progress&) {};
  for (const std::size_t size : {kLarge - 1, kLarge, kLarge + 1, 4 * kLarge}) {
    const std::string params = absl::StrCat("{\n\"name\":\"", std::string(size - 12, 'x'), "\"}");
    ASSERT_EQ(params.size(), size);
    for (const CallOptions& call_options : {CallOptions{}, with_progress}) {
      const auto call = Call("tools/call", params, call_options);
      const Json request = Hear("tools/call");
      EXPECT_EQ(request["params"]["name"], std::string(size - 12, 'x'));
      EXPECT_EQ(request["params"].contains("_meta"), call_options.on_progress != nullptr);
      Answer(request, "{}");
      EXPECT_EQ(call->result(), "{}");
    }
  }
}

TEST_F(ModernCall, LargeParamsGetTheThreeKeysToo) {
  const std::string text(kLarge, 'x');
  for (const std::string& params : {absl::StrCat(" { \"name\":\"", text, "\"}\n"),
                                    absl::StrCat("{\"name\":\"", text, "\",\"_meta\":{\"mine\":1}}")}) {
    const auto call = Call("tools/call", params);
    const Json request = Hear("tools/call");
    EXPECT_EQ(request["params"]["name"], text);
    EXPECT_EQ(request["params"]["_meta"].size(), absl::StrContains(params, "mine") ? 4u : 3u);
    Answer(request, "{}");
    EXPECT_EQ(call->count, 1);
  }
  for (const std::string& params : {absl::StrCat("[\"", text, "\"]"), absl::StrCat("{\"name\":\"", text, "}"),
                                    absl::StrCat("{\"_meta\":{},\"name\":\"", text, "}"), std::string(kLarge, ' ')}) {
    const auto call = Call("tools/call", params);
    RunUntilEnded(call);
    EXPECT_EQ(call->code(), StatusCode::kInvalidArgument) << params.substr(0, 20);
  }
  EXPECT_TRUE(HearsNothing());
}

TEST_F(ModernCall, EveryRequestCarriesTheThreeKeys) {
  const Json keys = Json::parse(R"({
    "io.modelcontextprotocol/protocolVersion":"2026-07-28",
    "io.modelcontextprotocol/clientInfo":{"name":"tester","version":"1.0"},
    "io.modelcontextprotocol/clientCapabilities":{"roots":{"listChanged":true},"sampling":{}}})");
  for (const char* method : {"tools/list", "resources/list", "resources/templates/list", "prompts/list"}) {
    Call(method);
    EXPECT_EQ(Hear(method)["params"], (Json{{"_meta", keys}}));
  }
  Call("tools/call", kTool);
  EXPECT_EQ(Hear("tools/call")["params"], (Json{{"name", "t"}, {"arguments", Json::object()}, {"_meta", keys}}));
}

TEST_F(ModernCall, TheCallersOwnMetadataStays) {
  Call("tools/list", R"({"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/protocolVersion":"1900-01-01"}})");
  const Json meta = Hear()["params"]["_meta"];
  EXPECT_EQ(meta["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_EQ(meta["io.modelcontextprotocol/logLevel"], "debug");
  EXPECT_EQ(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
  EXPECT_EQ(meta.size(), 5u);
}

TEST_F(ModernCall, ParamsThatAreNoObjectAreRefusedAndNotSent) {
  const auto call = Call("tools/call", "[1]");
  EXPECT_TRUE(HearsNothing());
  EXPECT_EQ(call->code(), StatusCode::kInvalidArgument);
}

TEST_F(ModernCall, ACompleteResultIsTheReply) {
  for (const char* result : {R"({"resultType":"complete","tools":[]})", R"({"tools":[]})",
                             R"({"result\u0054ype":"\u0063omplete","tools":[]})"}) {
    const auto call = Call("tools/list");
    Answer(Hear(), result);
    EXPECT_EQ(call->result(), result);
  }
}

TEST_F(ModernCall, AResultTypeThatIsUnknownMakesItInvalid) {
  for (const char* type : {"\"task\"", "\"\"", "7", "null"}) {
    const auto call = Call("tools/list");
    Answer(Hear(), absl::StrCat(R"({"resultType":)", type, "}"));
    EXPECT_EQ(call->count, 1);
    EXPECT_EQ(call->code(), StatusCode::kDataLoss) << type;
    EXPECT_THAT(call->message(), HasSubstr("tools/list"));
  }
}

TEST_F(ModernCall, ASubscriptionEndsWithAResultOrWhenTheServerCancelsIt) {
  const char filter[] = R"({"notifications":{"toolsListChanged":true}})";
  const auto ended = Call("subscriptions/listen", filter, Within(absl::InfiniteDuration()));
  Answer(Hear("subscriptions/listen"), R"({"resultType":"complete"})");
  EXPECT_TRUE(ended->reply.ok());

  const auto cancelled = Call("subscriptions/listen", filter, Within(absl::InfiniteDuration()));
  const Json request = Hear("subscriptions/listen");
  const std::string id = request["id"].dump();
  Say(absl::StrCat(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)", id, "}}"));
  EXPECT_EQ(cancelled->count, 1);
  EXPECT_EQ(cancelled->code(), StatusCode::kCancelled);
  Answer(request, R"({"resultType":"complete"})");  // which some servers send, too
  EXPECT_EQ(cancelled->count, 1);
  EXPECT_THAT(dropped, IsEmpty());
  EXPECT_TRUE(HearsNothing());
}

TEST_F(ModernCall, TheServerCanCancelNothingButASubscription) {
  const auto call = Call("tools/call", kTool);
  const Json request = Hear();
  const std::string id = request["id"].dump();
  Say(absl::StrCat(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)", id, "}}"));
  EXPECT_EQ(call->count, 0);
  Answer(request, "{}");
  EXPECT_TRUE(call->reply.ok());
}

// --- Ids ---

TEST_F(Ids, AreSmallIntegersThatAreNeverUsedAgain) {
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 3; ++i) {
    Call("ping");
    const Json request = Hear();
    ids.push_back(request["id"].get<std::int64_t>());
    Answer(request, "{}");
  }
  EXPECT_THAT(ids, ElementsAre(2, 3, 4));  // 1 was initialize
}

TEST_F(Ids, MayComeBackAsStringsAndFloats) {
  for (const char* form : {"$", "\"$\"", "$.0", "$0e-1"}) {
    const auto call = Call("ping");
    const std::string id = Hear()["id"].dump();
    std::string written = form;
    written.replace(written.find('$'), 1, id);
    Say(absl::StrCat(R"({"jsonrpc":"2.0","id":)", written, R"(,"result":{}})"));
    EXPECT_EQ(call->count, 1) << written;
  }
}

TEST_F(Ids, AnswersMayComeInAnyOrder) {
  const auto first = Call("ping"), second = Call("tools/list");
  const Json one = Hear(), two = Hear();
  Answer(two, R"({"tools":[]})");
  EXPECT_EQ(second->result(), R"({"tools":[]})");
  EXPECT_EQ(first->count, 0);
  Answer(one, "{}");
  EXPECT_EQ(first->result(), "{}");
}

TEST_F(Ids, AnErrorWithoutOneEndsTheOnlyCall) {
  const auto call = Call("ping");
  Hear();
  Say(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}})");
  EXPECT_EQ(call->error_code(), -32700);
  EXPECT_EQ(call->count, 1);
}

TEST_F(Ids, AnErrorWithoutOneIsDroppedWhenThereAreTwoCalls) {
  const auto first = Call("ping"), second = Call("ping");
  const Json one = Hear(), two = Hear();
  Say(R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}})");
  EXPECT_EQ(first->count + second->count, 0);
  EXPECT_THAT(dropped, SizeIs(1));
  Answer(one, "{}");
  Answer(two, "{}");
  EXPECT_TRUE(first->reply.ok() && second->reply.ok());
}

TEST_F(Ids, ASecondAnswerIsDropped) {
  const auto call = Call("ping");
  const Json request = Hear();
  Answer(request, R"({"n":1})");
  Answer(request, R"({"n":2})");
  EXPECT_EQ(call->count, 1);
  EXPECT_EQ(call->result(), R"({"n":1})");
  EXPECT_THAT(dropped, SizeIs(1));
}

// --- Time ---

TEST_F(Timeouts, AreToldToTheServerAndTheNextCallWorks) {
  const auto call = Call("tools/call", kTool, Within(absl::Milliseconds(5)));
  const Json request = Hear("tools/call");
  RunUntilEnded(call);
  EXPECT_EQ(call->code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(call->message(), HasSubstr("tools/call"));
  EXPECT_EQ(Hear("notifications/cancelled")["params"]["requestId"], request["id"]);
  Answer(request, "{}");
  EXPECT_EQ(call->count, 1);
  EXPECT_THAT(dropped, IsEmpty()) << "a late answer is no surprise";

  const auto next = Call("ping");
  Answer(Hear("ping"), "{}");
  EXPECT_TRUE(next->reply.ok());
}

TEST_F(Timeouts, ALateErrorIsNoSurpriseEither) {
  const auto call = Call("ping", "", Within(absl::Milliseconds(5)));
  const Json request = Hear("ping");
  RunUntilEnded(call);
  Hear("notifications/cancelled");
  Refuse(request, -32800);
  EXPECT_EQ(call->count, 1);
  EXPECT_THAT(dropped, IsEmpty());
}

TEST_F(Timeouts, TheShorterOfTwoEndsFirst) {
  std::vector<std::string> order;
  for (const auto& [name, timeout] : {std::pair("longer", 20), std::pair("shorter", 5)}) {
    client->Call("ping", "", Within(absl::Milliseconds(timeout)),
                 [&order, name = name](const absl::StatusOr<Reply>&) { order.push_back(name); });
  }
  RunUntil([&order] { return order.size() == 2; });
  EXPECT_THAT(order, ElementsAre("shorter", "longer"));
}

TEST_F(Timeouts, InfiniteNeverEnds) {
  const auto call = Call("ping", "", Within(absl::InfiniteDuration()));
  const auto control = Call("ping", "", Within(absl::Milliseconds(5)));
  RunUntilEnded(control);
  EXPECT_EQ(call->count, 0);
  Answer(Hear("ping"), "{}");
  EXPECT_TRUE(call->reply.ok());
}

TEST_F(Timeouts, TheMaximumCountsWithoutProgress) {
  const auto call = Call("ping", "", Within(absl::InfiniteDuration(), absl::Milliseconds(5)));
  RunUntilEnded(call);
  EXPECT_EQ(call->code(), StatusCode::kDeadlineExceeded);
}

class DefaultTimeout : public ClientTest {};

TEST_F(DefaultTimeout, IsThePolicys) {
  options.request_timeout = absl::Milliseconds(5);
  StartLegacy();
  const auto call = Call("ping");
  RunUntilEnded(call);
  EXPECT_EQ(call->code(), StatusCode::kDeadlineExceeded);
}

// --- Progress ---

std::string ProgressNote(absl::string_view token, absl::string_view rest) {
  return absl::StrCat(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)", token, ",",
                      rest, "}}");
}

TEST_F(ProgressOfCalls, IsAskedForOnlyWhenItIsWanted) {
  Call("tools/call", kTool);
  EXPECT_FALSE(Hear()["params"].contains("_meta"));
  CallOptions call_options;
  call_options.on_progress = [](const Progress&) {};
  Call("tools/call", kTool, call_options);
  const Json request = Hear();
  EXPECT_EQ(request["params"]["_meta"]["progressToken"], request["id"]);
}

TEST_F(ProgressOfCalls, IsHandedOnHoweverTheTokenIsWritten) {
  std::vector<Progress> seen;
  CallOptions call_options;
  call_options.on_progress = [&seen](const Progress& progress) { seen.push_back(progress); };
  const auto call = Call("tools/call", kTool, call_options);
  const Json request = Hear();
  const std::string token = request["id"].dump();
  Say(ProgressNote(token, R"("progress":1,"total":4,"message":"one")"));
  Say(ProgressNote("\"" + token + "\"", R"("progress":1.5)"));
  Say(ProgressNote(token + ".0", R"("progress":2e0)"));
  ASSERT_THAT(seen, SizeIs(3));
  EXPECT_EQ(seen[0].progress, 1);
  EXPECT_EQ(seen[0].total, 4);
  EXPECT_EQ(seen[0].message, "one");
  EXPECT_EQ(seen[1].progress, 1.5);
  EXPECT_EQ(seen[1].total, std::nullopt);
  EXPECT_EQ(seen[2].progress, 2);
  EXPECT_THAT(notified, IsEmpty());
  Answer(request, "{}");
  Say(ProgressNote(token, R"("progress":3)"));  // too late
  EXPECT_THAT(seen, SizeIs(3));
}

TEST_F(ProgressOfCalls, ExtendsTheTimeout) {
  std::vector<std::string> order;
  CallOptions call_options = Within(absl::Milliseconds(300));
  call_options.on_progress = [](const Progress&) {};
  for (const char* name : {"first", "second"}) {
    client->Call("tools/call", kTool, call_options,
                 [&order, name](const absl::StatusOr<Reply>&) { order.push_back(name); });
  }
  const Json first = Hear();
  RunFor(absl::Milliseconds(2));
  Say(ProgressNote(first["id"].dump(), R"("progress":1)"));
  RunUntil([&order] { return order.size() == 2; });
  EXPECT_THAT(order, ElementsAre("second", "first"));
}

TEST_F(ProgressOfCalls, DoesNotExtendItBeyondTheMaximum) {
  CallOptions call_options = Within(absl::Seconds(8), absl::Milliseconds(40));
  call_options.on_progress = [](const Progress&) {};
  const auto call = Call("tools/call", kTool, call_options);
  const std::string token = Hear()["id"].dump();
  const absl::Time start = absl::Now();
  while (call->count == 0 && absl::Now() - start < absl::Seconds(7)) {
    Say(ProgressNote(token, R"("progress":1)"));
    RunFor(absl::Milliseconds(5));
  }
  EXPECT_EQ(call->code(), StatusCode::kDeadlineExceeded);
}

TEST_F(ProgressOfCalls, DoesNotShortenAnInfiniteTimeout) {
  CallOptions call_options = Within(absl::InfiniteDuration(), absl::Minutes(5));
  call_options.on_progress = [](const Progress&) {};
  const auto call = Call("tools/call", kTool, call_options);
  const Json request = Hear();
  Say(ProgressNote(request["id"].dump(), R"("progress":1)"));
  RunFor(absl::Milliseconds(2));
  EXPECT_EQ(call->count, 0) << call->message();
  Answer(request, "{}");
  EXPECT_TRUE(call->reply.ok());
}

// --- Cancelling ---

TEST_F(Cancelling, TellsTheServerAndCompletesOnce) {
  const auto call = Call("tools/call", kTool);
  const Json request = Hear();
  client->Cancel(last_call, "no \"need\"");
  EXPECT_EQ(call->count, 0) << "not inside Cancel";
  EXPECT_EQ(Hear(), (Json{{"jsonrpc", "2.0"},
                          {"method", "notifications/cancelled"},
                          {"params", {{"requestId", request["id"]}, {"reason", "no \"need\""}}}}));
  EXPECT_EQ(call->count, 1);
  EXPECT_EQ(call->code(), StatusCode::kCancelled);
  EXPECT_THAT(call->message(), HasSubstr("no \"need\""));
  client->Cancel(last_call, "again");
  Answer(request, "{}");
  EXPECT_EQ(call->count, 1);
  EXPECT_TRUE(HearsNothing());
  EXPECT_THAT(dropped, IsEmpty());
}

TEST_F(Cancelling, TwiceAtOnceIsOnce) {
  const auto call = Call("tools/call", kTool);
  Hear();
  client->Cancel(last_call, "a");
  client->Cancel(last_call, "b");
  Hear("notifications/cancelled");
  EXPECT_TRUE(HearsNothing());
  EXPECT_EQ(call->count, 1);
}

TEST_F(Cancelling, ACallThatIsOverChangesNothing) {
  const auto call = Call("ping");
  Answer(Hear(), "{}");
  client->Cancel(last_call, "late");
  client->Cancel({}, "nothing");
  EXPECT_TRUE(HearsNothing());
  EXPECT_EQ(call->count, 1);
}

// --- Notifications ---

TEST_F(Notifying, ALegacyServerGetsThem) {
  StartLegacy();
  EXPECT_TRUE(client->Notify("notifications/roots/list_changed", "").ok());
  EXPECT_EQ(Hear(), Json::parse(R"({"jsonrpc":"2.0","method":"notifications/roots/list_changed"})"));
}

TEST_F(Notifying, ParamsThatAreNoObjectAreRefused) {
  StartLegacy();
  for (const char* params : {"[]", "7", "{"}) {
    EXPECT_EQ(client->Notify("notifications/roots/list_changed", params).code(), StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(HearsNothing());
}

TEST_F(Notifying, AModernServerGetsOnlyCancellations) {
  StartModern();
  EXPECT_EQ(client->Notify("notifications/roots/list_changed", "").code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(HearsNothing());
  EXPECT_TRUE(client->Notify("notifications/cancelled", R"({"requestId":7})").ok());
  Hear("notifications/cancelled");
}

// --- Without a handshake ---

TEST_F(WithoutHandshake, OneRequestIsSentAsItIs) {
  Open();
  auto outcome = std::make_shared<Outcome>();
  const char params[] =
      R"({"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"host","version":"1"}})";
  client->CallWithoutHandshake("initialize", params, absl::Seconds(30), [outcome](absl::StatusOr<Reply> reply) {
    ++outcome->count;
    outcome->reply = std::move(reply);
  });
  const Json request = Hear("initialize");
  EXPECT_EQ(request["params"], Json::parse(params));
  Ask("\"p\"", "ping");
  EXPECT_EQ(Hear()["id"], "p");
  Answer(request, InitializeResult("2025-06-18"));
  EXPECT_EQ(outcome->count, 1);
  EXPECT_EQ(outcome->result(), InitializeResult("2025-06-18"));
  EXPECT_TRUE(HearsNothing());
}

TEST_F(WithoutHandshake, InitializeIsNeverCancelledAtTheServer) {
  for (const bool by_hand : {false, true}) {
    auto outcome = std::make_shared<Outcome>();
    if (!client) Open();
    const auto call = client->CallWithoutHandshake(
        "initialize", R"({"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"h","version":"1"}})",
        by_hand ? absl::Seconds(30) : absl::Milliseconds(5), [outcome](absl::StatusOr<Reply> reply) {
          ++outcome->count;
          outcome->reply = std::move(reply);
        });
    Hear("initialize");
    if (by_hand) client->Cancel(call, "enough");
    RunUntilEnded(outcome);
    EXPECT_EQ(outcome->code(), by_hand ? StatusCode::kCancelled : StatusCode::kDeadlineExceeded);
    EXPECT_TRUE(HearsNothing());
  }
}

// --- Observers ---

TEST_F(Observers, SeeEachRequestAndEachAnswerAsItWas) {
  std::vector<std::string> sent, answers;
  handlers.on_request_sent = [&sent](absl::string_view line) { sent.emplace_back(line); };
  handlers.on_answer = [&answers](absl::string_view line) { answers.emplace_back(line); };
  Start();
  const std::string probe = HearLine();
  Refuse(Json::parse(probe), -32601);
  const std::string initialize = HearLine();
  Answer(Json::parse(initialize), InitializeResult("2025-11-25"));
  Hear("notifications/initialized");
  Call("ping");
  const std::string ping = HearLine();
  Say(R"({"id" : "3", "result": {} , "jsonrpc":"2.0"})");
  EXPECT_THAT(sent, ElementsAre(probe, initialize, ping));
  ASSERT_THAT(answers, SizeIs(3));
  EXPECT_EQ(answers[2], R"({"id" : "3", "result": {} , "jsonrpc":"2.0"})");
}

}  // namespace
}  // namespace bulkhead::mcp
