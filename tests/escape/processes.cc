// Attacks on processes: the victim is another process of the person; init and keeper are Bulkhead's own (outside, the
// stage has two processes in their places); and what may survive its end.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attacker.h"

namespace bulkhead::escape {
namespace {

pid_t Victim() { return GivenPid("victim"); }
std::string ProcFile(pid_t pid, const char* name) { return "/proc/" + std::to_string(pid) + "/" + name; }

// Harmless, and as much asked of the kernel as any other signal.
constexpr int kSignal = SIGURG;

int Signal(pid_t pid) { return GotIf(kill(pid, kSignal) == 0); }
int SignalThread(pid_t pid) { return GotIf(syscall(SYS_tgkill, pid, pid, kSignal) == 0); }
int SignalTkill(pid_t pid) { return GotIf(syscall(SYS_tkill, pid, kSignal) == 0); }
int SignalQueue(pid_t pid) {
  siginfo_t info = {};
  info.si_signo = kSignal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  return GotIf(syscall(SYS_rt_sigqueueinfo, pid, kSignal, &info) == 0);
}
int PidfdOpen(pid_t pid) { return static_cast<int>(syscall(434, pid, 0)); }
int SignalPidfd(pid_t pid) {
  const int fd = PidfdOpen(pid);
  if (fd < 0) return Held(errno);
  return GotIf(syscall(424, fd, kSignal, nullptr, 0) == 0);
}
int SignalGroup(pid_t pid) { return GotIf(kill(-pid, kSignal) == 0); }
// A descriptor that sends its owner a signal when there is something to read. F_SETOWN and F_SETSIG ask nobody, so that
// what counts is whether it arrives: the victim keeps its signals pending, where the stage sees them.
int SignalByDescriptor(pid_t pid, int number) {
  const int target = PidfdOpen(pid);
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return Held(errno);
  if (fcntl(pair[0], F_SETOWN, pid) != 0) return Held(errno);
  if (number != 0 && fcntl(pair[0], F_SETSIG, number) != 0) return Held(errno);
  if (fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK) != 0) return Held(errno);
  if (write(pair[1], "x", 1) != 1) return Held(errno);
  if (number != SIGKILL) return Got();
  pollfd ended = {target, POLLIN, 0};
  return poll(&ended, 1, 200) == 1 ? Got() : Held("it lives");
}

int Attach(pid_t pid) { return GotIf(ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0); }
unsigned long FirstAddress(pid_t pid) {
  unsigned long address = 0;
  const std::string maps = Slurp(ProcFile(pid, "maps").c_str());
  if (sscanf(maps.c_str(), "%lx", &address) != 1) return 0;
  return address;
}
int OpenMemory(pid_t pid, int flags) {
  const int fd = open(ProcFile(pid, "mem").c_str(), flags | O_CLOEXEC);
  if (fd < 0) return Held(errno);
  char byte;
  const off_t address = static_cast<off_t>(FirstAddress(pid));
  if (address == 0 || pread(fd, &byte, 1, address) != 1) return Held(errno == 0 ? EIO : errno);
  // What was there is put back.
  return GotIf(flags == O_RDONLY || pwrite(fd, &byte, 1, address) == 1);
}
int ReadMemory(pid_t pid) { return OpenMemory(pid, O_RDONLY); }
int WriteMemory(pid_t pid) { return OpenMemory(pid, O_RDWR); }
// EFAULT: there is nothing at that address, which is asked after the permission.
int Copy(pid_t pid, bool write) {
  char byte = 0;
  const iovec local = {&byte, 1}, remote = {nullptr, 1};
  const ssize_t count =
      write ? process_vm_writev(pid, &local, 1, &remote, 1, 0) : process_vm_readv(pid, &local, 1, &remote, 1, 0);
  return GotIf(count >= 0 || errno == EFAULT);
}
int CopyFrom(pid_t pid) { return Copy(pid, false); }
int CopyTo(pid_t pid) { return Copy(pid, true); }
int TakeDescriptor(pid_t pid) {
  const int fd = PidfdOpen(pid);
  if (fd < 0) return Held(errno);
  int error = 0;
  for (int number = 0; number < 64; ++number) {
    if (syscall(438, fd, number, 0) >= 0) return Got();
    if (errno != EBADF) error = errno;
  }
  return Held(error);
}
int ListDescriptors(pid_t pid) {
  DIR* folder = opendir(ProcFile(pid, "fd").c_str());
  if (folder == nullptr) return Held(errno);
  errno = 0;
  int count = 0;
  while (readdir(folder) != nullptr) ++count;
  return GotIf(count > 2);
}
int ReadEnvironment(pid_t pid) { return GotIfReads(ProcFile(pid, "environ").c_str(), Given("canary")); }
int OpenEnvironment(pid_t pid) { return GotIf(open(ProcFile(pid, "environ").c_str(), O_RDONLY | O_CLOEXEC) >= 0); }
int ReadCommandLine(pid_t pid) {
  const std::string text = Slurp(ProcFile(pid, "cmdline").c_str());
  return text.empty() ? Held(ENOENT) : Got();
}
int ReadMaps(pid_t pid) { return FirstAddress(pid) != 0 ? Got() : Held("EACCES or ENOENT"); }
int OpenExecutableForWriting(pid_t pid) {
  // ETXTBSY: it runs just now, and could be had when it doesn't.
  return GotIf(open(ProcFile(pid, "exe").c_str(), O_WRONLY | O_CLOEXEC) >= 0 || errno == ETXTBSY);
}
int LowerLimit(pid_t pid) {
  rlimit limit;
  if (prlimit(pid, RLIMIT_NOFILE, nullptr, &limit) != 0) return Held(errno);
  return GotIf(prlimit(pid, RLIMIT_NOFILE, &limit, nullptr) == 0);  // what it is already
}
int Renice(pid_t pid) {
  return GotIf(setpriority(PRIO_PROCESS, static_cast<id_t>(pid), getpriority(PRIO_PROCESS, static_cast<id_t>(pid))) ==
               0);
}
int SetScheduler(pid_t pid) {
  sched_param parameter = {};
  return GotIf(sched_setscheduler(pid, SCHED_OTHER, &parameter) == 0);
}
int SetIoPriority(pid_t pid) { return GotIf(syscall(SYS_ioprio_set, 1, pid, 0) == 0); }
int SetAffinity(pid_t pid) {
  cpu_set_t set;
  if (sched_getaffinity(pid, sizeof set, &set) != 0) return Held(errno);
  return GotIf(sched_setaffinity(pid, sizeof set, &set) == 0);
}
int SetOomScore(pid_t pid) {
  const int fd = open(ProcFile(pid, "oom_score_adj").c_str(), O_WRONLY | O_CLOEXEC);
  return GotIf(fd >= 0 && write(fd, "0", 1) == 1);
}
int MovePages(pid_t pid) { return GotIf(syscall(SYS_move_pages, pid, 0, nullptr, nullptr, nullptr, 0) == 0); }
int Advise(pid_t pid) {
  const int fd = PidfdOpen(pid);
  if (fd < 0) return Held(errno);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the other process.
  const iovec range = {reinterpret_cast<void*>(FirstAddress(pid)), 4096};
  const long result = syscall(440, fd, &range, 1, 20 /* MADV_COLD */, 0);
  return GotIf(result >= 0);
}
int Compare(pid_t pid) { return GotIf(syscall(SYS_kcmp, getpid(), pid, 1 /* KCMP_VM */, 0, 0) >= 0); }
int RobustList(pid_t pid) {
  void* head;
  size_t length;
  return GotIf(syscall(SYS_get_robust_list, pid, &head, &length) == 0);
}
int JoinNamespaces(pid_t pid) {
  const int fd = open(ProcFile(pid, "ns/uts").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Held(errno);
  return GotIf(setns(fd, CLONE_NEWUTS) == 0);
}

#define ON_VICTIM(name, function) \
  int name() { return function(Victim()); }
#define ON_INIT(name, function) \
  int name() { return function(Init()); }
// Tier A shows no keeper.
#define ON_KEEPER(name, function) \
  int name() { return Keeper() == 0 ? Held("not to be seen") : function(Keeper()); }

ON_VICTIM(SignalVictim, Signal)
ON_VICTIM(SignalVictimThread, SignalThread)
ON_VICTIM(TkillVictim, SignalTkill)
ON_VICTIM(QueueToVictim, SignalQueue)
ON_VICTIM(PidfdSignalVictim, SignalPidfd)
ON_VICTIM(SignalVictimGroup, SignalGroup)
int SignalVictimByIo() { return SignalByDescriptor(Victim(), 0); }
int SignalVictimBySetsig() { return SignalByDescriptor(Victim(), SIGURG); }
int SignalEveryone() { return GotIf(kill(-1, 0) == 0); }
ON_VICTIM(AttachVictim, Attach)
ON_VICTIM(ReadVictimMemory, ReadMemory)
ON_VICTIM(WriteVictimMemory, WriteMemory)
ON_VICTIM(CopyFromVictim, CopyFrom)
ON_VICTIM(CopyToVictim, CopyTo)
ON_VICTIM(TakeVictimDescriptor, TakeDescriptor)
ON_VICTIM(ListVictimDescriptors, ListDescriptors)
ON_VICTIM(ReadVictimEnvironment, ReadEnvironment)
ON_VICTIM(ReadVictimCommandLine, ReadCommandLine)
ON_VICTIM(ReadVictimMaps, ReadMaps)
ON_VICTIM(OpenVictimExecutable, OpenExecutableForWriting)
ON_VICTIM(LowerVictimLimit, LowerLimit)
ON_VICTIM(ReniceVictim, Renice)
ON_VICTIM(SetVictimScheduler, SetScheduler)
ON_VICTIM(SetVictimIoPriority, SetIoPriority)
ON_VICTIM(SetVictimAffinity, SetAffinity)
ON_VICTIM(SetVictimOomScore, SetOomScore)
ON_VICTIM(MoveVictimPages, MovePages)
ON_VICTIM(AdviseVictim, Advise)
ON_VICTIM(CompareVictim, Compare)
ON_VICTIM(VictimRobustList, RobustList)
ON_VICTIM(JoinVictimNamespaces, JoinNamespaces)
int ListProcesses() {
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return Held(errno);
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name == std::to_string(Victim())) return Got();
  }
  return Held(ENOENT);
}

ON_INIT(SignalInit, Signal)
ON_INIT(SignalInitThread, SignalThread)
ON_INIT(QueueToInit, SignalQueue)
ON_INIT(PidfdSignalInit, SignalPidfd)
int KillInitBySetsig() { return SignalByDescriptor(Init(), SIGKILL); }
ON_INIT(AttachInit, Attach)
ON_INIT(ReadInitMemory, ReadMemory)
ON_INIT(WriteInitMemory, WriteMemory)
ON_INIT(CopyFromInit, CopyFrom)
ON_INIT(CopyToInit, CopyTo)
ON_INIT(TakeInitDescriptor, TakeDescriptor)
ON_INIT(ListInitDescriptors, ListDescriptors)
ON_INIT(OpenInitEnvironment, OpenEnvironment)
ON_INIT(ReadInitMaps, ReadMaps)
ON_INIT(OpenInitExecutable, OpenExecutableForWriting)
ON_INIT(LowerInitLimit, LowerLimit)
ON_INIT(ReniceInit, Renice)
ON_INIT(SetInitScheduler, SetScheduler)
ON_INIT(SetInitIoPriority, SetIoPriority)
ON_INIT(SetInitOomScore, SetOomScore)
ON_INIT(JoinInitNamespaces, JoinNamespaces)

ON_KEEPER(SignalKeeper, Signal)
ON_KEEPER(QueueToKeeper, SignalQueue)
ON_KEEPER(PidfdSignalKeeper, SignalPidfd)
int KillKeeperBySetsig() { return Keeper() == 0 ? Held("not to be seen") : SignalByDescriptor(Keeper(), SIGKILL); }
ON_KEEPER(AttachKeeper, Attach)
ON_KEEPER(ReadKeeperMemory, ReadMemory)
ON_KEEPER(WriteKeeperMemory, WriteMemory)
ON_KEEPER(CopyFromKeeper, CopyFrom)
ON_KEEPER(TakeKeeperDescriptor, TakeDescriptor)
ON_KEEPER(ListKeeperDescriptors, ListDescriptors)
ON_KEEPER(OpenKeeperEnvironment, OpenEnvironment)
ON_KEEPER(OpenKeeperExecutable, OpenExecutableForWriting)
ON_KEEPER(LowerKeeperLimit, LowerLimit)
ON_KEEPER(ReniceKeeper, Renice)
ON_KEEPER(SetKeeperScheduler, SetScheduler)

// ---- Shared by all processes of a user or of the machine

int AddKey() { return GotIf(syscall(SYS_add_key, "user", "bulkhead-escape", "x", 1, -4 /* user */) >= 0); }
int SearchKeyring() { return GotIf(syscall(SYS_keyctl, 0 /* get id */, -4 /* user */, 1) >= 0); }
// ENOKEY: there is none of that name, which was looked for.
int RequestKey() {
  return GotIf(syscall(SYS_request_key, "user", "bulkhead-escape", nullptr, 0) >= 0 || errno == ENOKEY);
}
int FindSharedMemory() { return GotIf(shmget(static_cast<key_t>(atoi(Given("ipc_key"))), 0, 0) >= 0); }
int FindSemaphores() { return GotIf(semget(static_cast<key_t>(atoi(Given("ipc_key"))), 0, 0) >= 0); }
int FindMessages() { return GotIf(msgget(static_cast<key_t>(atoi(Given("ipc_key"))), 0) >= 0); }
int FindPosixQueue() { return GotIf(syscall(SYS_mq_open, Given("queue"), O_RDONLY, 0, nullptr) >= 0); }

// ---- Surviving. Each leaves a process with the stage's token among its arguments; the stage looks for it afterwards.

[[noreturn]] void LiveOn(bool stopped = false) {
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1}) signal(number, SIG_IGN);
  for (int fd = 0; fd < 16; ++fd) close(fd);
  if (stopped) raise(SIGSTOP);
  while (true) pause();
}
int AfterReady(int pipe_end, const char* how) {
  char byte;
  return read(pipe_end, &byte, 1) == 1 ? Got(how) : Held("the child");
}
int LeaveDaemon() {
  int ready[2];
  if (pipe(ready) != 0) return Held(errno);
  const pid_t middle = fork();
  if (middle == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    setsid();
    prctl(PR_SET_PDEATHSIG, 0);
    if (write(ready[1], "x", 1) == 1) LiveOn();
    _exit(0);
  }
  close(ready[1]);
  waitpid(middle, nullptr, 0);
  return AfterReady(ready[0], "a daemon");
}
int LeaveStopped() {
  int ready[2];
  if (pipe(ready) != 0) return Held(errno);
  if (fork() == 0) {
    setsid();
    if (write(ready[1], "x", 1) == 1) LiveOn(true);
    _exit(0);
  }
  close(ready[1]);
  return AfterReady(ready[0], "a stopped process");
}
int LeaveMany() {
  int ready[2];
  if (pipe(ready) != 0) return Held(errno);
  for (int i = 0; i < 20; ++i) {
    if (fork() == 0) {
      setsid();
      if (fork() != 0) _exit(0);
      if (write(ready[1], "x", 1) == 1) LiveOn();
      _exit(0);
    }
  }
  close(ready[1]);
  return AfterReady(ready[0], "20 daemons");
}
int LeaveSubreaper() {
  int ready[2];
  if (pipe(ready) != 0) return Held(errno);
  if (fork() == 0) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);  // collects the orphans in our place
    setsid();
    if (fork() == 0) {
      setsid();
      if (fork() != 0) _exit(0);
      if (write(ready[1], "x", 1) != 1) _exit(0);
    }
    LiveOn();
  }
  close(ready[1]);
  return AfterReady(ready[0], "a subreaper with a daemon");
}
// A new process by clone that is its parent's sibling, so that nobody waits for it.
int LeaveSibling() {
  const long child = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (child == 0) {
    setsid();
    LiveOn();
  }
  return GotIf(child > 0);
}

}  // namespace

const Attack kProcessAttacks[] = {
    {"signal_victim", SignalVictim},
    {"tgkill_victim", SignalVictimThread},
    {"tkill_victim", TkillVictim},
    {"sigqueue_victim", QueueToVictim},
    {"pidfd_signal_victim", PidfdSignalVictim},
    {"signal_victims_group", SignalVictimGroup},
    {"sigio_victim", SignalVictimByIo},
    {"setsig_victim", SignalVictimBySetsig},
    {"signal_everyone", SignalEveryone},
    {"ptrace_victim", AttachVictim},
    {"read_victims_memory", ReadVictimMemory},
    {"write_victims_memory", WriteVictimMemory},
    {"process_vm_readv_victim", CopyFromVictim},
    {"process_vm_writev_victim", CopyToVictim},
    {"pidfd_getfd_victim", TakeVictimDescriptor},
    {"list_victims_descriptors", ListVictimDescriptors},
    {"read_victims_environment", ReadVictimEnvironment},
    {"read_victims_command_line", ReadVictimCommandLine},
    {"read_victims_maps", ReadVictimMaps},
    {"open_victims_executable", OpenVictimExecutable},
    {"prlimit_victim", LowerVictimLimit},
    {"renice_victim", ReniceVictim},
    {"sched_setscheduler_victim", SetVictimScheduler},
    {"ioprio_set_victim", SetVictimIoPriority},
    {"sched_setaffinity_victim", SetVictimAffinity},
    {"oom_score_victim", SetVictimOomScore},
    {"move_pages_victim", MoveVictimPages},
    {"process_madvise_victim", AdviseVictim},
    {"kcmp_victim", CompareVictim},
    {"robust_list_victim", VictimRobustList},
    {"setns_victim", JoinVictimNamespaces},
    {"list_processes", ListProcesses},
    {"signal_init", SignalInit},
    {"tgkill_init", SignalInitThread},
    {"sigqueue_init", QueueToInit},
    {"pidfd_signal_init", PidfdSignalInit},
    {"setsig_init", KillInitBySetsig},
    {"ptrace_init", AttachInit},
    {"read_inits_memory", ReadInitMemory},
    {"write_inits_memory", WriteInitMemory},
    {"process_vm_readv_init", CopyFromInit},
    {"process_vm_writev_init", CopyToInit},
    {"pidfd_getfd_init", TakeInitDescriptor},
    {"list_inits_descriptors", ListInitDescriptors},
    {"open_inits_environment", OpenInitEnvironment},
    {"read_inits_maps", ReadInitMaps},
    {"open_inits_executable", OpenInitExecutable},
    {"prlimit_init", LowerInitLimit},
    {"renice_init", ReniceInit},
    {"sched_setscheduler_init", SetInitScheduler},
    {"ioprio_set_init", SetInitIoPriority},
    {"oom_score_init", SetInitOomScore},
    {"setns_init", JoinInitNamespaces},
    {"signal_keeper", SignalKeeper},
    {"sigqueue_keeper", QueueToKeeper},
    {"pidfd_signal_keeper", PidfdSignalKeeper},
    {"setsig_keeper", KillKeeperBySetsig},
    {"ptrace_keeper", AttachKeeper},
    {"read_keepers_memory", ReadKeeperMemory},
    {"write_keepers_memory", WriteKeeperMemory},
    {"process_vm_readv_keeper", CopyFromKeeper},
    {"pidfd_getfd_keeper", TakeKeeperDescriptor},
    {"list_keepers_descriptors", ListKeeperDescriptors},
    {"open_keepers_environment", OpenKeeperEnvironment},
    {"open_keepers_executable", OpenKeeperExecutable},
    {"prlimit_keeper", LowerKeeperLimit},
    {"renice_keeper", ReniceKeeper},
    {"sched_setscheduler_keeper", SetKeeperScheduler},
    {"add_key", AddKey},
    {"keyctl", SearchKeyring},
    {"request_key", RequestKey},
    {"sysv_shared_memory", FindSharedMemory},
    {"sysv_semaphores", FindSemaphores},
    {"sysv_messages", FindMessages},
    {"posix_message_queue", FindPosixQueue},
    {"leave_daemon", LeaveDaemon},
    {"leave_stopped", LeaveStopped},
    {"leave_many", LeaveMany},
    {"leave_subreaper", LeaveSubreaper},
    {"leave_sibling", LeaveSibling},
    {nullptr, nullptr},
};

}  // namespace bulkhead::escape
