#include "tests/cli/bulkhead_process.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace bulkhead::cli {
namespace {

// No test is meant to come near it: it ends one that hangs.
constexpr int kHangMilliseconds = 30000;

std::string BinaryPath() {
  const char* folder = getenv("TEST_SRCDIR");
  const char* workspace = getenv("TEST_WORKSPACE");
  return std::string(folder == nullptr ? "" : folder) + "/" + (workspace == nullptr ? "" : workspace) + "/cli/bulkhead";
}

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

bool BecomeOrdinaryUser() {
  return setgroups(0, nullptr) == 0 && setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0;
}

// Whether the process waits, and does not end by the signal.
bool Catches(pid_t pid, int signal) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("SigCgt:", 0) == 0) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

// The signals whose time has come; how long to wait before the next look.
int SendSignals(pid_t pid, const Invocation& invocation, bool has_output,
                std::vector<std::pair<std::string, int>>* signals) {
  if (signals->empty()) return kHangMilliseconds;
  std::ifstream in(invocation.signals_file);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  while (!signals->empty() && text.find(signals->front().first + "\n") != std::string::npos) {
    if ((invocation.signals_after_output && !has_output) || !Catches(pid, signals->front().second)) break;
    kill(pid, signals->front().second);
    signals->erase(signals->begin());
  }
  return 5;
}

// Reads both pipes until both are at their end. False when that takes too long.
bool ReadBoth(int out_fd, int err_fd, pid_t pid, const Invocation& invocation, Result* result) {
  pollfd fds[2] = {{out_fd, POLLIN, 0}, {err_fd, POLLIN, 0}};
  std::string* texts[2] = {&result->out, &result->err};
  std::vector<std::pair<std::string, int>> signals = invocation.signals;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kHangMilliseconds);
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const int ready = poll(fds, 2, SendSignals(pid, invocation, !result->out.empty(), &signals));
    if (ready < 0 || (ready == 0 && std::chrono::steady_clock::now() > deadline)) return false;
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      char buffer[65536];
      const ssize_t got = read(fds[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        texts[i]->append(buffer, static_cast<std::size_t>(got));
      } else {
        fds[i].fd = -1;
      }
    }
  }
  return true;
}

}  // namespace

Result RunBulkhead(const Invocation& invocation) {
  const int binary = open((invocation.program.empty() ? BinaryPath() : invocation.program).c_str(), O_PATH | O_CLOEXEC);
  std::vector<std::string> words = {"bulkhead"};
  words.insert(words.end(), invocation.words.begin(), invocation.words.end());
  std::vector<std::string> env;
  for (const auto& [name, value] : invocation.env) env.push_back(name + "=" + value);
  const std::vector<char*> argv = Pointers(words), envp = Pointers(env);
  int in[2], out[2], err[2];
  Result result;
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return result;
  const int stdout_fd =
      invocation.stdout_path.empty() ? out[1] : open(invocation.stdout_path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  const pid_t pid = fork();
  if (pid == 0) {
    if (chdir(invocation.cwd.c_str()) != 0) _exit(200);
    setpgid(0, 0);
    // A shell that started the tests in the background has SIGINT ignored, and what it starts keeps it so.
    for (const auto& [when, number] : invocation.signals) signal(number, SIG_DFL);
    dup2(in[0], 0);
    dup2(stdout_fd, 1);
    dup2(err[1], 2);
    for (const int fd : invocation.closed) close(fd);
    if (invocation.as_ordinary_user && geteuid() == 0 && !BecomeOrdinaryUser()) _exit(202);
    // By descriptor: other users can't reach the folder that the binary lies in.
    syscall(SYS_execveat, binary, "", argv.data(), envp.data(), AT_EMPTY_PATH);
    _exit(201);
  }
  close(binary);
  close(in[0]);
  close(out[1]);
  close(err[1]);
  if (!invocation.stdout_path.empty()) close(stdout_fd);
  signal(SIGPIPE, SIG_IGN);
  if (write(in[1], invocation.stdin_text.data(), invocation.stdin_text.size()) < 0) result.err = "";
  close(in[1]);
  const bool ended = ReadBoth(out[0], err[0], pid, invocation, &result);
  close(out[0]);
  close(err[0]);
  if (!ended) kill(-pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (ended) result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

TemporaryFolder::TemporaryFolder() {
  // Not below TEST_TMPDIR, which users other than the one who runs the test can't reach.
  char name[] = "/tmp/bulkhead-cli-XXXXXX";
  if (mkdtemp(name) == nullptr) return;
  path_ = name;
  chmod(name, 0777);
  // Started as root, a server is an unprivileged user, who is not given root's own folders to write.
  if (geteuid() == 0 && chown(name, 65534, 65534) != 0) return;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::Write(const std::string& name, const std::string& text) const {
  const std::string file = path_ + "/" + name;
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

std::vector<std::string> TemporaryFolder::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
    names.push_back(entry.path().string().substr(path_.size() + 1));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace bulkhead::cli
