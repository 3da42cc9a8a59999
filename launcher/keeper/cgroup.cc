// The cgroup of a server: made before the jail, entered by the server's process, read and removed at the end. All by a
// few files of cgroup v2 (cgroups(7)).
#include "launcher/keeper/keeper.h"

namespace bulkhead::launcher::keeper {
namespace {

// Together a second: what keeps a group from being removed is a process that has ended but is not gone yet.
constexpr int kRemovalsMax = 100;
constexpr long kRemovalWaitNanoseconds = 10 * 1000000;

long OpenFolder(const char* path) {
  return Call(__NR_openat, kAtFdCwd, path, kPathOnly | kDirectory | kNoFollow | kCloseOnExec);
}

long Write(long folder, const char* name, const char* text) {
  const long fd = Call(__NR_openat, folder, name, kWriteOnly | kCloseOnExec);
  if (IsError(fd)) return fd;
  const long written = Call(__NR_write, fd, text, Length(text));
  Close(fd);
  return IsError(written) ? written : 0;
}

// The number after `word` at the beginning of a line; 0 when it isn't there.
uint64_t ReadNumber(long folder, const char* name, const char* word) {
  const long fd = Call(__NR_openat, folder, name, kReadOnly | kCloseOnExec);
  if (IsError(fd)) return 0;
  char text[512];
  const long bytes = Call(__NR_read, fd, text, sizeof text);
  Close(fd);
  const long length = static_cast<long>(Length(word));
  for (long line = 0, at; line + length < bytes; line = at + 1) {
    for (at = line; at < bytes && text[at] != '\n'; ++at) {
    }
    long same = 0;
    while (same < length && text[line + same] == word[same]) ++same;
    if (same < length) continue;
    uint64_t number = 0;
    for (long digit = line + length; digit < at && text[digit] >= '0' && text[digit] <= '9'; ++digit) {
      number = number * 10 + static_cast<uint64_t>(text[digit] - '0');
    }
    return number;
  }
  return 0;
}

void Remove(wire::Offset path) {
  if (path == 0) return;
  const long folder = OpenFolder(Text(path));
  if (IsError(folder)) return;
  const long events = Call(__NR_openat, folder, "cgroup.events", kReadOnly | kCloseOnExec);
  for (int i = 0; i < kRemovalsMax; ++i) {
    char text[64];
    Call(__NR_pread64, events, text, sizeof text, 0);  // from here on a change wakes the wait
    if (Call(__NR_unlinkat, kAtFdCwd, Text(path), kAtRemoveDir) != -EBUSY) break;
    PollFd poll = {static_cast<int>(events), kPollPri, 0};
    const TimeSpec wait = {0, kRemovalWaitNanoseconds};
    Call(__NR_ppoll, &poll, 1, &wait, nullptr, 8);
  }
  if (!IsError(events)) Close(events);
  Close(folder);
}

}  // namespace

long MakeCgroup(const wire::MakeCgroup& step) {
  const char* path = Text(step.folder);
  long error = Call(__NR_mkdirat, kAtFdCwd, path, 0755);
  if (error == -EEXIST) {  // by a keeper that had our pid and was killed: it is empty, or this is an error
    Call(__NR_unlinkat, kAtFdCwd, path, kAtRemoveDir);
    error = Call(__NR_mkdirat, kAtFdCwd, path, 0755);
  }
  if (IsError(error)) return error;
  const long folder = OpenFolder(path);
  if (IsError(folder)) return folder;
  const auto* files = At<wire::CgroupFile>(step.files);
  for (uint32_t i = 0; i < step.file_count && !IsError(error); ++i) {
    error = Write(folder, Text(files[i].name), Text(files[i].text));
  }
  // What is written to it counts as done by who opened it (cgroups(7)): the process that enters has other rights.
  const long list = IsError(error) ? error : Call(__NR_openat, folder, "cgroup.procs", kWriteOnly | kCloseOnExec);
  Close(folder);
  if (IsError(list)) return list;
  g.slots[step.slot] = static_cast<int>(list);
  return 0;
}

long EnterCgroup(uint64_t slot) {
  const long written = Call(__NR_write, g.slots[slot], "0", 1);
  return IsError(written) ? written : 0;
}

void KillCgroup() {
  if (g.variant->cgroup == 0) return;
  const long folder = OpenFolder(Text(g.variant->cgroup));
  if (IsError(folder)) return;
  Write(folder, "cgroup.kill", "1");  // Linux 5.14; who isn't killed by it is killed one by one
  Close(folder);
}

CgroupEvents ReadCgroup() {
  CgroupEvents found = {};
  if (g.variant->cgroup == 0) return found;
  const long folder = OpenFolder(Text(g.variant->cgroup));
  if (IsError(folder)) return found;
  found.memory_kills = ReadNumber(folder, "memory.events", "oom_kill ");
  found.refused_processes = ReadNumber(folder, "pids.events", "max ");
  Close(folder);
  return found;
}

void RemoveCgroups() {
  Remove(g.variant->cgroup);
  Remove(g.variant->init_cgroup);
}

}  // namespace bulkhead::launcher::keeper
