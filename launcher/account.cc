#include "bulkhead/launcher/account.h"

#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace bulkhead::launcher {

std::optional<Account> FindAccount(const std::string& name) {
  std::ifstream file("/etc/passwd");
  std::string line;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = absl::StrSplit(line, ':');
    Account account;
    if (fields.size() >= 4 && fields[0] == name && absl::SimpleAtoi(fields[2], &account.uid) &&
        absl::SimpleAtoi(fields[3], &account.gid)) {
      return account;
    }
  }
  return std::nullopt;
}

}  // namespace bulkhead::launcher
