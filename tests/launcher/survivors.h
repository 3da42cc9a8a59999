// Which processes of a tree are alive, asked while other processes of the machine end.
#ifndef BULKHEAD_TESTS_LAUNCHER_SURVIVORS_H_
#define BULKHEAD_TESTS_LAUNCHER_SURVIVORS_H_

#include <fcntl.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "bulkhead/launcher/unique_fd.h"
#include "tests/launcher/tree_check.h"

namespace bulkhead::launcher {

// Living(token), without a stream: a file of a process that ends between open and read fails with ESRCH, which makes
// libstdc++'s stream buffers throw.
inline std::vector<int> Survivors(const std::string& token) {
  std::vector<int> pids;
  const std::string wanted = std::string(1, '\0') + token + std::string(1, '\0');
  for (const std::string& name : NamesIn("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const UniqueFd file(open(("/proc/" + name + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC));
    if (file.valid() && ReadToEnd(file.get()).find(wanted) != std::string::npos) pids.push_back(atoi(name.c_str()));
  }
  return pids;
}

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_TESTS_LAUNCHER_SURVIVORS_H_
