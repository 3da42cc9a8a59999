// Values as words, for run -v, explain and its JSON.
#ifndef BULKHEAD_CLI_WORDS_H_
#define BULKHEAD_CLI_WORDS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "bulkhead/launcher/plan.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::cli {

absl::string_view LayerStateWord(launcher::LayerState state);  // full, partial, none
absl::string_view NetworkWord(policy::NetworkMode mode);       // as in a policy file, like the rest below
absl::string_view ProfileWord(policy::SyscallProfile profile);
absl::string_view HomeWord(policy::HomeMode mode);
absl::string_view TmpWord(policy::TmpMode mode);
absl::string_view StderrWord(policy::StderrMode mode);

// "1GiB", "1536KiB", "7B": the largest unit that divides it, as in a policy file.
std::string SizeWords(std::uint64_t bytes);

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_WORDS_H_
