// The command line: which commands and flags there are, and what a list of words means. Pure: words in, Flags or a
// usage error out. What the flags refer to (files, presets, folders) is looked at in request.h.
//
// Flags end at the first word that is not one, or at "--"; all after it belongs to the server, untouched. For the
// commands that start no server (check, doctor, presets) flags may stand anywhere.
#ifndef BULKHEAD_CLI_FLAGS_H_
#define BULKHEAD_CLI_FLAGS_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::cli {

enum class Command { kRun, kExplain, kTools, kResources, kPrompts, kCall, kRequest, kCheck, kDoctor, kPresets };

enum class EraFlag { kAuto, kLegacy, kModern };

struct Flags {
  bool help = false;  // when set, nothing else counts
  bool verbose = false;
  bool json = false;
  bool strict = false;
  // As given: relative paths are made absolute in request.h.
  std::optional<std::string> policy, preset, workspace, cwd, report, stderr_to;
  std::vector<std::string> ro, rw, ceilings;
  std::map<std::string, std::string> env, var;
  std::vector<std::string> env_names;  // of --env without a value
  std::optional<policy::NetworkMode> network;
  std::optional<policy::Tier> require;
  // Of the commands that talk to the server.
  std::optional<absl::Duration> timeout;
  EraFlag era = EraFlag::kAuto;
  std::optional<std::string> tool, arguments, method, params;
  std::vector<std::pair<std::string, std::string>> args;  // of --arg, in order
  // COMMAND and its arguments, the files to check, or the preset's name.
  std::vector<std::string> rest;
};

// `name` is the first word after "bulkhead". Errors: InvalidArgument, with the nearest command.
absl::StatusOr<Command> ParseCommandName(absl::string_view name);
absl::string_view CommandName(Command command);

// `words` are those after the command's name. Errors: InvalidArgument; the message holds no value of --env.
absl::StatusOr<Flags> ParseFlags(Command command, const std::vector<std::string>& words);

// What --help prints.
std::string GeneralHelp();
std::string CommandHelp(Command command);

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_FLAGS_H_
