// One loop, one switch: the steps of a plan. Nothing here decides; nothing here allocates. What may be called: system
// calls only, since some of it runs between vfork and exec in a process that shares our memory.
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/stat.h>

#include "launcher/keeper/keeper.h"

namespace bulkhead::launcher::keeper {
namespace {

using wire::Step;
using wire::StepKind;

// mount(2) and umount2(2) flags, from linux/mount.h of libc's side.
constexpr unsigned long kMountRdOnly = 1, kMountNoSuid = 2, kMountNoDev = 4, kMountNoExec = 8, kMountRemount = 32,
                        kMountBind = 4096, kMountPrivate = 1u << 18;
constexpr int kUnmountDetach = 2;
constexpr int kFsConfigSetString = 1, kFsConfigCreate = 6;
constexpr int kLandlockRulePathBeneath = 1;
constexpr int kCloseRangeCloseOnExec = 4;

#define RETURN_IF_ERROR(expression)     \
  do {                                  \
    const long error_ = (expression);   \
    if (IsError(error_)) return error_; \
  } while (0)

// Paths of the plan are absolute; in the new root, while it is the working folder, they are relative.
const char* Inside(wire::Offset path) { return Text(path) + 1; }

// Opens what the plan names, following no link, and checks that it is what the plan maker saw. `path`: where it is,
// from the working folder if that is not absolute. A filter may refuse openat2 (our own ENOSYS in a server that root
// started, older containers' EPERM): then the check alone has to do, where there is something to compare with.
long OpenPinned(const wire::Pinned& pinned, const char* path) {
  open_how how = {};
  how.flags = kPathOnly | kCloseOnExec;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  long fd = Call(__NR_openat2, kAtFdCwd, path, &how, sizeof how);
  if ((fd == -ENOSYS || fd == -EPERM) && pinned.inode != 0) {
    fd = Call(__NR_openat, kAtFdCwd, path, kPathOnly | kNoFollow | kCloseOnExec);
  }
  if (IsError(fd)) return fd;
  struct statx found;
  const long error = Call(__NR_statx, fd, "", kAtEmptyPath, STATX_INO | STATX_TYPE, &found);
  if (IsError(error)) {
    Close(fd);
    return error;
  }
  if (pinned.inode == 0) return fd;  // a folder that was made after the plan, by us
  if (found.stx_ino != pinned.inode || found.stx_dev_major != pinned.dev_major ||
      found.stx_dev_minor != pinned.dev_minor) {
    Close(fd);
    return -ESTALE;
  }
  return fd;
}

// A detached copy of the mount at `pinned` with `attributes` on it and on everything mounted below it.
long CloneTree(const wire::Pinned& pinned, uint64_t attributes) {
  const long fd = OpenPinned(pinned, Text(pinned.path));
  if (IsError(fd)) return fd;
  const long tree = Call(__NR_open_tree, fd, "",
                         OPEN_TREE_CLONE | kCloseOnExec | kAtEmptyPath | (pinned.is_folder ? kAtRecursive : 0));
  Close(fd);
  if (IsError(tree)) return tree;
  mount_attr attr = {};
  attr.attr_set = attributes;
  // A copy made outside the jail's namespaces is a peer of the original: what we mount on it later would show on the
  // host. And what the host mounts later on the original would be in the jail, without these attributes.
  attr.propagation = kMountPrivate;
  const long error = Call(__NR_mount_setattr, tree, "", kAtEmptyPath | kAtRecursive, &attr, sizeof attr);
  if (IsError(error)) {
    Close(tree);
    return error;
  }
  return tree;
}

long WriteFile(const char* path, const char* text, unsigned long bytes) {
  const long fd = Call(__NR_openat, kAtFdCwd, path, kWriteOnly | kCloseOnExec);
  if (IsError(fd)) return fd;
  const long written = Call(__NR_write, fd, text, bytes);
  Close(fd);
  return written;
}

char* PutRange(char* out, uint64_t inside, uint64_t outside, uint64_t count) {
  if (count == 0) return out;
  out = PutNumber(out, inside);
  *out++ = ' ';
  out = PutNumber(out, outside);
  *out++ = ' ';
  out = PutNumber(out, count);
  *out++ = '\n';
  return out;
}

// Every id as it is, but `owner` shown as `shown` (whose own files then have no owner inside). A map of one line would
// make the files of all others unusable even for rename and unlink (EOVERFLOW).
unsigned long PutOwnerMap(char* out, uint32_t owner, uint32_t shown) {
  char* at = out;
  const uint64_t low = owner < shown ? owner : shown, high = owner < shown ? shown : owner, all = 0xffffffff;
  if (owner == shown) return PutRange(at, 0, 0, all) - out;
  at = PutRange(at, 0, 0, low);
  at = PutRange(at, owner, shown, 1);
  at = PutRange(at, low + 1, low + 1, high - low - 1);
  at = PutRange(at, high + 1, high + 1, all - high - 1);
  return at - out;
}

[[noreturn]] void Pause() {
  Call(__NR_prctl, PR_SET_PDEATHSIG, kSigKill);
  for (;;) Call(__NR_ppoll, nullptr, 0, nullptr, nullptr);
}

long OwnerNamespace(const wire::OwnerNamespace& step) {
  if (const long error = CheckProc(); IsError(error)) return error;
  ReapHelper();  // it had this stack
  alignas(16) static char stack[1024];
  int pidfd = -1;
  const long pid =
      BulkheadClone(CLONE_VM | CLONE_NEWUSER | CLONE_PIDFD | kSigChld, stack + sizeof stack, &pidfd, Pause);
  if (IsError(pid)) return pid;
  char path[48], map[160];
  long result = 0;
  struct Item {
    const char* name;
    uint32_t owner, shown;
  };
  const Item items[2] = {{"/uid_map", step.owner_uid, g.run_uid}, {"/gid_map", step.owner_gid, g.run_gid}};
  for (const Item& item : items) {
    *PutText(PutNumber(PutText(path, "/proc/"), pid), item.name) = 0;
    if (!IsError(result)) result = WriteFile(path, map, PutOwnerMap(map, item.owner, item.shown));
  }
  *PutText(PutNumber(PutText(path, "/proc/"), pid), "/ns/user") = 0;
  if (!IsError(result)) result = Call(__NR_openat, kAtFdCwd, path, kReadOnly | kCloseOnExec);
  Call(__NR_pidfd_send_signal, pidfd, kSigKill, nullptr, 0);
  g.helper_pid = pid;
  Close(pidfd);
  if (IsError(result)) return result;
  g.slots[step.slot] = static_cast<int>(result);
  return 0;
}

long OpenTree(const wire::OpenTree& step) {
  const long tree = CloneTree(step.source, step.mount_attributes);
  if (IsError(tree)) return tree;
  if (step.owner_slot >= 0) {
    // Not recursive: a file system below that can't be mapped would make the whole call fail; it then keeps its owners.
    mount_attr attr = {};
    attr.attr_set = MOUNT_ATTR_IDMAP;
    attr.userns_fd = static_cast<uint64_t>(g.slots[step.owner_slot]);
    const long error = Call(__NR_mount_setattr, tree, "", kAtEmptyPath, &attr, sizeof attr);
    if (IsError(error)) {
      Close(tree);
      return error;
    }
  }
  g.slots[step.slot] = static_cast<int>(tree);
  return 0;
}

// ESTALE if others could put something else in the place of what is made at `path`: those who may write in its folder,
// where that has no sticky bit (inode(7)).
long CheckParent(char* path) {
  char* slash = path + Length(path);
  while (slash > path && *slash != '/') --slash;
  *slash = 0;
  struct statx found;
  const long error = Call(__NR_statx, kAtFdCwd, path, 0, STATX_MODE, &found);
  *slash = '/';
  if (IsError(error)) return error;
  return (found.stx_mode & 022) != 0 && (found.stx_mode & 01000) == 0 ? -ESTALE : 0;
}

long PrivateFolder(const wire::PathMode& step) {
  RETURN_IF_ERROR(CheckParent(Text(step.path)));
  const long umask = Call(__NR_umask, 0);
  const long made = Call(__NR_mkdirat, kAtFdCwd, Text(step.path), step.mode);
  Call(__NR_umask, umask);
  if (IsError(made) || !g.root) return made;
  const long error = Call(__NR_fchownat, kAtFdCwd, Text(step.path), g.run_uid, g.run_gid, kAtSymlinkNoFollow);
  // RemovePrivateFolder is the server's user, who could not remove it.
  if (IsError(error)) Call(__NR_unlinkat, kAtFdCwd, Text(step.path), kAtRemoveDir);
  return error;
}

long Loopback() {
  const long fd = Call(__NR_socket, 2 /* AF_INET */, 2 /* SOCK_DGRAM */ | kCloseOnExec, 0);
  if (IsError(fd)) return fd;
  struct {
    char name[16];
    short flags;
    char unused[22];
  } request = {{'l', 'o'}, 1 | 64 /* IFF_UP | IFF_RUNNING */, {}};
  const long error = Call(__NR_ioctl, fd, 0x8914 /* SIOCSIFFLAGS */, &request);
  Close(fd);
  return error;
}

// A file system in memory that is mounted nowhere yet.
long NewTmpfs(const char* mode, const char* size, uint64_t attributes) {
  const long context = Call(__NR_fsopen, "tmpfs", FSOPEN_CLOEXEC);
  if (IsError(context)) return context;
  RETURN_IF_ERROR(Call(__NR_fsconfig, context, kFsConfigSetString, "mode", mode, 0));
  RETURN_IF_ERROR(Call(__NR_fsconfig, context, kFsConfigSetString, "size", size, 0));
  RETURN_IF_ERROR(Call(__NR_fsconfig, context, kFsConfigCreate, nullptr, nullptr, 0));
  const long mounted = Call(__NR_fsmount, context, FSMOUNT_CLOEXEC, attributes);
  Close(context);
  return mounted;
}

// fsmount over "/": no folder is needed for it, and nothing is hidden from lookups of absolute paths, which still begin
// at the old root.
long NewRoot() {
  const long mounted = NewTmpfs("0755", "4m", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (IsError(mounted)) return mounted;
  RETURN_IF_ERROR(Call(__NR_move_mount, mounted, "", kAtFdCwd, "/", MOVE_MOUNT_F_EMPTY_PATH));
  RETURN_IF_ERROR(Call(__NR_fchdir, mounted));
  Close(mounted);
  return 0;
}

// Stays open, since its name will be covered.
long EmptyFile(const char* name) {
  RETURN_IF_ERROR(Call(__NR_mknodat, kAtFdCwd, name, kRegularFile, 0));
  const long fd = Call(__NR_openat, kAtFdCwd, name, kPathOnly | kCloseOnExec);
  if (IsError(fd)) return fd;
  g.empty_file = static_cast<int>(fd);
  return 0;
}

long File(const wire::FileContent& step) {
  if (step.bytes == 0) return Call(__NR_mknodat, kAtFdCwd, Inside(step.path), kRegularFile | step.mode, 0);
  const long fd =
      Call(__NR_openat, kAtFdCwd, Inside(step.path), kWriteOnly | kCreate | kExclusive | kCloseOnExec, step.mode);
  if (IsError(fd)) return fd;
  const long written = Call(__NR_write, fd, Text(step.content), step.bytes);
  Close(fd);
  if (IsError(written)) return written;
  return written == static_cast<long>(step.bytes) ? 0 : -ENOSPC;
}

long Bind(const wire::Bind& step) {
  const long tree = step.slot >= 0 ? g.slots[step.slot] : CloneTree(step.source, step.mount_attributes);
  if (IsError(tree)) return tree;
  // All of "/" is granted: then that is where the steps below go on.
  const bool is_root = *Inside(step.target) == 0;
  long error = Call(__NR_move_mount, tree, "", kAtFdCwd, is_root ? "." : Inside(step.target), MOVE_MOUNT_F_EMPTY_PATH);
  if (is_root && !IsError(error)) error = Call(__NR_fchdir, tree);
  Close(tree);
  return error;
}

// What is seen in place of `where`, which is open as `fd`; mounted nowhere yet.
long CoverTree(const wire::Cover& step, long fd) {
  constexpr uint64_t kNothing = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  const bool hide = step.how == wire::CoverKind::kHide;
  if (hide && step.where.is_folder) return NewTmpfs("0", "4k", kNothing);
  // With what is mounted below it: else a grant inside would be gone.
  const long tree = Call(__NR_open_tree, hide ? g.empty_file : fd, "",
                         OPEN_TREE_CLONE | kCloseOnExec | kAtEmptyPath | (step.where.is_folder ? kAtRecursive : 0));
  if (IsError(tree) || step.how == wire::CoverKind::kPin) return tree;
  mount_attr attr = {};
  attr.attr_set = hide ? kNothing : MOUNT_ATTR_RDONLY;
  const long error = Call(__NR_mount_setattr, tree, "", kAtEmptyPath | kAtRecursive, &attr, sizeof attr);
  if (!IsError(error)) return tree;
  Close(tree);
  return error;
}

// The place is opened first and mounted on by its descriptor: a link that takes its place meanwhile leads nowhere.
long Cover(const wire::Cover& step) {
  const long fd = OpenPinned(step.where, Inside(step.where.path));
  if (IsError(fd)) return fd;
  const long tree = CoverTree(step, fd);
  if (IsError(tree)) return tree;
  const long error = Call(__NR_move_mount, tree, "", fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
  Close(tree);
  Close(fd);
  return error;
}

long Pivot() {
  if (g.empty_file >= 0) Close(g.empty_file);
  RETURN_IF_ERROR(Call(__NR_pivot_root, ".", "."));
  RETURN_IF_ERROR(Call(__NR_umount2, ".", kUnmountDetach));
  return Call(__NR_chdir, "/");
}

// A mount of its own, on itself: the flags of the one around it stay as they are.
long ReadOnly(const char* folder) {
  RETURN_IF_ERROR(Call(__NR_mount, folder, folder, nullptr, kMountBind, nullptr));
  return Call(__NR_mount, nullptr, folder, nullptr,
              kMountRemount | kMountBind | kMountRdOnly | kMountNoSuid | kMountNoDev | kMountNoExec, nullptr);
}

long Ids() {
  RETURN_IF_ERROR(Call(__NR_setgroups, 0, nullptr));
  RETURN_IF_ERROR(Call(__NR_setresgid, g.run_gid, g.run_gid, g.run_gid));
  return Call(__NR_setresuid, g.run_uid, g.run_uid, g.run_uid);
}

long DropCapabilities(uint64_t keep) {
  RETURN_IF_ERROR(Call(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const auto low = static_cast<uint32_t>(keep), high = static_cast<uint32_t>(keep >> 32);
  __user_cap_data_struct data[2] = {{low, low, 0}, {high, high, 0}};
  return Call(__NR_capset, &header, data);
}

long Landlock(const wire::Landlock& step) {
  const uint64_t attribute[3] = {step.handled_fs, step.handled_net, step.scoped};
  const long ruleset = Call(__NR_landlock_create_ruleset, attribute, step.attribute_bytes, 0);
  if (IsError(ruleset)) return ruleset;
  const auto* rules = At<wire::LandlockRule>(step.rules);
  for (uint32_t i = 0; i < step.rule_count; ++i) {
    const wire::Pinned& where = rules[i].where;
    const int flags = kPathOnly | kCloseOnExec | (where.is_folder ? kDirectory | kNoFollow : 0);
    const long fd =
        rules[i].is_grant ? OpenPinned(where, Text(where.path)) : Call(__NR_openat, kAtFdCwd, Text(where.path), flags);
    if (IsError(fd)) return fd;
    struct [[gnu::packed]] {
      uint64_t access;
      int32_t parent_fd;
    } rule = {rules[i].access, static_cast<int32_t>(fd)};
    const long error = Call(__NR_landlock_add_rule, ruleset, kLandlockRulePathBeneath, &rule, 0);
    Close(fd);
    if (IsError(error)) return error;
  }
  const long error = Call(__NR_landlock_restrict_self, ruleset, 0);
  Close(ruleset);
  return error;
}

long Seccomp(const wire::Seccomp& step) {
  struct {
    unsigned short count;
    const void* filter;
  } program = {static_cast<unsigned short>(step.count), Text(step.filter)};
  return Call(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

long CheckFile(const wire::FileState& step) {
  struct statx found;
  RETURN_IF_ERROR(Call(__NR_statx, kAtFdCwd, Text(step.path), 0, STATX_INO | STATX_CTIME | STATX_SIZE, &found));
  const bool same = found.stx_ino == step.inode && found.stx_dev_major == step.dev_major &&
                    found.stx_dev_minor == step.dev_minor && found.stx_size == step.bytes &&
                    found.stx_ctime.tv_sec == step.ctime_seconds && found.stx_ctime.tv_nsec == step.ctime_nanoseconds;
  return same ? 0 : -ESTALE;
}

long Exec(const char* program) {
  const uint64_t none = 0;
  RETURN_IF_ERROR(Call(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &none, nullptr, sizeof none));
  return Call(__NR_execve, program, At<char*>(g.variant->argv), At<char*>(g.variant->envp));
}

}  // namespace

void ReapHelper() {
  if (g.helper_pid == 0) return;
  int status;
  Call(__NR_wait4, g.helper_pid, &status, 0, nullptr);
  g.helper_pid = 0;
}

long RunStep(const Step& step) {
  switch (step.kind) {
    case StepKind::kNothing:
      return 0;
    case StepKind::kOwnerNamespace:
      return OwnerNamespace(step.owner);
    case StepKind::kOpenTree:
      return OpenTree(step.tree);
    case StepKind::kMakeCgroup:
      return MakeCgroup(step.cgroup);
    case StepKind::kEnterCgroup:
      return EnterCgroup(step.words[0]);
    case StepKind::kPrivateFolder:
      return PrivateFolder(step.path_mode);
    case StepKind::kHostname:
      return Call(__NR_sethostname, Text(step.path_text.text), Length(Text(step.path_text.text)));
    case StepKind::kLoopback:
      return Loopback();
    case StepKind::kRoot:
      return NewRoot();
    case StepKind::kFolder:
      return Call(__NR_mkdirat, kAtFdCwd, Inside(step.path_mode.path), step.path_mode.mode);
    case StepKind::kSymlink:
      return Call(__NR_symlinkat, Text(step.path_text.text), kAtFdCwd, Inside(step.path_text.path));
    case StepKind::kFile:
      return File(step.file);
    case StepKind::kBind:
      return Bind(step.bind);
    case StepKind::kEmptyFile:
      return EmptyFile(Inside(step.path_text.path));
    case StepKind::kCover:
      return Cover(step.cover);
    case StepKind::kTmpfs:
      return Call(__NR_mount, "tmpfs", Inside(step.path_text.path), "tmpfs", kMountNoSuid | kMountNoDev | kMountNoExec,
                  Text(step.path_text.text));
    case StepKind::kProc:
      return Call(__NR_mount, "proc", Inside(step.proc.path), "proc", step.proc.flags, nullptr);
    case StepKind::kReadOnlyProcSys:
      return ReadOnly(Inside(step.path_text.path));
    case StepKind::kPivot:
      return Pivot();
    case StepKind::kReadOnlyRoot:
      return Call(__NR_mount, nullptr, "/", nullptr,
                  kMountRemount | kMountBind | kMountRdOnly | kMountNoSuid | kMountNoDev, nullptr);
    case StepKind::kSeal:
      return Call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
    case StepKind::kChildren:
      return LookForChildren();
    case StepKind::kDropCapabilities:
      return DropCapabilities(step.words[0]);
    case StepKind::kSession:
      return Call(__NR_setsid);
    case StepKind::kIds:
      return Ids();
    case StepKind::kLimit: {
      const uint64_t limit[2] = {step.limit.soft, step.limit.hard};
      return Call(__NR_prlimit64, 0, step.limit.resource, limit, nullptr);
    }
    case StepKind::kNoNewPrivs:
      return Call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    case StepKind::kWorkingFolder:
      return Call(__NR_chdir, Text(step.path_text.path));
    case StepKind::kStderr:
      return Call(__NR_dup3, wire::kServerStderrFd, 2, 0);
    case StepKind::kCloseDescriptors:
      return Call(__NR_close_range, 3, ~0u, kCloseRangeCloseOnExec);
    case StepKind::kLandlock:
      return Landlock(step.landlock);
    case StepKind::kSeccomp:
      return Seccomp(step.seccomp);
    case StepKind::kCheckFile:
      return CheckFile(step.file_state);
    case StepKind::kExec:
      return Exec(Text(step.path_text.path));
  }
  return -EINVAL;  // a plan of another version; the header check should have caught it
}

bool RunSteps(const wire::StepList& list, wire::Phase phase) {
  const auto* steps = At<Step>(list.steps);
  for (uint32_t i = 0; i < list.count; ++i) {
    const long error = RunStep(steps[i]);
    if (!IsError(error)) continue;
    g.fault.phase = phase;
    g.fault.step = i;
    g.fault.error = static_cast<int32_t>(-error);
    return false;
  }
  return true;
}

}  // namespace bulkhead::launcher::keeper
