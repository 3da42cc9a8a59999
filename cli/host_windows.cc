// What Windows hands down.
#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <cwchar>
#include <string>

#include "bulkhead/cli/host.h"

namespace bulkhead::cli {
namespace {

constexpr char kNoUtf8[] = "\xFF";

}  // namespace

std::string ToUtf8(const wchar_t* text) {
  const int length = static_cast<int>(wcslen(text));
  if (length == 0) return "";
  // Without the flag it would silently be another text.
  const int bytes = WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, text, length, nullptr, 0, nullptr, nullptr);
  if (bytes == 0) return kNoUtf8;
  std::string out(static_cast<std::size_t>(bytes), '\0');
  WideCharToMultiByte(CP_UTF8, 0, text, length, out.data(), static_cast<int>(out.size()), nullptr, nullptr);
  return out;
}

bool OpenStandardDescriptors() {
  // Bytes are passed on as they are: no line end becomes another one.
  for (const int fd : {0, 1, 2}) _setmode(fd, _O_BINARY);
  return true;
}

std::optional<std::string> HomeFromPasswd(absl::string_view, std::uint32_t) { return std::nullopt; }

bool IsWorkspace(absl::string_view folder, const Host& host) {
  // "C:\\" is a root; so is "\\\\server\\share", which has no further part.
  if (folder.size() <= 3) return false;
  return host.home.empty() || host.home.compare(0, folder.size(), std::string(folder)) != 0;
}

Host ReadHost() {
  Host host;
  wchar_t* const block = GetEnvironmentStringsW();
  for (const wchar_t* entry = block; entry != nullptr && *entry != 0; entry += wcslen(entry) + 1) {
    const std::string text = ToUtf8(entry);
    if (text == kNoUtf8) continue;                 // no value that could be passed on as it is
    const std::size_t equals = text.find('=', 1);  // "=C:=C:\\x" is cmd.exe's, one for each drive
    if (text[0] != '=' && equals != std::string::npos)
      host.env.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  if (block != nullptr) FreeEnvironmentStringsW(block);
  std::wstring folder(GetCurrentDirectoryW(0, nullptr), L'\0');
  folder.resize(GetCurrentDirectoryW(static_cast<DWORD>(folder.size()), folder.data()));
  host.cwd = ToUtf8(folder.c_str());
  const auto home = host.env.find("USERPROFILE");
  if (home != host.env.end()) host.home = host.home_on_disk = home->second;
  return host;
}

}  // namespace bulkhead::cli
