// Landlock's rights by ABI, as numbers: the constants are ours because distributions' headers stop early. Source:
// landlock(7) and include/uapi/linux/landlock.h. Nothing here restricts anything.
#ifndef BULKHEAD_LAUNCHER_LANDLOCK_H_
#define BULKHEAD_LAUNCHER_LANDLOCK_H_

#include <cstdint>

#include "bulkhead/launcher/jail_layout.h"

namespace bulkhead::launcher::landlock {

inline constexpr std::uint64_t kExecute = 1u << 0;
inline constexpr std::uint64_t kWriteFile = 1u << 1;
inline constexpr std::uint64_t kReadFile = 1u << 2;
inline constexpr std::uint64_t kReadDir = 1u << 3;
inline constexpr std::uint64_t kRemoveDir = 1u << 4;
inline constexpr std::uint64_t kRemoveFile = 1u << 5;
inline constexpr std::uint64_t kMakeChar = 1u << 6;
inline constexpr std::uint64_t kMakeDir = 1u << 7;
inline constexpr std::uint64_t kMakeReg = 1u << 8;
inline constexpr std::uint64_t kMakeSock = 1u << 9;
inline constexpr std::uint64_t kMakeFifo = 1u << 10;
inline constexpr std::uint64_t kMakeBlock = 1u << 11;
inline constexpr std::uint64_t kMakeSym = 1u << 12;
inline constexpr std::uint64_t kRefer = 1u << 13;                  // ABI 2
inline constexpr std::uint64_t kTruncate = 1u << 14;               // ABI 3
inline constexpr std::uint64_t kIoctlDev = 1u << 15;               // ABI 5
inline constexpr std::uint64_t kResolveUnix = 1u << 16;            // ABI 9: connect to a socket by its path
inline constexpr std::uint64_t kBindTcp = 1, kConnectTcp = 2;      // ABI 4
inline constexpr std::uint64_t kBindUdp = 4, kConnectSendUdp = 8;  // ABI 10
inline constexpr std::uint64_t kScopeAbstractUnixSocket = 1, kScopeSignal = 2;  // ABI 6

inline constexpr std::uint64_t kRead = kReadFile | kReadDir;
// No devices: those are never made or granted.
inline constexpr std::uint64_t kWrite =
    kWriteFile | kRemoveDir | kRemoveFile | kMakeDir | kMakeReg | kMakeSock | kMakeFifo | kMakeSym | kRefer | kTruncate;
// What a rule on a file, as opposed to a folder, may hold (else landlock_add_rule gives EINVAL).
inline constexpr std::uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDev | kResolveUnix;

// Everything that this ABI can restrict in the file system, so that what is not granted is denied.
inline constexpr std::uint64_t HandledFs(int abi) {
  return ((1u << 13) - 1) | (abi >= 2 ? kRefer : 0) | (abi >= 3 ? kTruncate : 0) | (abi >= 5 ? kIoctlDev : 0) |
         (abi >= 9 ? kResolveUnix : 0);
}
// Everything that it can restrict in the network, by port.
inline constexpr std::uint64_t HandledNet(int abi) {
  return (abi >= 4 ? kBindTcp | kConnectTcp : 0) | (abi >= 10 ? kBindUdp | kConnectSendUdp : 0);
}
// The size of struct landlock_ruleset_attr that this ABI knows.
inline constexpr std::uint32_t AttributeBytes(int abi) { return abi >= 6 ? 24 : abi >= 4 ? 16 : 8; }

inline constexpr std::uint64_t RightsFor(Access access) {
  return kRead | kResolveUnix | (access.execute ? kExecute : 0) | (access.write ? kWrite : 0);
}

}  // namespace bulkhead::launcher::landlock

#endif  // BULKHEAD_LAUNCHER_LANDLOCK_H_
