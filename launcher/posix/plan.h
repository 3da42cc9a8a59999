// What a plan of the portable backend says beside the command: all that the child does before exec.
#ifndef BULKHEAD_LAUNCHER_POSIX_PLAN_H_
#define BULKHEAD_LAUNCHER_POSIX_PLAN_H_

#include <sys/resource.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bulkhead/launcher/account.h"

namespace bulkhead::launcher {

struct PosixPlan {
  struct Limit {
    int resource;  // RLIMIT_*
    rlim_t value;
  };
  std::vector<Limit> limits;
  std::optional<Account> account;  // whose the server becomes; absent: it stays the caller's
  std::string cwd;                 // absolute; empty: the private folder, or / without one
  std::vector<std::string> env;    // "NAME=value", without those of the private folder
  // A folder of the server's own, in /tmp, thrown away at the end: what HOME and TMPDIR say.
  bool private_home = false, private_tmp = false;
  bool has_private_folder() const { return private_home || private_tmp; }
  absl::Duration stdin_grace, term_grace;
  bool run_mode = false;
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_POSIX_PLAN_H_
