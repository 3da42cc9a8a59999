#include "tests/launcher/seccomp/kernel_child.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "gtest/gtest.h"
#include "tests/launcher/seccomp/filter_calls.h"

namespace bulkhead::launcher {
namespace {

static_assert(sizeof(BpfInstruction) == sizeof(sock_filter));
static_assert(offsetof(BpfInstruction, code) == offsetof(sock_filter, code));
static_assert(offsetof(BpfInstruction, jt) == offsetof(sock_filter, jt));
static_assert(offsetof(BpfInstruction, jf) == offsetof(sock_filter, jf));
static_assert(offsetof(BpfInstruction, k) == offsetof(sock_filter, k));

}  // namespace

Program ProgramOf(FilterView view) { return Program(view.instructions, view.instructions + view.count); }

int RunRestricted(const std::vector<Program>& programs, const std::function<int()>& body) {
  // Prepared before the fork: a filter may leave the child nothing but its exit, and the sanitizers' allocators make
  // calls.
  std::vector<sock_fprog> prepared;
  for (const Program& program : programs) {
    auto* first = reinterpret_cast<sock_filter*>(const_cast<BpfInstruction*>(program.data()));
    prepared.push_back({static_cast<unsigned short>(program.size()), first});
  }
  pid_t child = fork();
  if (child < 0) return kChildDied;
  if (child == 0) {
    setsid();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) _exit(kInstallFailed);
    for (sock_fprog& program : prepared) {
      if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) _exit(kInstallFailed);
    }
    // Not _exit, before which ASan makes a call of its own.
    syscall(SYS_exit_group, body());
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return kChildDied;
  return WEXITSTATUS(status);
}

int ErrorUnder(const std::vector<Program>& programs, long number, const std::vector<unsigned long>& arguments) {
  std::vector<unsigned long> a = arguments;
  a.resize(6);
  return RunRestricted(programs, [&] { return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? errno : 0; });
}

void ExpectRefused(const std::vector<Program>& programs, const CallCase& c) {
  std::optional<std::uint32_t> number = NumberOf(c.call, kHere);
  if (!number) return;
  int control = ErrorUnder({}, *number, c.arguments);
  if (*c.may_agree == '\0') {
    EXPECT_NE(control, c.error) << c.call << ": without the filter the call gives the same errno, which proves nothing";
  }
  EXPECT_EQ(ErrorUnder(programs, *number, c.arguments), c.error) << c.call << ", without the filter " << control;
}

void ExpectAllowed(const std::vector<Program>& programs, const char* call,
                   const std::vector<unsigned long>& arguments) {
  std::optional<std::uint32_t> number = NumberOf(call, kHere);
  if (!number) return;
  ASSERT_EQ(ErrorUnder({}, *number, arguments), 0) << call << " fails without the filter";
  EXPECT_EQ(ErrorUnder(programs, *number, arguments), 0) << call;
}

}  // namespace bulkhead::launcher
