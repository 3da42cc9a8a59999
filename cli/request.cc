#include "bulkhead/cli/request.h"

#include <string.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/cli/suggest.h"
#include "bulkhead/policy/windows_command.h"

namespace bulkhead::cli {
namespace {

// Absolute in, lexically normal out: no empty, "." or ".." component, no slash at the end.
std::string Normal(absl::string_view path) {
  std::vector<absl::string_view> components;
  for (const absl::string_view component : absl::StrSplit(path, '/')) {
    if (component.empty() || component == ".") continue;
    if (component != "..") {
      components.push_back(component);
    } else if (!components.empty()) {
      components.pop_back();
    }
  }
  return absl::StrCat("/", absl::StrJoin(components, "/"));
}

std::optional<std::string> AbsoluteVariable(const Host& host, const std::string& name) {
  const auto found = host.env.find(name);
#ifdef _WIN32
  const auto is_absolute = policy::IsWindowsAbsolute;
#else
  const auto is_absolute = [](absl::string_view path) { return absl::StartsWith(path, "/"); };
#endif
  if (found == host.env.end() || !is_absolute(found->second)) return std::nullopt;
  return found->second;
}

absl::Status MakeAllAbsolute(absl::string_view flag, const std::vector<std::string>& paths, const Host& host,
                             std::vector<std::string>* out) {
  for (const std::string& path : paths) {
    absl::StatusOr<std::string> absolute = AbsolutePath(flag, path, host);
    if (!absolute.ok()) return absolute.status();
    out->push_back(*std::move(absolute));
  }
  return absl::OkStatus();
}

absl::Status MakeAbsolute(absl::string_view flag, const std::optional<std::string>& path, const Host& host,
                          std::string* out) {
  if (!path.has_value()) return absl::OkStatus();
  absl::StatusOr<std::string> absolute = AbsolutePath(flag, *path, host);
  if (!absolute.ok()) return absolute.status();
  *out = *std::move(absolute);
  return absl::OkStatus();
}

absl::StatusOr<policy::StderrRules> ParseStderr(const std::string& value, const Host& host) {
  policy::StderrRules rules;
  if (value == "inherit") return rules;
  if (value == "discard") {
    rules.mode = policy::StderrMode::kDiscard;
    return rules;
  }
  rules.mode = policy::StderrMode::kFile;
  absl::Status status = MakeAbsolute("--stderr", value, host, &rules.file);
  if (!status.ok()) return status;
  return rules;
}

absl::Status ChoosePolicy(const Flags& flags, const Host& host, Request* request) {
  if (flags.policy.has_value()) {
    if (flags.preset.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--policy and --preset can't be used together; a policy file builds on a preset with \"extends\": [\"preset:",
          *flags.preset, "\"]"));
    }
    return MakeAbsolute("--policy", flags.policy, host, &request->policy_path);
  }
  if (!flags.preset.has_value()) {
    request->preset = policy::PresetForCommand(flags.rest.front());
    return absl::OkStatus();
  }
  // "preset:node" is how a policy file spells it.
  const std::string name(absl::StripPrefix(*flags.preset, "preset:"));
  const std::vector<std::string> known = policy::PresetNames();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no preset ", Quote(name), DidYouMean(name, known),
                                                   " (there are: ", absl::StrJoin(known, ", "), ")"));
  }
  request->preset = name;
  return absl::OkStatus();
}

absl::Status CheckHostHas(const std::vector<std::string>& names, const Flags& flags, const Host& host) {
  for (const std::string& name : names) {
    if (flags.env.count(name) != 0)
      return absl::InvalidArgumentError(absl::StrCat("--env sets ", Quote(name), " twice"));
    const bool is_there = std::any_of(host.env.begin(), host.env.end(), [&name](const auto& entry) {
      return kPlatform == policy::Platform::kWindows ? absl::EqualsIgnoreCase(entry.first, name) : entry.first == name;
    });
    if (is_there) continue;
    return absl::InvalidArgumentError(
        "--env without a \"=\" names a variable of bulkhead's own environment, and what was given is none; write "
        "NAME=VALUE, or set it there (it is not repeated here, since it may be a value whose name was forgotten)");
  }
  return absl::OkStatus();
}

absl::Status MakeAdditions(const Flags& flags, const Host& host, policy::Additions* additions) {
  absl::Status status = MakeAllAbsolute("--ro", flags.ro, host, &additions->ro);
  if (status.ok()) status = MakeAllAbsolute("--rw", flags.rw, host, &additions->rw);
  if (!status.ok()) return status;
  additions->network = flags.network;
  additions->env = flags.env;
  status = CheckHostHas(flags.env_names, flags, host);
  if (!status.ok()) return status;
  additions->inherit = flags.env_names;
  additions->require = flags.require;
  if (!flags.stderr_to.has_value()) return absl::OkStatus();
  absl::StatusOr<policy::StderrRules> rules = ParseStderr(*flags.stderr_to, host);
  if (rules.ok()) additions->stderr_rules = *rules;
  return rules.status();
}

}  // namespace

absl::StatusOr<std::string> AbsolutePath(absl::string_view flag, absl::string_view path, const Host& host) {
  if (path.empty()) return absl::InvalidArgumentError(absl::StrCat(flag, " needs a path, not \"\""));
  if (path == "~" || absl::StartsWith(path, "~/")) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " ", Quote(path),
                     ": \"~\" is expanded by shells only, and there is none here; write the full "
                     "path",
                     host.home.empty() ? "" : ", such as ",
                     host.home.empty() ? "" : Quote(absl::StrCat(host.home, path.substr(1)))));
  }
#ifdef _WIN32
  const bool is_share = policy::IsWindowsAbsolute(path) && path[1] != ':';  // a name of its own, without drives
  if (is_share) return std::string(path);
  if (!host.cwd.empty()) {
    return (std::filesystem::u8path(host.cwd) / std::filesystem::u8path(path.begin(), path.end()))
        .lexically_normal()
        .u8string();
  }
#endif
  if (absl::StartsWith(path, "/")) return Normal(path);
  if (host.cwd.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(flag, " ", Quote(path),
                                                      " is relative, and the current folder can't be "
                                                      "determined: ",
                                                      strerror(host.cwd_errno), "; write the full path"));
  }
  return Normal(absl::StrCat(host.cwd, "/", path));
}

policy::Variables MakeVariables(const Flags& flags, const Host& host) {
  policy::Variables variables;
  if (flags.workspace.has_value()) {
    variables.workspace = *flags.workspace;
  } else if (IsWorkspace(host.cwd, host)) {
    variables.workspace = host.cwd;
  }
  if (!host.home.empty()) variables.home = host.home;
#ifdef _WIN32
  variables.tmp = AbsoluteVariable(host, "TEMP");
  const std::optional<std::string> cache = AbsoluteVariable(host, "LOCALAPPDATA");
#else
  variables.tmp = AbsoluteVariable(host, "TMPDIR").value_or("/tmp");
  // The XDG base directory specification: a relative value is to be ignored.
  const std::optional<std::string> cache = AbsoluteVariable(host, "XDG_CACHE_HOME");
#endif
  if (cache.has_value()) {
    variables.cache_root = absl::StrCat(*cache, "/bulkhead");
  } else if (host.is_root) {
    // The server is never root, and root's home is closed to whoever it is.
    variables.cache_root = "/var/cache/bulkhead";
  } else if (!host.home.empty()) {
    variables.cache_root = absl::StrCat(host.home, "/.cache/bulkhead");
  }
  variables.env = host.env;
  variables.var = flags.var;
  return variables;
}

absl::StatusOr<Request> MakeRequest(const Flags& flags, const Host& host) {
  if (host.cwd.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the current folder can't be determined: ", strerror(host.cwd_errno), "; start bulkhead in one that exists"));
  }
  Request request;
  Flags absolute_flags = flags;
  absl::Status status = ChoosePolicy(flags, host, &request);
  if (status.ok()) status = MakeAllAbsolute("--ceiling", flags.ceilings, host, &request.ceiling_paths);
  if (status.ok()) status = MakeAdditions(flags, host, &request.options.additions);
  if (status.ok()) status = MakeAbsolute("--cwd", flags.cwd, host, &request.command.cwd);
  if (status.ok()) status = MakeAbsolute("--report", flags.report, host, &request.report_path);
  if (status.ok() && flags.workspace.has_value()) {
    status = MakeAbsolute("--workspace", flags.workspace, host, &*absolute_flags.workspace);
  }
  if (!status.ok()) return status;
  request.options.variables = MakeVariables(absolute_flags, host);
  request.options.platform = request.command.platform = kPlatform;
  request.command.argv = flags.rest;
  request.command.host_cwd = host.cwd;
  request.command.host_env = host.env;
  return request;
}

int ExitCodeForRequestError(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? kExitUsage : kExitFailed;
}

}  // namespace bulkhead::cli
