// The keeper's ELF file as part of the library.
#ifndef BULKHEAD_LAUNCHER_KEEPER_KEEPER_BYTES_H_
#define BULKHEAD_LAUNCHER_KEEPER_KEEPER_BYTES_H_

#include "absl/strings/string_view.h"

namespace bulkhead::launcher {

absl::string_view KeeperBytes();

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_KEEPER_KEEPER_BYTES_H_
