// Both ways to write without SIGPIPE, in a process of their own that has not said what it wants done with the signal.
#include "bulkhead/jsonrpc/write_without_sigpipe.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace bulkhead::jsonrpc {
namespace {

using Write = std::ptrdiff_t (*)(int fd, const absl::string_view* pieces, std::size_t count);

// Runs `body`, which returns whether all is well, in a child with default dispositions. Its wait status.
int InChild(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, SIG_DFL);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// The writing end of a pipe that nobody reads.
int BrokenPipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return -1;
  close(fds[0]);
  return fds[1];
}

int BrokenSocket() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) return -1;
  close(fds[0]);
  return fds[1];
}

int handled = 0;
void CountSigpipe(int) { ++handled; }

const absl::string_view kPieces[] = {"abc", "", "def"};

class WritingWithoutSigpipe : public testing::TestWithParam<std::pair<const char*, Write>> {
 protected:
  void SetUp() override {
    if (Way() == internal::WriteWithNoSignalFlag && Way()(-1, kPieces, 3) != -EBADF) {
      GTEST_SKIP() << "this kernel has no RWF_NOSIGNAL (Linux 6.18)";
    }
  }
  static Write Way() { return GetParam().second; }
};

TEST_P(WritingWithoutSigpipe, WritesAllPieces) {
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  EXPECT_EQ(Way()(fds[1], kPieces, 3), 6);
  char bytes[10];
  EXPECT_EQ(read(fds[0], bytes, sizeof bytes), 6);
  EXPECT_EQ(std::string(bytes, 6), "abcdef");
  const std::vector<absl::string_view> many(kPiecesMax + 1, "x");
  EXPECT_EQ(Way()(fds[1], many.data(), many.size()), static_cast<std::ptrdiff_t>(kPiecesMax));
  close(fds[0]);
  close(fds[1]);
  EXPECT_EQ(Way()(-1, kPieces, 3), -EBADF);
}

TEST_P(WritingWithoutSigpipe, TheProcessLives) {
  // Control: an ordinary write kills it.
  const int control = InChild([] { return write(BrokenPipe(), "x", 1) == 1; });
  ASSERT_TRUE(WIFSIGNALED(control) && WTERMSIG(control) == SIGPIPE);
  EXPECT_EQ(InChild([] { return Way()(BrokenPipe(), kPieces, 3) == -EPIPE; }), 0);
  EXPECT_EQ(InChild([] { return Way()(BrokenSocket(), kPieces, 3) == -EPIPE; }), 0);
}

TEST_P(WritingWithoutSigpipe, AHandlerIsNotCalled) {
  EXPECT_EQ(InChild([] {
              signal(SIGPIPE, CountSigpipe);
              const int fd = BrokenPipe();
              if (write(fd, "x", 1) != -1 || handled != 1) return false;  // control
              return Way()(fd, kPieces, 3) == -EPIPE && handled == 1;
            }),
            0);
}

TEST_P(WritingWithoutSigpipe, LeavesMaskAndOthersSignalsAlone) {
  EXPECT_EQ(InChild([] {
              sigset_t before, after, sigusr1;
              sigemptyset(&sigusr1);
              sigaddset(&sigusr1, SIGUSR1);
              pthread_sigmask(SIG_BLOCK, &sigusr1, &before);
              raise(SIGUSR1);
              if (Way()(BrokenPipe(), kPieces, 3) != -EPIPE) return false;
              pthread_sigmask(SIG_BLOCK, nullptr, &after);
              sigset_t pending;
              sigpending(&pending);
              return sigismember(&after, SIGPIPE) == 0 && sigismember(&after, SIGUSR1) == 1 &&
                     sigismember(&pending, SIGUSR1) == 1 && sigismember(&pending, SIGPIPE) == 0;
            }),
            0);
}

TEST_P(WritingWithoutSigpipe, ASignalThatWasPendingStaysPending) {
  EXPECT_EQ(InChild([] {
              sigset_t sigpipe, pending;
              sigemptyset(&sigpipe);
              sigaddset(&sigpipe, SIGPIPE);
              pthread_sigmask(SIG_BLOCK, &sigpipe, nullptr);
              raise(SIGPIPE);
              if (Way()(BrokenPipe(), kPieces, 3) != -EPIPE) return false;
              sigpending(&pending);
              if (sigismember(&pending, SIGPIPE) != 1) return false;
              signal(SIGPIPE, CountSigpipe);
              pthread_sigmask(SIG_UNBLOCK, &sigpipe, nullptr);
              return handled == 1;
            }),
            0);
}

INSTANTIATE_TEST_SUITE_P(EachWay, WritingWithoutSigpipe,
                         testing::Values(std::pair("flag", &internal::WriteWithNoSignalFlag),
                                         std::pair("mask", &internal::WriteWithSigpipeBlocked),
                                         std::pair("either", &WriteWithoutSigpipe)),
                         [](const auto& tested) { return std::string(tested.param.first); });

}  // namespace
}  // namespace bulkhead::jsonrpc
