#include "bulkhead/launcher/windows/token.h"

#include <windows.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/windows/job.h"

namespace bulkhead::launcher {
namespace {

// An account's or a group's number, the same on every Windows.
class KnownSid {
 public:
  explicit KnownSid(WELL_KNOWN_SID_TYPE type) {
    DWORD bytes = sizeof(space_);
    valid_ = CreateWellKnownSid(type, nullptr, space_, &bytes) != 0;
  }
  bool valid() const { return valid_; }
  PSID sid() { return space_; }

 private:
  alignas(SID) char space_[SECURITY_MAX_SID_SIZE];
  bool valid_ = false;
};

bool IsSame(const LUID& a, const LUID& b) { return a.LowPart == b.LowPart && a.HighPart == b.HighPart; }

// Empty when the token doesn't tell.
std::vector<char> Read(NativeFd token, TOKEN_INFORMATION_CLASS what) {
  DWORD bytes = 0;
  GetTokenInformation(token, what, nullptr, 0, &bytes);
  std::vector<char> space(bytes);
  if (bytes == 0 || !GetTokenInformation(token, what, space.data(), bytes, &bytes)) return {};
  return space;
}

// What an administrator makes belongs to Administrators, and is open to them: it would be closed to a server that is
// none. So it is the user's. No wall depends on it, and wine 8 doesn't know it all: a failure is none.
void GiveToUser(NativeFd token) {
  const std::vector<char> space = Read(token, TokenUser);
  KnownSid system(WinLocalSystemSid);
  if (space.empty() || !system.valid()) return;
  TOKEN_OWNER owner = {reinterpret_cast<const TOKEN_USER*>(space.data())->User.Sid};
  alignas(ACL) char list[sizeof(ACL) + 2 * (sizeof(ACCESS_ALLOWED_ACE) + SECURITY_MAX_SID_SIZE)];
  TOKEN_DEFAULT_DACL open_to = {reinterpret_cast<ACL*>(list)};
  if (!InitializeAcl(open_to.DefaultDacl, sizeof(list), ACL_REVISION) ||
      !AddAccessAllowedAce(open_to.DefaultDacl, ACL_REVISION, GENERIC_ALL, owner.Owner) ||
      !AddAccessAllowedAce(open_to.DefaultDacl, ACL_REVISION, GENERIC_ALL, system.sid())) {
    return;
  }
  SetTokenInformation(token, TokenOwner, &owner, sizeof(owner));
  SetTokenInformation(token, TokenDefaultDacl, &open_to, sizeof(open_to));
}

}  // namespace

absl::StatusOr<UniqueFd> MakeServerToken() {
  HANDLE own = nullptr, made = nullptr;
  KnownSid administrators(WinBuiltinAdministratorsSid);
  if (!administrators.valid() ||
      !OpenProcessToken(GetCurrentProcess(),
                        TOKEN_DUPLICATE | TOKEN_QUERY | TOKEN_ASSIGN_PRIMARY | TOKEN_ADJUST_DEFAULT, &own)) {
    return WindowsError("cannot open this process's token");
  }
  const UniqueFd token(own);
  const std::vector<char> privileges = Read(token.get(), TokenPrivileges);
  LUID change_notify;
  if (privileges.empty() || !LookupPrivilegeValueW(nullptr, L"SeChangeNotifyPrivilege", &change_notify)) {
    return WindowsError("cannot read this process's token");
  }
  std::vector<LUID_AND_ATTRIBUTES> removed;
  const auto* const has = reinterpret_cast<const TOKEN_PRIVILEGES*>(privileges.data());
  for (DWORD i = 0; i < has->PrivilegeCount; ++i) {
    if (!IsSame(has->Privileges[i].Luid, change_notify)) removed.push_back(has->Privileges[i]);
  }
  SID_AND_ATTRIBUTES denied = {administrators.sid(), 0};
  if (!CreateRestrictedToken(token.get(), 0, 1, &denied, static_cast<DWORD>(removed.size()), removed.data(), 0, nullptr,
                             &made)) {
    return WindowsError("cannot make the server's token");
  }
  UniqueFd restricted(made);
  GiveToUser(restricted.get());
  return restricted;
}

absl::Status CheckServerToken(NativeFd process) {
  HANDLE opened = nullptr;
  KnownSid administrators(WinBuiltinAdministratorsSid);
  LUID change_notify;
  if (!administrators.valid() || !LookupPrivilegeValueW(nullptr, L"SeChangeNotifyPrivilege", &change_notify) ||
      !OpenProcessToken(process, TOKEN_QUERY, &opened)) {
    return WindowsError("cannot open the server's token");
  }
  const UniqueFd token(opened);
  const std::vector<char> privileges = Read(token.get(), TokenPrivileges), groups = Read(token.get(), TokenGroups);
  if (privileges.empty() || groups.empty()) return WindowsError("cannot read the server's token");
  const auto* const has = reinterpret_cast<const TOKEN_PRIVILEGES*>(privileges.data());
  for (DWORD i = 0; i < has->PrivilegeCount; ++i) {
    if (IsSame(has->Privileges[i].Luid, change_notify)) continue;
    return absl::FailedPreconditionError("this system does not take the user's privileges away from a server");
  }
  const auto* const in = reinterpret_cast<const TOKEN_GROUPS*>(groups.data());
  for (DWORD i = 0; i < in->GroupCount; ++i) {
    if (!EqualSid(in->Groups[i].Sid, administrators.sid()) || (in->Groups[i].Attributes & SE_GROUP_ENABLED) == 0) {
      continue;
    }
    return absl::FailedPreconditionError("this system does not take an administrator's rights away from a server");
  }
  return absl::OkStatus();
}

}  // namespace bulkhead::launcher
