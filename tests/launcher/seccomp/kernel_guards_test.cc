// The guards in the kernel: what they keep from happening to real files, sockets and processes. Control first: without
// the filter the same call succeeds, or fails for another reason.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <string>
#include <vector>

#include "bulkhead/launcher/seccomp/filters.h"
#include "gtest/gtest.h"
#include "tests/launcher/seccomp/kernel_child.h"

namespace bulkhead::launcher {
namespace {

unsigned long Pointer(const void* p) { return reinterpret_cast<unsigned long>(p); }

// A process of the same user that stays until the test ends, in a group of its own: a supervisor's stand-in.
class StandIn {
 public:
  StandIn() {
    if (pipe(pipe_) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      close(pipe_[1]);
      char byte;
      while (read(pipe_[0], &byte, 1) > 0) {
      }
      _exit(0);
    }
    setpgid(pid_, pid_);
    close(pipe_[0]);
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  ~StandIn() {
    if (pid_ != 0) End();
  }
  // Lets it go. The signal that killed it, or 0.
  int End() {
    close(pipe_[1]);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  unsigned long pid() const { return static_cast<unsigned long>(pid_); }
  unsigned long group() const { return static_cast<unsigned long>(-static_cast<long>(pid_)); }

 private:
  int pipe_[2];
  pid_t pid_;
};

class Folder {
 public:
  Folder() {
    const char* base = std::getenv("TEST_TMPDIR");
    path_ = std::string(base == nullptr ? "/tmp" : base) + "/seccomp.XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    for (const std::string& made : made_) remove(made.c_str());
    rmdir(path_.c_str());
  }
  const char* Path(const char* name) {
    made_.push_back(path_ + "/" + name);
    return made_.back().c_str();
  }

 private:
  std::string path_;
  std::list<std::string> made_;
};

TEST(KernelGuardsTest, SetidGuardKeepsTheBitsOffTheDisk) {
  Folder folder;
  const std::vector<Program> guard = {ProgramOf(FilterName::kSetidGuard)};
  const char* existing = folder.Path("existing");
  int fd = open(existing, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  unsigned long here = static_cast<unsigned long>(AT_FDCWD), file = static_cast<unsigned long>(fd);
  for (unsigned long mode : {04755, 02755}) {
    ExpectRefused(guard, {"chmod", {Pointer(existing), mode}, EPERM});
    ExpectRefused(guard, {"fchmod", {file, mode}, EPERM});
    ExpectRefused(guard, {"fchmodat", {here, Pointer(existing), mode}, EPERM});
    ExpectRefused(guard, {"fchmodat2", {here, Pointer(existing), mode, 0}, EPERM});
    ExpectRefused(guard, {"creat", {Pointer(folder.Path("creat")), mode}, EPERM});
    ExpectRefused(guard, {"mknod", {Pointer(folder.Path(mode == 04755 ? "n1" : "n2")), S_IFREG | mode, 0}, EPERM});
    ExpectRefused(guard,
                  {"mknodat", {here, Pointer(folder.Path(mode == 04755 ? "n3" : "n4")), S_IFREG | mode, 0}, EPERM});
    ExpectRefused(guard, {"open", {Pointer(folder.Path("open")), O_CREAT | O_WRONLY, mode}, EPERM});
    ExpectRefused(guard, {"openat", {here, Pointer(folder.Path("openat")), O_CREAT | O_WRONLY, mode}, EPERM});
    ExpectRefused(guard, {"openat", {here, Pointer("/tmp"), O_TMPFILE | O_WRONLY, mode}, EPERM});
  }
  ExpectRefused(guard, {"openat2", {here, kBad, 0, 0}, ENOSYS});
  ExpectAllowed(guard, "chmod", {Pointer(existing), 01755});
  ExpectAllowed(guard, "openat", {here, Pointer(folder.Path("plain")), O_CREAT | O_WRONLY, 0755});
  ExpectAllowed(guard, "openat", {here, Pointer(existing), O_RDONLY, 06000});
  close(fd);
}

// Why mkdir is not guarded.
TEST(KernelGuardsTest, MkdirDropsTheSetidBits) {
  Folder folder;
  const char* made = folder.Path("made");
  ASSERT_EQ(mkdir(made, 07700), 0);
  struct stat info = {};
  ASSERT_EQ(stat(made, &info), 0);
  EXPECT_EQ(info.st_mode & 06000, 0u);
}

TEST(KernelGuardsTest, SocketFiltersRefuseSocketAndLeaveSocketpair) {
  int pair[2];
  for (unsigned long family : {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}) {
    ExpectRefused({ProgramOf(FilterName::kSocketsNone)}, {"socket", {family, SOCK_DGRAM, 0}, EACCES});
  }
  ExpectRefused({ProgramOf(FilterName::kSocketsNoUnix)}, {"socket", {AF_UNIX, SOCK_STREAM, 0}, EACCES});
  ExpectAllowed({ProgramOf(FilterName::kSocketsNoUnix)}, "socket", {AF_INET, SOCK_STREAM, 0});
  for (FilterName filter : {FilterName::kSocketsNone, FilterName::kSocketsNoUnix}) {
    ExpectAllowed({ProgramOf(filter)}, "socketpair", {AF_UNIX, SOCK_STREAM, 0, Pointer(pair)});
  }
}

TEST(KernelGuardsTest, TheFilterInstalledLastNamesTheErrno) {
  Program baseline = ProgramOf(FilterName::kBaseline), none = ProgramOf(FilterName::kSocketsNone);
  const std::vector<unsigned long> vsock = {40, 1, 0};
  EXPECT_EQ(ErrorUnder({baseline, none}, SYS_socket, vsock), EACCES);
  EXPECT_EQ(ErrorUnder({none, baseline}, SYS_socket, vsock), EAFNOSUPPORT);
}

TEST(KernelGuardsTest, SupervisorGuardKeepsAServerFromBlindingAndStarvingOthers) {
  StandIn other;
  const std::vector<Program> guard = {ProgramOf(FilterName::kSupervisorGuard)};
  rlimit limit = {64, 64};
  ExpectRefused(guard, {"prlimit64", {other.pid(), RLIMIT_NOFILE, Pointer(&limit), 0}, EPERM});
  ExpectAllowed(guard, "prlimit64", {other.pid(), RLIMIT_NOFILE, 0, Pointer(&limit)});
  ExpectAllowed(guard, "prlimit64", {0, RLIMIT_CORE, Pointer(&limit), 0});
  ExpectAllowed(guard, "prlimit64", {kUpperHalf, RLIMIT_CORE, Pointer(&limit), 0});
  ExpectRefused(guard, {"setpriority", {PRIO_PROCESS, other.pid(), 5}, EPERM});
  ExpectRefused(guard, {"setpriority", {PRIO_PGRP, other.pid(), 5}, EPERM});
  ExpectAllowed(guard, "setpriority", {PRIO_PROCESS, 0, 19});
  int parameter = 0;
  constexpr unsigned long kSchedBatch = 3;
  ExpectRefused(guard, {"sched_setscheduler", {other.pid(), kSchedBatch, Pointer(&parameter)}, EPERM});
  ExpectRefused(guard, {"sched_setparam", {other.pid(), Pointer(&parameter)}, EPERM});
  ExpectRefused(guard, {"sched_setattr", {other.pid(), kBad, 0}, EPERM});
  ExpectAllowed(guard, "sched_setscheduler", {0, kSchedBatch, Pointer(&parameter)});
  constexpr unsigned long kIoprioIdle = 3 << 13;
  ExpectRefused(guard, {"ioprio_set", {1, other.pid(), kIoprioIdle}, EPERM});
  ExpectAllowed(guard, "ioprio_set", {1, 0, kIoprioIdle});
}

// Signal 0 asks whether a signal could be sent, and sends none.
TEST(KernelGuardsTest, SignalGuardProtectsTheSupervisorsOnly) {
  StandIn keeper, init, other;
  Program guard = ProgramOf(FilterName::kSignalGuard);
  for (BpfInstruction& i : guard) {
    if (i.k == kKeeperPidPlaceholder) i.k = static_cast<std::uint32_t>(keeper.pid());
    if (i.k == kKeeperGroupPlaceholder) i.k = static_cast<std::uint32_t>(keeper.group());
    if (i.k == kInitPidPlaceholder) i.k = static_cast<std::uint32_t>(init.pid());
    if (i.k == kInitGroupPlaceholder) i.k = static_cast<std::uint32_t>(init.group());
  }
  for (const StandIn* supervisor : {&keeper, &init}) {
    unsigned long pid = supervisor->pid();
    siginfo_t info = {};
    info.si_code = SI_QUEUE;
    ExpectRefused({guard}, {"kill", {pid, 0}, EPERM});
    ExpectRefused({guard}, {"kill", {pid | kUpperHalf, 0}, EPERM});
    ExpectRefused({guard}, {"kill", {supervisor->group(), 0}, EPERM});
    ExpectRefused({guard}, {"tkill", {pid, 0}, EPERM});
    ExpectRefused({guard}, {"tgkill", {pid, pid, 0}, EPERM});
    ExpectRefused({guard}, {"tgkill", {kNone, pid, 0}, EPERM});
    ExpectRefused({guard}, {"rt_sigqueueinfo", {pid, 0, Pointer(&info)}, EPERM});
    ExpectRefused({guard}, {"rt_tgsigqueueinfo", {pid, pid, 0, Pointer(&info)}, EPERM});
  }
  ExpectRefused({guard}, {"kill", {kNone, 0}, EPERM});
  ExpectRefused({guard}, {"pidfd_send_signal", {kNone, 0, 0, 0}, ENOSYS});
  ExpectRefused({guard}, {"fcntl", {0, 10, 9}, EPERM});
  ExpectAllowed({guard}, "kill", {other.pid(), 0});
  ExpectAllowed({guard}, "kill", {other.group(), 0});
  ExpectAllowed({guard}, "kill", {0, 0});
  ExpectAllowed({guard}, "tgkill", {other.pid(), other.pid(), 0});
}

// Why F_SETSIG is refused: with it, whatever is written to a pipe of one's own kills its "owner".
TEST(KernelGuardsTest, SignalGuardStopsADescriptorFromKilling) {
  auto kill_by_descriptor = [](pid_t victim) {
    return [victim] {
      int ends[2];
      if (pipe(ends) != 0 || fcntl(ends[0], F_SETOWN, victim) != 0) return 101;
      if (fcntl(ends[0], F_SETSIG, SIGKILL) != 0) return errno;
      if (fcntl(ends[0], F_SETFL, O_ASYNC) != 0) return 102;
      return write(ends[1], "x", 1) == 1 ? 0 : 103;
    };
  };
  StandIn victim, survivor;
  ASSERT_EQ(RunRestricted({}, kill_by_descriptor(static_cast<pid_t>(victim.pid()))), 0);
  EXPECT_EQ(
      RunRestricted({ProgramOf(FilterName::kSignalGuard)}, kill_by_descriptor(static_cast<pid_t>(survivor.pid()))),
      EPERM);
  EXPECT_EQ(victim.End(), SIGKILL);
  EXPECT_EQ(survivor.End(), 0);
}

}  // namespace
}  // namespace bulkhead::launcher
