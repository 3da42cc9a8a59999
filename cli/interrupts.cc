#include "bulkhead/cli/interrupts.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <utility>

namespace bulkhead::cli {
namespace {

bool IsIgnored([[maybe_unused]] int number) {
#ifdef _WIN32
  return false;
#else
  struct sigaction action = {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
#endif
}

}  // namespace

Interrupts::Interrupts(asio::io_context& io, std::function<void(int signal)> on_signal)
    : signals_(io), on_signal_(std::move(on_signal)) {
  for (const int number : {SIGINT, SIGTERM}) {
    asio::error_code ignored;  // then it ends the process, as ever
    if (!IsIgnored(number)) signals_.add(number, ignored);
  }
  Await();
}

void Interrupts::Await() {
  signals_.async_wait([this](asio::error_code cancelled, int number) {
    if (cancelled) return;  // this object may be gone
    Await();
    on_signal_(number);
  });
}

void EndBy(int signal) {
  if (isatty(STDERR_FILENO) == 1) (void)!write(STDERR_FILENO, "\r\x1b[K", 4);
#ifndef _WIN32
  ::signal(signal, SIG_DFL);
  raise(signal);
#endif
  _exit(128 + signal);
}

}  // namespace bulkhead::cli
