// A session's tree, however the server was wrapped and however the host ends: nothing of it is left, and nothing else
// is touched.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/mcp/session/session_fixture.h"

namespace bulkhead::mcp {
namespace {

constexpr char kGood[] = "good answer {\"good\":true}";
const char* const kIsGood = "{\"good\":true}";

class TreesTest : public SessionTest {
 protected:
  // A command that starts a shell that starts a shell ..., in which "$0" "$@" is the server; none passes on a signal.
  policy::CommandRequest Wrapped(int shells, const Words& rules) const {
    policy::CommandRequest request = Script(R"("$0" "$@"; exit $?)", rules);
    for (int i = 1; i < shells; ++i) {
      request.argv.insert(request.argv.begin(), {"/bin/sh", "-c", R"("$0" "$@"; exit $?)"});
    }
    return request;
  }
};

TEST_F(TreesTest, A1AServerBehindAWrapperEndsWithIt) {
  const std::string token = NewToken();
  policy::CommandRequest command = Script(absl::StrCat("/bin/sh -c 'sleep 999 & wait' ", token, R"( & exec "$0" "$@")"),
                                          {"legacy", kGood, "eof stay"});
  Open(command);
  ASSERT_TRUE(Connect().ok());
  ASSERT_TRUE(RunUntil([&token] { return Living(token) != 0; }));
  Close();
  EXPECT_EQ(Living(token), 0u);
  EXPECT_FALSE(HasChildren());
}

TEST_F(TreesTest, A12FourWrappersThatPassOnNoSignalEndToo) {
  const std::string token = NewToken();
  Open(Wrapped(4, {"legacy", kGood, "eof ignore-term", "eof stay", "unused " + token}));
  ASSERT_TRUE(Connect().ok());
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  std::size_t shells = 0;
  ASSERT_TRUE(RunUntil([&] { return (shells = Living("unused " + token)) != 0; }));
  EXPECT_EQ(shells, 5u) << "four shells and the server";
  Close();
  EXPECT_EQ(Living("unused " + token), 0u);
}

// A host that has a session, on a loop of its own; `token` is a word of its server's helper.
[[noreturn]] void BeAHost(const policy::Policy& policy, const policy::CommandRequest& command, int ready) {
  asio::io_context io;
  Session session(io.get_executor(), policy, command, {});
  session.AsyncConnect([ready](const absl::Status& status) {
    if (!status.ok() || write(ready, "x", 1) != 1) _exit(1);
  });
  io.run();
  for (;;) pause();
}

TEST_F(TreesTest, A14A15A23AHostThatIsKilledTakesItsServersWithIt) {
  const std::string token = NewToken();
  const policy::Policy policy = PolicyWith();
  // Deaf to everything: it neither reads its stdin nor serves SIGTERM, and its helper has a session of its own.
  const policy::CommandRequest command =
      Command({"legacy", "start ignore-term", "start helper " + token, "notifications/initialized stay"});
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t host = fork();
  if (host == 0) BeAHost(policy, command, ready[1]);
  close(ready[1]);
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  ASSERT_NE(Living(token), 0u);
  ASSERT_EQ(kill(host, SIGKILL), 0);
  // Whoever lost its parent became ours.
  while (waitpid(-1, nullptr, __WALL) > 0 || errno == EINTR) {
  }
  EXPECT_EQ(Living(token), 0u);
}

TEST_F(TreesTest, A19A36EachSessionHasItsOwnTreeOfTheSameCommand) {
  const std::string token = NewToken();
  const Words rules = {"legacy", kGood, "start helper " + token};
  auto first = std::make_unique<Session>(io_.get_executor(), PolicyWith(), Command(rules), SessionOptions{});
  ASSERT_TRUE(Connect(*first).ok());
  Connected(rules);
  ASSERT_EQ(Living(token), 2u);
  first.reset();
  EXPECT_TRUE(RunUntil([&token] { return Living(token) == 1; })) << "its tree is gone, the other's is not";
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  Close();
  EXPECT_EQ(Living(token), 0u);
}

TEST_F(TreesTest, A25TheThreadThatStartedItMayEnd) {
  Open({"legacy", kGood});
  absl::Status status;
  std::thread starter([&] { status = Connect(); });
  starter.join();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(Call("good"), ResultIs(kIsGood));
  EXPECT_TRUE(ends_.empty());
}

TEST_F(TreesTest, B7ThreadsOfTheHostMayAllocateAndChangeItsEnvironment) {
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&is_over, name = absl::StrCat("BULKHEAD_TEST_", i)] {
      for (std::size_t bytes = 1; !is_over; bytes = bytes % 100'000 + 1) {
        setenv(name.c_str(), std::string(bytes % 100, 'x').c_str(), 1);
        const std::vector<char> memory(bytes);
        unsetenv(name.c_str());
      }
    });
  }
  Open({"legacy", kGood});
  for (int cycle = 0; cycle < 30 && !HasFailure(); ++cycle) {
    EXPECT_TRUE(Connect().ok());
    EXPECT_THAT(Call("good"), ResultIs(kIsGood));
    Close();
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace bulkhead::mcp
