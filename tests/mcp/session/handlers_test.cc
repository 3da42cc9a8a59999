// What a host does inside its handlers: it asks again, it connects and closes, it throws.
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/mcp/session/session_fixture.h"

namespace bulkhead::mcp {
namespace {

using testing::AllOf;
using testing::SizeIs;
using Code = absl::StatusCode;

constexpr char kGood[] = "good answer {\"good\":true}";
const char* const kIsGood = "{\"good\":true}";
constexpr char kNote[] = R"(line {"jsonrpc":"2.0","method":"notifications/x"})";

class HandlersTest : public SessionTest {
 protected:
  // As a host with a loop that survives exceptions: runs until it is so, and counts what was thrown.
  bool RunThrough(const std::function<bool()>& happened) {
    for (int attempt = 0; attempt != 100; ++attempt) {
      try {
        return RunUntil(happened);
      } catch (const std::runtime_error&) {
        ++thrown_;
      }
    }
    return false;
  }
  int thrown_ = 0;
};

// The server is gone when the first of its calls fails.
TEST_F(HandlersTest, ACallThatFailedWithItsServerMayBeMadeAgainAtOnce) {
  Connected({"legacy", "end exit 7", kGood});
  std::vector<absl::Status> again;
  bool was_ready = true;
  session_->AsyncCall("end", "", {}, [&](const absl::StatusOr<Reply>& reply) {
    EXPECT_THAT(reply.status(), HasCode(Code::kUnavailable));
    was_ready = session_->is_ready();
    session_->AsyncCall("good", "", {}, [&](const auto& answer) { again.push_back(answer.status()); });
    session_->AsyncList("good", "x", {}, [&](const auto& answer) { again.push_back(answer.status()); });
    session_->AsyncNotify("notifications/x", "", [&](const absl::Status& status) { again.push_back(status); });
    session_->Unsubscribe(session_->Subscribe("{}"));
  });
  ASSERT_TRUE(RunUntil([&] { return again.size() == 3; }));
  EXPECT_FALSE(was_ready);
  for (const absl::Status& status : again) EXPECT_THAT(status, HasCode(Code::kFailedPrecondition));
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
}

TEST_F(HandlersTest, AConnectFromAFailedCallWaitsForTheRestart) {
  Connected({"legacy", "end exit 7", kGood});
  absl::StatusOr<Reply> second = absl::UnknownError("not called");
  bool is_over = false;
  session_->AsyncCall("end", "", {}, [&](const absl::StatusOr<Reply>&) {
    session_->AsyncConnect([&](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      session_->AsyncCall("good", "", {}, [&](const absl::StatusOr<Reply>& reply) {
        second = reply;
        is_over = true;
      });
    });
  });
  ASSERT_TRUE(RunUntil([&] { return is_over; }));
  EXPECT_THAT(second, ResultIs(kIsGood));
  EXPECT_THAT(ends_, SizeIs(1));
}

// Closed, and connected again, by the handler of a call that failed: one server is running, not two.
TEST_F(HandlersTest, AFailedCallMayCloseAndConnectAnew) {
  const std::string token = NewToken();
  Connected({"legacy", "start helper " + token, "end exit 7", kGood});
  bool is_connected = false;
  session_->AsyncCall("end", "", {}, [&](const absl::StatusOr<Reply>&) {
    session_->AsyncClose([](const ServerEnd&) {});
    session_->AsyncConnect([&](const absl::Status& status) { is_connected = status.ok(); });
  });
  ASSERT_TRUE(RunUntil([&] { return is_connected; }));
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  ASSERT_TRUE(RunUntil([&] { return Living(token) == 1; }));
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
}

TEST_F(HandlersTest, AConnectsHandlerMayCloseAndNothingIsReadyThen) {
  bool was_ready = false, is_closed = false;
  SessionOptions options;
  options.on_ready = [&] { was_ready = true; };
  Open({"legacy"}, "", options);
  session_->AsyncConnect(
      [&](const absl::Status&) { session_->AsyncClose([&](const ServerEnd&) { is_closed = true; }); });
  ASSERT_TRUE(RunUntil([&] { return is_closed; }));
  EXPECT_FALSE(was_ready);
}

// ---- Exceptions leave the loop and nothing else

TEST_F(HandlersTest, AnExceptionLeavesTheLoopAndTheSessionGoesOn) {
  int connects = 0, readies = 0, notes = 0, dropped = 0, asked = 0, progress = 0, stderrs = 0, replies = 0, ends = 0;
  const auto fail = [](int& count) {
    ++count;
    throw std::runtime_error("the host's own");
  };
  SessionOptions options;
  options.on_ready = [&] { fail(readies); };
  options.on_notification = [&](absl::string_view, absl::string_view) { fail(notes); };
  options.on_dropped = [&](absl::string_view, absl::string_view) { fail(dropped); };
  options.on_request = [&](const ServerRequest&, Responder) { fail(asked); };
  options.on_stderr = [&](absl::string_view) { fail(stderrs); };
  options.on_end = [&](const ServerEnd&) { fail(ends); };
  Open(
      {"legacy", "all stderr x", "all line junk", absl::StrCat("all ", kNote), absl::StrCat("all ", kNote),
       R"(all line {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}})",
       R"(all line {"jsonrpc":"2.0","id":"s1","method":"roots/list"})", "all answer {\"x\":[]}", "end exit 0", kGood},
      "", options);
  session_->AsyncConnect([&](const absl::Status&) { fail(connects); });
  ASSERT_TRUE(RunThrough([&] { return session_->is_ready() && readies == 1; }));
  for (int round = 1; round != 3; ++round) {
    CallOptions call;
    call.on_progress = [&](const Progress&) { fail(progress); };
    session_->AsyncCall("all", "", call, [&](const absl::StatusOr<Reply>&) { fail(replies); });
    ASSERT_TRUE(RunThrough([&] { return replies == round && stderrs == round; }));
    EXPECT_EQ(notes, 2 * round);
    EXPECT_EQ(dropped, round);
    EXPECT_EQ(asked, round);
    EXPECT_EQ(progress, round);
  }
  replies = 0;
  for (int i = 0; i != 3; ++i) session_->AsyncCall("end", "", {}, [&](const absl::StatusOr<Reply>&) { fail(replies); });
  ASSERT_TRUE(RunThrough([&] { return replies == 3 && ends == 1; }));
  ASSERT_TRUE(RunThrough([&] { return readies == 2; }));  // started again
  ASSERT_TRUE(RunThrough([&] { return io_.poll() == 0; }));
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_EQ(connects, 1);
  EXPECT_EQ(thrown_, 1 + 2 + 2 * 7 + 3 + 1);
}

// ---- Lists

constexpr char kPages[] = R"(tools/list answer {"tools":[1],"nextCursor":"$id"})";

TEST_F(HandlersTest, PagesWithoutEndAreLimited) {
  Connected({"legacy", kPages}, R"("messages":{"max_message_bytes":"1KiB"})");
  absl::StatusOr<Words> listed = absl::UnknownError("not called");
  bool is_over = false;
  session_->AsyncList("tools/list", "tools", {}, [&](auto result) {
    listed = std::move(result);
    is_over = true;
  });
  ASSERT_TRUE(RunUntil([&] { return is_over; }));
  EXPECT_THAT(listed.status(), AllOf(HasCode(Code::kResourceExhausted), Says("tools/list")));
}

TEST_F(HandlersTest, AllPagesTogetherHaveTheTimeOfACall) {
  Connected({"legacy", kPages});
  CallOptions options;
  options.timeout = absl::Seconds(10);
  options.timeout_max = absl::Milliseconds(100);
  absl::StatusOr<Words> listed = absl::UnknownError("not called");
  bool is_over = false;
  session_->AsyncList("tools/list", "tools", options, [&](auto result) {
    listed = std::move(result);
    is_over = true;
  });
  ASSERT_TRUE(RunUntil([&] { return is_over; }));
  EXPECT_THAT(listed.status(), AllOf(HasCode(Code::kDeadlineExceeded), Says("tools/list")));
}

}  // namespace
}  // namespace bulkhead::mcp
