// Client's handshake: the probe, what follows from it, and what is written before it is done.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/mcp/client_fixture.h"

namespace bulkhead::mcp {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Probe : public ClientTest {
 protected:
  // The rest of a legacy handshake, after whatever came before.
  void ExpectLegacyFromHere(absl::string_view offered = "2025-11-25") {
    EXPECT_FALSE(connected) << *connected;
    const Json request = Hear("initialize");
    EXPECT_EQ(request["params"]["protocolVersion"], std::string(offered));
    EXPECT_TRUE(HearsNothing());
    Answer(request, InitializeResult("2025-11-25"));
    EXPECT_EQ(Hear(), Json::parse(R"({"jsonrpc":"2.0","method":"notifications/initialized"})"));
    ASSERT_TRUE(IsConnected());
    EXPECT_EQ(client->era(), Era::kLegacy);
  }
  void ExpectFailure(StatusCode code, const testing::Matcher<std::string>& message) {
    Run();
    ASSERT_TRUE(connected);
    EXPECT_EQ(connected->code(), code);
    EXPECT_THAT(std::string(connected->message()), message);
    EXPECT_EQ(connected_count, 1);
    EXPECT_TRUE(HearsNothing());
  }
  void UseShortProbes() { options.probe_timeout = absl::Milliseconds(5); }
};
class Initialize : public Probe {};
class BeforeReady : public Probe {};

constexpr char kSupportsModern[] = R"({"supported":["2026-07-28","2025-11-25"],"requested":"2026-07-28"})";

// --- The probe ---

TEST_F(Probe, IsTheFirstLineAndCarriesTheThreeKeys) {
  Start();
  EXPECT_TRUE(client->has_unanswered_probe());
  const Json probe = Hear("server/discover");
  EXPECT_EQ(probe["jsonrpc"], "2.0");
  EXPECT_TRUE(probe["id"].is_number_integer());
  EXPECT_EQ(probe["params"], Json::parse(R"({"_meta":{
    "io.modelcontextprotocol/protocolVersion":"2026-07-28",
    "io.modelcontextprotocol/clientInfo":{"name":"tester","version":"1.0"},
    "io.modelcontextprotocol/clientCapabilities":{"roots":{"listChanged":true},"sampling":{}}}})"));
  EXPECT_TRUE(HearsNothing());
  EXPECT_FALSE(connected);
}

TEST_F(Probe, ADiscoverResultIsModern) {
  Start();
  Answer(Hear("server/discover"), kDiscoverResult);
  ASSERT_TRUE(IsConnected());
  EXPECT_EQ(connected_count, 1);
  EXPECT_EQ(client->era(), Era::kModern);
  EXPECT_FALSE(client->has_unanswered_probe());
  EXPECT_EQ(client->server_info().name, "modern server");
  EXPECT_EQ(client->server_info().version, "7");
  EXPECT_EQ(client->server_info().protocol_version, "2026-07-28");
  EXPECT_EQ(client->server_info().capabilities, R"({"tools":{}})");
  EXPECT_EQ(client->server_info().instructions, "be kind");
  EXPECT_TRUE(HearsNothing()) << "nothing follows a modern handshake";
}

TEST_F(Probe, AnErrorOfAnyCodeIsLegacy) {
  Start();
  Refuse(Hear("server/discover"), -32601);
  EXPECT_FALSE(client->has_unanswered_probe());
  ExpectLegacyFromHere();
}

TEST_F(Probe, AnErrorWithoutIdIsLegacy) {
  Start();
  Hear("server/discover");
  Say(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Server not initialized"}})");
  ExpectLegacyFromHere();
}

TEST_F(Probe, AResultOfAnotherShapeIsLegacy) {
  Start();
  Answer(Hear("server/discover"), R"({"tools":[]})");
  ExpectLegacyFromHere();
}

TEST_F(Probe, ADiscoverResultWithLegacyVersionsInitializesWithTheHighest) {
  Start();
  Answer(Hear("server/discover"), R"({"supportedVersions":["2025-03-26","2025-06-18"],"capabilities":{}})");
  ExpectLegacyFromHere("2025-06-18");
}

TEST_F(Probe, SilenceIsLegacyAndIsNotCancelled) {
  UseShortProbes();
  Start();
  Hear("server/discover");
  ExpectLegacyFromHere();
  EXPECT_TRUE(client->has_unanswered_probe());
}

TEST_F(Probe, NoCommonVersionFailsWithoutInitialize) {
  Start();
  Answer(Hear("server/discover"), R"({"supportedVersions":["2099-01-01"],"capabilities":{}})");
  ExpectFailure(StatusCode::kFailedPrecondition, AllOf(HasSubstr("2099-01-01"), HasSubstr("2026-07-28")));
}

TEST_F(Probe, AMissingCapabilityFailsWithoutInitialize) {
  Start();
  Refuse(Hear("server/discover"), -32021, R"({"requiredCapabilities":{"elicitation":{}}})");
  ExpectFailure(StatusCode::kFailedPrecondition, HasSubstr("elicitation"));
}

TEST_F(Probe, UnsupportedVersionIsProbedAgainOnce) {
  Start();
  const Json first = Hear("server/discover");
  Refuse(first, -32022, kSupportsModern);
  const Json second = Hear("server/discover");
  EXPECT_NE(second["id"], first["id"]);
  Answer(second, kDiscoverResult);
  ASSERT_TRUE(IsConnected());
  EXPECT_EQ(client->era(), Era::kModern);
}

TEST_F(Probe, UnsupportedVersionTwiceFails) {
  Start();
  Refuse(Hear("server/discover"), -32022, kSupportsModern);
  Refuse(Hear("server/discover"), -32022, kSupportsModern);
  ExpectFailure(StatusCode::kFailedPrecondition, HasSubstr("2026-07-28"));
}

TEST_F(Probe, ALateAnswerIsSwallowed) {
  UseShortProbes();
  Start();
  const Json probe = Hear("server/discover");
  const Json request = Hear("initialize");
  Answer(probe, kDiscoverResult);
  EXPECT_THAT(dropped, IsEmpty());
  EXPECT_FALSE(client->has_unanswered_probe());
  Answer(request, InitializeResult("2025-11-25"));
  Hear("notifications/initialized");
  ASSERT_TRUE(IsConnected());
  EXPECT_EQ(client->era(), Era::kLegacy) << "both work; what was asked for last counts";
}

TEST_F(Probe, ALateAnswerIsUsedWhenInitializeFails) {
  UseShortProbes();
  Start();
  const Json probe = Hear("server/discover");
  const Json request = Hear("initialize");
  Answer(probe, kDiscoverResult);
  Refuse(request, -32601);
  ASSERT_TRUE(IsConnected());
  EXPECT_EQ(client->era(), Era::kModern);
  EXPECT_EQ(client->server_info().name, "modern server");
  EXPECT_TRUE(HearsNothing());
}

TEST_F(Probe, ALateErrorWithoutIdIsNotTakenForInitializesAnswer) {
  UseShortProbes();
  Start();
  Hear("server/discover");
  const Json request = Hear("initialize");
  Say(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Server not initialized"}})");
  EXPECT_FALSE(connected) << *connected;
  Answer(request, InitializeResult("2025-11-25"));
  Hear("notifications/initialized");
  EXPECT_TRUE(IsConnected());
}

TEST_F(Probe, AnAnswerAfterTheHandshakeIsSwallowed) {
  UseShortProbes();
  Start();
  const Json probe = Hear("server/discover");
  ExpectLegacyFromHere();
  Answer(probe, kDiscoverResult);
  EXPECT_EQ(client->era(), Era::kLegacy);
  EXPECT_THAT(dropped, IsEmpty());
  EXPECT_FALSE(client->has_unanswered_probe());
}

TEST_F(Probe, IsLeftOutWhenTheEraIsLegacy) {
  Start(EraChoice::kLegacy);
  ExpectLegacyFromHere();
  EXPECT_FALSE(client->has_unanswered_probe());
}

TEST_F(Probe, ALegacyServerIsRefusedWhenTheEraIsModern) {
  Start(EraChoice::kModern);
  Refuse(Hear("server/discover"), -32601);
  ExpectFailure(StatusCode::kFailedPrecondition, HasSubstr("modern"));
}

TEST_F(Probe, WaitsForTheWholeStartWhenTheEraIsModern) {
  UseShortProbes();
  options.start_timeout = absl::Milliseconds(40);
  Start(EraChoice::kModern);
  Hear("server/discover");
  RunUntil([this] { return connected.has_value(); });
  ExpectFailure(StatusCode::kDeadlineExceeded, HasSubstr("40ms"));
}

// --- initialize ---

TEST_F(Initialize, SaysWhoIsSpeaking) {
  Start(EraChoice::kLegacy);
  EXPECT_EQ(Hear("initialize")["params"], Json::parse(R"({"protocolVersion":"2025-11-25",
    "capabilities":{"roots":{"listChanged":true},"sampling":{}},"clientInfo":{"name":"tester","version":"1.0"}})"));
}

class OlderVersion : public Probe, public testing::WithParamInterface<const char*> {};

TEST_P(OlderVersion, IsSpokenWhenTheServerAnswersWithIt) {
  Start(EraChoice::kLegacy);
  Answer(Hear("initialize"), InitializeResult(GetParam()));
  Hear("notifications/initialized");
  ASSERT_TRUE(IsConnected());
  EXPECT_EQ(client->server_info().protocol_version, GetParam());
  EXPECT_EQ(client->server_info().name, "legacy server");
}

INSTANTIATE_TEST_SUITE_P(Initialize, OlderVersion, testing::Values("2024-11-05", "2025-03-26", "2025-06-18"));

TEST_F(Initialize, AnUnknownVersionFailsAndNothingFollows) {
  Start(EraChoice::kLegacy);
  Answer(Hear("initialize"), InitializeResult("1999-01-01"));
  ExpectFailure(StatusCode::kFailedPrecondition, AllOf(HasSubstr("1999-01-01"), HasSubstr("2025-11-25")));
}

TEST_F(Initialize, NoVersionFails) {
  Start(EraChoice::kLegacy);
  Answer(Hear("initialize"), "{}");
  ExpectFailure(StatusCode::kFailedPrecondition, HasSubstr("protocolVersion"));
}

TEST_F(Initialize, ARefusalFailsWithTheServersWords) {
  Start(EraChoice::kLegacy);
  Refuse(Hear("initialize"), -32602, R"({"supported":["1.0.0"]})");
  ExpectFailure(StatusCode::kFailedPrecondition, AllOf(HasSubstr("refused"), HasSubstr("1.0.0")));
}

TEST_F(Initialize, UnsupportedVersionShowsAModernServerAndIsProbedOnceMore) {
  Start();
  Refuse(Hear("server/discover"), -32601);
  Refuse(Hear("initialize"), -32022, kSupportsModern);
  Answer(Hear("server/discover"), kDiscoverResult);
  ASSERT_TRUE(IsConnected());
  EXPECT_EQ(client->era(), Era::kModern);
}

TEST_F(Initialize, UnsupportedVersionAfterTheSecondProbeFails) {
  Start();
  Refuse(Hear("server/discover"), -32601);
  Refuse(Hear("initialize"), -32022, kSupportsModern);
  Refuse(Hear("server/discover"), -32601);
  Refuse(Hear("initialize"), -32022, kSupportsModern);
  ExpectFailure(StatusCode::kFailedPrecondition, HasSubstr("2026-07-28"));
}

TEST_F(Initialize, AModernServerIsRefusedWhenTheEraIsLegacy) {
  Start(EraChoice::kLegacy);
  Refuse(Hear("initialize"), -32022, kSupportsModern);
  ExpectFailure(StatusCode::kFailedPrecondition, HasSubstr("modern"));
}

TEST_F(Initialize, TheWholeHandshakeHasADeadline) {
  options.start_timeout = absl::Milliseconds(30);
  Start(EraChoice::kLegacy);
  const Json request = Hear("initialize");
  RunUntil([this] { return connected.has_value(); });
  ExpectFailure(StatusCode::kDeadlineExceeded, HasSubstr("30ms"));
  // What comes too late changes nothing.
  Answer(request, InitializeResult("2025-11-25"));
  ExpectFailure(StatusCode::kDeadlineExceeded, HasSubstr("30ms"));
}

TEST_F(Initialize, CapabilitiesThatAreNotJsonAreRefused) {
  options.info.capabilities = "{\"roots\":";
  Start(EraChoice::kLegacy);
  EXPECT_FALSE(connected) << "not inside Connect";
  ExpectFailure(StatusCode::kInvalidArgument, HasSubstr("initialize"));
}

// --- What is written before it is done ---

TEST_F(BeforeReady, RequestsDuringTheProbeAreDroppedWithoutAWord) {
  Start();
  const Json probe = Hear("server/discover");
  Ask("1", "ping");
  Ask("\"s\"", "roots/list");
  Say(R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}})");
  EXPECT_TRUE(HearsNothing());
  EXPECT_THAT(dropped, SizeIs(2));
  EXPECT_THAT(notified, ElementsAre("notifications/message"));
  Refuse(probe, -32601);
  ExpectLegacyFromHere();
}

TEST_F(BeforeReady, APingDuringInitializeIsAnsweredAndOthersAreNotFound) {
  handlers.on_request = [](const ServerRequest&, const Responder&) { FAIL() << "not before the handshake is done"; };
  Start(EraChoice::kLegacy);
  const Json request = Hear("initialize");
  Ask("\"p\"", "ping");
  EXPECT_EQ(Hear(), Json::parse(R"({"jsonrpc":"2.0","id":"p","result":{}})"));
  Ask("2", "roots/list");
  EXPECT_EQ(Hear()["error"]["code"], -32601);
  Answer(request, InitializeResult("2025-11-25"));
  Hear("notifications/initialized");
  EXPECT_TRUE(IsConnected());
}

TEST_F(BeforeReady, AServerThatNeverAnswersTheProbeGetsItsPingsAnswered) {
  UseShortProbes();
  Start();
  Hear("server/discover");
  const Json request = Hear("initialize");
  Ask("1", "ping");
  EXPECT_EQ(Hear(), Json::parse(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  Answer(request, InitializeResult("2025-11-25"));
  Hear("notifications/initialized");
  Ask("2", "ping");
  EXPECT_EQ(Hear(), Json::parse(R"({"jsonrpc":"2.0","id":2,"result":{}})"));
}

TEST_F(BeforeReady, CallsAndNotificationsAreRefused) {
  Start();
  const auto call = Call("tools/list");
  Run();
  EXPECT_EQ(call->code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(client->Notify("notifications/roots/list_changed", "").code(), StatusCode::kFailedPrecondition);
  Hear("server/discover");
  EXPECT_TRUE(HearsNothing());
}

TEST_F(BeforeReady, JunkIsDroppedAndTheHandshakeGoesOn) {
  Start();
  const Json probe = Hear("server/discover");
  Say("Starting server...");
  Say("{ not json");
  Say("[1,2]");
  Answer(probe, kDiscoverResult);
  EXPECT_TRUE(IsConnected());
  EXPECT_THAT(dropped, ElementsAre("Starting server...", "{ not json", "[1,2]"));
  EXPECT_EQ(client->junk().lines, 3u);
}

// The reason of the end is the owner's to say, also when it comes before initialize can be written.
TEST_F(BeforeReady, AnEndBeforeInitializeIsWrittenFailsConnectThroughFailAll) {
  options.probe_timeout = absl::Milliseconds(1);
  Start();
  Hear("server/discover");
  HangUp();
  RunFor(absl::Milliseconds(20));
  ASSERT_FALSE(closed.empty());
  EXPECT_FALSE(connected);
  EXPECT_TRUE(client->has_unanswered_probe());
  client->FailAll(absl::UnavailableError("it ended"));
  EXPECT_EQ(*connected, absl::UnavailableError("it ended"));
}

TEST_F(BeforeReady, TheEndOfTheConnectionFailsConnectThroughFailAll) {
  Start();
  Hear("server/discover");
  HangUp();
  RunUntil([this] { return !closed.empty(); });
  EXPECT_FALSE(connected);
  EXPECT_TRUE(client->has_unanswered_probe());
  client->FailAll(absl::UnavailableError("it ended"));
  EXPECT_EQ(*connected, absl::UnavailableError("it ended"));
  Run();
  EXPECT_EQ(connected_count, 1);
}

}  // namespace
}  // namespace bulkhead::mcp
