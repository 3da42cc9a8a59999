// A server as the child of this process: started, watched by a thread of its own, ended with its process group.
#ifndef BULKHEAD_LAUNCHER_POSIX_CHILD_H_
#define BULKHEAD_LAUNCHER_POSIX_CHILD_H_

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/process.h"
#include "bulkhead/launcher/unique_fd.h"

namespace bulkhead::launcher {

// What becomes the server's 0, 1 and 2.
struct Stdio {
  UniqueFd in, out, err;
};

// Any thread may call. Shared by whoever asks and by the thread that waits.
class Child {
 public:
  // Returns when the program runs. `plan` is one of the portable backend; errors as in Launch.
  static absl::StatusOr<std::shared_ptr<Child>> Start(const LaunchPlan& plan, const Stdio& stdio,
                                                      absl::Duration timeout);

  // Readable once the server has ended, its group was killed and its folder is gone.
  int end_fd() const { return end_reader_.get(); }
  // How it ended; nothing before end_fd() is readable.
  std::optional<ExitStatus> result();
  // To the whole group, if its leader was not reaped.
  void Signal(int signal);

  enum class From { kStdinClosed, kTerm };
  // Waits for the graces and signals, until the server has ended or SIGKILL was sent. A second call returns at once.
  void RunLadder(From from);
  // The same on a thread of its own.
  static void StartLadder(const std::shared_ptr<Child>& child, From from);

 private:
  Child() = default;
  void Watch();  // on the thread that waits
  // False: it has ended.
  bool LivesAfter(absl::Duration time);

  pid_t pid_ = -1;
  absl::Duration stdin_grace_, term_grace_;
  std::string private_folder_;
  UniqueFd end_reader_, end_writer_;

  std::mutex mutex_;
  std::condition_variable ended_;
  bool leader_gone_ = false;  // reaped: its number may become another's
  bool on_ladder_ = false;
  std::optional<ExitStatus> result_;
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_POSIX_CHILD_H_
