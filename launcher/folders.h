// The folders of the host that a launch makes.
#ifndef BULKHEAD_LAUNCHER_FOLDERS_H_
#define BULKHEAD_LAUNCHER_FOLDERS_H_

#include <vector>

#include "absl/status/status.h"
#include "bulkhead/launcher/plan.h"

namespace bulkhead::launcher {

// Makes each folder, and those above it, where they are missing: the folder itself with mode 0700, as its owner's;
// those above with mode 0700, too, but 0755 as root, since the next one may be for another owner.
absl::Status MakeFolders(const std::vector<FolderToMake>& folders);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_FOLDERS_H_
