#include <string.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/process.h"

namespace bulkhead::launcher {

std::string ExitStatus::ToString() const {
  switch (kind) {
    case Kind::kExited: {
      // What a shell in front of the server makes of a signal.
      const char* name = code > 128 ? sigabbrev_np(code - 128) : nullptr;
      return name == nullptr ? absl::StrCat("exited with code ", code)
                             : absl::StrCat("exited with code ", code, " (as a shell says SIG", name, ")");
    }
    case Kind::kSignaled: {
      const char* name = sigabbrev_np(signal);  // null for the real-time signals
      return name == nullptr ? absl::StrCat("killed by signal ", signal)
                             : absl::StrCat("killed by signal ", signal, " (SIG", name, ")");
    }
    case Kind::kKeeperLost:
      return "ended because its keeper was killed; its own status is not known";
  }
  return "";
}

}  // namespace bulkhead::launcher
