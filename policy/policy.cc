#include "bulkhead/policy/policy.h"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bulkhead/policy/ceiling.h"
#include "bulkhead/policy/compose.h"
#include "bulkhead/policy/fields.h"
#include "bulkhead/policy/mistakes.h"
#include "bulkhead/policy/parse.h"

namespace bulkhead::policy {

class PolicyMaker {
 public:
  static Policy Make(PolicyFields fields) { return Policy(std::move(fields)); }
};

namespace {

// FNV-1a, 64 bits: stable on every machine. It keeps the caches of policies of one name apart; who writes the policies
// is the same one who would have to fear a collision.
std::uint64_t Fnv1a(absl::string_view text) {
  std::uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

void RecordOrigins(const JsonValue& value, const std::string& pointer, std::map<std::string, std::string>& origins) {
  if (value.type == JsonValue::Type::kObject || value.type == JsonValue::Type::kArray) {
    for (const JsonValue& child : value.children) {
      RecordOrigins(child, absl::StrCat(pointer, "/", child.key.empty() ? child.string : child.key), origins);
    }
  } else {
    origins[pointer] = absl::StrCat(*value.file, ":", value.place.line);
  }
}

void RecordAdditions(const Additions& additions, std::map<std::string, std::string>& origins) {
  if (additions.network.has_value()) origins["/network/mode"] = "--network";
  if (additions.require.has_value()) origins["/require"] = "--require";
  if (additions.stderr_rules.has_value()) origins["/stderr"] = "--stderr";
  for (const auto& [name, value] : additions.env) origins[absl::StrCat("/env/set/", name)] = "--env";
  for (const std::string& name : additions.inherit) origins[absl::StrCat("/env/inherit/", name)] = "--env";
}

// What a ceiling may change and explain shows on a line of its own, as text.
std::map<std::string, std::string> ShownValues(const PolicyFields& fields) {
  const Limits& limits = fields.limits;
  return {{"/require", std::string(TierName(fields.require))},
          {"/user", fields.user},
          {"/filesystem/home", absl::StrCat(static_cast<int>(fields.filesystem.home))},
          {"/filesystem/tmp", absl::StrCat(static_cast<int>(fields.filesystem.tmp))},
          {"/network/mode", absl::StrCat(static_cast<int>(fields.network))},
          {"/syscalls/profile", absl::StrCat(static_cast<int>(fields.syscall_profile))},
          {"/limits/memory", absl::StrCat(limits.memory_bytes)},
          {"/limits/processes", absl::StrCat(limits.processes)},
          {"/limits/open_files", absl::StrCat(limits.open_files)},
          {"/limits/file_size", absl::StrCat(limits.file_size_bytes)},
          {"/limits/cpu_time", absl::FormatDuration(limits.cpu_time)},
          {"/timeouts/stdin_grace", absl::FormatDuration(fields.timeouts.stdin_grace)},
          {"/timeouts/term_grace", absl::FormatDuration(fields.timeouts.term_grace)},
          {"/stderr", absl::StrCat(static_cast<int>(fields.stderr_rules.mode), fields.stderr_rules.file)}};
}

// As NarrowTo, and notes which ceiling a changed value comes from.
void NarrowAndRecord(const Draft& ceiling, Draft& draft, Mistakes& mistakes) {
  const std::map<std::string, std::string> before = ShownValues(draft.fields);
  NarrowTo(ceiling, draft, mistakes);
  for (const auto& [pointer, value] : ShownValues(draft.fields)) {
    if (before.at(pointer) == value) continue;
    const auto said = ceiling.fields.origins.find(pointer);
    draft.fields.origins[pointer] = said != ceiling.fields.origins.end() ? said->second : ceiling.fields.name;
  }
  // What a ceiling adds, since it takes away.
  for (const auto& [pointer, said] : ceiling.fields.origins) {
    if (absl::StartsWith(pointer, "/syscalls/deny/") || absl::StartsWith(pointer, "/command/args/deny/")) {
      draft.fields.origins.emplace(pointer, said);
    }
  }
}

}  // namespace

std::string CacheKey(absl::string_view identity) {
  constexpr std::size_t kReadableBytesMax = 40;
  absl::string_view last = identity;
  absl::ConsumePrefix(&last, "preset:");
  last = last.substr(last.rfind('/') + 1);
  absl::ConsumeSuffix(&last, ".json");
  std::string key;
  for (const char c : last.substr(0, kReadableBytesMax)) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
    key.push_back(plain ? c : '_');
  }
  return absl::StrCat(key, "-", absl::Hex(Fnv1a(identity), absl::kZeroPad16));
}

absl::StatusOr<PolicyFields> ParseFields(const PolicyText& text, const ParseOptions& options, Unenforced unenforced) {
  Mistakes mistakes;
  std::deque<std::string> file_names;
  const ComposeOptions compose{options.folder, options.read_file, options.platform, unenforced};
  const std::string cache_key = CacheKey(PolicyIdentity(text.name, options.folder, options.platform));
  ReadOptions read;
  read.platform = options.platform;
  read.variables = &options.variables;
  if (options.variables.cache_root.has_value())
    read.cache = absl::StrCat(*options.variables.cache_root, "/", cache_key);

  Draft draft;
  if (const std::optional<JsonValue> tree = Compose(text, compose, file_names, mistakes)) {
    draft = ReadFields(*tree, read, mistakes);
    if (options.record_origins) RecordOrigins(*tree, "", draft.fields.origins);
  }
  draft.fields.name = text.name;
  draft.fields.cache_key = cache_key;
  Add(options.additions, draft, mistakes);
  if (options.record_origins) RecordAdditions(options.additions, draft.fields.origins);

  read.purpose = Purpose::kCeiling;
  for (const PolicyText& ceiling_text : options.ceilings) {
    const std::optional<JsonValue> tree = Compose(ceiling_text, compose, file_names, mistakes);
    if (!tree.has_value()) continue;
    Draft ceiling = ReadFields(*tree, read, mistakes);
    ceiling.fields.name = ceiling_text.name;
    draft.fields.narrowed = true;
    if (options.record_origins) RecordOrigins(*tree, "", ceiling.fields.origins);
    if (!mistakes.empty()) continue;
    options.record_origins ? NarrowAndRecord(ceiling, draft, mistakes) : NarrowTo(ceiling, draft, mistakes);
  }
  absl::Status status = mistakes.ToStatus();
  if (!status.ok()) return status;
  return std::move(draft.fields);
}

absl::StatusOr<Policy> ParsePolicy(const PolicyText& text, const ParseOptions& options) {
  absl::StatusOr<PolicyFields> fields = ParseFields(text, options, Unenforced::kRefuse);
  if (!fields.ok()) return fields.status();
  return PolicyMaker::Make(*std::move(fields));
}

absl::string_view TierName(Tier tier) {
  switch (tier) {
    case Tier::kA:
      return "A";
    case Tier::kB:
      return "B";
    case Tier::kC:
      return "C";
  }
  return "";
}

}  // namespace bulkhead::policy
