// What the tests of Session and Deliver share: servers that misbehave as their script says (tests/programs), started in
// real jails of tier A, and an event loop that is run until something has happened. Nothing of any test may be left.
#ifndef BULKHEAD_TESTS_MCP_SESSION_SESSION_FIXTURE_H_
#define BULKHEAD_TESTS_MCP_SESSION_SESSION_FIXTURE_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "asio/io_context.hpp"
#include "bulkhead/mcp/deliver.h"
#include "bulkhead/mcp/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::mcp {

using Words = std::vector<std::string>;

// How long anything may take that has to happen.
inline constexpr std::chrono::seconds kPatience(20);

// A pipe with a name, in the folder that servers may write to: lets a server go on (`wait FIFO`) when a test says so.
class Gate {
 public:
  explicit Gate(std::string path);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void Open() const;  // once for each server that waits
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_;
};

class SessionTest : public testing::Test {
 protected:
  SessionTest();
  ~SessionTest() override;
  void TearDown() override;  // nothing is alive any more, nor waits for anything

  // A file in the one folder that servers may write to.
  std::string operator/(const std::string& name) const { return scratch_ + "/" + name; }
  Words Lines(const std::string& name) const;  // of a file there; none if it is missing

  // `more` is further members of the policy: "\"timeouts\":{...}". Short graces and delays, unless it says otherwise.
  static policy::Policy MakePolicy(const std::string& more = "", const std::string& folder = "");
  policy::Policy PolicyWith(const std::string& more = "") const { return MakePolicy(more, folder_); }
  policy::CommandRequest Command(Words rules) const;
  // A shell's, in which "$0" "$@" is the server with its rules.
  policy::CommandRequest Script(const std::string& script, const Words& rules) const;
  // The session that the functions below are about. Counts ends and reads stderr, beside what `options` has.
  Session& Open(Words rules, const std::string& more = "", SessionOptions options = {}) {
    return Open(Command(std::move(rules)), more, std::move(options));
  }
  Session& Open(policy::CommandRequest command, const std::string& more = "", SessionOptions options = {});

  // Runs the loop until it is so; false, and a failure, after kPatience.
  bool RunUntil(const std::function<bool()>& happened);
  absl::Status Connect(Session& session);
  absl::Status Connect() { return Connect(*session_); }
  absl::StatusOr<Reply> Call(Session& session, const std::string& method, const std::string& params = "",
                             const CallOptions& options = {});
  absl::StatusOr<Reply> Call(const std::string& method, const std::string& params = "",
                             const CallOptions& options = {}) {
    return Call(*session_, method, params, options);
  }
  // Open and Connect, which must succeed.
  Session& Connected(Words rules, const std::string& more = "", SessionOptions options = {});
  ServerEnd Close(Session& session);
  ServerEnd Close() { return Close(*session_); }
  // Runs until the server has ended for the `count`-th time.
  const ServerEnd& NextEnd();

  asio::io_context io_;
  std::string folder_, scratch_, server_;
  std::unique_ptr<Session> session_;
  std::vector<ServerEnd> ends_;
  std::string stderr_;
  std::size_t ends_seen_ = 0;
};

// The call went well with a result, of which this holds.
MATCHER_P(ResultIs, text, "") {
  *result_listener << (arg.ok() ? arg->result.substr(0, 300) : arg.status().ToString());
  return arg.ok() && !arg->error &&
         testing::ExplainMatchResult(testing::Matcher<std::string>(text), arg->result, result_listener);
}
MATCHER_P(HasCode, code, absl::StatusCodeToString(code)) {
  *result_listener << arg;
  return arg.code() == code;
}
MATCHER_P(Says, words, "") {
  *result_listener << arg;
  return testing::ExplainMatchResult(testing::HasSubstr(words), std::string(arg.message()), result_listener);
}

// Of this process.
std::size_t OpenDescriptors();
std::size_t Threads();
bool HasChildren();
// Processes with this word among their arguments.
std::size_t Living(const std::string& token);
std::string NewToken();

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_TESTS_MCP_SESSION_SESSION_FIXTURE_H_
