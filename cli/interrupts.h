// Ctrl-C, or SIGTERM, while a command waits for a server: the first begins the server's gentle end and the next kills
// it, in both cases before the command ends, and by that signal.
#ifndef BULKHEAD_CLI_INTERRUPTS_H_
#define BULKHEAD_CLI_INTERRUPTS_H_

#include <functional>

#include "asio/io_context.hpp"
#include "asio/signal_set.hpp"

namespace bulkhead::cli {

// While one lives, `on_signal` is called for each such signal, from `io`, instead of this process being ended. One that
// is ignored, as in what a shell starts in the background, stays ignored.
class Interrupts {
 public:
  Interrupts(asio::io_context& io, std::function<void(int signal)> on_signal);
  ~Interrupts() = default;
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  void Await();
  asio::signal_set signals_;
  std::function<void(int signal)> on_signal_;
};

// Ends this process by `signal`, so that a shell ends the loop that the command is part of. A progress line is cleared.
[[noreturn]] void EndBy(int signal);

// What a progress line says meanwhile.
inline constexpr char kStoppingText[] = "stopping the server; Ctrl-C again kills it";

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_INTERRUPTS_H_
