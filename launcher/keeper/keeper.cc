// The keeper: stays beside a server, watches the host, and ends the tree. See DESIGN.md in the folder above.
#include "launcher/keeper/keeper.h"

#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/sched.h>

namespace bulkhead::launcher::keeper {

State g;

namespace {

using wire::Phase;

[[noreturn]] void Exit(int code) {
  for (;;) Call(__NR_exit_group, code);
}

// A pipe that has place at all takes this much without waiting (PIPE_BUF, pipe(7)).
constexpr unsigned long kPrintBytesMax = 4096;
constexpr long kPrintWaitNanoseconds = 500 * 1000000;

// On stderr, as far as somebody reads it: the server may have filled the pipe, and our end must not wait for that.
void Print(const char* text) {
  for (unsigned long left = Length(text); left > 0 && !g.stderr_is_stuck;) {
    PollFd poll = {2, kPollOut, 0};
    const TimeSpec wait = {0, kPrintWaitNanoseconds};
    g.stderr_is_stuck = Call(__NR_ppoll, &poll, 1, &wait, nullptr, 8) == 0;
    if (g.stderr_is_stuck) return;
    const long written = Call(__NR_write, 2, text, left < kPrintBytesMax ? left : kPrintBytesMax);
    if (written <= 0) return;
    text += written;
    left -= static_cast<unsigned long>(written);
  }
}

// A plan we can't read has no sentences of its own.
[[noreturn]] void Refuse(const char* text) {
  Print("bulkhead: the keeper can't read its plan: ");
  Print(text);
  Print("\n");
  Exit(125);
}

uint64_t NowMs() {
  TimeSpec now;
  Call(__NR_clock_gettime, 1 /* CLOCK_MONOTONIC */, &now);
  return static_cast<uint64_t>(now.seconds) * 1000 + static_cast<uint64_t>(now.nanoseconds) / 1000000;
}

bool RunMode() { return (g.plan->flags & wire::kRunMode) != 0; }

void MapPlan() {
  struct {
    unsigned long words[18];
  } found = {};  // struct stat: st_size is at byte 48 on both architectures
  if (IsError(Call(__NR_fstat, wire::kPlanFd, &found))) Refuse("descriptor 3 is not open");
  const unsigned long bytes = found.words[6];
  if (bytes < sizeof(wire::Plan) || bytes > wire::kPlanBytesMax) Refuse("wrong size");
  // Readable and writable, private: what we write into it is ours alone.
  const long base = Call(__NR_mmap, nullptr, bytes, 1 | 2, 2 | 0x8000 /* MAP_POPULATE */, wire::kPlanFd, 0);
  if (IsError(base)) Refuse("mmap failed");
  // What the host leaked would stay open beside its server for as long as we live (ENOSYS before Linux 5.9: it does).
  Call(__NR_close_range, wire::kSecretsFd + 1, ~0u, 0);
  // Numbers that the host left free are taken, so that nothing of ours gets one of them by chance.
  for (int fd = wire::kControlFd; fd <= wire::kSecretsFd; ++fd) {
    if (Call(__NR_fcntl, fd, 1 /* F_GETFD */) == -EBADF) Call(__NR_dup3, wire::kPlanFd, fd, kCloseOnExec);
  }
  Close(wire::kPlanFd);
  g.plan_base = reinterpret_cast<char*>(base);
  g.plan = At<wire::Plan>(0);
  if (g.plan->magic != wire::kMagic || g.plan->version != wire::kVersion || g.plan->bytes != bytes) {
    Refuse("it is of another version");
  }
}

constexpr unsigned long kSecretsMapBytes = wire::kSecretsBytesMax + 1;  // and a zero byte, whatever comes

void ReadSecrets() {
  if (g.plan->secret_count == 0) return Close(wire::kSecretsFd);
  const long base = Call(__NR_mmap, nullptr, kSecretsMapBytes, 1 | 2, 2 | 0x20 /* MAP_ANONYMOUS */, -1, 0);
  if (IsError(base)) Refuse("mmap failed");
  g.secrets = reinterpret_cast<char*>(base);
  unsigned long filled = 0;
  uint32_t ends = 0;
  while (filled < wire::kSecretsBytesMax) {
    const long bytes = Call(__NR_read, wire::kSecretsFd, g.secrets + filled, wire::kSecretsBytesMax - filled);
    if (bytes == -EINTR) continue;
    if (bytes <= 0) break;
    for (long i = 0; i < bytes; ++i) ends += g.secrets[filled + i] == 0;
    filled += static_cast<unsigned long>(bytes);
  }
  if (ends != g.plan->secret_count) Refuse("secrets are missing");
  Close(wire::kSecretsFd);
}

// Nobody needs them any more: the server has its copy.
void WipeSecrets() {
  if (g.secrets == nullptr) return;
  auto* bytes = const_cast<volatile char*>(g.secrets);
  for (unsigned long i = 0; i < kSecretsMapBytes; ++i) bytes[i] = 0;
  Call(__NR_munmap, g.secrets, kSecretsMapBytes);
  g.secrets = nullptr;
}

char* Secret(uint64_t number) {
  char* text = g.secrets;
  for (; number > 0; --number) text += Length(text) + 1;
  return text;
}

// Ignored signals survive exec and would be the server's too; blocked ones are read from a descriptor.
void TakeSignals() {
  const uint64_t all = ~0ull;
  Call(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, nullptr, sizeof all);
  const DefaultAction normal = {};
  for (int signal = 1; signal <= 64; ++signal) Call(__NR_rt_sigaction, signal, &normal, nullptr, 8);
}

// The inode of our process id namespace, which the kernel gives to no other one at the same time. 0: no /proc.
uint32_t ProcessSpace() {
  struct {
    unsigned long words[18];
  } found = {};  // struct stat: st_ino is at byte 8
  Call(__NR_newfstatat, kAtFdCwd, "/proc/self/ns/pid", &found, 0);
  return static_cast<uint32_t>(found.words[1]);
}

void ChooseIds() {
  g.root = g.plan->run_as != wire::RunAs::kCaller;
  g.run_uid = g.root ? g.plan->run_uid : static_cast<uint32_t>(Call(__NR_geteuid));
  g.run_gid = g.root ? g.plan->run_gid : static_cast<uint32_t>(Call(__NR_getegid));
  if (g.plan->run_as != wire::RunAs::kPerLaunch) return;
  g.run_uid =
      wire::kPerLaunchUidBase + ((ProcessSpace() & 31) << 22) + (static_cast<uint32_t>(g.keeper_pid) & 0x3fffff);
  g.run_gid = g.run_uid;
}

// 16 digits, the highest first.
void PutDigits(char* out, uint64_t number) {
  for (int k = 0; k < wire::kLaunchIdDigits; ++k) out[k] = "0123456789abcdef"[number >> (60 - 4 * k) & 15];
}

void ApplyPatches() {
  uint64_t id = 0;
  if (Call(__NR_getrandom, &id, sizeof id, 0) != sizeof id) id = NowMs() << 24 ^ static_cast<uint64_t>(g.keeper_pid);
  // 0 when the group is of another process id namespace: no group of ours can then be named in here.
  const long own_group = Call(__NR_getpgid, 0);
  const auto group = static_cast<uint32_t>(own_group > 0 ? -own_group : g.keeper_pid);
  const auto* patches = At<wire::Patch>(g.plan->patches);
  for (uint32_t i = 0; i < g.plan->patch_count; ++i) {
    switch (patches[i].kind) {
      case wire::PatchKind::kLaunchId:
        PutDigits(Text(patches[i].at), id);
        break;
      case wire::PatchKind::kKeeperName:
        PutDigits(Text(patches[i].at), uint64_t{ProcessSpace()} << 32 | static_cast<uint32_t>(g.keeper_pid));
        break;
      case wire::PatchKind::kKeeperPid:
        *At<uint32_t>(patches[i].at) = static_cast<uint32_t>(g.keeper_pid);
        break;
      case wire::PatchKind::kKeeperGroup:
        *At<uint32_t>(patches[i].at) = group;
        break;
      case wire::PatchKind::kInitPid:
      case wire::PatchKind::kInitGroup:
        break;  // the init's own to write
    }
  }
}

void MakePointers(wire::Offset array) {
  auto* slot = At<uint64_t>(array);
  for (; *slot != 0; ++slot) {
    const bool is_secret = (*slot & wire::kSecretMark) != 0;
    *slot = reinterpret_cast<uint64_t>(is_secret ? Secret(*slot & ~wire::kSecretMark) : g.plan_base + *slot);
  }
}

const wire::Step* FaultStep() {
  const wire::StepList* list = nullptr;
  switch (g.fault.phase) {
    case Phase::kKeeper:
      list = &g.variant->keeper;
      break;
    case Phase::kInit:
      list = &g.variant->init;
      break;
    case Phase::kServer:
      list = &g.variant->server;
      break;
    case Phase::kNone:
    case Phase::kNamespaces:
    case Phase::kStartServer:
      break;
  }
  return list != nullptr && g.fault.step < list->count ? At<wire::Step>(list->steps) + g.fault.step : nullptr;
}

// This tier can't be had here, as opposed to: something the policy names is wrong.
bool FaultIsOfTier() {
  if (g.fault.phase == Phase::kNamespaces) return true;
  const wire::Step* step = FaultStep();
  return step != nullptr && (step->flags & wire::kNeedsNamespaces) != 0;
}

void Send(const wire::Message& message) {
  Call(__NR_sendto, wire::kControlFd, &message, sizeof message, 0x4000 /* MSG_NOSIGNAL */, nullptr, 0);
}

void WriteReport(const char* tail, unsigned long bytes) {
  if ((g.plan->flags & wire::kHasReport) == 0) return;
  const struct {
    const char* text;
    long bytes;
  } parts[] = {{Text(g.variant->report), g.variant->report_bytes}, {tail, static_cast<long>(bytes)}};
  for (const auto& part : parts) {
    const long written = Call(__NR_write, wire::kReportFd, part.text, part.bytes);
    if (written == part.bytes) continue;
    // What the server did counts for more than what is said of it: the exit code stays its own.
    const char* why = IsError(written) ? ErrorName(static_cast<int>(-written)) : "no space left";
    Print("bulkhead: the report is not complete: ");
    Print(why != nullptr ? why : "it can't be written");
    Print("\n");
    return;
  }
}

[[noreturn]] void ReportFault(uint32_t variant) {
  const wire::Step* step = FaultStep();
  const int error = g.fault.error;
  const auto* failure = At<wire::Failure>(step != nullptr                        ? step->failures
                                          : g.fault.phase == Phase::kStartServer ? g.variant->start_failures
                                                                                 : g.variant->clone_failures);
  while (failure->error != 0 && failure->error != error) ++failure;
  if (!RunMode()) {
    wire::Message message = {};
    message.event = wire::Event::kFailed;
    message.variant = variant;
    message.phase = g.fault.phase;
    message.step = g.fault.step;
    message.error = error;
    Send(message);
    Exit(failure->exit_code);
  }
  char text[64];
  Print("bulkhead: ");
  Print(Text(failure->text));
  if (failure->subject != 0) Print(Text(failure->subject));
  if (failure->rest != 0) Print(Text(failure->rest));
  if (failure->show_error) {
    Print(": ");
    const char* name = ErrorName(error);
    *PutNumber(PutText(text, "error "), static_cast<uint64_t>(error)) = 0;
    Print(name != nullptr ? name : text);
  }
  Print("\n");
  char* end = PutText(PutNumber(PutText(text, ",\"exit\":{\"failed\":"), failure->exit_code), "}}\n");
  WriteReport(text, static_cast<unsigned long>(end - text));
  Exit(failure->exit_code);
}

bool Fault(Phase phase, long error) {
  g.fault.phase = phase;
  g.fault.step = 0;
  g.fault.error = static_cast<int32_t>(-error);
  return false;
}

long WriteMapOf(long pid, const char* name, uint32_t inside, uint32_t outside) {
  char path[48], map[32];
  *PutText(PutNumber(PutText(path, "/proc/"), static_cast<uint64_t>(pid)), name) = 0;
  char* end = PutNumber(map, inside);
  *end++ = ' ';
  end = PutText(PutNumber(end, outside), " 1");
  const long fd = Call(__NR_openat, kAtFdCwd, path, kWriteOnly | kCloseOnExec);
  if (IsError(fd)) return fd;
  const long written = Call(__NR_write, fd, map, end - map);
  Close(fd);
  return written;
}

struct Supervision {
  long init_pid;
  int init_pidfd;
  int signals;
};

// The init, and its id maps if those are ours to write. False: g.fault says why not; an init that started still has to
// be reaped.
bool StartInit(Supervision& s) {
  alignas(16) static char stack[16384];
  int pair[2];
  long error = Call(__NR_socketpair, 1 /* AF_UNIX */, 5 /* SOCK_SEQPACKET */ | kCloseOnExec, 0, pair);
  if (IsError(error)) return Fault(Phase::kNamespaces, error);
  g.keeper_socket = pair[0];
  g.init_socket = pair[1];
  s.init_pidfd = -1;
  s.init_pid = BulkheadClone(CLONE_VM | CLONE_PIDFD | kSigChld | g.variant->namespaces, stack + sizeof stack,
                             &s.init_pidfd, InitMain);
  Close(g.init_socket);
  if (IsError(s.init_pid)) return Fault(Phase::kNamespaces, s.init_pid);
  if (g.variant->namespaces == 0 || !g.root) return true;
  error = CheckProc();
  if (!IsError(error)) error = WriteMapOf(s.init_pid, "/gid_map", g.plan->inside_gid, g.run_gid);
  if (!IsError(error)) error = WriteMapOf(s.init_pid, "/uid_map", g.plan->inside_uid, g.run_uid);
  // Unsent, the init would wait for it without end.
  if (!IsError(error)) error = Call(__NR_sendto, g.keeper_socket, &kKeeperGo, 1, 0x4000, nullptr, 0);
  if (IsError(error)) return Fault(Phase::kNamespaces, error);
  return true;
}

// What root keeps: tier A nothing (the owner of the user namespace may kill its init); else to signal the server's uid,
// and to become it when its private folder is removed.
void KeepLittle() {
  const uint64_t keep =
      g.variant->namespaces != 0 || !g.root ? 0 : 1ull << CAP_KILL | 1ull << CAP_SETUID | 1ull << CAP_SETGID;
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const auto low = static_cast<uint32_t>(keep);
  __user_cap_data_struct data[2] = {{low, low, 0}, {0, 0, 0}};
  Call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  Call(__NR_capset, &header, data);
}

enum Rung { kNoRung, kStdinRung, kTermRung, kKillRung };

// The ladder: close stdin (the host's part, or its death), wait, SIGTERM to all, wait, SIGKILL to all.
class Ladder {
 public:
  explicit Ladder(const Supervision& s) : s_(s) {}
  bool begun() const { return rung_ != kNoRung; }

  void Climb(Rung wanted) {
    if (wanted <= rung_) return;
    rung_ = wanted;
    deadline_ms_ = NowMs() + (wanted == kStdinRung ? g.plan->stdin_grace_ms : g.plan->term_grace_ms);
    if (wanted == kKillRung) {
      Call(__NR_pidfd_send_signal, s_.init_pidfd, kSigKill, nullptr, 0);
      KillCgroup();
      return;
    }
    const char order = wanted == kStdinRung ? kKeeperLadder : kKeeperTerm;
    Call(__NR_sendto, g.keeper_socket, &order, 1, 0x4000 | 0x40 /* NOSIGNAL, DONTWAIT */, nullptr, 0);
  }
  void Tick() {
    if (rung_ != kNoRung && rung_ != kKillRung && NowMs() >= deadline_ms_) Climb(static_cast<Rung>(rung_ + 1));
  }
  // For ppoll; false: wait without end.
  bool Remaining(TimeSpec& time) const {
    if (rung_ == kNoRung || rung_ == kKillRung) return false;
    const uint64_t now = NowMs(), left = deadline_ms_ > now ? deadline_ms_ - now : 0;
    time.seconds = static_cast<long>(left / 1000);
    time.nanoseconds = static_cast<long>(left % 1000 * 1000000);
    return true;
  }

 private:
  const Supervision& s_;
  Rung rung_ = kNoRung;
  uint64_t deadline_ms_ = 0;
};

// With the init's pidfd (SCM_RIGHTS): should we be killed, the host sees by it that the tree is gone.
void SendStarted(uint32_t variant, int init_pidfd) {
  wire::Message message = {};
  message.event = wire::Event::kStarted;
  message.variant = variant;
  struct {  // struct cmsghdr, and its data
    unsigned long bytes;
    int level, type, fd, padding;
  } attached = {20, 1 /* SOL_SOCKET */, 1 /* SCM_RIGHTS */, init_pidfd, 0};
  struct {
    void* base;
    unsigned long bytes;
  } part = {&message, sizeof message};
  struct {  // struct msghdr
    void* name;
    unsigned name_bytes;
    void* parts;
    unsigned long part_count;
    void* control;
    unsigned long control_bytes;
    int flags;
  } header = {nullptr, 0, &part, 1, &attached, sizeof attached, 0};
  // The pidfd is of use, but the message is what the host waits for.
  if (IsError(Call(__NR_sendmsg, wire::kControlFd, &header, 0x4000 /* MSG_NOSIGNAL */))) Send(message);
}

void OnStarted(uint32_t variant, int init_pidfd) {
  WipeSecrets();
  KeepLittle();
  if (RunMode()) {
    Close(wire::kServerStderrFd);
    return;
  }
  for (int fd = 0; fd <= 2; ++fd) Close(fd);
  SendStarted(variant, init_pidfd);
}

void ReadSignals(int signals, Ladder& ladder) {
  alignas(8) char info[128];
  while (Call(__NR_read, signals, info, sizeof info) == static_cast<long>(sizeof info)) {
    ladder.Climb(ladder.begun() ? kKillRung : kTermRung);
  }
}

// Until the init is dead. False: the server never ran.
bool Supervise(const Supervision& s, uint32_t variant) {
  enum { kControl, kInitSocket, kInitDeath, kSignals, kStdin, kStdout, kHost, kPolls };
  const bool run = RunMode();
  PollFd polls[kPolls] = {
      {!run || (g.plan->flags & wire::kWatchParent) ? wire::kControlFd : -1, kPollIn, 0},
      {g.keeper_socket, kPollIn, 0},
      {s.init_pidfd, kPollIn, 0},
      {s.signals, kPollIn, 0},
      {run ? 0 : -1, kPollRdHup, 0},
      {run ? 1 : -1, 0, 0},
      {!run || (g.plan->flags & wire::kWatchHost) ? wire::kHostPidFd : -1, kPollIn, 0},
  };
  Ladder ladder(s);
  bool started = false, stdin_gone = false, stdout_gone = false;
  for (;;) {
    TimeSpec time;
    const bool timed = ladder.Remaining(time);
    const long ready = Call(__NR_ppoll, polls, kPolls, timed ? &time : nullptr, nullptr, 8);
    if (IsError(ready)) {
      for (PollFd& poll : polls) poll.revents = 0;
      if (ready != -EINTR) {  // blind: end it while we can, and hear of that by waitid(2), which leaves it to be reaped
        ladder.Climb(kKillRung);
        Call(__NR_waitid, 1 /* P_PID */, s.init_pid, nullptr, 4 | 0x01000000 /* WEXITED, WNOWAIT */, nullptr);
        polls[kInitSocket].revents = polls[kInitDeath].revents = kPollIn;
      }
    }
    ladder.Tick();
    if (polls[kInitSocket].revents) {
      char what = 0;
      const long bytes = Call(__NR_recvfrom, g.keeper_socket, &what, 1, 0x40 /* MSG_DONTWAIT */, nullptr, nullptr);
      if (bytes == 1 && what == kInitStarted && !started) {
        started = true;
        OnStarted(variant, s.init_pidfd);
      }
      // The server itself is gone: nobody is left who would read the end of stdin.
      if (bytes == 1 && what == kInitLeaderGone && ladder.begun()) ladder.Climb(kTermRung);
      if (bytes == 0 || (IsError(bytes) && bytes != -EAGAIN)) polls[kInitSocket].fd = -1;
      if (bytes == 1) continue;  // all that the init said comes before its death
    }
    if (polls[kInitDeath].revents) return started;
    if (polls[kSignals].revents) ReadSignals(s.signals, ladder);
    if (polls[kControl].revents) {
      char order = wire::kStop;
      if (run || Call(__NR_recvfrom, wire::kControlFd, &order, 1, 0x40, nullptr, nullptr) <= 0) polls[kControl].fd = -1;
      ladder.Climb(order == wire::kKill ? kKillRung : kStdinRung);
    }
    if (polls[kHost].revents) {
      polls[kHost].fd = -1;
      ladder.Climb(kStdinRung);
    }
    // Neither alone ends anything: a server that was given its input through a pipe still answers, and one whose
    // reader is gone gets SIGPIPE by itself.
    if (polls[kStdin].revents & (kPollHup | kPollRdHup | kPollErr)) stdin_gone = true;
    if (polls[kStdout].revents & (kPollHup | kPollErr)) stdout_gone = true;
    if (polls[kStdin].revents) polls[kStdin].fd = -1;
    if (polls[kStdout].revents) polls[kStdout].fd = -1;
    if (stdin_gone && stdout_gone) ladder.Climb(kStdinRung);
  }
}

// After the init's death. In tier A the kernel has emptied the namespace before it showed us that; else whatever the
// init left has become our child.
void ReapAll(const Supervision& s) {
  int status;
  Call(__NR_wait4, s.init_pid, &status, 0, nullptr);
  if (g.variant->namespaces == 0) KillAndReapAll();
  if (!g.leader_gone) g.wait_status = kSigKill;  // it went with the namespace
  Close(s.init_pidfd);
  Close(g.keeper_socket);
}

[[noreturn]] void ReportEnd() {
  const CgroupEvents events = ReadCgroup();
  RemoveCgroups();
  RemovePrivateFolder();
  ResourceUsage usage = {};
  Call(__NR_getrusage, -1 /* RUSAGE_CHILDREN */, &usage);
  const uint64_t user_us =
      static_cast<uint64_t>(usage.user.seconds) * 1000000 + static_cast<uint64_t>(usage.user.microseconds);
  const uint64_t system_us =
      static_cast<uint64_t>(usage.system.seconds) * 1000000 + static_cast<uint64_t>(usage.system.microseconds);
  const uint64_t resident = static_cast<uint64_t>(usage.max_resident_kib) * 1024;
  const int status = g.wait_status, signal = status & 127, code = status >> 8 & 255;
  if (!RunMode()) {
    wire::Message message = {};
    message.event = wire::Event::kExited;
    message.wait_status = status;
    message.user_us = user_us;
    message.system_us = system_us;
    message.max_resident_bytes = resident;
    message.memory_kills = events.memory_kills;
    message.refused_processes = events.refused_processes;
    Send(message);
    Exit(0);
  }
  if (events.memory_kills != 0) Print("bulkhead: note: the server reached limits.memory, and was killed\n");
  char tail[320];
  char* end = PutText(tail, signal != 0 ? ",\"exit\":{\"signal\":" : ",\"exit\":{\"code\":");
  end = PutText(PutNumber(end, static_cast<uint64_t>(signal != 0 ? signal : code)), "},\"usage\":{\"user_us\":");
  end = PutText(PutNumber(end, user_us), ",\"system_us\":");
  end = PutText(PutNumber(end, system_us), ",\"max_resident_bytes\":");
  end = PutNumber(end, resident);
  if (g.variant->cgroup != 0) {
    end = PutNumber(PutText(end, ",\"memory_kills\":"), events.memory_kills);
    end = PutNumber(PutText(end, ",\"refused_processes\":"), events.refused_processes);
  }
  end = PutText(end, "}}\n");
  WriteReport(tail, static_cast<unsigned long>(end - tail));
  if (signal == 0 && code != 0 && g.plan->hint != 0) Print(Text(g.plan->hint));
  Exit(signal != 0 ? 128 + signal : code);
}

// Takes one variant as far as it goes. Returns only if its tier can't be had.
void TryVariant(uint32_t index, Supervision& s) {
  g.variant = At<wire::Variant>(g.plan->variants) + index;
  g.fault.error = 0;
  g.wait_status = -1;
  g.leader_gone = false;
  g.server_pid = 0;
  for (int& slot : g.slots) slot = -1;
  g.empty_file = -1;
  MakePointers(g.variant->argv);
  MakePointers(g.variant->envp);
  bool ok = RunSteps(g.variant->keeper, Phase::kKeeper);
  s.init_pid = -1;
  s.init_pidfd = -1;
  if (ok) ok = StartInit(s);
  ReapHelper();
  for (int& slot : g.slots) {
    if (slot >= 0) Close(slot);  // the init has its own copies
  }
  if (!ok && s.init_pid > 0) Call(__NR_pidfd_send_signal, s.init_pidfd, kSigKill, nullptr, 0);
  const bool started = ok && Supervise(s, index);
  if (s.init_pid > 0) ReapAll(s);
  if (started) ReportEnd();
  RemoveCgroups();
  RemovePrivateFolder();
  // Killed from outside, or asked to stop, before the server ran: no reason to try the next.
  if (g.fault.error == 0) Fault(Phase::kNone, -EINTR);
}

}  // namespace

extern "C" [[noreturn]] void BulkheadKeeperMain() {
  g.keeper_pid = static_cast<int>(Call(__NR_getpid));
  MapPlan();
  TakeSignals();
  ReadSecrets();
  Call(__NR_chdir, "/");
  Call(__NR_prctl, PR_SET_NAME, RunMode() ? "bulkhead" : "bulkhead-keeper", 0, 0, 0);
  if (!RunMode()) Call(__NR_setsid);
  ChooseIds();
  ApplyPatches();
  Supervision s = {};
  const uint64_t wanted = SignalBit(kSigTerm) | SignalBit(kSigInt) | SignalBit(kSigHup) | SignalBit(kSigQuit);
  s.signals = static_cast<int>(Call(__NR_signalfd4, -1, &wanted, sizeof wanted, kNonBlock | kCloseOnExec));
  // In every tier: should the init die in tier B or C, its children become ours.
  Call(__NR_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  for (uint32_t i = 0; i < g.plan->variant_count; ++i) {
    TryVariant(i, s);
    if (i + 1 == g.plan->variant_count || !FaultIsOfTier()) ReportFault(i);
  }
  Refuse("it has no variants");
}

}  // namespace bulkhead::launcher::keeper
