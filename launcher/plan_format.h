// The plan as the keeper reads it: plain data in a sealed memfd, written by the plan builder and never parsed as text.
// Shared by the host's side (ordinary C++) and the keeper (freestanding): nothing but integers and arrays here.
//
// Everything is in the byte order and alignment of the machine, since writer and reader are one build. Positions are
// offsets from the start of the plan; 0 means none. Texts end in a zero byte. The keeper maps the plan privately, so it
// may write pointers and process ids into its own copy; nobody else sees them.
//
// To add a step: a kind and a union member here, a case in keeper/steps.cc, a rule in the plan builder, a place in the
// order test, and a test in which dropping just that step lets an attack through.
#ifndef BULKHEAD_LAUNCHER_PLAN_FORMAT_H_
#define BULKHEAD_LAUNCHER_PLAN_FORMAT_H_

#include <stdint.h>

namespace bulkhead::launcher::wire {

inline constexpr uint32_t kMagic = 0x4b4c5542;  // "BULK"
inline constexpr uint32_t kVersion = 1;

// The descriptors that the keeper starts with, beside 0, 1 and 2.
inline constexpr int kPlanFd = 3;
inline constexpr int kControlFd = 4;  // library: the control socket; run: the parent's pidfd, if kWatchParent
inline constexpr int kReportFd = 5;   // run: where the report goes, if kHasReport
// The host's pidfd. Library: so that a fork of the host keeps no server alive. Run: of the host behind the parent, if
// kWatchHost.
inline constexpr int kHostPidFd = 6;
// Run: what the kStderr step makes the server's fd 2; ours stays for our own sentences.
inline constexpr int kServerStderrFd = 7;
inline constexpr int kSecretsFd = 8;  // a pipe that holds the secrets, if the plan has any

inline constexpr int kSecretsBytesMax = 64 << 10;  // all of them, with their names: what a pipe holds
inline constexpr int kTreeSlotsMax = 96;           // descriptors that a keeper step hands to an init step
inline constexpr int kCgroupSlot = 96, kInitCgroupSlot = 97;
inline constexpr int kSlotsMax = 98;
inline constexpr int kPlanBytesMax = 8 << 20;  // arguments and environment may be large; everything else is small

using Offset = uint32_t;

enum PlanFlags : uint32_t {
  kRunMode = 1,      // stdio passes straight through; failures are printed; watch fds 0 and 1 and the parent
  kWatchParent = 2,  // kControlFd is the parent's pidfd
  kHasReport = 4,
  kWatchHost = 8,  // kHostPidFd is the host's pidfd; without kRunMode it always is
};

// As whom the server runs.
enum class RunAs : uint32_t {
  kCaller = 0,     // the ordinary user who starts it
  kFixed = 1,      // started as root: run_uid and run_gid
  kPerLaunch = 2,  // started as root: kPerLaunchUidBase plus bits of the process id namespace and the keeper's pid
};

// Uids 0x70000000 to 0x77ffffff: above every range that distributions, systemd and container tools hand out, below
// 2^31. The low 22 bits are the keeper's pid, unique among the living of its namespace; the next 5 tell namespaces
// apart.
inline constexpr uint32_t kPerLaunchUidBase = 0x70000000, kPerLaunchUids = 0x08000000;

// What to say when a step fails with `error`; the entry with error 0 ends the list and stands for every other error.
struct Failure {
  int32_t error;
  uint16_t exit_code;
  uint16_t show_error;  // 1: ": " and the kernel's name of the error follow
  Offset text;
  Offset subject = 0, rest = 0;  // follow the text; apart, so that what many sentences share is stored once
};

enum class StepKind : uint16_t {
  kNothing = 0,
  // Keeper, before the jail exists.
  kMakeCgroup,
  kOwnerNamespace,  // root: a user namespace that shows `owner`'s files as the server's
  kOpenTree,        // root: a detached, maybe idmapped, mount of a path, for a later kBind
  kPrivateFolder,   // tier B and C: a new folder that lives as long as the server
  // Jail init or the server's process: before anything else.
  kEnterCgroup,
  // Jail init, in the new namespaces.
  kHostname,
  kLoopback,
  kRoot,  // an empty tmpfs becomes the working folder; paths of the steps below are relative to it
  kFolder,
  kSymlink,
  kFile,
  kBind,
  kEmptyFile,  // what a hidden file shows; made while the working folder is the empty root, for the kCover steps
  kCover,      // over what is mounted already
  kTmpfs,
  kProc,
  kReadOnlyProcSys,  // where /proc itself is not read-only
  kPivot,
  kReadOnlyRoot,
  kSeal,      // the init: not dumpable
  kChildren,  // tiers B and C: the kernel lists a process's children, or what the server leaves behind can't be ended
  kDropCapabilities,
  // The server's process, before exec.
  kSession,
  kIds,
  kLimit,
  kNoNewPrivs,
  kWorkingFolder,
  kStderr,
  kCloseDescriptors,
  kLandlock,
  kSeccomp,
  kCheckFile,  // a pinned file is what it was when its content was read
  kExec,
};

enum StepFlags : uint16_t {
  kNeedsNamespaces = 1,  // a failure here means that this tier can't be had: the next variant may be tried
};

// A path and what was found there when the plan was made. The keeper or init opens it again without following links
// and compares, so that what is mounted is what was checked.
struct Pinned {
  Offset path;
  uint32_t dev_major, dev_minor;
  uint32_t is_folder;
  uint64_t inode;
};

struct OwnerNamespace {
  uint32_t owner_uid, owner_gid;
  uint32_t slot;
};
struct OpenTree {
  Pinned source;
  uint64_t mount_attributes;  // MOUNT_ATTR_*
  int32_t owner_slot;         // an OwnerNamespace's slot, or -1: no mapping
  uint32_t slot;
};
struct CgroupFile {
  Offset name, text;
};
struct MakeCgroup {
  Offset folder;
  Offset files;  // CgroupFile[], written in this order
  uint32_t file_count;
  uint32_t slot;  // of its cgroup.procs, kCgroupSlot or kInitCgroupSlot
};
struct PathMode {
  Offset path;
  uint32_t mode;
};
struct PathText {
  Offset path;
  Offset text;
};
struct ProcMount {
  Offset path;
  uint32_t flags;  // MS_*
};
struct FileContent {
  Offset path;
  uint32_t mode;
  Offset content;
  uint32_t bytes;
};
struct Bind {
  Pinned source;
  Offset target;
  int32_t slot;  // an OpenTree's slot, or -1: open `source` here
  uint64_t mount_attributes;
};
struct FileState {
  Offset path;  // links are followed, as exec does
  uint32_t dev_major, dev_minor;
  uint32_t ctime_nanoseconds;
  uint64_t inode, bytes;
  int64_t ctime_seconds;
};
enum class CoverKind : uint32_t { kPin, kProtect, kHide };
struct Cover {
  Pinned where;  // as the jail shows it
  CoverKind how;
  uint32_t unused;
};
struct LimitPair {
  uint32_t resource;  // RLIMIT_*
  uint32_t unused;
  uint64_t soft, hard;
};
struct LandlockRule {
  Pinned where;
  uint64_t access;
  uint32_t is_grant;  // 0: a place of the system, opened by its name alone, or, if where.is_folder, a folder of ours
  uint32_t unused;
};
struct Landlock {
  uint64_t handled_fs, handled_net, scoped;
  uint32_t attribute_bytes;  // how much of the attribute this ABI knows
  Offset rules;
  uint32_t rule_count;
};
struct Seccomp {
  Offset filter;  // struct sock_filter[]
  uint32_t count;
};

struct Step {
  StepKind kind;
  uint16_t flags;
  Offset failures;  // Failure[]
  union {
    OwnerNamespace owner;
    OpenTree tree;
    MakeCgroup cgroup;
    PathMode path_mode;  // kPrivateFolder, kFolder
    PathText path_text;  // kHostname (text), kSymlink, kTmpfs (text: options), kReadOnlyProcSys, kWorkingFolder, kExec,
                         // kStderr
    ProcMount proc;
    FileContent file;
    Bind bind;
    Cover cover;
    FileState file_state;
    LimitPair limit;
    Landlock landlock;
    Seccomp seccomp;
    uint64_t words[6];  // kEnterCgroup: the slot; kDropCapabilities: what is kept
  };
};
static_assert(sizeof(Step) == 56, "the layout is shared by two compilations");

struct StepList {
  Offset steps;
  uint32_t count;
};

enum class Phase : uint32_t { kNone = 0, kKeeper, kNamespaces, kInit, kStartServer, kServer };

// One tier's way to do it.
struct Variant {
  uint32_t tier;          // 'A', 'B', 'C'
  uint32_t namespaces;    // CLONE_NEW*; 0: no jail, two subreapers
  Offset clone_failures;  // Failure[] for the clone and the id maps
  Offset start_failures;  // Failure[] for the clone of the server's process
  StepList keeper, init, server;
  Offset argv, envp;      // uint64_t[], offsets that the keeper turns into pointers; ends with 0
                          // kSecretMark + n in envp: the secret n, counted from 0
  Offset private_folder;  // removed when the tree is gone; 0: none
  Offset cgroup;          // the server's group, removed when the tree is gone; 0: none
  Offset init_cgroup;     // the jail init's, likewise
  Offset report;          // JSON text up to, and without, the tail that the keeper appends
  uint32_t report_bytes;
};

inline constexpr uint64_t kSecretMark = 1ull << 63;

// Values that only the keeper knows, to be written into its copy of the plan.
enum class PatchKind : uint32_t {
  kLaunchId = 1,  // 16 hexadecimal digits, new for each launch, at `at`
  kKeeperName,    // 16 hexadecimal digits: the inode of its process id namespace, its pid
  kKeeperPid,     // 32 bits
  kKeeperGroup,   // 32 bits: minus the process group
  kInitPid,
  kInitGroup,
};
struct Patch {
  PatchKind kind;
  Offset at;
};
inline constexpr int kLaunchIdDigits = 16;

struct Plan {
  uint32_t magic, version, bytes, flags;
  uint32_t stdin_grace_ms, term_grace_ms;
  RunAs run_as;
  uint32_t run_uid, run_gid;        // RunAs::kFixed
  uint32_t inside_uid, inside_gid;  // what the server sees in tier A
  uint32_t variant_count;
  Offset variants;  // Variant[]
  uint32_t secret_count;
  uint32_t patch_count;
  Offset patches;  // Patch[]
  Offset hint;     // printed in run mode when the server ends with a code other than 0; 0: none
};

// The control socket (SOCK_SEQPACKET). Keeper to host:
enum class Event : uint32_t { kStarted = 1, kFailed, kExited };
struct Message {
  Event event;
  uint32_t variant;                                 // kStarted, kFailed
  Phase phase;                                      // kFailed
  uint32_t step;                                    // kFailed
  int32_t error;                                    // kFailed
  int32_t wait_status;                              // kExited: as wait(2) gives it; -1: not known
  uint64_t user_us, system_us, max_resident_bytes;  // kExited
  uint64_t memory_kills, refused_processes;         // kExited: of the cgroup; 0 without one
};
// Host to keeper, one byte: the ladder from its first rung, or SIGKILL at once. Closing the socket is kStop.
inline constexpr char kStop = 's';
inline constexpr char kKill = 'k';

}  // namespace bulkhead::launcher::wire

#endif  // BULKHEAD_LAUNCHER_PLAN_FORMAT_H_
