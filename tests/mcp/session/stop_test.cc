// How a session ends its server: gently, in order, in bounded time, and with nothing left.
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "asio/bind_cancellation_slot.hpp"
#include "asio/cancellation_signal.hpp"
#include "tests/mcp/session/session_fixture.h"

namespace bulkhead::mcp {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::IsEmpty;
using Code = absl::StatusCode;

constexpr char kGood[] = "good answer {\"good\":true}";
constexpr char kLongGraces[] = R"("timeouts":{"stdin_grace":"20s","term_grace":"20s"})";

class StopTest : public SessionTest {};

TEST_F(StopTest, A2TheEndOfStdinComesFirstAndSigtermNotWhenThatIsEnough) {
  Connected({"legacy", "eof append " + *this / "clean" + " x", "term append " + *this / "term" + " x"}, kLongGraces);
  const ServerEnd end = Close();
  EXPECT_EQ(end.reason, CloseReason::kStopped);
  ASSERT_TRUE(end.exit.has_value());
  EXPECT_EQ(end.exit->ToString(), "exited with code 0");
  EXPECT_THAT(Lines("clean"), ElementsAre("x"));
  EXPECT_THAT(Lines("term"), IsEmpty());
  EXPECT_THAT(ends_, testing::SizeIs(1));
}

// An npx that is killed while it installs leaves half a package and a lock behind.
TEST_F(StopTest, A2AServerThatTakesTooLongToStartIsEndedGentlyToo) {
  SessionOptions options;
  options.restart = false;
  Open({"server/discover stderr probed\\n", "initialize stderr installing\\n", "eof append " + *this / "clean" + " x"},
       R"("timeouts":{"probe":"10ms","start":"60ms","stdin_grace":"20s","term_grace":"20s"})", options);
  EXPECT_THAT(Connect(), HasCode(Code::kDeadlineExceeded));
  const ServerEnd end = Close();
  ASSERT_TRUE(end.exit.has_value());
  EXPECT_EQ(end.exit->ToString(), "exited with code 0");
  EXPECT_THAT(Lines("clean"), ElementsAre("x"));
}

TEST_F(StopTest, A2ThenSigtermAndThenSigkill) {
  Connected(
      {"legacy", "eof append " + *this / "order" + " eof", "eof stay", "term append " + *this / "order" + " term"});
  const ServerEnd end = Close();
  ASSERT_TRUE(end.exit.has_value());
  EXPECT_EQ(end.exit->signal, SIGKILL);
  EXPECT_THAT(Lines("order"), ElementsAre("eof", "term"));
}

TEST_F(StopTest, A3AServerHasItsGraceToStopItsOwnChildren) {
  const Gate gate(*this / "gate");
  Connected({"legacy", "eof stderr stopping\\n", "eof wait " + gate.path(), "eof append " + *this / "clean" + " x",
             "term append " + *this / "term" + " x"},
            kLongGraces);
  bool is_closed = false;
  session_->AsyncClose([&is_closed](const ServerEnd&) { is_closed = true; });
  ASSERT_TRUE(RunUntil([this] { return absl::StrContains(stderr_, "stopping"); }));
  EXPECT_FALSE(is_closed);
  gate.Open();
  EXPECT_TRUE(RunUntil([&is_closed] { return is_closed; }));
  EXPECT_THAT(Lines("clean"), ElementsAre("x"));
  EXPECT_THAT(Lines("term"), IsEmpty());
}

TEST_F(StopTest, A4ClosingIsBounded) {
  Connected({"legacy", kGood, "eof stay"});
  ASSERT_TRUE(Call("good").ok());
  const auto start = std::chrono::steady_clock::now();
  const ServerEnd end = Close();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));  // 0.2 s of graces
  EXPECT_EQ(end.exit->signal, SIGTERM);
}

TEST_F(StopTest, A6AnEndIsToldExactlyOnceWhoeverHoldsThePipes) {
  const std::string token = NewToken();
  SessionOptions options;
  options.restart = false;
  Connected({"legacy", "notifications/end helper " + token, "notifications/end exit 0"}, "", options);
  session_->AsyncNotify("notifications/end", "", [](const absl::Status&) {});
  const ServerEnd& end = NextEnd();
  EXPECT_EQ(end.reason, CloseReason::kExited);
  // A31: a clean exit stays one.
  ASSERT_TRUE(end.exit.has_value());
  EXPECT_EQ(end.exit->ToString(), "exited with code 0");
  Close();
  EXPECT_EQ(Living(token), 0u);
  EXPECT_THAT(ends_, testing::SizeIs(1));
}

TEST_F(StopTest, A9A10HelpersInSessionsOfTheirOwnEndWithEachRun) {
  const std::string token = NewToken();
  Connected({"legacy", "start helper " + token, "start helper " + token, "end exit 0"});
  ASSERT_EQ(Living(token), 2u);
  for (int cycle = 0; cycle < 5; ++cycle) {
    EXPECT_THAT(Call("end").status(), HasCode(Code::kUnavailable));
    NextEnd();
    ASSERT_TRUE(Connect().ok());
  }
  EXPECT_EQ(Living(token), 2u);
  Close();
  EXPECT_EQ(Living(token), 0u);
}

TEST_F(StopTest, A16AServerThatServesSigtermByGoingOnIsKilled) {
  Connected({"legacy", "eof stay", "term stderr no\\n"});
  EXPECT_EQ(Close().exit->signal, SIGKILL);
  EXPECT_TRUE(absl::StrContains(stderr_, "no\n"));
}

TEST_F(StopTest, A17AServerThatWritesForEverIsKilledAndReadUntilThen) {
  Connected({"legacy", "eof ignore-term", "eof spin"});
  EXPECT_EQ(Close().exit->signal, SIGKILL);
  EXPECT_GT(stderr_.size(), 65'536u) << "more than a pipe holds: it is read until the end";
}

TEST_F(StopTest, A18TwoHundredConnectionsLeaveNothing) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit narrow = before;
  narrow.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &narrow), 0);
  Connected({"legacy", kGood});
  Close();
  const std::size_t descriptors = OpenDescriptors(), threads = Threads();
  for (int cycle = 0; cycle < 200; ++cycle) {
    const absl::Status status = Connect();
    ASSERT_TRUE(status.ok()) << cycle << ": " << status;
    Close();
    ASSERT_TRUE(RunUntil([&] { return OpenDescriptors() <= descriptors; })) << cycle;
  }
  EXPECT_EQ(Threads(), threads);
  EXPECT_FALSE(HasChildren());
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(StopTest, A30TheExitIsNoticedWhileAHelperHoldsThePipes) {
  const std::string token = NewToken();
  policy::CommandRequest command = Command({});
  command.argv = {"/bin/sh", "-c", "sleep 999 & exit 0"};
  SessionOptions options;
  options.restart = false;
  session_ = std::make_unique<Session>(io_.get_executor(), PolicyWith(), command, options);
  EXPECT_THAT(Connect(), AllOf(HasCode(Code::kUnavailable), Says("exited with code 0")));
}

TEST_F(StopTest, A33ACancelledCallLeavesTheServerToItsSession) {
  const std::string token = NewToken();
  Connected({"legacy", "slow helper " + token, "good answer {}"});
  asio::cancellation_signal signal;
  absl::Status status;
  session_->AsyncCall("slow", "", {},
                      asio::bind_cancellation_slot(
                          signal.slot(), [&status](const absl::StatusOr<Reply>& reply) { status = reply.status(); }));
  ASSERT_TRUE(Call("good").ok());
  signal.emit(asio::cancellation_type::terminal);
  EXPECT_TRUE(RunUntil([&status] { return !status.ok(); }));
  EXPECT_THAT(status, HasCode(Code::kCancelled));
  EXPECT_TRUE(Call("good").ok());
  session_.reset();
  EXPECT_TRUE(RunUntil([] { return !HasChildren(); }));
  EXPECT_EQ(Living(token), 0u);
}

TEST_F(StopTest, ADestroyedSessionsTreeEndsWithoutTheLoopBeingRun) {
  const std::string token = NewToken();
  Connected({"legacy", "start helper " + token, "eof stay"}, kLongGraces);
  ASSERT_GT(Living(token), 0u);
  session_.reset();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (Living(token) != 0 && std::chrono::steady_clock::now() < deadline) sched_yield();
  EXPECT_EQ(Living(token), 0u);
}

TEST_F(StopTest, ASecondCloseWaitsForTheSameEnd) {
  const Gate gate(*this / "gate");
  Connected({"legacy", "eof stderr stopping\\n", "eof wait " + gate.path()}, kLongGraces);
  int closed = 0;
  for (int i = 0; i < 2; ++i) {
    session_->AsyncClose([&closed](const ServerEnd& end) {
      ++closed;
      EXPECT_TRUE(end.exit.has_value());
    });
  }
  ASSERT_TRUE(RunUntil([this] { return absl::StrContains(stderr_, "stopping"); }));
  EXPECT_EQ(closed, 0) << "the tree is not gone";
  gate.Open();
  EXPECT_TRUE(RunUntil([&closed] { return closed == 2; }));
  EXPECT_THAT(ends_, testing::SizeIs(1));
}

TEST_F(StopTest, CallsInFlightFailAtOnceWhenTheSessionIsClosed) {
  Connected({"legacy", "slow stderr called\\n", "eof stay"}, kLongGraces);
  absl::Status status;
  session_->AsyncCall("slow", "", {}, [&status](const absl::StatusOr<Reply>& reply) { status = reply.status(); });
  ASSERT_TRUE(RunUntil([this] { return absl::StrContains(stderr_, "called"); }));
  bool is_closed = false;
  session_->AsyncClose([&is_closed](const ServerEnd&) { is_closed = true; });
  EXPECT_TRUE(RunUntil([&status] { return !status.ok(); }));
  EXPECT_FALSE(is_closed);
  EXPECT_THAT(status, HasCode(Code::kCancelled));
  session_.reset();
  EXPECT_TRUE(RunUntil([&is_closed] { return is_closed; }));
}

TEST_F(StopTest, WhatWasQueuedIsWrittenBeforeStdinIsClosed) {
  Connected({"legacy", "notifications/last append " + *this / "last" + " x"}, kLongGraces);
  session_->AsyncNotify("notifications/last", "", [](const absl::Status&) {});
  Close();
  EXPECT_THAT(Lines("last"), ElementsAre("x"));
}

}  // namespace
}  // namespace bulkhead::mcp
