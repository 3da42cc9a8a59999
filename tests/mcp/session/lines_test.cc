// What a server may do with its lines, through the whole stack: text, junk, sizes, ids, eras. What is read as what is
// tested in tests/jsonrpc; here it is shown what a host sees.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "asio/steady_timer.hpp"
#include "tests/mcp/session/session_fixture.h"

namespace bulkhead::mcp {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Code = absl::StatusCode;

constexpr char kGood[] = "good answer {\"good\":true}";
const char* const kIsGood = "{\"good\":true}";
constexpr char kNoProbe[] = "server/discover error -32601";

std::string InitializeAnswer(const std::string& version) {
  return absl::StrCat(R"(initialize answer {"protocolVersion":")", version,
                      R"(","capabilities":{},"serverInfo":{"name":"scripted","version":"1"}})");
}

CallOptions Within(absl::Duration timeout) {
  CallOptions options;
  options.timeout = timeout;
  return options;
}

class LinesTest : public SessionTest {
 protected:
  // Open, with what was dropped kept.
  Session& Listening(Words rules, const std::string& more = "") {
    SessionOptions options;
    options.on_dropped = [this](absl::string_view line, absl::string_view why) {
      dropped_.emplace_back(line);
      why_.emplace_back(why);
    };
    options.on_notification = [this](absl::string_view method, absl::string_view) { notes_.emplace_back(method); };
    return Connected(std::move(rules), more, std::move(options));
  }
  Words dropped_, why_, notes_;
};

TEST_F(LinesTest, WhatIsSaidOnStderrIsNoFailure) {
  Connected({"start stderr ERROR: 1\\nERROR: 2\\nFATAL: 3\\n", "legacy", kGood});
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_TRUE(RunUntil([this] { return stderr_ == "ERROR: 1\nERROR: 2\nFATAL: 3\n"; }));
  EXPECT_THAT(ends_, IsEmpty());
}

// ---- C: framing and text

TEST_F(LinesTest, C1OnlyANewlineEndsALine) {
  Connected({"legacy",
             R"(text print {"jsonrpc":"2.0",\r"id":$id,\r"result":{"t":"\xE2\x80\xA8\xE2\x80\xA9\xC2\x85"}}\n)",
             kGood});
  EXPECT_THAT(Call("text"), ResultIs("{\"t\":\"\xE2\x80\xA8\xE2\x80\xA9\xC2\x85\"}"));
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
}

TEST_F(LinesTest, C2ACharacterMayComeInPieces) {
  Connected({"legacy", R"(text bytewise {"jsonrpc":"2.0","id":$id,"result":{"t":"\xF0\x9F\x98\x80"}})"});
  EXPECT_THAT(Call("text"), ResultIs("{\"t\":\"\xF0\x9F\x98\x80\"}"));
}

TEST_F(LinesTest, C3ABannerIsSkippedByWhatItIsAndEachLineIsTold) {
  Words rules = {"start line {note: this is no JSON}", "start line [info] neither is this"};
  for (int i = 3; i <= 10; ++i) rules.push_back(absl::StrCat("start line banner ", i));
  rules.insert(rules.end(), {"legacy", kGood});
  Listening(rules);
  EXPECT_THAT(dropped_, SizeIs(10));
  EXPECT_THAT(dropped_, AllOf(Contains("{note: this is no JSON}"), Contains("[info] neither is this")));
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
}

TEST_F(LinesTest, C4ColouredLogsBeforeEachReplyEndNothing) {
  Listening({"legacy", R"(good line \x1B[32m\xE2\x94\x82 info\x1B[0m)", kGood});
  for (int i = 0; i < 30; ++i) ASSERT_THAT(Call("good"), ResultIs(kIsGood)) << i;
  EXPECT_THAT(dropped_, SizeIs(30));
}

TEST_F(LinesTest, C5AWrapperMayPrintBeforeItBecomesTheServer) {
  policy::CommandRequest command = Command({"legacy", kGood});
  command.argv.insert(command.argv.begin(), {"/bin/sh", "-c", "echo hello; exec \"$0\" \"$@\""});
  session_ = std::make_unique<Session>(io_.get_executor(), PolicyWith(), command, SessionOptions());
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
}

TEST_F(LinesTest, C6CarriageReturnsAreAcceptedAndNeverSent) {
  Connected(
      {R"(server/discover print {"jsonrpc":"2.0","id":$id,"error":{"code":-32601,"message":"no"}}\r\n)",
       R"(initialize print {"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}\r\n)",
       R"(good print {"jsonrpc":"2.0","id":$id,"result":{"good":true}}\r\n)",
       absl::StrCat("line append ", *this / "lines", " $line")});
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_THAT(Lines("lines"), AllOf(SizeIs(4), Each(Not(HasSubstr("\r")))));
}

TEST_F(LinesTest, C7JunkIsTold) {
  Listening({"legacy", "good line what is this", kGood});
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_THAT(dropped_, ElementsAre("what is this"));
  EXPECT_THAT(why_, ElementsAre("is not JSON"));
}

TEST_F(LinesTest, C8AByteOrderMarkIsSkipped) {
  Listening({R"(start print \xEF\xBB\xBF)", "legacy", kGood});
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_THAT(dropped_, IsEmpty());
}

TEST_F(LinesTest, C9ALastAnswerWithoutNewlineIsDelivered) {
  Connected({"legacy", R"(good print {"jsonrpc":"2.0","id":$id,"result":{"good":true}})", "good exit 0"});
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_EQ(NextEnd().reason, CloseReason::kExited);
}

// ---- Junk

TEST_F(LinesTest, TenJunkLinesInARowAreToleratedAndTheEleventhEndsTheRun) {
  Listening({"legacy", "ten repeat 10 junk", "ten answer {}", "eleven repeat 11 junk", "eleven answer {}", kGood});
  EXPECT_THAT(Call("ten"), ResultIs("{}"));
  EXPECT_THAT(Call("ten"), ResultIs("{}"));  // counted in a row
  const auto reply = Call("eleven");
  EXPECT_THAT(reply.status(), AllOf(HasCode(Code::kUnavailable), Says("11 lines in a row"), Says("\"junk\"")));
  const ServerEnd& end = NextEnd();
  EXPECT_EQ(end.reason, CloseReason::kJunkOutput);
  EXPECT_TRUE(end.restart_in.has_value());
  ASSERT_TRUE(Connect().ok()) << "it is started again";
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
}

TEST_F(LinesTest, WithoutTolerationTheFirstJunkLineEndsTheRun) {
  Connected({"legacy", "one line junk", "one answer {}", "blank print \\n \\t\\n\\r\\n", "blank answer {}"},
            R"("messages":{"max_junk_lines":0})");
  EXPECT_THAT(Call("blank"), ResultIs("{}")) << "blank lines are not junk";
  EXPECT_THAT(Call("one").status(), HasCode(Code::kUnavailable));
  EXPECT_EQ(NextEnd().reason, CloseReason::kJunkOutput);
}

// ---- H: sizes

TEST_F(LinesTest, H5TheLimitIsExact) {
  const std::size_t kAround = std::string(R"({"jsonrpc":"2.0","id":1,"result":})").size();
  Connected({"legacy", "under answer-size 4095", "edge answer-size 4096", "over answer-size 4097"},
            R"("messages":{"max_message_bytes":"4KiB"})");
  EXPECT_THAT(Call("under"), ResultIs(SizeIs(4095 - kAround)));
  EXPECT_THAT(Call("edge"), ResultIs(SizeIs(4096 - kAround)));
  EXPECT_THAT(Call("over").status(), AllOf(HasCode(Code::kUnavailable), Says("more than 4096 bytes")));
  EXPECT_EQ(NextEnd().reason, CloseReason::kMessageTooLarge);
}

TEST_F(LinesTest, H5NoSizeBelowTheLimitIsSpecial) {
  Connected({"legacy", "a answer-size 65535", "b answer-size 65536", "c answer-size 66560", "d answer-size 5242880"});
  for (const char* const method : {"a", "b", "c", "d"}) {
    const auto reply = Call(method);
    ASSERT_TRUE(reply.ok()) << method << reply.status();
    EXPECT_GT(reply->result.size(), 65000u);
  }
}

TEST_F(LinesTest, H6WhatCameBeforeAnEndlessLineIsDelivered) {
  Connected({"legacy",
             absl::StrCat(R"(good print {"jsonrpc":"2.0","id":$id,"result":{"good":true}}\n)", std::string(8192, 'x')),
             "good fill 3000000", "good stay"},
            R"("messages":{"max_message_bytes":"4KiB"})");
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  const ServerEnd& end = NextEnd();
  EXPECT_EQ(end.reason, CloseReason::kMessageTooLarge);
  EXPECT_THAT(end.detail, Says("raise max_message_bytes"));
}

TEST_F(LinesTest, H7NothingIsReadAfterALineThatIsTooLong) {
  Listening({"legacy", "over answer-size 4097", R"(over line {"jsonrpc":"2.0","method":"notifications/after"})"},
            R"("messages":{"max_message_bytes":"4KiB"})");
  EXPECT_THAT(Call("over").status(), HasCode(Code::kUnavailable));
  NextEnd();
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_THAT(dropped_, IsEmpty());
}

// ---- E: ids, late answers, versions

TEST_F(LinesTest, E1AnIdMayComeBackAsTextOrFraction) {
  Connected({"legacy", R"(text line {"jsonrpc":"2.0","id":"$id","result":{"text":1}})",
             R"(fraction line {"jsonrpc":"2.0","id":$id.0,"result":{"fraction":1}})"});
  EXPECT_THAT(Call("text"), ResultIs("{\"text\":1}"));
  EXPECT_THAT(Call("fraction"), ResultIs("{\"fraction\":1}"));
}

TEST_F(LinesTest, E2IdsAreSmallIntegersAndNeverTheSame) {
  Connected({"legacy", "good append " + *this / "ids" + " $id", kGood});
  for (int i = 0; i < 3; ++i) ASSERT_THAT(Call("good"), ResultIs(kIsGood));
  const Words ids = Lines("ids");
  ASSERT_THAT(ids, SizeIs(3));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(std::stoi(ids[i]), std::stoi(ids[0]) + static_cast<int>(i));
  EXPECT_LT(std::stoi(ids[2]), 100);
}

TEST_F(LinesTest, E3AnErrorWithoutIdIsForTheOnlyCallThatWaits) {
  constexpr char kNullError[] = R"(line {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}})";
  Listening({"legacy", absl::StrCat("alone ", kNullError), "first hold {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}",
             absl::StrCat("second ", kNullError), "second release", "second answer {}"});
  const auto alone = Call("alone");
  ASSERT_TRUE(alone.ok() && alone->error) << alone.status();
  EXPECT_EQ(alone->error->code, -32700);
  absl::StatusOr<Reply> first = absl::UnknownError("");
  session_->AsyncCall("first", "", {}, [&first](absl::StatusOr<Reply> reply) { first = std::move(reply); });
  EXPECT_THAT(Call("second"), ResultIs("{}"));
  EXPECT_THAT(first, ResultIs("{}"));
  EXPECT_THAT(why_, ElementsAre("answers nothing that was asked"));
}

TEST_F(LinesTest, E4ALateAnswerIsIgnored) {
  Listening({"legacy", R"(slow hold {"jsonrpc":"2.0","id":$id,"result":{"late":1}})", "good release", kGood});
  EXPECT_THAT(Call("slow", "", Within(absl::Milliseconds(1))).status(), HasCode(Code::kDeadlineExceeded));
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_THAT(dropped_, IsEmpty());
  EXPECT_THAT(ends_, IsEmpty()) << "the same server";
}

TEST_F(LinesTest, E5ACallThatTimesOutIsCancelledAndNeverSentAgain) {
  Connected({"legacy", absl::StrCat("slow append ", *this / "calls", " $id"),
             absl::StrCat("notifications/cancelled append ", *this / "cancelled", " $line"), kGood});
  EXPECT_THAT(Call("slow", "", Within(absl::Milliseconds(1))).status(), HasCode(Code::kDeadlineExceeded));
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  const Words calls = Lines("calls");
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_THAT(Lines("cancelled"), ElementsAre(HasSubstr(absl::StrCat("\"requestId\":", calls[0], ","))));
}

TEST_F(LinesTest, E5InitializeIsNeverCancelled) {
  SessionOptions options;
  options.restart = false;
  Open({kNoProbe, "initialize stderr never\\n", absl::StrCat("line append ", *this / "lines", " $line")},
       R"("timeouts":{"start":"50ms"})", options);
  EXPECT_THAT(Connect(), HasCode(Code::kDeadlineExceeded));
  Close();
  EXPECT_THAT(Lines("lines"), ElementsAre(HasSubstr("server/discover"), HasSubstr("initialize")));
}

TEST_F(LinesTest, E7StartingHasATimeOfItsOwn) {
  const Gate gate(*this / "gate");
  Open({"server/discover stderr probed\\n", "initialize stderr installing\\n", "initialize wait " + gate.path(),
        InitializeAnswer("2025-11-25")},
       R"("timeouts":{"probe":"1ms","request":"1ms","start":"20s"})");
  bool is_connected = false;
  session_->AsyncConnect([&](const absl::Status& status) { is_connected = status.ok(); });
  ASSERT_TRUE(RunUntil([this] { return absl::StrContains(stderr_, "installing"); }));
  asio::steady_timer timer(io_, std::chrono::milliseconds(20));  // many times the request's
  bool is_late = false;
  timer.async_wait([&is_late](asio::error_code) { is_late = true; });
  ASSERT_TRUE(RunUntil([&is_late] { return is_late; }));
  EXPECT_FALSE(is_connected);
  gate.Open();
  EXPECT_TRUE(RunUntil([&is_connected] { return is_connected; }));
}

TEST_F(LinesTest, E7AStartThatTakesTooLongIsExplainedWithStderr) {
  SessionOptions options;
  options.restart = false;
  Open({"start stderr installing package 7 of 9\\n", "start stay"}, R"("timeouts":{"probe":"10ms","start":"60ms",
       "stdin_grace":"10ms","term_grace":"10ms"})",
       options);
  EXPECT_THAT(Connect(), AllOf(HasCode(Code::kDeadlineExceeded), Says("handshake within 60ms"),
                               Says("installing package 7 of 9")));
  EXPECT_EQ(NextEnd().reason, CloseReason::kStartFailed);
}

TEST_F(LinesTest, E8AnOlderVersionIsSpoken) {
  for (const char* const version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    Connected({kNoProbe, InitializeAnswer(version), kGood});
    EXPECT_EQ(session_->server_info().protocol_version, version);
    EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  }
}

TEST_F(LinesTest, E8AnUnknownVersionIsAFinalErrorThatNamesBoth) {
  Open({kNoProbe, InitializeAnswer("1999-01-01")});
  EXPECT_THAT(Connect(), AllOf(HasCode(Code::kFailedPrecondition), Says("1999-01-01"), Says("2025-11-25")));
  const ServerEnd& end = NextEnd();
  EXPECT_EQ(end.reason, CloseReason::kStartFailed);
  EXPECT_FALSE(end.restart_in.has_value());
}

TEST_F(LinesTest, E8ARefusalOfInitializeIsAFinalErrorWithTheServersWords) {
  for (const char* const error : {"-32602", R"(-32022 {"supported":["1999-01-01"]})"}) {
    Open({kNoProbe, absl::StrCat("initialize error ", error)});
    EXPECT_THAT(Connect(), AllOf(HasCode(Code::kFailedPrecondition), Says("scripted")));
    EXPECT_FALSE(NextEnd().restart_in.has_value());
  }
}

TEST_F(LinesTest, E9BatchesAreReadInTheOneVersionThatHasThem) {
  const char kBatch[] =
      R"(two line [{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":$id,"result":{}}])";
  Listening({kNoProbe, InitializeAnswer("2025-03-26"), kBatch, "two line []", kGood});
  EXPECT_THAT(Call("two"), ResultIs("{}"));
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_THAT(notes_, ElementsAre("notifications/x"));
  Listening({"legacy", kBatch, kGood});
  EXPECT_THAT(Call("two", "", Within(absl::Milliseconds(20))).status(), HasCode(Code::kDeadlineExceeded));
  EXPECT_THAT(dropped_, ElementsAre("[]", HasSubstr("notifications/x")));
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
}

TEST_F(LinesTest, E10NestingWithoutEndCostsOneLine) {
  Listening({"legacy", "deep nest 100000", kGood});
  EXPECT_THAT(Call("deep", "", Within(absl::Milliseconds(50))).status(), HasCode(Code::kDeadlineExceeded));
  EXPECT_THAT(why_, ElementsAre(HasSubstr("deep")));
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
}

}  // namespace
}  // namespace bulkhead::mcp
