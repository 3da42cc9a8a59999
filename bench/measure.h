// What the benchmarks of messages share: a peer on two pipes, the raw side of a comparison, and medians.
#ifndef BULKHEAD_BENCH_MEASURE_H_
#define BULKHEAD_BENCH_MEASURE_H_

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

extern char** environ;

namespace bulkhead::bench {

using Clock = std::chrono::steady_clock;

[[noreturn]] inline void Die(const std::string& what) {
  std::fprintf(stderr, "bench: %s\n", what.c_str());
  std::exit(1);
}

inline double Microseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// While it lives, this process and what it starts run on the processor that it is on. Across two of them a round trip
// is mostly the waking of an idle processor, and which side of a comparison has to pay for that is the scheduler's
// choice.
class OnOneProcessor {
 public:
  OnOneProcessor() {
    if (sched_getaffinity(0, sizeof before_, &before_) != 0) Die("sched_getaffinity");
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) Die("sched_setaffinity");
  }
  ~OnOneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
  OnOneProcessor(const OnOneProcessor&) = delete;
  OnOneProcessor& operator=(const OnOneProcessor&) = delete;

 private:
  cpu_set_t before_;
};

// A program on two pipes; it ends when they are closed.
class Peer {
 public:
  explicit Peer(std::vector<std::string> words) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) Die("pipe2");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(&word[0]);
    argv.push_back(nullptr);
    if (posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ) != 0) Die("cannot start " + words[0]);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }
  ~Peer() {
    if (to_ >= 0) close(to_);
    if (from_ >= 0) close(from_);
    waitpid(pid_, nullptr, 0);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  int to() const { return to_; }
  int from() const { return from_; }
  int TakeTo() { return std::exchange(to_, -1); }
  int TakeFrom() { return std::exchange(from_, -1); }

 private:
  pid_t pid_ = 0;
  int to_ = -1, from_ = -1;
};

inline void WriteAll(int fd, const std::string& text) {
  for (std::size_t done = 0; done != text.size();) {
    const ssize_t count = write(fd, text.data() + done, text.size() - done);
    if (count <= 0) Die("write");
    done += static_cast<std::size_t>(count);
  }
}

inline void ReadExactly(int fd, std::size_t size) {
  static std::vector<char> buffer(1 << 20);
  while (size != 0) {
    const ssize_t count = read(fd, buffer.data(), std::min(size, buffer.size()));
    if (count <= 0) Die("read");
    size -= static_cast<std::size_t>(count);
  }
}

// Microseconds of one exchange over raw pipes: `request` out, `answer_bytes` back.
inline double RawExchange(Peer& peer, const std::string& request, std::size_t answer_bytes, int count) {
  const auto begin = Clock::now();
  for (int i = 0; i != count; ++i) {
    WriteAll(peer.to(), request);
    ReadExactly(peer.from(), answer_bytes);
  }
  return Microseconds(begin) / count;
}

}  // namespace bulkhead::bench

#endif  // BULKHEAD_BENCH_MEASURE_H_
