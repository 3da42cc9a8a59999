// Ending a tree of processes, and the folder that lives as long as it.
#include <linux/sched.h>

#include "launcher/keeper/keeper.h"

namespace bulkhead::launcher::keeper {
namespace {

constexpr char kDirectoryEntry = 4;        // DT_DIR; where a file system doesn't tell, only time is lost
constexpr int kProcessesTermedMax = 1024;  // more than these get SIGKILL without a SIGTERM before it

// Calls f(pid) for every number in the file. The kernel writes the list anew for each read from the start.
template <typename F>
long ForEachPid(long fd, F f) {
  char text[512];
  uint32_t pid = 0;
  long offset = 0, bytes;
  while ((bytes = Call(__NR_pread64, fd, text, sizeof text, offset)) > 0) {
    offset += bytes;
    for (long i = 0; i < bytes; ++i) {
      if (text[i] >= '0' && text[i] <= '9') {
        pid = pid * 10 + (text[i] - '0');
      } else if (pid != 0) {
        f(static_cast<int>(pid));
        pid = 0;
      }
    }
  }
  return bytes;
}

long OpenChildren(uint64_t pid, uint64_t tid) {
  char path[64];
  *PutText(PutNumber(PutText(PutNumber(PutText(path, "/proc/"), pid), "/task/"), tid), "/children") = 0;
  return Call(__NR_openat, kAtFdCwd, path, kReadOnly | kCloseOnExec);
}

// The parent's pid from /proc/PID/stat: the second word after the last ')'. 0 when the process is gone.
int ParentOf(int pid) {
  char path[32], text[512];
  *PutText(PutNumber(PutText(path, "/proc/"), pid), "/stat") = 0;
  const long fd = Call(__NR_openat, kAtFdCwd, path, kReadOnly | kCloseOnExec);
  if (IsError(fd)) return 0;
  const long bytes = Call(__NR_read, fd, text, sizeof text);
  Close(fd);
  long at = bytes - 1;
  while (at > 0 && text[at] != ')') --at;
  at += 4;  // ") S "
  int parent = 0;
  while (at < bytes && text[at] >= '0' && text[at] <= '9') parent = parent * 10 + (text[at++] - '0');
  return parent;
}

// Children are listed by the thread that made them.
template <typename F>
void ForEachChildOf(int pid, F f) {
  char path[32];
  *PutText(PutNumber(PutText(path, "/proc/"), pid), "/task") = 0;
  const long fd = Call(__NR_openat, kAtFdCwd, path, kReadOnly | kDirectory | kCloseOnExec);
  if (IsError(fd)) return;
  alignas(8) char entries[1024];
  long bytes;
  while ((bytes = Call(__NR_getdents64, fd, entries, sizeof entries)) > 0) {
    for (long at = 0; at < bytes;) {
      const char* entry = entries + at;
      uint64_t tid = 0;
      for (const char* name = entry + 19; *name >= '0' && *name <= '9'; ++name) tid = tid * 10 + (*name - '0');
      unsigned short length;
      __builtin_memcpy(&length, entry + 16, sizeof length);
      at += length;
      if (tid == 0) continue;
      const long list = OpenChildren(pid, tid);
      if (IsError(list)) continue;
      ForEachPid(list, f);
      Close(list);
    }
  }
  Close(fd);
}

void NoteStatus(int pid, int status) {
  if (pid != g.server_pid || g.leader_gone) return;
  g.wait_status = status;
  g.leader_gone = true;
}

// A pid read from a list may be another process by now. The pidfd pins one; if that one has the parent we read the pid
// from, it belongs to the tree, whatever happened in between.
void TermOne(int pid, int parent) {
  const long pidfd = Call(__NR_pidfd_open, pid, 0);
  if (IsError(pidfd)) return;
  const int found = ParentOf(pid);
  if (found == parent || found == static_cast<int>(Call(__NR_getpid))) {
    Call(__NR_pidfd_send_signal, pidfd, kSigTerm, nullptr, 0);
    Call(__NR_pidfd_send_signal, pidfd, kSigCont, nullptr, 0);
  }
  Close(pidfd);
}

}  // namespace

bool ReapEnded() {
  int status;
  for (;;) {
    const long pid = Call(__NR_wait4, -1, &status, kWaitNoHang, nullptr);
    if (pid == 0) return true;
    if (pid == -EINTR) continue;
    // ECHILD: nobody is left. Any other error, which wait(2) doesn't know: then we are blind, and our end is the
    // tree's.
    if (IsError(pid)) return false;
    NoteStatus(static_cast<int>(pid), status);
  }
}

long CheckProc() {
  char link[24];
  const long bytes = Call(__NR_readlinkat, kAtFdCwd, "/proc/self", link, sizeof link);
  if (IsError(bytes)) return bytes;
  long number = 0;
  for (long i = 0; i < bytes; ++i) number = number * 10 + (link[i] - '0');
  return number == Call(__NR_getpid) ? 0 : -ESRCH;
}

long LookForChildren() {
  if (const long error = CheckProc(); IsError(error)) return error;
  const auto self = static_cast<uint64_t>(Call(__NR_getpid));
  const long list = OpenChildren(self, self);
  if (!IsError(list)) Close(list);
  return IsError(list) ? list : 0;
}

void KillAndReapAll() {
  const int self = static_cast<int>(Call(__NR_getpid));
  if (g.variant->namespaces == 0) KillCgroup();
  const long list = self == 1 ? 0 : OpenChildren(self, self);
  if (IsError(list)) {
    // As a rule LookForChildren has failed, too, and there is no server: what is below us was there before us.
    int status;
    if (g.server_pid > 0 && !g.leader_gone) {
      Call(__NR_kill, g.server_pid, kSigKill);
      if (Call(__NR_wait4, g.server_pid, &status, 0, nullptr) > 0) NoteStatus(g.server_pid, status);
    }
    return;
  }
  for (;;) {
    if (self == 1) {
      Call(__NR_kill, -1, kSigKill);
    } else {
      ForEachPid(list, [](int pid) { Call(__NR_kill, pid, kSigKill); });
    }
    // At least one is dying: wait for it, take what else has ended, look again.
    int status;
    const long pid = Call(__NR_wait4, -1, &status, 0, nullptr);
    if (pid == -ECHILD) break;
    if (pid > 0) NoteStatus(static_cast<int>(pid), status);
    if (!ReapEnded()) break;
  }
  if (self != 1) Close(list);
}

void TerminateAllBelow() {
  const int self = static_cast<int>(Call(__NR_getpid));
  if (self == 1) {
    Call(__NR_kill, -1, kSigTerm);
    Call(__NR_kill, -1, kSigCont);
    return;
  }
  static int pids[kProcessesTermedMax];
  int known = 0;
  auto note = [&known](int pid) {
    if (known < kProcessesTermedMax) pids[known++] = pid;
  };
  // Whole generations are read before anyone gets a signal: who dies of SIGTERM gives its children to us.
  static int parents[kProcessesTermedMax];
  ForEachChildOf(self, note);
  for (int i = 0; i < known; ++i) parents[i] = self;
  for (int i = 0; i < known; ++i) {
    const int first = known;
    ForEachChildOf(pids[i], note);
    for (int k = first; k < known; ++k) parents[k] = pids[i];
  }
  for (int i = 0; i < known; ++i) TermOne(pids[i], parents[i]);
}

// No recursion, since the server chose the depth: a folder that isn't empty is moved up to the top under a new name and
// emptied there. A folder the server made unreadable is ours to chmod.
void RemovePrivateFolder() {
  if (g.variant->private_folder == 0) return;
  const char* path = Text(g.variant->private_folder);
  if (g.root) {
    Call(__NR_setresgid, g.run_gid, g.run_gid, g.run_gid);
    Call(__NR_setresuid, g.run_uid, g.run_uid, g.run_uid);
  }
  const long top = Call(__NR_openat, kAtFdCwd, path, kReadOnly | kDirectory | kNoFollow | kCloseOnExec);
  if (IsError(top)) return;
  uint64_t moved = 0;
  bool progress = true, left = true;
  while (progress && left) {
    progress = left = false;
    Call(__NR_lseek, top, 0, 0);
    alignas(8) char folders[2048];
    long folder_bytes;
    while ((folder_bytes = Call(__NR_getdents64, top, folders, sizeof folders)) > 0) {
      for (long at = 0; at < folder_bytes;) {
        const char* name = folders + at + 19;
        unsigned short length;
        __builtin_memcpy(&length, folders + at + 16, sizeof length);
        at += length;
        const int remove = folders[at - length + 18] == kDirectoryEntry ? kAtRemoveDir : 0;
        if (name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0))) continue;
        if (!IsError(Call(__NR_unlinkat, top, name, remove)) ||
            !IsError(Call(__NR_unlinkat, top, name, remove ^ kAtRemoveDir))) {
          progress = true;
          continue;
        }
        left = true;
        Call(__NR_fchmodat, top, name, 0700);
        const long folder = Call(__NR_openat, top, name, kReadOnly | kDirectory | kNoFollow | kCloseOnExec);
        if (IsError(folder)) continue;
        alignas(8) char entries[2048];
        long bytes;
        while ((bytes = Call(__NR_getdents64, folder, entries, sizeof entries)) > 0) {
          for (long k = 0; k < bytes;) {
            const char* child = entries + k + 19;
            unsigned short child_length;
            __builtin_memcpy(&child_length, entries + k + 16, sizeof child_length);
            k += child_length;
            if (child[0] == '.' && (child[1] == 0 || (child[1] == '.' && child[2] == 0))) continue;
            if (!IsError(Call(__NR_unlinkat, folder, child, 0)) ||
                !IsError(Call(__NR_unlinkat, folder, child, kAtRemoveDir))) {
              progress = true;
              continue;
            }
            Call(__NR_fchmodat, folder, child, 0700);
            long error;
            do {  // ends: the names that the server took in advance are finitely many
              char unique[40];
              *PutNumber(PutText(unique, ".bulkhead-removed-"), moved++) = 0;
              error = Call(__NR_renameat2, folder, child, top, unique, 1 /* RENAME_NOREPLACE */);
            } while (error == -EEXIST);
            if (!IsError(error)) progress = true;
          }
        }
        Close(folder);
        if (!IsError(Call(__NR_unlinkat, top, name, kAtRemoveDir))) progress = true;
      }
    }
  }
  Close(top);
  Call(__NR_unlinkat, kAtFdCwd, path, kAtRemoveDir);
}

}  // namespace bulkhead::launcher::keeper
