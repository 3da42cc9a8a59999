// WatchExit as the BSDs and macOS have it, on a stand-in for kqueue. Linux's own build of it watches nothing.
#include "bulkhead/launcher/posix/exit_watch.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace bulkhead::launcher {
namespace {

constexpr int kHangMilliseconds = 30000;

bool IsReadable(const UniqueFd& fd, int milliseconds) {
  pollfd poll_fd = {fd.get(), POLLIN, 0};
  return poll(&poll_fd, 1, milliseconds) == 1 && poll_fd.revents == POLLIN;
}

TEST(ExitWatchTest, ASiblingsEndIsSeen) {
  int hold[2], say[2];
  ASSERT_EQ(pipe(hold) | pipe(say), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    close(hold[1]);
    const pid_t child = fork();
    if (child == 0) {
      char byte;
      _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
    }
    _exit(write(say[1], &child, sizeof(child)) == sizeof(child) ? 0 : 1);
  }
  pid_t stranger = 0;
  ASSERT_EQ(read(say[0], &stranger, sizeof(stranger)), static_cast<ssize_t>(sizeof(stranger)));
  waitpid(parent, nullptr, 0);
  ASSERT_EQ(waitpid(stranger, nullptr, WNOHANG), -1) << "it is no child of this process";

  const UniqueFd watch = WatchExit(stranger);
  ASSERT_TRUE(watch.valid());
  EXPECT_FALSE(IsReadable(watch, 0));
  close(hold[1]);
  EXPECT_TRUE(IsReadable(watch, kHangMilliseconds));
  EXPECT_TRUE(IsReadable(watch, 0)) << "and stays so";
}

TEST(ExitWatchTest, WhoIsGoneIsNotWatched) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(WatchExit(child).valid());
}

}  // namespace
}  // namespace bulkhead::launcher
