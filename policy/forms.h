// The forms of a policy's single values: sizes, durations, names, paths as written. Each is checked here as text,
// before anything is expanded.
#ifndef BULKHEAD_POLICY_FORMS_H_
#define BULKHEAD_POLICY_FORMS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

enum class Form {
  kFlag,            // true or false
  kVersion,         // 1
  kChoice,          // one of a few words
  kCount,           // a whole number
  kSize,            // "512MiB"
  kDuration,        // "30s"
  kExtends,         // "preset:node", "../base.json"
  kUser,            // "auto", "root", a name
  kCommand,         // "npx", "/usr/bin/node"
  kDigest,          // 64 hex digits
  kGlob,            // "--inspect*"
  kEnvName,         // "HOME"
  kEnvGlob,         // "LC_*"
  kEnvValue,        // "${cache}/npm"
  kPath,            // "${workspace}/out"
  kRuntimePath,     // the same, or ":runtime"
  kHostPort,        // "api.example.com:443"
  kAllowedSyscall,  // "ptrace"
  kDeniedSyscall,
  kSecret,  // an object: see grammar.h
};

// Whether `text` is of `form`, one of those that are text of a free form. Empty if so, else "what is wrong; what would
// help".
std::string CheckText(Form form, absl::string_view text, Platform platform = Platform::kPosix);

// Bytes. Nothing if `text` is not a whole number and B, KiB, MiB or GiB, or does not fit.
std::optional<std::uint64_t> ParseSize(absl::string_view text);
// Milliseconds. Nothing if `text` is not a whole number and ms, s, m or h, or does not fit.
std::optional<std::uint64_t> ParseDurationMs(absl::string_view text);

// "512MiB", "30s": as short as it goes exactly.
std::string SizeText(std::uint64_t bytes);
std::string DurationText(std::uint64_t milliseconds);

// What an environment variable's value must not be, set by a policy or on the command line. Never repeats the value.
std::string CheckEnvValue(absl::string_view value);

}  // namespace bulkhead::policy

#endif  // BULKHEAD_POLICY_FORMS_H_
