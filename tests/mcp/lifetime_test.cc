// The end of a Client: FailAll, and handlers that destroy it. Under AddressSanitizer these show that nothing is touched
// afterwards.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/mcp/client_fixture.h"

namespace bulkhead::mcp {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kTool[] = R"({"name":"t","arguments":{}})";
constexpr char kAsksForRoots[] =
    R"({"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"roots/list"}}})";

class FailAll : public ClientTest {};
class Closing : public ClientTest {};

// What is called by the client: each test destroys it there, and then lets everything run that is left.
class Destroying : public ClientTest {
 protected:
  ~Destroying() override { EXPECT_TRUE(is_destroyed) << "the test has not reached what it is about"; }
  void Destroy() {
    EXPECT_FALSE(is_destroyed) << "something was called after the client was gone";
    is_destroyed = true;
    client.reset();
  }
  // A handler that must not be called any more: its owner may be gone, too.
  CallHandler NeverCalled() {
    return [](absl::StatusOr<Reply>) { ADD_FAILURE() << "a call was completed after the client was gone"; };
  }
  CallHandler DestroyWhenCalled() {
    return [this](absl::StatusOr<Reply>) { Destroy(); };
  }
  bool is_destroyed = false;
};

// --- FailAll ---

TEST_F(FailAll, CompletesEachCallOnceInOrder) {
  StartLegacy();
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    client->Call("ping", "", {}, [&order, i](absl::StatusOr<Reply> reply) {
      EXPECT_EQ(reply.status(), absl::UnavailableError("it ended"));
      order.push_back(i);
    });
  }
  client->FailAll(absl::UnavailableError("it ended"));
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(client->calls_in_flight(), 0u);
  client->FailAll(absl::UnavailableError("again"));
  Run();
  EXPECT_THAT(order, SizeIs(5));
}

TEST_F(FailAll, CompletesConnectOnce) {
  Start();
  Hear("server/discover");
  client->FailAll(absl::UnavailableError("it ended"));
  client->FailAll(absl::UnavailableError("again"));
  Run();
  EXPECT_EQ(connected_count, 1);
  EXPECT_EQ(*connected, absl::UnavailableError("it ended"));
  EXPECT_TRUE(HearsNothing());
}

TEST_F(FailAll, CompletesACallThatIsBeingCancelledOnce) {
  StartLegacy();
  const auto call = Call("ping");
  Hear();
  client->Cancel(last_call, "enough");
  client->FailAll(absl::UnavailableError("it ended"));
  EXPECT_EQ(call->count, 1) << "the owner destroys the client next";
  EXPECT_EQ(call->code(), StatusCode::kCancelled);
  client.reset();
  Run();
  EXPECT_EQ(call->count, 1);
}

TEST_F(FailAll, CompletesACallThatCouldNotBeSentOnce) {
  StartLegacy();
  const auto call = Call("tools/call", "[]");
  client->FailAll(absl::UnavailableError("it ended"));
  EXPECT_EQ(call->count, 1);
  EXPECT_EQ(call->code(), StatusCode::kInvalidArgument);
  client.reset();
  Run();
  EXPECT_EQ(call->count, 1);
}

TEST_F(FailAll, LeavesCallsMadeByItsHandlersToTheNextOne) {
  StartLegacy();
  std::shared_ptr<Outcome> second;
  client->Call("ping", "", {}, [&](const absl::StatusOr<Reply>&) { second = Call("ping"); });
  client->FailAll(absl::UnavailableError("it ended"));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->count, 0);
  client->FailAll(absl::UnavailableError("really"));
  EXPECT_EQ(second->count, 1);
}

// --- The connection's end ---

TEST_F(Closing, IsToldAndCallsWaitForFailAll) {
  StartLegacy();
  const auto call = Call("ping");
  Hear();
  HangUp();
  RunUntil([this] { return !closed.empty(); });
  EXPECT_THAT(closed, ElementsAre(jsonrpc::CloseReason::kEndOfInput));
  EXPECT_EQ(call->count, 0);
  client->FailAll(absl::UnavailableError("signal 9"));
  EXPECT_EQ(call->reply.status(), absl::UnavailableError("signal 9"));
}

TEST_F(Closing, AnAnswerWithoutNewlineBeforeTheEndCounts) {
  StartLegacy();
  const auto call = Call("ping");
  const std::string id = Hear()["id"].dump();
  Say(absl::StrCat(R"({"jsonrpc":"2.0","method":"n"})", "\n", R"({"jsonrpc":"2.0","id":)", id, R"(,"result":{}})"));
  HangUp();
  RunUntil([this] { return !closed.empty(); });
  EXPECT_EQ(call->result(), "{}");
}

TEST_F(Closing, JunkBeyondTheLimitCloses) {
  options.connection.junk_lines_max = 1;
  StartLegacy();
  Say("junk");
  EXPECT_THAT(closed, IsEmpty());
  Say("junk");
  EXPECT_THAT(closed, ElementsAre(jsonrpc::CloseReason::kJunkOutput));
}

TEST_F(Closing, CallsAfterItsInputWasClosedFail) {
  StartLegacy();
  client->CloseInput(/*at_once=*/false);
  const auto call = Call("ping");
  Run();
  EXPECT_EQ(call->count, 1);
  EXPECT_EQ(call->code(), StatusCode::kUnavailable);
  EXPECT_EQ(client->Notify("notifications/roots/list_changed", "").code(), StatusCode::kUnavailable);
}

TEST_F(Closing, NothingIsCalledAfterTheClientIsGone) {
  StartLegacy();
  const auto waiting = Call("ping");
  const auto refused = Call("tools/call", "[]");
  const auto cancelled = Call("ping");
  client->Cancel(last_call, "enough");
  const auto timed = Call("ping", "", CallOptions{absl::Milliseconds(2), absl::ZeroDuration(), nullptr});
  client.reset();
  RunFor(absl::Milliseconds(5));
  EXPECT_EQ(waiting->count + refused->count + cancelled->count + timed->count, 0);
}

// --- Destroying ---

TEST_F(Destroying, WhenConnected) {
  options.era = EraChoice::kLegacy;
  Open();
  client->Connect([this](const absl::Status&) { Destroy(); });
  Answer(Hear("initialize"), InitializeResult("2025-11-25"));
}

TEST_F(Destroying, WhenConnectedToAModernServer) {
  Open();
  client->Connect([this](const absl::Status&) { Destroy(); });
  Answer(Hear("server/discover"), kDiscoverResult);
}

TEST_F(Destroying, WhenTheHandshakeTakesTooLong) {
  options.start_timeout = absl::Milliseconds(3);
  Open();
  client->Connect([this](const absl::Status&) { Destroy(); });
  RunUntil([this] { return is_destroyed; });
}

TEST_F(Destroying, WhenTheHandshakeIsFailed) {
  Open();
  client->Connect([this](const absl::Status&) { Destroy(); });
  Hear("server/discover");
  client->FailAll(absl::UnavailableError("it ended"));
}

TEST_F(Destroying, WhenACallIsAnswered) {
  StartLegacy();
  client->Call("ping", "", {}, DestroyWhenCalled());
  client->Call("ping", "", {}, NeverCalled());
  const Json first = Hear(), second = Hear();
  Answer(first, "{}");
  Run();
}

TEST_F(Destroying, WhenACallTimesOut) {
  StartLegacy();
  const CallOptions call_options{absl::Milliseconds(2), absl::ZeroDuration(), nullptr};
  client->Call("ping", "", call_options, DestroyWhenCalled());
  client->Call("ping", "", call_options, NeverCalled());
  RunFor(absl::Milliseconds(10));
}

TEST_F(Destroying, WhenACallIsCancelled) {
  StartLegacy();
  const auto call = client->Call("ping", "", {}, DestroyWhenCalled());
  const auto other = client->Call("ping", "", {}, NeverCalled());
  client->Cancel(call, "enough");
  client->Cancel(other, "enough");
  Run();
}

TEST_F(Destroying, WhenACallCouldNotBeSent) {
  StartLegacy();
  client->Call("tools/call", "[]", {}, DestroyWhenCalled());
  client->Call("tools/call", "[]", {}, NeverCalled());
  Run();
}

TEST_F(Destroying, WhenAllCallsAreFailedTheRestIsFailedToo) {
  StartLegacy();
  int others = 0;
  client->Call("ping", "", {}, DestroyWhenCalled());
  client->Call("ping", "", {}, [&others](const absl::StatusOr<Reply>&) { ++others; });
  client->FailAll(absl::UnavailableError("it ended"));
  EXPECT_EQ(others, 1);
}

TEST_F(Destroying, OnAnAnswer) {
  options.era = EraChoice::kLegacy;
  bool is_ready = false;
  handlers.on_answer = [&](absl::string_view) {
    if (is_ready) Destroy();
  };
  Start(EraChoice::kLegacy);
  Answer(Hear("initialize"), InitializeResult("2025-11-25"));
  Hear("notifications/initialized");
  is_ready = true;
  client->Call("ping", "", {}, NeverCalled());
  Answer(Hear("ping"), "{}");
}

TEST_F(Destroying, OnTheAnswerToTheProbe) {
  handlers.on_answer = [this](absl::string_view) { Destroy(); };
  Open();
  client->Connect([](const absl::Status&) { ADD_FAILURE() << "called after the client was gone"; });
  Answer(Hear("server/discover"), kDiscoverResult);
}

TEST_F(Destroying, OnProgress) {
  StartLegacy();
  CallOptions call_options;
  call_options.on_progress = [this](const Progress&) { Destroy(); };
  client->Call("tools/call", kTool, call_options, NeverCalled());
  const std::string id = Hear()["id"].dump();
  const std::string note = absl::StrCat(
      R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)", id, R"(,"progress":1}})");
  Say(note + "\n" + note);
}

TEST_F(Destroying, OnANotification) {
  handlers.on_notification = [this](absl::string_view, absl::string_view) { Destroy(); };
  StartLegacy();
  const std::string note = R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})";
  Say(note + "\n" + note);
}

TEST_F(Destroying, OnARequest) {
  handlers.on_request = [this](const ServerRequest&, Responder respond) {
    Destroy();
    respond("{}");
  };
  StartLegacy();
  Ask("1", "roots/list");
}

TEST_F(Destroying, OnARequestForInput) {
  handlers.on_request = [this](const ServerRequest&, Responder respond) {
    Destroy();
    respond("{}");
  };
  StartModern();
  client->Call("tools/call", kTool, {}, NeverCalled());
  Answer(Hear(), kAsksForRoots);
}

TEST_F(Destroying, WhenInputIsRefused) {
  handlers.on_request = [](const ServerRequest&, Responder respond) { respond(jsonrpc::ErrorObject{-1, "no", ""}); };
  StartModern();
  client->Call("tools/call", kTool, {}, DestroyWhenCalled());
  Answer(Hear(), kAsksForRoots);
}

TEST_F(Destroying, OnJunk) {
  handlers.on_dropped = [this](absl::string_view, absl::string_view) { Destroy(); };
  StartLegacy();
  Say("junk\njunk");
}

TEST_F(Destroying, OnAMessageThatMakesNoSense) {
  handlers.on_dropped = [this](absl::string_view, absl::string_view) { Destroy(); };
  StartModern();
  client->Call("tools/list", "", {}, NeverCalled());
  Ask("1", "ping");
}

TEST_F(Destroying, OnClose) {
  handlers.on_close = [this](jsonrpc::CloseReason, const absl::Status&) { Destroy(); };
  StartLegacy();
  client->Call("ping", "", {}, NeverCalled());
  HangUp();
  RunUntil([this] { return is_destroyed; });
}

}  // namespace
}  // namespace bulkhead::mcp
