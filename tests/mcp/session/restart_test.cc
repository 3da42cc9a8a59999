// Servers that end are started again: slower and slower, one at a time, and not for ever.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "asio/steady_timer.hpp"
#include "tests/mcp/session/session_fixture.h"

namespace bulkhead::mcp {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Code = absl::StatusCode;

constexpr char kGood[] = "good answer {\"good\":true}";
const char* const kIsGood = "{\"good\":true}";
constexpr char kNoProbe[] = "server/discover error -32601";
constexpr char kInitialize[] =
    R"(initialize answer {"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"scripted","version":"1"}})";

class RestartTest : public SessionTest {
 protected:
  // What the session starts from now on, instead of the scripted server: the same with other rules.
  void Replace(const Words& rules) const {
    const std::string real = folder_ + "/tools/real";
    if (!std::filesystem::exists(real)) std::filesystem::copy_file(server_, real);
    std::ofstream script(folder_ + "/tools/new");
    script << "#!/bin/sh\nexec " << real;
    for (const std::string& rule : rules) script << " '" << rule << "'";
    script << "\n";
    script.close();
    EXPECT_EQ(chmod((folder_ + "/tools/new").c_str(), 0755), 0);
    EXPECT_EQ(rename((folder_ + "/tools/new").c_str(), server_.c_str()), 0);
  }
  std::string Append(const std::string& when, const std::string& file, const std::string& text) const {
    return absl::StrCat(when, " append ", *this / file, " ", text);
  }
};

TEST_F(RestartTest, AServerThatEndsIsStartedAgainAndNothingIsSentAgain) {
  int ready = 0;
  SessionOptions options;
  options.on_ready = [&ready] { ++ready; };
  Connected({"legacy", Append("end", "calls", "$id"), "end exit 7", kGood}, "", options);
  EXPECT_THAT(Call("end").status(), AllOf(HasCode(Code::kUnavailable), Says("exited with code 7")));
  const ServerEnd& end = NextEnd();
  EXPECT_EQ(end.reason, CloseReason::kExited);
  ASSERT_TRUE(end.exit.has_value());
  EXPECT_EQ(end.exit->code, 7);
  EXPECT_TRUE(end.restart_in.has_value());
  EXPECT_FALSE(session_->is_ready());
  EXPECT_THAT(Call("good").status(), AllOf(HasCode(Code::kFailedPrecondition), Says("being restarted")));
  ASSERT_TRUE(Connect().ok());
  EXPECT_EQ(ready, 2);
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_THAT(Lines("calls"), SizeIs(1));
}

TEST_F(RestartTest, WithoutRestartTheFirstEndIsFinal) {
  SessionOptions options;
  options.restart = false;
  Connected({"legacy", "end exit 7"}, "", options);
  Call("end").IgnoreError();
  EXPECT_FALSE(NextEnd().restart_in.has_value());
  EXPECT_THAT(Call("end").status(), AllOf(HasCode(Code::kFailedPrecondition), Says("connect first")));
  EXPECT_TRUE(Connect().ok()) << "it starts anew";
}

// H1, H3, H4: one start at a time, after growing delays; exit 0 before the handshake is a failure too, and the last one
// is final and says why.
TEST_F(RestartTest, H1H3H4AServerThatNeverComesUpIsGivenUp) {
  for (const char* const code : {"0", "1", "127"}) {
    ends_.clear();
    std::filesystem::remove(*this / "starts");
    Open({Append("start", "starts", "x"), "start stderr ImportError: no cheese\\n", absl::StrCat("start exit ", code)},
         R"("restart":{"max_in_a_row":4,"backoff_initial":"8ms","backoff_max":"16ms"})");
    const absl::Status status = Connect();
    EXPECT_THAT(status, AllOf(HasCode(Code::kUnavailable), Says("gave up after 4 failures in a row"),
                              Says(absl::StrCat("exited with code ", code)), Says("ImportError: no cheese")));
    ASSERT_THAT(ends_, SizeIs(4));
    const std::vector<absl::Duration> most = {absl::Milliseconds(8), absl::Milliseconds(16), absl::Milliseconds(16)};
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(ends_[i].reason, CloseReason::kExited);
      ASSERT_TRUE(ends_[i].restart_in.has_value());
      EXPECT_GE(*ends_[i].restart_in, most[i] / 2);
      EXPECT_LE(*ends_[i].restart_in, most[i]);
    }
    EXPECT_EQ(ends_[3].reason, CloseReason::kRestartsExhausted);
    EXPECT_FALSE(ends_[3].restart_in.has_value());
    // A server that dies unasked may have died of the probe: the first attempt has a second start without it.
    EXPECT_THAT(Lines("starts"), SizeIs(4 + 1));
  }
}

TEST_F(RestartTest, AfterGivingUpAConnectStartsAnew) {
  Open({"start exit 1"}, R"("restart":{"max_in_a_row":2,"backoff_initial":"1ms"})");
  EXPECT_THAT(Connect(), HasCode(Code::kUnavailable));
  EXPECT_THAT(ends_, SizeIs(2));
  Replace({"legacy", kGood});
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
}

TEST_F(RestartTest, OneFailureMayBeAllowed) {
  Open({"start exit 1"}, R"("restart":{"max_in_a_row":1})");
  EXPECT_THAT(Connect(), HasCode(Code::kUnavailable));
  ASSERT_THAT(ends_, SizeIs(1));
  EXPECT_EQ(ends_[0].reason, CloseReason::kRestartsExhausted);
}

TEST_F(RestartTest, BeingUpForLongEnoughMakesFailuresForgotten) {
  Connected({"legacy", "end exit 1"}, R"("restart":{"max_in_a_row":2,"backoff_initial":"1ms","healthy_after":"1ms"})");
  for (int i = 0; i < 5; ++i) {
    asio::steady_timer timer(io_, std::chrono::milliseconds(2));
    bool is_healthy = false;
    timer.async_wait([&is_healthy](asio::error_code) { is_healthy = true; });
    ASSERT_TRUE(RunUntil([&is_healthy] { return is_healthy; }));
    Call("end").IgnoreError();
    EXPECT_TRUE(NextEnd().restart_in.has_value()) << i;
    ASSERT_TRUE(Connect().ok());
  }
}

TEST_F(RestartTest, BeingReadyAloneForgetsNothing) {
  Connected({"legacy", "end exit 1"}, R"("restart":{"max_in_a_row":2,"backoff_initial":"1ms"})");
  Call("end").IgnoreError();
  EXPECT_TRUE(NextEnd().restart_in.has_value());
  ASSERT_TRUE(Connect().ok());
  Call("end").IgnoreError();
  EXPECT_EQ(NextEnd().reason, CloseReason::kRestartsExhausted);
}

TEST_F(RestartTest, TheProgramIsLookedUpAnew) {
  Connected({"legacy", "end exit 0"});
  Replace(
      {kNoProbe,
       R"(initialize answer {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"new","version":"2"}})",
       kGood});
  Call("end").IgnoreError();
  NextEnd();
  ASSERT_TRUE(Connect().ok());
  EXPECT_EQ(session_->server_info().name, "new");
  EXPECT_EQ(session_->server_info().protocol_version, "2025-06-18");
}

TEST_F(RestartTest, AProgramThatIsMissingIsFinalAtTheStartButNotWhileItIsReplaced) {
  Connected({"legacy", "end exit 0"}, R"("restart":{"max_in_a_row":5,"backoff_initial":"10ms"})");
  ASSERT_EQ(rename(server_.c_str(), (server_ + ".away").c_str()), 0);
  Call("end").IgnoreError();
  EXPECT_EQ(NextEnd().reason, CloseReason::kExited);
  const ServerEnd& end = NextEnd();
  EXPECT_EQ(end.reason, CloseReason::kStartFailed);
  EXPECT_THAT(end.detail, HasCode(Code::kNotFound));
  EXPECT_TRUE(end.restart_in.has_value());
  ASSERT_EQ(rename((server_ + ".away").c_str(), server_.c_str()), 0);
  ASSERT_TRUE(Connect().ok());
  Close();
  ASSERT_EQ(rename(server_.c_str(), (server_ + ".away").c_str()), 0);
  EXPECT_THAT(Connect(), HasCode(Code::kNotFound));
  EXPECT_FALSE(ends_.back().restart_in.has_value());
}

TEST_F(RestartTest, AServerThatWasUpgradedToTheModernEraIsMetAgain) {
  Connected({"legacy", "end exit 0"});
  EXPECT_EQ(session_->era(), Era::kLegacy);
  Replace({"modern", R"(initialize error -32022 {"supported":["2026-07-28"],"requested":"2025-11-25"})", kGood});
  Call("end").IgnoreError();
  NextEnd();
  EXPECT_TRUE(Connect().ok());
  EXPECT_EQ(session_->era(), Era::kModern);
}

TEST_F(RestartTest, AServerThatWasDowngradedToTheLegacyEraIsMetAgain) {
  Connected({"modern", "end exit 0"});
  EXPECT_EQ(session_->era(), Era::kModern);
  Replace({"legacy", kGood});
  Call("end").IgnoreError();
  NextEnd();
  EXPECT_TRUE(Connect().ok());
  EXPECT_EQ(session_->era(), Era::kLegacy);
}

TEST_F(RestartTest, TheOldServersTeardownIsNotWaitedFor) {
  const std::string token = NewToken();
  Connected({"legacy", token, "start ignore-term", "eof stay", "mute close-stdout", "mute stay", kGood},
            R"("timeouts":{"stdin_grace":"20s","term_grace":"20s"})");
  EXPECT_THAT(Call("mute").status(),
              AllOf(HasCode(Code::kUnavailable), Says("closed its stdout and is being stopped")));
  EXPECT_FALSE(NextEnd().exit.has_value());
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_EQ(Living(token), 2u) << "the old one is still there";
  session_.reset();
  EXPECT_TRUE(RunUntil([&token] { return Living(token) == 0; })) << "it ends with its Session";
}

TEST_F(RestartTest, A32ClosingDuringTheBackOffIsImmediate) {
  Connected({"legacy", "end exit 0", Append("start", "starts", "x")},
            R"("restart":{"max_in_a_row":5,"backoff_initial":"1h","backoff_max":"1h"})");
  Call("end").IgnoreError();
  NextEnd();
  absl::Status waiting;
  session_->AsyncConnect([&waiting](absl::Status status) { waiting = std::move(status); });
  const ServerEnd end = Close();
  EXPECT_EQ(end.reason, CloseReason::kStopped);
  EXPECT_THAT(waiting, HasCode(Code::kCancelled));
  if (io_.stopped()) io_.restart();
  io_.run_for(kPatience);
  EXPECT_TRUE(io_.stopped()) << "no timer is left";
  EXPECT_THAT(Lines("starts"), SizeIs(1));
}

// Real servers do so: see DESIGN.md, "The era".
TEST_F(RestartTest, AServerThatDiesOfTheProbeGetsOneStartMoreThatIsNotCharged) {
  Open({Append("line", "lines", "$line"), "server/discover exit 1", kInitialize, kGood},
       R"("restart":{"max_in_a_row":1})");
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(ends_, IsEmpty());
  EXPECT_EQ(session_->era(), Era::kLegacy);
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_THAT(Lines("lines"), ElementsAre(HasSubstr("server/discover"), HasSubstr("\"initialize\""),
                                          HasSubstr("notifications/initialized"), HasSubstr("good")));
}

// Whatever it was that it died of at first, the next attempts find out what it speaks.
TEST_F(RestartTest, AServerThatComesUpAfterItDiedOfEverythingIsMetInItsEra) {
  const std::vector<std::pair<Words, Era>> servers = {
      {{"server/discover exit 1", kInitialize, kGood}, Era::kLegacy},
      {{"modern", "initialize exit 1", kGood}, Era::kModern},
  };
  for (const auto& [server, era] : servers) {
    for (const std::size_t deaths : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(EraName(era), " after ", deaths));
      Replace({"start exit 1"});
      ends_.clear();
      SessionOptions options;
      options.on_end = [this, deaths = deaths, server = &server](const ServerEnd&) {
        if (ends_.size() == deaths) Replace(*server);
      };
      Open(Words(), R"("restart":{"max_in_a_row":5,"backoff_initial":"1ms"})", options);
      EXPECT_TRUE(Connect().ok());
      EXPECT_EQ(session_->era(), era);
      EXPECT_THAT(Call("good"), ResultIs(kIsGood));
    }
  }
}

TEST_F(RestartTest, ThatAServerIsLegacyIsNotAskedAgain) {
  Connected({"legacy", Append("server/discover", "probes", "x"), "end exit 0"});
  Call("end").IgnoreError();
  NextEnd();
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(Lines("probes"), SizeIs(1));
}

TEST_F(RestartTest, SubscriptionsAreAskedForAgain) {
  Connected({"modern", Append("subscriptions/listen", "listens", "$line"), "end exit 0", kGood});
  session_->Subscribe(R"({"resourceSubscriptions":["file:///a"]})");
  const auto dropped = session_->Subscribe(R"({"toolsListChanged":true})");
  ASSERT_TRUE(Call("good").ok());
  EXPECT_THAT(Lines("listens"), SizeIs(2));
  session_->Unsubscribe(dropped);
  Call("end").IgnoreError();
  NextEnd();
  ASSERT_TRUE(Connect().ok());
  ASSERT_TRUE(Call("good").ok());
  const Words listens = Lines("listens");
  ASSERT_THAT(listens, SizeIs(3));
  EXPECT_THAT(listens[2], HasSubstr(R"("notifications":{"resourceSubscriptions":["file:///a"]})"));
}

TEST_F(RestartTest, ALegacyServerIsSubscribedToAgain) {
  Connected({"legacy", Append("resources/subscribe", "subscribed", "$line"), "resources/subscribe answer {}",
             "end exit 0", kGood});
  session_->Subscribe(R"({"resourceSubscriptions":["file:///a","file:///b"]})");
  ASSERT_TRUE(Call("good").ok());
  Call("end").IgnoreError();
  NextEnd();
  ASSERT_TRUE(Connect().ok());
  ASSERT_TRUE(Call("good").ok());
  EXPECT_THAT(Lines("subscribed"), AllOf(SizeIs(4), testing::Contains(HasSubstr("file:///b")).Times(2)));
}

TEST_F(RestartTest, AConnectWaitsForTheStartThatIsUnderWay) {
  Open({"legacy", Append("start", "starts", "x")});
  int connected = 0;
  for (int i = 0; i < 3; ++i) {
    session_->AsyncConnect([&connected](const absl::Status& status) { connected += status.ok() ? 1 : 0; });
  }
  ASSERT_TRUE(RunUntil([&connected] { return connected == 3; }));
  EXPECT_THAT(Lines("starts"), SizeIs(1));
}

TEST_F(RestartTest, AConnectAfterACloseStartsAnewWithoutWaiting) {
  Connected({"legacy", "eof stay", "start ignore-term", kGood},
            R"("timeouts":{"stdin_grace":"20s","term_grace":"20s"})");
  session_->AsyncClose([](const ServerEnd&) {});
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  session_.reset();
}

}  // namespace
}  // namespace bulkhead::mcp
