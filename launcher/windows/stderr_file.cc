#include "bulkhead/launcher/windows/stderr_file.h"

#include <windows.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/windows/text.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {
namespace {

constexpr wchar_t kAsItIs[] = L"\\\\?\\";  // Windows changes nothing about a name that begins so

// Whether what was opened is called `path`. Empty names are nobody's.
bool IsCalled(NativeFd file, const std::wstring& path) {
  std::wstring name(GetFinalPathNameByHandleW(file, nullptr, 0, VOLUME_NAME_DOS), L'\0');
  name.resize(GetFinalPathNameByHandleW(file, name.data(), static_cast<DWORD>(name.size()), VOLUME_NAME_DOS));
  return !name.empty() && CompareStringOrdinal(name.c_str(), -1, path.c_str(), -1, TRUE) == CSTR_EQUAL;
}

}  // namespace

absl::StatusOr<UniqueFd> OpenToAppend(const std::string& path) {
  const auto refuse = [&path](absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot append the server's stderr to ", policy::Quote(path), ": ", why));
  };
  const auto error = [&refuse] { return refuse(absl::StrCat("error ", GetLastError(), " of Windows")); };
  constexpr const char* kLink = "there is a link or a short name in it; write the path without";
  const std::wstring full = kAsItIs + ToWide(path);
  std::wstring folder = full.substr(0, full.rfind(L'\\'));
  if (folder.back() == L':') folder += L'\\';  // the root of a drive
  // Open until the file is, so that nobody puts another one in its place.
  const UniqueFd parent(CreateFileW(folder.c_str(), FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr,
                                    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  if (!parent.valid()) return error();
  if (!IsCalled(parent.get(), folder)) return refuse(kLink);
  SECURITY_ATTRIBUTES inherit = {sizeof(inherit), nullptr, TRUE};
  UniqueFd file(CreateFileW(full.c_str(), FILE_APPEND_DATA | FILE_READ_ATTRIBUTES | SYNCHRONIZE,
                            FILE_SHARE_READ | FILE_SHARE_WRITE, &inherit, OPEN_ALWAYS,
                            FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT, nullptr));
  BY_HANDLE_FILE_INFORMATION info;
  if (!file.valid()) return error();
  if (GetFileType(file.get()) != FILE_TYPE_DISK) return refuse("it is not a regular file");
  if (!GetFileInformationByHandle(file.get(), &info)) return error();
  if ((info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0) return refuse("it is not a regular file");
  if ((info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0 || !IsCalled(file.get(), full)) return refuse(kLink);
  return file;
}

}  // namespace bulkhead::launcher
