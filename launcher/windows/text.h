// UTF-8, which is ours, and UTF-16, which is Windows'.
#ifndef BULKHEAD_LAUNCHER_WINDOWS_TEXT_H_
#define BULKHEAD_LAUNCHER_WINDOWS_TEXT_H_

#include <windows.h>

#include <string>

#include "absl/strings/string_view.h"

namespace bulkhead::launcher {

// What is no UTF-8 becomes U+FFFD: never a shorter text.
inline std::wstring ToWide(absl::string_view text) {
  if (text.empty()) return L"";
  const int bytes = static_cast<int>(text.size());
  std::wstring out(static_cast<std::size_t>(MultiByteToWideChar(CP_UTF8, 0, text.data(), bytes, nullptr, 0)), L'\0');
  MultiByteToWideChar(CP_UTF8, 0, text.data(), bytes, out.data(), static_cast<int>(out.size()));
  return out;
}

inline std::string ToUtf8(const std::wstring& text) {
  if (text.empty()) return "";
  const int units = static_cast<int>(text.size());
  std::string out(
      static_cast<std::size_t>(WideCharToMultiByte(CP_UTF8, 0, text.data(), units, nullptr, 0, nullptr, nullptr)),
      '\0');
  WideCharToMultiByte(CP_UTF8, 0, text.data(), units, out.data(), static_cast<int>(out.size()), nullptr, nullptr);
  return out;
}

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_WINDOWS_TEXT_H_
