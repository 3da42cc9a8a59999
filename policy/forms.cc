#include "bulkhead/policy/forms.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bulkhead/policy/env_names.h"
#include "bulkhead/policy/glob.h"
#include "bulkhead/policy/paths.h"
#include "bulkhead/policy/policy.h"
#include "bulkhead/policy/syscall_names.h"
#include "bulkhead/policy/text.h"
#include "bulkhead/policy/variables.h"

namespace bulkhead::policy {
namespace {

constexpr std::size_t kGlobBytesMax = 1024;
constexpr std::size_t kUserBytesMax = 32;   // useradd(8)
constexpr std::size_t kHostBytesMax = 253;  // RFC 1035

struct Unit {
  absl::string_view name;
  std::uint64_t factor;
};
// From the largest to the smallest.
constexpr Unit kSizeUnits[] = {{"GiB", 1u << 30}, {"MiB", 1u << 20}, {"KiB", 1u << 10}, {"B", 1}};
constexpr Unit kDurationUnits[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

template <std::size_t N>
std::optional<std::uint64_t> ParseWithUnit(absl::string_view text, const Unit (&units)[N]) {
  const std::size_t digits =
      std::find_if_not(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isdigit(c); }) - text.begin();
  std::uint64_t number = 0;
  if (digits == 0 || !absl::SimpleAtoi(text.substr(0, digits), &number)) return std::nullopt;
  for (const Unit& unit : units) {
    if (text.substr(digits) != unit.name) continue;
    if (number > std::numeric_limits<std::uint64_t>::max() / unit.factor) return std::nullopt;
    return number * unit.factor;
  }
  return std::nullopt;
}

template <std::size_t N>
std::string TextWithUnit(std::uint64_t number, const Unit (&units)[N]) {
  for (const Unit& unit : units) {
    if (number != 0 && number % unit.factor == 0) return absl::StrCat(number / unit.factor, unit.name);
  }
  return absl::StrCat(number, units[N - 1].name);
}

bool AllOf(absl::string_view text, bool (*holds)(char)) { return std::all_of(text.begin(), text.end(), holds); }
bool IsNameCharacter(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// On Windows a path without a drive passes here: the presets name some of Linux's. It is no grant there.
std::string CheckPath(absl::string_view text, Platform platform) {
  const auto quoted = [text] { return Quote(text); };
  if (text.empty()) return "is empty; write the full path or start it with ${workspace}";
  if (HasControlCharacter(text)) return absl::StrCat(quoted(), " has a control character; take it out");
  if (absl::StartsWith(text, "~")) return absl::StrCat(quoted(), " is not absolute; write ${home} for \"~\"");
  if (text.front() == ':') return absl::StrCat(quoted(), " is not a path; \":runtime\" goes in /filesystem/rx");
  const bool windows = platform == Platform::kWindows;
  if (text.front() != '/' && !absl::StartsWith(text, "${") && !(windows && BeginsWithDrive(text))) {
    return absl::StrCat(quoted(), " is not absolute; write the full path or start it with ${workspace}");
  }
  std::string wrong = CheckVariables(text);
  if (!wrong.empty()) return wrong;
  if (HasDotDot(text)) return absl::StrCat(quoted(), " has a \"..\" component; write the path that is meant");
  const std::size_t end = text.find('}');
  if (text.front() == '$' && end + 1 < text.size() && text[end + 1] != '/' && !(windows && text[end + 1] == '\\')) {
    return absl::StrCat(quoted(), " goes on after its variable without a slash; write ",
                        Quote(absl::StrCat(text.substr(0, end + 1), "/", text.substr(end + 1))),
                        " or give the whole path");
  }
  if (text.size() > kPathBytesMax) return absl::StrCat("is longer than ", kPathBytesMax, " bytes; no path can be");
  return "";
}

std::string CheckCommand(absl::string_view text, Platform platform) {
  if (HasSlash(text, platform)) return CheckPath(text, platform);
  if (text.empty()) return "is empty; write a program's name or its full path";
  if (HasControlCharacter(text)) return absl::StrCat(Quote(text), " has a control character; take it out");
  if (absl::StrContains(text, ' ')) {
    return absl::StrCat(Quote(text), " has a space in it; name the program only, arguments are ruled by /command/args");
  }
  if (HasVariable(text)) return absl::StrCat(Quote(text), " has a variable and is not a path; write a plain name");
  if (text == "." || text == "..") return absl::StrCat(Quote(text), " is a folder; write a program's name");
  return "";
}

std::string CheckExtends(absl::string_view text) {
  if (text.empty()) return "is empty; write \"preset:node\" or a file's path";
  if (HasControlCharacter(text)) return absl::StrCat(Quote(text), " has a control character; take it out");
  if (HasVariable(text)) {
    return absl::StrCat(Quote(text), " has a variable, which is not expanded here; write the path");
  }
  absl::string_view name = text;
  if (!absl::ConsumePrefix(&name, "preset:")) return "";
  const std::vector<std::string> presets = PresetNames();
  if (std::find(presets.begin(), presets.end(), name) != presets.end()) return "";
  const std::vector<absl::string_view> known(presets.begin(), presets.end());
  const std::string near_miss = NearMiss(name, known);
  return absl::StrCat(Quote(text), " is not a preset; ",
                      near_miss.empty() ? std::string("`bulkhead presets` lists them")
                                        : absl::StrCat("did you mean \"preset:", near_miss, "\"?"));
}

std::string CheckUser(absl::string_view text) {
  const bool valid = !text.empty() && text.size() <= kUserBytesMax && !absl::ascii_isdigit(text.front()) &&
                     text.front() != '-' &&
                     AllOf(text, [](char c) { return IsNameCharacter(c) || c == '-' || c == '.'; });
  if (valid) return "";
  return absl::StrCat(Quote(text), " is not a user's name; write \"auto\", \"root\" or a name");
}

std::string CheckGlob(absl::string_view text) {
  if (text.empty()) return "is empty; write a pattern such as \"--inspect*\"";
  if (HasControlCharacter(text)) return absl::StrCat(Quote(text), " has a control character; take it out");
  if (HasVariable(text)) {
    return absl::StrCat(Quote(text), " has a variable, and arguments, which everyone can read, may not; write it out");
  }
  if (text.size() > kGlobBytesMax) return absl::StrCat("is longer than ", kGlobBytesMax, " bytes; write a shorter one");
  return "";
}

std::string CheckEnvName(absl::string_view text) {
  if (IsFunctionName(text)) return absl::StrCat(Quote(text), " is a shell function, which never passes; leave it out");
  if (IsEnvName(text)) return "";
  return absl::StrCat(Quote(text), " is not the name of an environment variable; write one such as \"LANG\"");
}

std::string CheckEnvGlob(absl::string_view text) {
  if (!IsGlob(text)) {
    std::string wrong = CheckEnvName(text);
    if (!wrong.empty()) return wrong;
    const absl::string_view why = WhyNeverInherited(text, /*ignore_case=*/false);
    if (why.empty()) return "";
    return absl::StrCat(Quote(text), " never passes from the host, since it ", why,
                        "; give it a value of its own in /env/set");
  }
  std::string letters;
  std::copy_if(text.begin(), text.end(), std::back_inserter(letters), [](char c) { return c != '*' && c != '?'; });
  if (!letters.empty() && !IsEnvName(letters)) {
    return absl::StrCat(Quote(text), " is not a name or pattern; write one such as \"LC_*\"");
  }
  return "";
}

std::string CheckHostPort(absl::string_view text) {
  const auto wrong = [text] {
    return absl::StrCat(Quote(text), " is not a host and a port; write \"api.example.com:443\"");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return wrong();
  absl::string_view host = text.substr(0, colon);
  std::uint32_t port = 0;
  const absl::string_view digits = text.substr(colon + 1);
  if (digits.empty() || !AllOf(digits, [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }) ||
      !absl::SimpleAtoi(digits, &port) || port == 0 || port > 65535) {
    return absl::StrCat(Quote(text), " has no port from 1 to 65535; write \"api.example.com:443\"");
  }
  if (absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]")) {
    const bool is_v6 = absl::StrContains(host, ':') && AllOf(host, [](char c) {
                         return absl::ascii_isxdigit(static_cast<unsigned char>(c)) || c == ':' || c == '.';
                       });
    return is_v6 ? "" : wrong();
  }
  const bool valid = !host.empty() && host.size() <= kHostBytesMax && host.front() != '-' && host.front() != '.' &&
                     AllOf(host, [](char c) { return IsNameCharacter(c) || c == '-' || c == '.'; });
  return valid ? "" : wrong();
}

}  // namespace

std::string CheckText(Form form, absl::string_view text, Platform platform) {
  switch (form) {
    case Form::kExtends:
      return CheckExtends(text);
    case Form::kUser:
      return CheckUser(text);
    case Form::kCommand:
      return CheckCommand(text, platform);
    case Form::kDigest: {
      const bool valid = text.size() == 64 && AllOf(text, [](char c) {
                           return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (c >= 'a' && c <= 'f');
                         });
      return valid ? "" : absl::StrCat(Quote(text), " is not a SHA-256; write its 64 lower-case hex digits");
    }
    case Form::kGlob:
      return CheckGlob(text);
    case Form::kEnvName:
      return CheckEnvName(text);
    case Form::kEnvGlob:
      return CheckEnvGlob(text);
    case Form::kEnvValue: {
      std::string wrong = CheckEnvValue(text);
      return wrong.empty() ? CheckVariables(text) : wrong;
    }
    case Form::kPath:
      return CheckPath(text, platform);
    case Form::kRuntimePath:
      if (text == ":runtime") return "";
      if (absl::StartsWith(text, ":")) return absl::StrCat(Quote(text), " is not known; did you mean \":runtime\"?");
      return CheckPath(text, platform);
    case Form::kHostPort:
      return CheckHostPort(text);
    case Form::kAllowedSyscall:
      return WhyNotAllowed(text);
    case Form::kDeniedSyscall:
      return WhyNotDenied(text);
    case Form::kFlag:
    case Form::kVersion:
    case Form::kChoice:
    case Form::kCount:
    case Form::kSize:
    case Form::kDuration:
    case Form::kSecret:
      break;  // not text, or not free
  }
  return "is of an unknown form";
}

std::optional<std::uint64_t> ParseSize(absl::string_view text) { return ParseWithUnit(text, kSizeUnits); }

std::optional<std::uint64_t> ParseDurationMs(absl::string_view text) { return ParseWithUnit(text, kDurationUnits); }

std::string SizeText(std::uint64_t bytes) { return TextWithUnit(bytes, kSizeUnits); }

std::string DurationText(std::uint64_t milliseconds) { return TextWithUnit(milliseconds, kDurationUnits); }

std::string CheckEnvValue(absl::string_view value) {
  if (IsFunctionValue(value))
    return "begins with \"()\" like a shell function, which never passes; write another value";
  if (absl::StrContains(value, '\0')) return "holds a NUL character; take it out";
  return "";
}

}  // namespace bulkhead::policy
