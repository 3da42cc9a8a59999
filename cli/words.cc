#include "bulkhead/cli/words.h"

#include "absl/strings/str_cat.h"

namespace bulkhead::cli {

absl::string_view LayerStateWord(launcher::LayerState state) {
  switch (state) {
    case launcher::LayerState::kFull:
      return "full";
    case launcher::LayerState::kPartial:
      return "partial";
    case launcher::LayerState::kNone:
      return "none";
  }
  return "";
}

absl::string_view NetworkWord(policy::NetworkMode mode) {
  switch (mode) {
    case policy::NetworkMode::kNone:
      return "none";
    case policy::NetworkMode::kAllowlist:
      return "allowlist";
    case policy::NetworkMode::kHost:
      return "host";
  }
  return "";
}

absl::string_view ProfileWord(policy::SyscallProfile profile) {
  switch (profile) {
    case policy::SyscallProfile::kBaseline:
      return "baseline";
    case policy::SyscallProfile::kStrict:
      return "strict";
  }
  return "";
}

absl::string_view HomeWord(policy::HomeMode mode) {
  switch (mode) {
    case policy::HomeMode::kPrivate:
      return "private";
    case policy::HomeMode::kNone:
      return "none";
    case policy::HomeMode::kReadOnly:
      return "ro";
    case policy::HomeMode::kReadWrite:
      return "rw";
  }
  return "";
}

absl::string_view TmpWord(policy::TmpMode mode) {
  switch (mode) {
    case policy::TmpMode::kPrivate:
      return "private";
    case policy::TmpMode::kHost:
      return "host";
  }
  return "";
}

absl::string_view StderrWord(policy::StderrMode mode) {
  switch (mode) {
    case policy::StderrMode::kInherit:
      return "inherit";
    case policy::StderrMode::kDiscard:
      return "discard";
    case policy::StderrMode::kFile:
      return "file";
  }
  return "";
}

std::string SizeWords(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  for (; unit + 1 < std::size(kUnits) && bytes != 0 && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return absl::StrCat(bytes, kUnits[unit]);
}

}  // namespace bulkhead::cli
