#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bulkhead/cli/commands.h"
#include "bulkhead/cli/host.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/cli/request.h"
#include "bulkhead/policy/load.h"
#include "bulkhead/policy/warnings.h"

namespace bulkhead::cli {
namespace {

// `extended`: the files that `file` builds on, absolute.
policy::WarningContext MakeContext(const std::string& file, const std::vector<std::string>& extended,
                                   const Host& host) {
  policy::WarningContext context;
  if (!host.home.empty()) context.home = host.home;
  if (const auto path = host.env.find("PATH"); path != host.env.end()) context.path_list = path->second;
  const absl::StatusOr<std::string> absolute = AbsolutePath("FILE", file, host);
  if (absolute.ok()) context.policy_files.push_back(*absolute);
  context.policy_files.insert(context.policy_files.end(), extended.begin(), extended.end());
  context.policy_files.emplace_back(policy::kSystemCeilingPath);
  return context;
}

}  // namespace

int CheckCommand(const Flags& flags) {
  const Host host = ReadHost();
  Flags absolute_flags = flags;
  if (flags.workspace.has_value()) {
    absl::StatusOr<std::string> workspace = AbsolutePath("--workspace", *flags.workspace, host);
    if (!workspace.ok()) return FailUsage(workspace.status(), "check");
    absolute_flags.workspace = *std::move(workspace);
  }
  // The question is whether the file is right, not what this machine's ceiling leaves of it.
  constexpr absl::string_view kNoCeiling;
  policy::ParseOptions options;
  options.platform = kPlatform;
  options.record_origins = true;
  options.variables = MakeVariables(absolute_flags, host);
  std::vector<std::string> extended;
  options.read_file = [&extended](const std::string& path) {
    extended.push_back(path);
    return policy::ReadPolicyFile(path);
  };
  std::string out;
  bool all_fine = true;
  for (const std::string& file : flags.rest) {
    extended.clear();
    const absl::StatusOr<policy::Policy> policy = policy::LoadPolicy(file, options, kNoCeiling);
    if (policy.ok()) {
      bool is_fine = true;
      for (const std::string& warning : (*policy)->warnings)
        absl::StrAppend(&out, Quote(file), ": note: ", warning, "\n");
      for (const std::string& warning : policy::Warnings(*policy, MakeContext(file, extended, host))) {
        is_fine = is_fine && !flags.strict;
        absl::StrAppend(&out, "warning: ", warning, "\n");
      }
      if (is_fine) absl::StrAppend(&out, Quote(file), ": ok\n");
      all_fine = all_fine && is_fine;
    } else {
      all_fine = false;
      absl::StrAppend(&out, policy.status().message(), "\n");
    }
  }
  const int printed = PrintText(out);
  return printed != 0 ? printed : all_fine ? 0 : kExitCheckFailed;
}

}  // namespace bulkhead::cli
