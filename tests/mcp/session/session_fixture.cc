#include "tests/mcp/session/session_fixture.h"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/mcp/written_lines.h"

namespace bulkhead::mcp {
namespace {

constexpr char kAnswersInitialize[] = "initialize answer {\"protocolVersion\":\"";
constexpr char kPath[] = "/usr/bin:/bin";
constexpr char kShortTimes[] = R"("restart":{"backoff_initial":"1ms","backoff_max":"4ms"})";
constexpr char kShortGraces[] = R"("timeouts":{"stdin_grace":"100ms","term_grace":"100ms"})";

// The tier that in_tier.sh sees to, if it started us; else what this machine has, which is A.
std::string TierOfTest() {
  const char* const tier = getenv("BULKHEAD_TEST_TIER");
  return tier == nullptr ? "" : tier;
}

// In the tiers below A a server of root must be an account, to which belongs what it may write.
const passwd* AccountOfServers() { return TierOfTest().empty() || geteuid() != 0 ? nullptr : getpwnam("nobody"); }

std::string ServerOfBazel() {
  return absl::StrCat(getenv("TEST_SRCDIR"), "/", getenv("TEST_WORKSPACE"), "/tests/programs/scripted_server");
}

}  // namespace

Gate::Gate(std::string path) : path_(std::move(path)) {
  EXPECT_EQ(mkfifo(path_.c_str(), 0666), 0) << path_;
  EXPECT_EQ(chmod(path_.c_str(), 0666), 0) << path_;
  fd_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);  // for both, so that nothing blocks
  EXPECT_GE(fd_, 0) << path_;
}
Gate::~Gate() { close(fd_); }
void Gate::Open() const { EXPECT_EQ(write(fd_, "x", 1), 1); }

SessionTest::SessionTest() {
  const auto* const info = testing::UnitTest::GetInstance()->current_test_info();
  SetTestName(absl::StrCat(info->test_suite_name(), ".", info->name()));
  SetSettledVersion("2025-11-25");
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);  // what loses its parent becomes ours, and is seen
  // Not in TEST_TMPDIR, which as root lies where nobody else may enter.
  char name[] = "/var/tmp/bulkhead-session.XXXXXX";
  EXPECT_NE(mkdtemp(name), nullptr);
  folder_ = name;
  scratch_ = folder_ + "/scratch";
  server_ = folder_ + "/tools/scripted_server";
  std::filesystem::create_directories(folder_ + "/tools");
  std::filesystem::create_directories(scratch_);
  std::filesystem::copy_file(ServerOfBazel(), server_);
  // Root's servers have a uid of their own.
  for (const std::string& path : {folder_, folder_ + "/tools", server_}) EXPECT_EQ(chmod(path.c_str(), 0755), 0);
  EXPECT_EQ(chmod(scratch_.c_str(), 0777), 0);
  if (const passwd* const account = AccountOfServers()) {
    EXPECT_EQ(chown(scratch_.c_str(), account->pw_uid, account->pw_gid), 0);
  }
}

SessionTest::~SessionTest() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

void SessionTest::TearDown() {
  session_.reset();
  if (io_.stopped()) io_.restart();
  io_.run_for(kPatience);
  EXPECT_TRUE(io_.stopped()) << "something waits that nobody knows of";
  EXPECT_FALSE(HasChildren()) << "a tree is left";
}

Words SessionTest::Lines(const std::string& name) const {
  std::ifstream file(scratch_ + "/" + name);
  Words lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

policy::Policy SessionTest::MakePolicy(const std::string& more, const std::string& folder) {
  std::string text = absl::StrCat(R"({"version":1,"extends":["preset:default"],"filesystem":{"rx":[")", folder,
                                  R"(/tools"],"rw":[")", folder, R"(/scratch"]})");
  if (!TierOfTest().empty()) absl::StrAppend(&text, R"(,"require":")", TierOfTest(), "\"");
  if (const passwd* const account = AccountOfServers()) absl::StrAppend(&text, R"(,"user":")", account->pw_name, "\"");
  if (!absl::StrContains(more, "\"restart\"")) absl::StrAppend(&text, ",", kShortTimes);
  if (!absl::StrContains(more, "\"timeouts\"")) absl::StrAppend(&text, ",", kShortGraces);
  absl::StrAppend(&text, more.empty() ? "" : ",", more, "}");
  policy::ParseOptions parse;
  parse.variables.home = folder;
  parse.variables.cache_root = absl::StrCat(folder, "/cache");
  auto policy = policy::ParsePolicy({"test.json", text}, parse);
  EXPECT_TRUE(policy.ok()) << policy.status() << text;
  return *std::move(policy);
}

policy::CommandRequest SessionTest::Command(Words rules) const {
  for (absl::string_view rule : rules) {
    if (!absl::ConsumePrefix(&rule, kAnswersInitialize)) continue;
    const absl::string_view version = rule.substr(0, rule.find('"'));
    if (IsKnown(version, Era::kLegacy)) SetSettledVersion(std::string(version));
  }
  policy::CommandRequest request;
  request.argv = std::move(rules);
  request.argv.insert(request.argv.begin(), server_);
  request.host_cwd = "/";
  request.host_env = {{"HOME", folder_}, {"PATH", kPath}};
  return request;
}

policy::CommandRequest SessionTest::Script(const std::string& script, const Words& rules) const {
  policy::CommandRequest request = Command(rules);
  request.argv.insert(request.argv.begin(), {"/bin/sh", "-c", script});
  return request;
}

Session& SessionTest::Open(policy::CommandRequest command, const std::string& more, SessionOptions options) {
  options.on_end = [this, inner = options.on_end](const ServerEnd& end) {
    ends_.push_back(end);
    if (inner) inner(end);
  };
  options.on_stderr = [this, inner = options.on_stderr](absl::string_view text) {
    stderr_.append(text.data(), text.size());
    if (inner) inner(text);
  };
  session_ = std::make_unique<Session>(io_.get_executor(), PolicyWith(more), std::move(command), std::move(options));
  return *session_;
}

bool SessionTest::RunUntil(const std::function<bool()>& happened) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!happened()) {
    if (io_.stopped()) io_.restart();
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "it did not happen";
      return false;
    }
    if (io_.run_one_for(std::chrono::milliseconds(200)) == 0 && io_.stopped() && !happened()) {
      ADD_FAILURE() << "nothing is left that could make it happen";
      return false;
    }
  }
  return true;
}

absl::Status SessionTest::Connect(Session& session) {
  std::optional<absl::Status> result;
  session.AsyncConnect([&result](absl::Status status) { result = std::move(status); });
  RunUntil([&result] { return result.has_value(); });
  return result.value_or(absl::UnknownError("the handler was not called"));
}

absl::StatusOr<Reply> SessionTest::Call(Session& session, const std::string& method, const std::string& params,
                                        const CallOptions& options) {
  absl::StatusOr<Reply> result = absl::UnknownError("the handler was not called");
  bool is_there = false;
  session.AsyncCall(method, params, options, [&](absl::StatusOr<Reply> reply) {
    result = std::move(reply);
    is_there = true;
  });
  RunUntil([&is_there] { return is_there; });
  return result;
}

Session& SessionTest::Connected(Words rules, const std::string& more, SessionOptions options) {
  Session& session = Open(std::move(rules), more, std::move(options));
  const absl::Status status = Connect(session);
  EXPECT_TRUE(status.ok()) << status;
  if (status.ok()) {
    EXPECT_EQ(policy::TierName(session.report()->tier), TierOfTest().empty() ? "A" : TierOfTest());
  }
  return session;
}

ServerEnd SessionTest::Close(Session& session) {
  std::optional<ServerEnd> result;
  session.AsyncClose([&result](ServerEnd end) { result = std::move(end); });
  RunUntil([&result] { return result.has_value(); });
  return result.value_or(ServerEnd{});
}

const ServerEnd& SessionTest::NextEnd() {
  static const ServerEnd kNone;
  ++ends_seen_;
  if (!RunUntil([this] { return ends_.size() >= ends_seen_; })) return kNone;
  return ends_[ends_seen_ - 1];
}

namespace {
std::size_t Entries(const char* folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}
}  // namespace

std::size_t OpenDescriptors() { return Entries("/proc/self/fd"); }
std::size_t Threads() { return Entries("/proc/self/task"); }

bool HasChildren() {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

std::size_t Living(const std::string& token) {
  const std::string wanted = absl::StrCat(std::string(1, '\0'), token, std::string(1, '\0'));
  std::size_t count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const int fd = open((entry.path() / "cmdline").c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    char text[8192];
    const ssize_t bytes = read(fd, text, sizeof(text));
    close(fd);
    if (bytes > 0 && absl::StrContains(absl::string_view(text, static_cast<std::size_t>(bytes)), wanted)) ++count;
  }
  return count;
}

std::string NewToken() {
  static int count = 0;
  return absl::StrCat("session-", getpid(), "-", ++count);
}

}  // namespace bulkhead::mcp
