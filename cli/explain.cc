#include "bulkhead/cli/explain.h"

#include "absl/strings/str_cat.h"
#include "bulkhead/cli/commands.h"

namespace bulkhead::cli {
namespace {

std::string SecretWords(const policy::EnvEntry& entry) {
  if (entry.secret.env.has_value()) return absl::StrCat("the host's variable ", Quote(*entry.secret.env));
  if (entry.secret.file.has_value()) return absl::StrCat("the file ", Quote(*entry.secret.file));
  return absl::StrCat("descriptor ", entry.secret.fd.value_or(-1));
}

std::string SecretOrigin(const policy::EnvEntry& entry, const policy::PolicyFields& policy) {
  const char* kind = entry.secret.env.has_value() ? "/env" : entry.secret.file.has_value() ? "/file" : "/fd";
  return OriginOf(policy, absl::StrCat("/env/secret/", entry.name, kind));
}

}  // namespace

std::string OriginOf(const policy::PolicyFields& policy, const std::string& pointer) {
  const auto found = policy.origins.find(pointer);
  return found != policy.origins.end() ? found->second : "default";
}

std::string EnvOrigin(const policy::EnvEntry& entry, const policy::PolicyFields& policy) {
  switch (entry.source) {
    case policy::EnvEntry::Source::kInherited:
      return absl::StrCat("the host (", OriginOf(policy, absl::StrCat("/env/inherit/", entry.let_in_by)), ")");
    case policy::EnvEntry::Source::kSet:
      return OriginOf(policy, absl::StrCat("/env/set/", entry.name));
    case policy::EnvEntry::Source::kSecret:
      return absl::StrCat(SecretWords(entry), " (", SecretOrigin(entry, policy), ")");
  }
  return "";
}

int ExplainCommand(const Flags& flags) {
  std::optional<Prepared> prepared;
  if (const int code = Prepare(Command::kExplain, flags, &prepared); code != 0) return code;
  return PrintResult(flags.json ? ExplainJson(*prepared) : ExplainText(*prepared, flags.verbose, Style::ForStdout()));
}

}  // namespace bulkhead::cli
