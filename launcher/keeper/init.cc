// The jail init: PID 1 of the jail in tier A, the inner of two child subreapers in tiers B and C. Builds the jail,
// starts the server, reaps. It ends when the tree has ended, and ends the tree when the keeper dies.
#include <linux/prctl.h>
#include <linux/sched.h>

#include "launcher/keeper/keeper.h"

namespace bulkhead::launcher::keeper {
namespace {

void Tell(char what) { Call(__NR_sendto, g.init_socket, &what, 1, 0x4000 /* MSG_NOSIGNAL */, nullptr, 0); }

[[noreturn]] void Exit(int code) {
  for (;;) Call(__NR_exit_group, code);
}

// Nothing is running yet, or all of it dies with us (PID 1), or was reaped.
[[noreturn]] void Fail(wire::Phase phase, long error) {
  g.fault.phase = phase;
  g.fault.step = 0;
  g.fault.error = static_cast<int32_t>(-error);
  Exit(125);
}

long WriteMap(const char* path, uint32_t id) {
  char map[32];
  char* end = PutNumber(map, id);
  *end++ = ' ';
  end = PutText(PutNumber(end, id), " 1");
  const long fd = Call(__NR_openat, kAtFdCwd, path, kWriteOnly | kCloseOnExec);
  if (IsError(fd)) return fd;
  const long written = Call(__NR_write, fd, map, end - map);
  Close(fd);
  return written;
}

// An ordinary user maps itself: the same number inside as outside, and nobody else.
long MapSelf(uint32_t uid, uint32_t gid) {
  const long fd = Call(__NR_openat, kAtFdCwd, "/proc/self/setgroups", kWriteOnly | kCloseOnExec);
  if (IsError(fd)) return fd;
  long error = Call(__NR_write, fd, "deny", 4);
  Close(fd);
  if (!IsError(error)) error = WriteMap("/proc/self/uid_map", uid);
  if (!IsError(error)) error = WriteMap("/proc/self/gid_map", gid);
  return IsError(error) ? error : 0;
}

// Started as root: the keeper writes the maps; then we become the unprivileged uid that they show.
long BecomeMapped() {
  char go;
  if (Call(__NR_read, g.init_socket, &go, 1) != 1) Exit(125);
  long error = Call(__NR_setgroups, 0, nullptr);
  if (!IsError(error)) error = Call(__NR_setresgid, g.plan->inside_gid, g.plan->inside_gid, g.plan->inside_gid);
  if (!IsError(error)) error = Call(__NR_setresuid, g.plan->inside_uid, g.plan->inside_uid, g.plan->inside_uid);
  return error;
}

void EnterNamespaces(uint32_t uid, uint32_t gid) {
  long error = g.plan->run_as == wire::RunAs::kCaller ? MapSelf(uid, gid) : BecomeMapped();
  if (IsError(error)) Fail(wire::Phase::kNamespaces, error);
  // After setresuid, which clears it. getppid() is 0 in here, so whether the keeper died before this line is seen by
  // the socket, whose other end only the keeper holds.
  error = Call(__NR_prctl, PR_SET_PDEATHSIG, kSigKill, 0, 0, 0);
  if (IsError(error)) Fail(wire::Phase::kNamespaces, error);
  PollFd poll = {g.init_socket, 0, 0};
  const TimeSpec now = {0, 0};
  Call(__NR_ppoll, &poll, 1, &now, nullptr, 8);
  if (poll.revents & kPollHup) Exit(125);
}

void ServerMain() {
  RunSteps(g.variant->server, wire::Phase::kServer);
  Exit(127);
}

long StartServer() {
  alignas(16) static char stack[8192];
  return BulkheadClone(CLONE_VM | CLONE_VFORK | kSigChld, stack + sizeof stack, nullptr, ServerMain);
}

void PatchOwnPid() {
  const auto* patches = At<wire::Patch>(g.plan->patches);
  const auto pid = static_cast<uint32_t>(Call(__NR_getpid));
  for (uint32_t i = 0; i < g.plan->patch_count; ++i) {
    if (patches[i].kind == wire::PatchKind::kInitPid) *At<uint32_t>(patches[i].at) = pid;
    if (patches[i].kind == wire::PatchKind::kInitGroup) *At<uint32_t>(patches[i].at) = -pid;
  }
}

// Until the tree is gone. Once the server itself has ended, what it left behind is killed at once; but in a ladder the
// others have the rest of their grace.
[[noreturn]] void Reap(int signals) {
  bool ladder = false, told = false;
  for (;;) {
    if (!ReapEnded()) Exit(0);  // nobody is left, which the keeper sees by our death
    if (g.leader_gone && !told) {
      Tell(kInitLeaderGone);
      told = true;
    }
    if (g.leader_gone && !ladder) {
      KillAndReapAll();
      Exit(0);
    }
    PollFd polls[2] = {{signals, kPollIn, 0}, {g.init_socket, kPollIn, 0}};
    const long ready = Call(__NR_ppoll, polls, 2, nullptr, nullptr, 8);
    if (ready == -EINTR) continue;
    if (IsError(ready)) polls[1].revents = kPollHup;  // blind: end it while we can
    char drained[128];
    if (polls[0].revents) Call(__NR_read, signals, drained, sizeof drained);
    if (!polls[1].revents) continue;
    char order = 0;
    if (IsError(ready) || Call(__NR_read, g.init_socket, &order, 1) <= 0) {  // the keeper is dead
      KillAndReapAll();
      if (g.variant->namespaces == 0) RemoveCgroups();  // but for the group that we are in
      RemovePrivateFolder();
      Exit(0);
    }
    ladder = true;
    if (order == kKeeperTerm) TerminateAllBelow();
  }
}

}  // namespace

void InitMain() {
  const bool jail = g.variant->namespaces != 0;
  // Our copies of what only the keeper may hold: or its death would not be seen as the end of these.
  Close(g.keeper_socket);
  Close(wire::kControlFd);
  Close(wire::kReportFd);
  Close(wire::kHostPidFd);
  // A SIGKILL to the keeper's group must not reach both of us.
  if (const long error = Call(__NR_setsid); IsError(error)) Fail(wire::Phase::kNamespaces, error);
  Call(__NR_prctl, PR_SET_NAME, "bulkhead-init", 0, 0, 0);
  if (jail) {
    EnterNamespaces(g.run_uid, g.run_gid);
  } else {
    const long error = Call(__NR_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (IsError(error)) Fail(wire::Phase::kNamespaces, error);
    PatchOwnPid();
  }
  const uint64_t child_ended = SignalBit(kSigChld);
  const long signals = Call(__NR_signalfd4, -1, &child_ended, sizeof child_ended, kNonBlock | kCloseOnExec);
  if (IsError(signals)) Fail(wire::Phase::kNamespaces, signals);
  const long umask = Call(__NR_umask, 022);  // for the folders of the jail; the server keeps the host's
  if (!RunSteps(g.variant->init, wire::Phase::kInit)) Exit(125);
  Call(__NR_umask, umask);
  const long pid = StartServer();
  if (IsError(pid)) Fail(wire::Phase::kStartServer, pid);
  if (g.fault.error != 0) Exit(125);
  g.server_pid = static_cast<int>(pid);
  Tell(kInitStarted);
  for (int fd = 0; fd <= 2; ++fd) Close(fd);
  if (g.plan->flags & wire::kRunMode) Close(wire::kServerStderrFd);
  Reap(static_cast<int>(signals));
}

}  // namespace bulkhead::launcher::keeper
