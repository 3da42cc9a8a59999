// Full pipes, deaf servers, servers that die at the wrong moment: nothing blocks, and everyone who waits is told.
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "asio/bind_cancellation_slot.hpp"
#include "asio/cancellation_signal.hpp"
#include "tests/mcp/session/session_fixture.h"

namespace bulkhead::mcp {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Code = absl::StatusCode;

constexpr char kGood[] = "good answer {\"good\":true}";
const char* const kIsGood = "{\"good\":true}";

std::string Filler(std::size_t bytes) { return absl::StrCat("{\"x\":\"", std::string(bytes, 'x'), "\"}"); }

CallOptions Within(absl::Duration timeout) {
  CallOptions options;
  options.timeout = timeout;
  return options;
}

class PipesTest : public SessionTest {
 protected:
  void Notify(const std::string& method) {
    session_->AsyncNotify(method, "", [](const absl::Status&) {});
  }
  // Starts a call, whose outcome is appended to `replies_`.
  void Begin(const std::string& method, const std::string& params = "") {
    session_->AsyncCall(method, params, {},
                        [this](absl::StatusOr<Reply> reply) { replies_.push_back(std::move(reply)); });
  }
  std::vector<absl::StatusOr<Reply>> replies_;
};

// ---- B

volatile sig_atomic_t pipe_signals = 0;

TEST_F(PipesTest, B4AServerThatDiesWhileItIsWrittenToEndsNotTheHostWithTheDefaultSigpipe) {
  struct sigaction now = {};
  ASSERT_EQ(sigaction(SIGPIPE, nullptr, &now), 0);
  ASSERT_TRUE(now.sa_handler == SIG_DFL) << "else this proves nothing";
  Connected({"legacy", "notifications/die exit 3"});
  Notify("notifications/die");
  EXPECT_THAT(Call("big", Filler(1 << 20)).status(), AllOf(HasCode(Code::kUnavailable), Says("exited with code 3")));
  const ServerEnd& end = NextEnd();
  ASSERT_TRUE(end.exit.has_value());
  EXPECT_EQ(end.exit->code, 3);
  sigaction(SIGPIPE, nullptr, &now);
  EXPECT_TRUE(now.sa_handler == SIG_DFL);
}

TEST_F(PipesTest, B4TheHostsOwnHandlerOfSigpipeIsNeitherCalledNorChanged) {
  struct sigaction own = {}, before = {}, now = {};
  own.sa_handler = [](int) { pipe_signals = pipe_signals + 1; };
  ASSERT_EQ(sigaction(SIGPIPE, &own, &before), 0);
  Connected({"legacy", "notifications/die close-stdin", "notifications/die stay"});
  Notify("notifications/die");
  // More than a pipe can be made to hold, or nothing would be left to write when stdin is closed.
  EXPECT_THAT(Call("big", Filler(4 << 20)).status(), HasCode(Code::kUnavailable));
  EXPECT_THAT(NextEnd().detail, Says("closed its stdin"));
  sigaction(SIGPIPE, nullptr, &now);
  EXPECT_EQ(now.sa_handler, own.sa_handler);
  EXPECT_EQ(pipe_signals, 0);
  sigaction(SIGPIPE, &before, nullptr);
}

TEST_F(PipesTest, B5ASignalIsNamed) {
  Connected({"legacy", "crash kill 11"});
  EXPECT_THAT(Call("crash").status(), AllOf(HasCode(Code::kUnavailable), Says("killed by signal 11 (SIGSEGV)")));
  const ServerEnd& end = NextEnd();
  ASSERT_TRUE(end.exit.has_value());
  EXPECT_EQ(end.exit->signal, SIGSEGV);
  EXPECT_EQ(end.exit->shell_code(), 139);
}

// A shell that waits for the server ends with a code instead.
TEST_F(PipesTest, B5ASignalIsNamedThroughAWrapperToo) {
  Open(Script(R"("$0" "$@"; exit $?)", {"legacy", "crash kill 11"}));
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(Call("crash").status(),
              AllOf(HasCode(Code::kUnavailable), Says("exited with code 139"), Says("SIGSEGV")));
  const ServerEnd& end = NextEnd();
  ASSERT_TRUE(end.exit.has_value());
  EXPECT_EQ(end.exit->shell_code(), 139);
}

TEST_F(PipesTest, B13ASignalAfterARequestedStopIsReportedAndIsNoFailure) {
  Connected({"legacy", "eof kill 6"});
  const ServerEnd end = Close();
  EXPECT_EQ(end.reason, CloseReason::kStopped);
  EXPECT_TRUE(end.detail.ok());
  ASSERT_TRUE(end.exit.has_value());
  EXPECT_EQ(end.exit->signal, SIGABRT);
}

// ---- D

TEST_F(PipesTest, D1StderrWithoutANewlineHoldsUpNoAnswer) {
  Connected({"legacy", "good stderr-fill 262144", kGood});
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  ASSERT_TRUE(RunUntil([this] { return stderr_.size() == 262144; }));
  EXPECT_EQ(session_->stderr_tail(), std::string(4096, 'x'));
}

TEST_F(PipesTest, D2AServerThatDoesNotReadHarmsNobodyElse) {
  Session other(io_.get_executor(), PolicyWith(), Command({"legacy", kGood}), {});
  ASSERT_TRUE(Connect(other).ok());
  Connected({"legacy", "notifications/deaf ignore-term", "notifications/deaf stay"});
  Notify("notifications/deaf");
  EXPECT_THAT(Call("big", Filler(200'000), Within(absl::Milliseconds(30))).status(), HasCode(Code::kDeadlineExceeded));
  EXPECT_THAT(Call(other, "good"), ResultIs(kIsGood));
  bool is_closed = false;
  session_->AsyncClose([&is_closed](const ServerEnd&) { is_closed = true; });
  EXPECT_THAT(Call(other, "good"), ResultIs(kIsGood));
  EXPECT_FALSE(is_closed);
  EXPECT_TRUE(RunUntil([&is_closed] { return is_closed; }));
}

TEST_F(PipesTest, D2ACallThatADeafServerHasNotReadCanBeCancelled) {
  Connected({"legacy", "notifications/deaf stay"});
  Notify("notifications/deaf");
  asio::cancellation_signal signal;
  absl::Status status;
  session_->AsyncCall("big", Filler(200'000), {},
                      asio::bind_cancellation_slot(
                          signal.slot(), [&status](const absl::StatusOr<Reply>& reply) { status = reply.status(); }));
  signal.emit(asio::cancellation_type::terminal);
  EXPECT_TRUE(RunUntil([&status] { return !status.ok(); }));
  EXPECT_THAT(status, HasCode(Code::kCancelled));
}

TEST_F(PipesTest, D3BothDirectionsMayBeFull) {
  const std::string note = absl::StrCat(R"({"jsonrpc":"2.0","method":"notifications/x","params":)", Filler(1000), "}");
  Connected({"legacy", absl::StrCat("echo repeat 300 ", note), "echo answer {}"});
  for (int i = 0; i < 10; ++i) Begin("echo", Filler(200'000));
  ASSERT_TRUE(RunUntil([this] { return replies_.size() == 10; }));
  EXPECT_THAT(replies_, Each(ResultIs("{}")));
}

// Of three sessions on one thread one has all its pipes full, one doesn't read, and the third notices nothing of that.
TEST_F(PipesTest, D1D2D3AllPipesMayBeFullAtOnce) {
  Session other(io_.get_executor(), PolicyWith(), Command({"legacy", kGood}), {});
  Session deaf(io_.get_executor(), PolicyWith(), Command({"legacy", "notifications/initialized stay"}), {});
  const std::string note = absl::StrCat(R"({"jsonrpc":"2.0","method":"notifications/x","params":)", Filler(1000), "}");
  Connected({"legacy", "flood stderr-fill 262144", absl::StrCat("flood repeat 500 ", note), "flood answer {}"});
  ASSERT_TRUE(Connect(other).ok());
  ASSERT_TRUE(Connect(deaf).ok());
  std::vector<absl::Status> unheard;
  for (int i = 0; i < 8; ++i) {
    Begin("flood", Filler(300'000));
    deaf.AsyncCall("big", Filler(300'000), Within(absl::Seconds(60)),
                   [&unheard](const absl::StatusOr<Reply>& reply) { unheard.push_back(reply.status()); });
  }
  int good = 0;
  while (replies_.size() < 8 && !HasFailure()) {
    EXPECT_THAT(Call(other, "good"), ResultIs(kIsGood));
    ++good;
  }
  EXPECT_GT(good, 1) << "the floods and these take turns";
  EXPECT_THAT(replies_, Each(ResultIs("{}")));
  ASSERT_TRUE(RunUntil([this] { return stderr_.size() == std::size_t{8} * 262'144; }));
  EXPECT_THAT(unheard, SizeIs(0));
  EXPECT_TRUE(deaf.is_ready());
  bool is_closed = false;
  deaf.AsyncClose([&is_closed](const ServerEnd&) { is_closed = true; });
  EXPECT_TRUE(RunUntil([&is_closed] { return is_closed; }));
  EXPECT_THAT(unheard, SizeIs(8));
}

TEST_F(PipesTest, D4TenThousandNotificationsAndTheResult) {
  int notes = 0;
  SessionOptions options;
  options.on_notification = [&notes](absl::string_view, absl::string_view) { ++notes; };
  Connected({"legacy", R"(burst repeat 10000 {"jsonrpc":"2.0","method":"notifications/x"})", "burst answer {}"}, "",
            options);
  EXPECT_THAT(Call("burst"), ResultIs("{}"));
  EXPECT_EQ(notes, 10000);
}

TEST_F(PipesTest, D4ProgressIsTheCalls) {
  int notes = 0;
  SessionOptions options;
  options.on_notification = [&notes](absl::string_view, absl::string_view) { ++notes; };
  Connected(
      {"legacy",
       R"(burst repeat 1000 {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}})",
       "burst answer {}"},
      "", options);
  int progress = 0;
  CallOptions call;
  call.on_progress = [&progress](const Progress&) { ++progress; };
  EXPECT_THAT(Call("burst", "", call), ResultIs("{}"));
  EXPECT_EQ(progress, 1000);
  EXPECT_EQ(notes, 0);
}

TEST_F(PipesTest, D5AServerThatIsGoneBeforeTheHandshakeIsAnError) {
  SessionOptions options;
  options.restart = false;
  Open({"start stderr no such module\\n", "start exit 1"}, "", options);
  EXPECT_THAT(Connect(), AllOf(HasCode(Code::kUnavailable), Says("exited with code 1"), Says("no such module")));
  EXPECT_EQ(NextEnd().reason, CloseReason::kExited);
}

// What was written before it closed its stdin is in a pipe that nobody reads: no write will fail any more.
TEST_F(PipesTest, D5AServerThatClosesItsStdinIsAnErrorAtOnce) {
  SessionOptions options;
  options.restart = false;
  Open({"start close-stdin", "start stay"}, R"("timeouts":{"probe":"1m","start":"1m","stdin_grace":"1ms"})", options);
  EXPECT_THAT(Connect(), AllOf(HasCode(Code::kUnavailable), Says("closed its stdin")));
  Connected({"legacy", "deaf close-stdin", "deaf stay"}, R"("timeouts":{"request":"1m","stdin_grace":"1ms"})", options);
  EXPECT_THAT(Call("deaf").status(), AllOf(HasCode(Code::kUnavailable), Says("closed its stdin")));
}

TEST_F(PipesTest, D6ADeathFailsEveryCallAtOnceWithItsReason) {
  Connected({"legacy", "wait append " + *this / "calls" + " $id", "die stderr out of cheese\\n", "die kill 9"});
  Begin("wait");
  Begin("wait");
  Begin("die");
  NextEnd();
  ASSERT_THAT(replies_, SizeIs(3));
  for (const auto& reply : replies_) {
    EXPECT_THAT(reply.status(),
                AllOf(HasCode(Code::kUnavailable), Says("killed by signal 9 (SIGKILL)"), Says("out of cheese")));
  }
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(Lines("calls"), SizeIs(2)) << "nothing is sent twice";
}

TEST_F(PipesTest, D7AHelperThatHoldsThePipesHoldsUpNothing) {
  const std::string token = NewToken();
  Connected({"legacy", "die helper " + token, "die exit 0"});
  EXPECT_THAT(Call("die").status(), AllOf(HasCode(Code::kUnavailable), Says("exited with code 0")));
  NextEnd();
  Close();
  EXPECT_EQ(Living(token), 0u);
}

// A shell gives what it starts in the background /dev/null as stdin: all that we say is heard by nobody.
TEST_F(PipesTest, D8AServerInABackgroundIsSaidToRunAndNotToAnswer) {
  SessionOptions options;
  options.restart = false;
  Open(Script(R"("$0" "$@" & wait)", {"eof append " + *this / "heard" + " the end", "eof stay"}),
       R"("timeouts":{"probe":"20ms","start":"400ms","stdin_grace":"1ms","term_grace":"1ms"})", options);
  EXPECT_THAT(Connect(), AllOf(HasCode(Code::kDeadlineExceeded), Says("did not finish the handshake within 400ms"),
                               Says("it is running")));
  EXPECT_THAT(Lines("heard"), ElementsAre("the end")) << "the server was not there, which proves nothing";
}

TEST_F(PipesTest, D9AWrapperThatReadsALineOfStdinTakesTheProbeOnly) {
  Open(Script(R"(read -r answer; echo "$answer" >&2; exec "$0" "$@")", {"legacy", kGood}),
       R"("timeouts":{"probe":"50ms","stdin_grace":"100ms","term_grace":"100ms"})");
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(stderr_, HasSubstr("server/discover"));
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
}

TEST_F(PipesTest, MoreThanMayWaitEndsTheRun) {
  Connected({"legacy", "notifications/deaf stay"}, R"("messages":{"max_queued_bytes":"256KiB"})");
  Notify("notifications/deaf");
  for (int i = 0; i < 20; ++i) Begin("big", Filler(100'000));
  const ServerEnd& end = NextEnd();
  EXPECT_EQ(end.reason, CloseReason::kWriteQueueFull);
  EXPECT_TRUE(end.restart_in.has_value());
  ASSERT_TRUE(RunUntil([this] { return replies_.size() == 20; }));
  for (const auto& reply : replies_) EXPECT_THAT(reply.status(), HasCode(Code::kUnavailable));
}

}  // namespace
}  // namespace bulkhead::mcp
