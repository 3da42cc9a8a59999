// Finds what a tree of processes left behind.
#ifndef BULKHEAD_TESTS_LAUNCHER_TREE_CHECK_H_
#define BULKHEAD_TESTS_LAUNCHER_TREE_CHECK_H_

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {

// Everything that a descriptor gives until its end.
inline std::string ReadToEnd(int fd) {
  std::string text;
  char block[4096];
  ssize_t count;
  while ((count = read(fd, block, sizeof(block))) != 0) {
    if (count < 0 && errno != EINTR) break;
    if (count > 0) text.append(block, static_cast<size_t>(count));
  }
  return text;
}

// Not by a stream: those throw when a process of /proc ends while its file is read.
inline std::string ReadWholeFile(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd.valid() ? ReadToEnd(fd.get()) : "";
}

// Up to and without the end of the line.
inline std::string ReadLine(int fd) {
  std::string text;
  char c;
  while (read(fd, &c, 1) == 1 && c != '\n') text += c;
  return text;
}

inline std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const dir = opendir(folder.c_str());
  if (dir == nullptr) return names;
  const int own = dirfd(dir);
  while (const dirent* const entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != ".." && name != std::to_string(own)) names.push_back(name);
  }
  closedir(dir);
  return names;
}

inline size_t OpenDescriptors() { return NamesIn("/proc/self/fd").size(); }

// The processes with `token` among their arguments. (A zombie has no arguments: see HasChildren.)
inline std::vector<int> Living(const std::string& token) {
  std::vector<int> pids;
  const std::string wanted = std::string(1, '\0') + token + std::string(1, '\0');
  for (const std::string& name : NamesIn("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (ReadWholeFile("/proc/" + name + "/cmdline").find(wanted) != std::string::npos)
      pids.push_back(atoi(name.c_str()));
  }
  return pids;
}

inline std::vector<int> ChildrenOf(int pid) {
  std::vector<int> pids;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const std::string& task : NamesIn(tasks)) {
    std::istringstream children(ReadWholeFile(tasks + "/" + task + "/children"));
    for (int child; children >> child;) pids.push_back(child);
  }
  return pids;
}

// Whoever loses its parent below this process becomes its child, and is seen by HasChildren.
inline void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

// Children, living or zombie, whatever signal they send at their end.
inline bool HasChildren() {
  siginfo_t info;
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0;
}

// After a keeper or jail init was killed: its own children have become ours, and nobody but we can reap them. Reaps the
// dead; true when nobody is alive.
inline bool OnlyZombiesWereLeft() {
  siginfo_t info;
  while (true) {
    info.si_pid = 0;
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WALL) != 0) return true;
    if (info.si_pid == 0) return false;
  }
}

// Kills and reaps what a test that failed has left, so that the next one begins with nothing.
inline void EndLeftovers() {
  while (HasChildren()) {
    for (const int pid : ChildrenOf(getpid())) kill(pid, SIGKILL);
    waitpid(-1, nullptr, __WALL);
  }
}

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_TESTS_LAUNCHER_TREE_CHECK_H_
