#include "bulkhead/launcher/keeper/keeper_bytes.h"

namespace bulkhead::launcher {
namespace {

constexpr unsigned char kBytes[] = {
#include "launcher/keeper/keeper_bytes.inc"
};

}  // namespace

absl::string_view KeeperBytes() { return absl::string_view(reinterpret_cast<const char*>(kBytes), sizeof kBytes); }

}  // namespace bulkhead::launcher
