// What C++ programs count on: threads, memory shared with a child, a mutex in it, semaphores and POSIX shared memory.
// One line a thing that works.
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace {

void Check(bool is_good, const char* what) {
  if (is_good) return;
  std::perror(what);
  std::exit(1);
}

struct Shared {
  pthread_mutex_t mutex;
  sem_t done;
  int total;
};

void Add(Shared* shared) {
  for (int i = 0; i < 1000; ++i) {
    pthread_mutex_lock(&shared->mutex);
    ++shared->total;
    pthread_mutex_unlock(&shared->mutex);
  }
  sem_post(&shared->done);
}

}  // namespace

int main() {
  std::atomic<int> count{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&count] { ++count; });
  for (std::thread& thread : threads) thread.join();
  Check(count == 8 && std::async(std::launch::async, [] { return 42; }).get() == 42, "threads");
  std::puts("threads");

  const std::string name = "/bulkhead-usable-" + std::to_string(getpid());
  const int fd = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  Check(fd >= 0 && ftruncate(fd, sizeof(Shared)) == 0, "shm_open");
  Shared* const shared = static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  Check(shared != MAP_FAILED && shm_unlink(name.c_str()) == 0, "mmap");
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &attributes);
  sem_init(&shared->done, 1, 0);
  for (int i = 0; i < 3; ++i) {
    const pid_t pid = fork();
    Check(pid >= 0, "fork");
    if (pid == 0) {
      Add(shared);
      _exit(0);
    }
  }
  for (int i = 0; i < 3; ++i) sem_wait(&shared->done);
  while (wait(nullptr) > 0) {
  }
  Check(shared->total == 3000, "a mutex of several processes");
  std::puts("shared memory");
  return 0;
}
