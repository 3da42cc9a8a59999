// Completion tokens, who may be destroyed when, and many sessions on one thread. Compiled as C++20, for coroutines.
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "asio/awaitable.hpp"
#include "asio/bind_cancellation_slot.hpp"
#include "asio/bind_executor.hpp"
#include "asio/cancellation_signal.hpp"
#include "asio/co_spawn.hpp"
#include "asio/detached.hpp"
#include "asio/use_awaitable.hpp"
#include "asio/use_future.hpp"
#include "tests/mcp/session/session_fixture.h"

namespace bulkhead::mcp {
namespace {

using testing::ElementsAre;
using testing::SizeIs;
using Code = absl::StatusCode;

constexpr char kGood[] = "good answer {\"good\":true}";
const char* const kIsGood = "{\"good\":true}";
constexpr char kNote[] = R"(line {"jsonrpc":"2.0","method":"notifications/x"})";

class TokensTest : public SessionTest {};

TEST_F(TokensTest, Futures) {
  Open({"legacy", kGood});
  auto connected = session_->AsyncConnect(asio::use_future);
  ASSERT_TRUE(RunUntil([&] { return connected.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  EXPECT_TRUE(connected.get().ok());
  auto reply = session_->AsyncCall("good", "", {}, asio::use_future);
  ASSERT_TRUE(RunUntil([&] { return reply.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  EXPECT_THAT(reply.get(), ResultIs(kIsGood));
  auto closed = session_->AsyncClose(asio::use_future);
  ASSERT_TRUE(RunUntil([&] { return closed.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
  EXPECT_EQ(closed.get().reason, CloseReason::kStopped);
}

#if defined(ASIO_HAS_CO_AWAIT)
TEST_F(TokensTest, ACoroutineReadsLikeWhatItDoes) {
  std::vector<std::string> tools;
  ServerEnd end;
  const auto talk = [&]() -> asio::awaitable<void> {
    Session session(io_.get_executor(), PolicyWith(),
                    Command({"legacy", R"(tools/list#1 answer {"tools":[{"name":"a"}],"nextCursor":"2"})",
                             R"(tools/list#2 answer {"tools":[{"name":"b"}]})", kGood}),
                    {});
    const absl::Status connected = co_await session.AsyncConnect(asio::use_awaitable);
    EXPECT_TRUE(connected.ok()) << connected;
    const auto listed = co_await session.AsyncList("tools/list", "tools", {}, asio::use_awaitable);
    if (listed.ok()) tools = *listed;
    const auto reply = co_await session.AsyncCall("good", "", {}, asio::use_awaitable);
    EXPECT_THAT(reply, ResultIs(kIsGood));
    end = co_await session.AsyncClose(asio::use_awaitable);
  };
  bool is_done = false;
  asio::co_spawn(io_, talk, [&is_done](std::exception_ptr) { is_done = true; });
  ASSERT_TRUE(RunUntil([&is_done] { return is_done; }));
  EXPECT_THAT(tools, ElementsAre(R"({"name":"a"})", R"({"name":"b"})"));
  EXPECT_EQ(end.reason, CloseReason::kStopped);
}
#endif

TEST_F(TokensTest, ACancellationSlotCancelsTheCallAtTheServer) {
  Connected({"legacy", "slow append " + *this / "slow" + " $id",
             "notifications/cancelled append " + *this / "cancelled" + " $line", kGood});
  asio::cancellation_signal signal;
  std::vector<absl::Status> told;
  session_->AsyncCall("slow", "", {},
                      asio::bind_cancellation_slot(signal.slot(), [&told](const absl::StatusOr<Reply>& reply) {
                        told.push_back(reply.status());
                      }));
  ASSERT_TRUE(Call("good").ok());
  signal.emit(asio::cancellation_type::terminal);
  signal.emit(asio::cancellation_type::terminal);
  ASSERT_TRUE(Call("good").ok());
  EXPECT_THAT(told, ElementsAre(HasCode(Code::kCancelled)));
  EXPECT_THAT(Lines("cancelled"), ElementsAre(testing::HasSubstr("\"requestId\":" + Lines("slow").at(0))));
}

TEST_F(TokensTest, AHandlerRunsWhereItsExecutorSays) {
  asio::io_context other;
  Connected({"legacy", kGood});
  bool is_there = false;
  session_->AsyncCall("good", "", {}, asio::bind_executor(other, [&](const absl::StatusOr<Reply>&) {
                        EXPECT_TRUE(other.get_executor().running_in_this_thread());
                        is_there = true;
                      }));
  ASSERT_TRUE(RunUntil([&other, &is_there] {
    other.poll();
    return is_there;
  }));
}

TEST_F(TokensTest, NothingIsCalledFromInsideACall) {
  Open({"legacy", kGood});
  bool is_inside = true;
  int calls = 0;
  const auto outside = [&] {
    EXPECT_FALSE(is_inside);
    ++calls;
  };
  const auto and_run = [&](int wanted) {
    is_inside = false;
    ASSERT_TRUE(RunUntil([&] { return calls == wanted; }));
    is_inside = true;
  };
  session_->AsyncCall("good", "", {}, [&](const absl::StatusOr<Reply>&) { outside(); });  // not connected
  session_->AsyncNotify("x", "", [&](const absl::Status&) { outside(); });
  session_->AsyncClose([&](const ServerEnd&) { outside(); });
  and_run(3);
  session_->AsyncConnect([&](const absl::Status&) { outside(); });
  and_run(4);
  session_->AsyncConnect([&](const absl::Status&) { outside(); });  // it is
  session_->AsyncCall("good", "no JSON", {}, [&](const absl::StatusOr<Reply>&) { outside(); });
  session_->AsyncList("good", "x", {}, [&](const absl::StatusOr<std::vector<std::string>>&) { outside(); });
  and_run(7);
  session_->AsyncClose([&](const ServerEnd&) { outside(); });
  and_run(8);
}

// ---- The Session is destroyed by whatever it calls

TEST_F(TokensTest, EveryHandlerMayDestroyTheSession) {
  const std::string token = NewToken();
  const std::vector<std::string> where = {"connect", "ready",        "call",     "cancelled", "notify",
                                          "list",    "notification", "dropped",  "request",   "stderr",
                                          "end",     "close",        "progress", "failed"};
  for (const std::string& place : where) {
    SCOPED_TRACE(place);
    bool is_there = false;
    const auto destroy_at = [&](const std::string& name) {
      if (name != place || is_there) return;
      is_there = true;
      session_.reset();
    };
    SessionOptions options;
    options.on_ready = [&] { destroy_at("ready"); };
    options.on_notification = [&](absl::string_view, absl::string_view) { destroy_at("notification"); };
    options.on_dropped = [&](absl::string_view, absl::string_view) { destroy_at("dropped"); };
    options.on_request = [&](const ServerRequest&, Responder) { destroy_at("request"); };
    options.on_stderr = [&](absl::string_view) { destroy_at("stderr"); };
    options.on_end = [&](const ServerEnd&) { destroy_at("end"); };
    Open(
        {"legacy", "start helper " + token, "all stderr x", "all line junk", absl::StrCat("all ", kNote),
         R"(all line {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}})",
         R"(all line {"jsonrpc":"2.0","id":"s1","method":"roots/list"})", "all answer {\"x\":[]}", "never print ",
         "end exit 0"},
        "", options);
    session_->AsyncConnect([&](const absl::Status&) { destroy_at("connect"); });
    ASSERT_TRUE(RunUntil([&] { return is_there || session_->is_ready(); }));
    if (!is_there) {
      CallOptions call;
      call.on_progress = [&](const Progress&) { destroy_at("progress"); };
      session_->AsyncNotify("notifications/x", "", [&](const absl::Status&) { destroy_at("notify"); });
      session_->AsyncList("all", "x", {}, [&](const auto&) { destroy_at("list"); });
      session_->AsyncCall("all", "", call, [&, wants_more = place](const auto&) {
        destroy_at("call");
        if (!session_) return;
        session_->AsyncCall("never", "", {}, [&](const absl::StatusOr<Reply>&) { destroy_at("failed"); });
        if (wants_more == "close") {
          session_->AsyncClose([&](const ServerEnd&) { destroy_at("close"); });
        } else {
          session_->AsyncCall("end", "", {}, [&](const absl::StatusOr<Reply>&) { destroy_at("cancelled"); });
        }
      });
    }
    ASSERT_TRUE(RunUntil([&is_there] { return is_there; }));
    EXPECT_EQ(session_, nullptr);
    ASSERT_TRUE(RunUntil([&] { return io_.poll() == 0 && !HasChildren(); }));
    EXPECT_EQ(Living(token), 0u);
  }
}

TEST_F(TokensTest, WhatWaitsWhenTheSessionIsDestroyedIsCancelled) {
  Connected({"legacy", kGood});
  std::vector<absl::Status> told;
  session_->AsyncCall("good", "", {}, [&told](const absl::StatusOr<Reply>& reply) { told.push_back(reply.status()); });
  session_.reset();
  EXPECT_THAT(told, SizeIs(0)) << "not inside the destructor";
  ASSERT_TRUE(RunUntil([&told] { return told.size() == 1; }));
  EXPECT_THAT(told[0], HasCode(Code::kCancelled));
  Open({"start stay"});
  session_->AsyncConnect([&told](absl::Status status) { told.push_back(std::move(status)); });
  session_.reset();
  ASSERT_TRUE(RunUntil([&told] { return told.size() == 2; }));
  EXPECT_THAT(told[1], HasCode(Code::kCancelled));
}

TEST_F(TokensTest, ASessionMayGoWithItsLoop) {
  const std::string token = NewToken();
  {
    asio::io_context io;
    Session session(io.get_executor(), PolicyWith(), Command({"legacy", "start helper " + token, "eof stay"}), {});
    session.AsyncConnect([](const absl::Status&) {});
    while (!session.is_ready()) io.run_one_for(std::chrono::milliseconds(100));
    EXPECT_EQ(Living(token), 1u);
  }
  EXPECT_EQ(Living(token), 0u);
}

// ---- Many

TEST_F(TokensTest, OfManySessionsOnOneThreadOneThatFloodsHarmsNoOther) {
  constexpr int kSessions = 64;
  const std::string note =
      absl::StrCat(R"({"jsonrpc":"2.0","method":"notifications/x","params":{"x":")", std::string(1000, 'x'), "\"}}");
  int notes = 0, connected = 0;
  SessionOptions noisy;
  noisy.on_notification = [&notes](absl::string_view, absl::string_view) { ++notes; };
  std::vector<std::unique_ptr<Session>> sessions;
  sessions.push_back(std::make_unique<Session>(
      io_.get_executor(), PolicyWith(),
      Command({"legacy", "flood repeat 200000 " + note, "flood repeat 200000 " + note}), noisy));
  while (sessions.size() < kSessions) {
    sessions.push_back(
        std::make_unique<Session>(io_.get_executor(), PolicyWith(), Command({"legacy", kGood}), SessionOptions()));
  }
  for (auto& session : sessions) {
    session->AsyncConnect([&connected](const absl::Status& status) { connected += status.ok() ? 1 : 0; });
  }
  ASSERT_TRUE(RunUntil([&connected] { return connected == kSessions; }));
  sessions[0]->AsyncCall("flood", "", {}, [](const absl::StatusOr<Reply>&) {});
  ASSERT_TRUE(RunUntil([&notes] { return notes > 0; }));
  int answered = 0;
  for (auto& session : sessions) {
    if (session == sessions[0]) continue;
    session->AsyncCall("good", "", {},
                       [&answered](const absl::StatusOr<Reply>& reply) { answered += reply.ok() ? 1 : 0; });
  }
  ASSERT_TRUE(RunUntil([&answered] { return answered == kSessions - 1; }));
  EXPECT_LT(notes, 400000) << "the flood was over before, which proves nothing";
}

}  // namespace
}  // namespace bulkhead::mcp
