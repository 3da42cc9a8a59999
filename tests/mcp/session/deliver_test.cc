// The one-shot form: one deadline over everything, the result before the teardown.
#include <signal.h>

#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "asio/bind_cancellation_slot.hpp"
#include "asio/cancellation_signal.hpp"
#include "tests/mcp/session/session_fixture.h"

namespace bulkhead::mcp {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Code = absl::StatusCode;

constexpr char kGood[] = "good answer {\"good\":true}";
constexpr char kInitialize[] = R"(initialize answer {"protocolVersion":"2025-11-25","capabilities":{}})";

class DeliverTest : public SessionTest {
 protected:
  absl::StatusOr<DeliverResult> Ask(const Words& rules, const DeliverRequest& request,
                                    absl::Duration timeout = kDeliverTime, const std::string& more = "") {
    return Deliver(PolicyWith(more), Command(rules), request, timeout);
  }
  // Deliver's own thread may still be at it.
  void TearDown() override {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (HasChildren() && std::chrono::steady_clock::now() < deadline) sched_yield();
    SessionTest::TearDown();
  }
};

TEST_F(DeliverTest, GivesTheAnswerTheLinesStderrAndTheExit) {
  const auto result = Ask({"legacy", "good stderr   two words \\n\\n", kGood, "eof exit 5"}, {"good", R"({"a":1})"});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->reply.error.has_value());
  EXPECT_EQ(result->reply.result, R"({"good":true})");
  EXPECT_THAT(result->raw_request, AllOf(HasSubstr(R"("method":"good")"), HasSubstr(R"("params":{"a":1})")));
  EXPECT_THAT(result->raw_response, AllOf(testing::StartsWith("{"), testing::EndsWith(R"("result":{"good":true}})")));
  EXPECT_EQ(result->stderr_text, "two words");
  EXPECT_EQ(result->exit.get().code, 5);
}

TEST_F(DeliverTest, WithoutStderrThereIsNone) {
  for (const char* const text : {"", " \\n\\t\\n"}) {
    const auto result = Ask({"modern", absl::StrCat("good stderr ", text), kGood}, {"good", ""});
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_FALSE(result->stderr_text.has_value());
    EXPECT_EQ(result->exit.get().ToString(), "exited with code 0");
  }
}

TEST_F(DeliverTest, TheEndOfALongStderrIsKept) {
  const auto result = Ask({"legacy", "good stderr-fill 262144", "good stderr end", kGood}, {"good", ""});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->stderr_text.has_value());
  EXPECT_THAT(*result->stderr_text, AllOf(SizeIs(kDeliverStderrBytesMax), testing::EndsWith("xend")));
}

TEST_F(DeliverTest, AnErrorOfTheServerIsItsAnswer) {
  const auto result = Ask({"legacy", "bad error -32602 {\"why\":1}"}, {"bad", ""});
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->reply.error.has_value());
  EXPECT_EQ(result->reply.error->code, -32602);
  EXPECT_EQ(result->reply.error->data, "{\"why\":1}");
}

TEST_F(DeliverTest, InitializeItselfIsSentAsItIs) {
  const std::string params =
      R"({"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"x","version":"1"}})";
  const auto result =
      Ask({absl::StrCat("line append ", *this / "lines", " $line"), kInitialize}, {"initialize", params});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->reply.result, HasSubstr("2025-11-25"));
  EXPECT_THAT(result->raw_request, HasSubstr(params));
  result->exit.wait();
  EXPECT_THAT(Lines("lines"), ElementsAre(result->raw_request)) << "no handshake before it, and nothing after";
}

TEST_F(DeliverTest, A5TheResultComesBeforeTheTeardown) {
  const Gate gate(*this / "gate");
  const auto result = Ask({"legacy", kGood, "eof wait " + gate.path()}, {"good", ""}, kDeliverTime,
                          R"("timeouts":{"stdin_grace":"20s","term_grace":"20s"})");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit.wait_for(std::chrono::seconds(0)), std::future_status::timeout) << "the server is still there";
  gate.Open();
  EXPECT_EQ(result->exit.get().ToString(), "exited with code 0");
}

TEST_F(DeliverTest, D10StdinStaysOpenUntilTheAnswer) {
  const auto result = Ask({"legacy", absl::StrCat("line append ", *this / "order", " line"),
                           absl::StrCat("eof append ", *this / "order", " eof"), kGood},
                          {"good", ""});
  ASSERT_TRUE(result.ok()) << result.status();
  result->exit.wait();
  EXPECT_THAT(Lines("order"), ElementsAre("line", "line", "line", "line", "eof"));
}

TEST_F(DeliverTest, TheDeadlineBoundsAServerThatNeverSpeaks) {
  const auto start = std::chrono::steady_clock::now();
  const auto result = Ask({"start stderr thinking\\n", "start stay"}, {"good", ""}, absl::Seconds(1));
  EXPECT_THAT(result.status(),
              AllOf(HasCode(Code::kDeadlineExceeded), Says("good"), Says("within 1s"), Says("thinking")));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(DeliverTest, TheDeadlineBoundsAServerThatDoesNotRead) {
  const std::string params = absl::StrCat("{\"x\":\"", std::string(4 << 20, 'x'), "\"}");
  const auto start = std::chrono::steady_clock::now();
  const auto result = Ask({"legacy", "notifications/initialized stay"}, {"good", params}, absl::Milliseconds(300));
  EXPECT_THAT(result.status(), HasCode(Code::kDeadlineExceeded));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(DeliverTest, ADeathIsToldAtOnce) {
  const auto result = Ask({"legacy", "good stderr out of cheese\\n", "good kill 9"}, {"good", ""});
  EXPECT_THAT(result.status(),
              AllOf(HasCode(Code::kUnavailable), Says("killed by signal 9 (SIGKILL)"), Says("out of cheese")));
}

TEST_F(DeliverTest, ADeathByTheProbeIsFollowedByOneStartWithoutIt) {
  const auto result =
      Ask({absl::StrCat("start append ", *this / "starts", " x"), "server/discover exit 1", kInitialize, kGood},
          {"good", ""});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->reply.result, R"({"good":true})");
  EXPECT_THAT(Lines("starts"), SizeIs(2));
}

TEST_F(DeliverTest, ADeathAtEveryStartIsAnErrorAfterTwo) {
  const auto result = Ask({absl::StrCat("start append ", *this / "starts", " x"), "start exit 9"}, {"good", ""});
  EXPECT_THAT(result.status(), AllOf(HasCode(Code::kUnavailable), Says("exited with code 9")));
  EXPECT_THAT(Lines("starts"), SizeIs(2));
}

TEST_F(DeliverTest, WhatCannotStartSaysWhy) {
  policy::CommandRequest command = Command({});
  command.argv = {folder_ + "/tools/nothing"};
  EXPECT_THAT(Deliver(PolicyWith(), command, {"good", ""}).status(), HasCode(Code::kNotFound));
}

TEST_F(DeliverTest, AsyncDeliverRunsOnTheHostsLoop) {
  absl::StatusOr<DeliverResult> result = absl::UnknownError("");
  bool is_there = false;
  int progress = 0;
  DeliverOptions options;
  options.on_progress = [&progress](const Progress&) { ++progress; };
  AsyncDeliver(
      io_.get_executor(), PolicyWith(),
      Command(
          {"legacy",
           R"(good line {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}})",
           kGood}),
      {"good", ""}, absl::Seconds(20), options, [&](absl::StatusOr<DeliverResult> outcome) {
        result = std::move(outcome);
        is_there = true;
      });
  EXPECT_FALSE(is_there);
  ASSERT_TRUE(RunUntil([&is_there] { return is_there; }));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(progress, 1);
  ASSERT_TRUE(
      RunUntil([&result] { return result->exit.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  EXPECT_EQ(result->exit.get().code, 0);
}

// Wherever it is: not begun, in the handshake, waiting for the answer.
TEST_F(DeliverTest, ACancellationIsToldToTheServerWhichIsStopped) {
  const std::string token = NewToken();
  const Words rules = {"legacy",
                       "start helper " + token,
                       "initialize stderr x",
                       absl::StrCat("slow append ", *this / "seen", " slow"),
                       absl::StrCat("notifications/cancelled append ", *this / "seen", " cancelled $line"),
                       absl::StrCat("eof append ", *this / "seen", " eof")};
  for (const std::string when : {"at once", "handshake", "call"}) {
    SCOPED_TRACE(when);
    absl::Status status;
    bool is_there = false, is_gone = false;
    DeliverOptions options;
    options.on_gone = [&] {
      EXPECT_TRUE(is_there);
      EXPECT_FALSE(is_gone) << "twice";
      is_gone = true;
    };
    asio::cancellation_signal cancel;
    AsyncDeliver(io_.get_executor(), PolicyWith(), Command(rules), {"slow", ""}, absl::Seconds(20), options,
                 asio::bind_cancellation_slot(cancel.slot(), [&](const absl::StatusOr<DeliverResult>& outcome) {
                   status = outcome.status();
                   is_there = true;
                 }));
    if (when == "handshake") {
      ASSERT_TRUE(RunUntil([&] { return Living(token) == 1; }));
    } else if (when == "call") {
      ASSERT_TRUE(RunUntil([&] { return !Lines("seen").empty() && Lines("seen").back() == "slow"; }));
    }
    cancel.emit(asio::cancellation_type::terminal);
    EXPECT_FALSE(is_there) << "not inside emit";
    ASSERT_TRUE(RunUntil([&] { return is_gone; }));
    EXPECT_THAT(status, HasCode(Code::kCancelled));
    EXPECT_EQ(Living(token), 0u);
  }
  const Words seen = Lines("seen");
  ASSERT_GE(seen.size(), 3u);
  EXPECT_EQ(seen.back(), "eof");
  EXPECT_THAT(seen[seen.size() - 2], AllOf(testing::StartsWith("cancelled"), HasSubstr("\"requestId\":3")));
}

TEST_F(DeliverTest, ThatNothingIsLeftIsToldAfterEveryOutcome) {
  policy::CommandRequest missing = Command({});
  missing.argv = {folder_ + "/tools/nothing"};
  const std::vector<std::pair<policy::CommandRequest, Code>> outcomes = {
      {Command({"legacy", kGood}), Code::kOk},
      {missing, Code::kNotFound},
      {Command({"legacy", "good exit 7"}), Code::kUnavailable},
      {Command({"legacy", "good close-stdout", "good stay"}), Code::kUnavailable}};
  for (const auto& [command, code] : outcomes) {
    absl::Status status;
    int gone = 0;
    DeliverOptions options;
    options.on_gone = [&] { ++gone; };
    AsyncDeliver(io_.get_executor(), PolicyWith(), command, {"good", ""}, absl::Seconds(20), options,
                 [&](const absl::StatusOr<DeliverResult>& outcome) { status = outcome.status(); });
    ASSERT_TRUE(RunUntil([&] { return gone != 0; }));
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_FALSE(HasChildren());
    while (io_.poll() != 0) {
    }
    EXPECT_EQ(gone, 1);
  }
}

TEST_F(DeliverTest, ALoopThatIsGivenUpTakesTheServerWithIt) {
  const std::string token = NewToken();
  {
    asio::io_context io;
    AsyncDeliver(io.get_executor(), PolicyWith(), Command({"start helper " + token, "start stay"}), {"good", ""},
                 absl::Seconds(20), {}, [](const absl::StatusOr<DeliverResult>&) { FAIL() << "nobody runs the loop"; });
    while (Living(token) == 0) io.run_one_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(Living(token), 0u);
}

}  // namespace
}  // namespace bulkhead::mcp
