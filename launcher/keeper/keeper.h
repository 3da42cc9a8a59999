// The keeper and the jail init: what they share. One small static program without libc; both run in one address space
// (the init is cloned with CLONE_VM), so that two processes beside a server cost little more than one. What each writes
// is said below; everything else is read-only once the plan is mapped.
#ifndef BULKHEAD_LAUNCHER_KEEPER_KEEPER_H_
#define BULKHEAD_LAUNCHER_KEEPER_KEEPER_H_

#include "launcher/keeper/sys.h"
#include "launcher/plan_format.h"

namespace bulkhead::launcher::keeper {

// Where something failed. error 0: nothing did.
struct Fault {
  wire::Phase phase;
  uint32_t step;
  int32_t error;  // positive
};

// What init tells the keeper, one byte each on the socket between them, and back.
inline constexpr char kInitStarted = 'S';     // the server's exec succeeded
inline constexpr char kInitLeaderGone = 'X';  // the server itself ended: `wait_status` is set
inline constexpr char kKeeperGo = 'g';        // root: the id maps are written
inline constexpr char kKeeperLadder = 'l';    // the ladder has begun: don't kill the rest when the server itself ends
inline constexpr char kKeeperTerm = 't';      // SIGTERM to all

struct State {
  // Set by the keeper before the init starts.
  char* plan_base;
  char* secrets;  // texts, one after the other; wiped once the server runs; null: none
  const wire::Plan* plan;
  const wire::Variant* variant;
  uint32_t run_uid, run_gid;  // as whom the server runs, outside; meaningful when started as root
  bool root;                  // the server runs under another uid than ours
  int init_socket, keeper_socket;
  int keeper_pid;
  int slots[wire::kSlotsMax];
  long helper_pid;       // of a step that needed a process for a moment; killed, to be reaped by ReapHelper
  bool stderr_is_stuck;  // nobody reads it
  int empty_file;        // of kEmptyFile, for kCover; the init's; -1: none
  // Set by the init (and by the server's process before its exec, which shares the memory too).
  volatile Fault fault;
  volatile int server_pid;
  volatile int wait_status;  // of the server; -1: not known
  volatile bool leader_gone;
};
extern State g;

template <typename T>
inline T* At(wire::Offset offset) {
  return reinterpret_cast<T*>(g.plan_base + offset);
}
inline char* Text(wire::Offset offset) { return g.plan_base + offset; }

// One step of the plan: 0, or minus the error. See steps.cc.
long RunStep(const wire::Step& step);
// All steps of a list; on a failure fills g.fault and returns false.
bool RunSteps(const wire::StepList& list, wire::Phase phase);

// Of the server's cgroup, where the plan has one. It must be made before the others can find it.
long MakeCgroup(const wire::MakeCgroup& step);
// The calling process; the group was made before the namespaces.
long EnterCgroup(uint64_t slot);
// SIGKILL to all in it. On top of what ends the tree, never instead: it needs the host's file tree.
void KillCgroup();
struct CgroupEvents {
  uint64_t memory_kills;       // processes that the kernel killed since the tree reached its limit
  uint64_t refused_processes;  // how often a new process was refused
};
CgroupEvents ReadCgroup();
// When the tree is gone: what is left in a group can't be removed with it.
void RemoveCgroups();

// The death of a process takes longer than what comes next, which need not wait for it.
void ReapHelper();

// Entry points on stacks of their own; neither returns.
void InitMain();

// Kills and reaps every direct child until there are none. True when `waited_for` was among them (its status is then in
// g.wait_status). Children of children come to us as they lose their parents, because we are PID 1 or a child
// subreaper; a direct child that is not reaped can't have its pid reused, so signalling by pid is safe here.
void KillAndReapAll();
// An error if it couldn't, for want of the list that it works by.
long LookForChildren();
// -ESRCH where /proc is another process id namespace's: our numbers are then other processes' there. Ask before what is
// found by a number in it is believed or written.
long CheckProc();
// SIGTERM, then SIGCONT, to every process below us; pids are pinned by pidfd and checked again before the signal.
void TerminateAllBelow();
// Reaps what has ended; notes the server's status. True while there are children.
bool ReapEnded();

// Removes the folder that lives as long as the server (tiers B and C), as the server's user. Call it when the tree is
// gone.
void RemovePrivateFolder();

// Text, freestanding.
unsigned long Length(const char* text);
char* PutText(char* out, const char* text);
char* PutNumber(char* out, uint64_t number);
const char* ErrorName(int error);

}  // namespace bulkhead::launcher::keeper

#endif  // BULKHEAD_LAUNCHER_KEEPER_KEEPER_H_
