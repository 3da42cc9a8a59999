#include "bulkhead/cli/explain.h"

#include "absl/strings/str_cat.h"
#include "bulkhead/cli/commands.h"

namespace bulkhead::cli {

std::string EnvOrigin(const policy::EnvEntry& entry, const policy::Additions& additions) {
  switch (entry.source) {
    case policy::EnvEntry::Source::kInherited:
      return "the host";
    case policy::EnvEntry::Source::kSet:
      return additions.env.count(entry.name) != 0 ? "--env" : "the policy";
    case policy::EnvEntry::Source::kSecret:
      if (entry.secret.env.has_value()) return absl::StrCat("the host's variable ", Quote(*entry.secret.env));
      if (entry.secret.file.has_value()) return absl::StrCat("the file ", Quote(*entry.secret.file));
      if (entry.secret.fd.has_value()) return absl::StrCat("descriptor ", *entry.secret.fd);
  }
  return "";
}

absl::Duration RunTermGrace(const policy::Timeouts& timeouts) {
  return timeouts.term_grace_was_set ? timeouts.term_grace : absl::Seconds(1);
}

int ExplainCommand(const Flags& flags) {
  std::optional<Prepared> prepared;
  if (const int code = Prepare(Command::kExplain, flags, &prepared); code != 0) return code;
  return PrintResult(flags.json ? ExplainJson(*prepared) : ExplainText(*prepared, flags.verbose, Style::ForStdout()));
}

}  // namespace bulkhead::cli
