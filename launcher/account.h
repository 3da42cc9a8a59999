// The accounts of this machine.
#ifndef BULKHEAD_LAUNCHER_ACCOUNT_H_
#define BULKHEAD_LAUNCHER_ACCOUNT_H_

#include <cstdint>
#include <optional>
#include <string>

namespace bulkhead::launcher {

struct Account {
  std::uint32_t uid, gid;
};

// By /etc/passwd alone: a static program can't use NSS.
std::optional<Account> FindAccount(const std::string& name);

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_ACCOUNT_H_
