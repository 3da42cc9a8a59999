#include <signal.h>
#include <string.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/process.h"

namespace bulkhead::launcher {
namespace {

// Without "SIG"; null for what has no name, such as the real-time signals.
const char* SignalName(int signal) {
#ifdef __GLIBC__
  return sigabbrev_np(signal);
#else
  static constexpr struct {
    int signal;
    const char* name;
  } kNames[] = {
      {SIGABRT, "ABRT"}, {SIGFPE, "FPE"},   {SIGILL, "ILL"},   {SIGINT, "INT"},   {SIGSEGV, "SEGV"}, {SIGTERM, "TERM"},
#ifndef _WIN32
      {SIGALRM, "ALRM"}, {SIGBUS, "BUS"},   {SIGHUP, "HUP"},   {SIGKILL, "KILL"}, {SIGPIPE, "PIPE"}, {SIGQUIT, "QUIT"},
      {SIGSYS, "SYS"},   {SIGTRAP, "TRAP"}, {SIGXCPU, "XCPU"}, {SIGXFSZ, "XFSZ"},
#endif
  };
  for (const auto& entry : kNames) {
    if (entry.signal == signal) return entry.name;
  }
  return nullptr;
#endif
}

}  // namespace

std::string ExitStatus::ToString() const {
  switch (kind) {
    case Kind::kExited: {
      // What a shell in front of the server makes of a signal.
      const char* name = code > 128 ? SignalName(code - 128) : nullptr;
      return name == nullptr ? absl::StrCat("exited with code ", code)
                             : absl::StrCat("exited with code ", code, " (as a shell says SIG", name, ")");
    }
    case Kind::kSignaled: {
      const char* name = SignalName(signal);
      return name == nullptr ? absl::StrCat("killed by signal ", signal)
                             : absl::StrCat("killed by signal ", signal, " (SIG", name, ")");
    }
    case Kind::kKeeperLost:
      return "ended because its keeper was killed; its own status is not known";
  }
  return "";
}

}  // namespace bulkhead::launcher
