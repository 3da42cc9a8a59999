#include "bulkhead/cli/flags.h"

#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/cli/flag_table.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/cli/suggest.h"

namespace bulkhead::cli {
namespace {

const CommandSpec& SpecOf(Command command) {
  for (const CommandSpec& spec : kCommandSpecs) {
    if (spec.command == command) return spec;
  }
  return kCommandSpecs[0];  // not reached: a test checks that every command has its entry
}

// "-h" is the one short form; it is not listed.
const FlagSpec* FindFlag(Command command, absl::string_view name) {
  if (name == "-h") name = "--help";
  for (const FlagSpec& spec : kFlagSpecs) {
    if (Takes(command, spec.flag) && name == spec.name) return &spec;
  }
  return nullptr;
}

absl::Status UnknownFlag(Command command, absl::string_view name) {
  std::vector<std::string> candidates;
  for (const FlagSpec& spec : kFlagSpecs) {
    if (Takes(command, spec.flag)) candidates.push_back(spec.name);
  }
  const absl::string_view whose = CommandName(command);
  for (const CommandSpec& other : kCommandSpecs) {
    if (FindFlag(other.command, name) != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(whose, " has no flag ", name, "; ", other.name, " has"));
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat(whose, " has no flag ", Quote(name), DidYouMean(name, candidates),
                   SpecOf(command).starts_server ? " (the server's own flags go after COMMAND)" : ""));
}

absl::Status SetOnce(const FlagSpec& spec, std::string value, std::optional<std::string>* out) {
  if (value.empty()) return absl::InvalidArgumentError(absl::StrCat(spec.name, " needs a ", spec.value, ", not \"\""));
  *out = std::move(value);
  return absl::OkStatus();
}

absl::Status Add(const FlagSpec& spec, std::string value, std::vector<std::string>* out) {
  if (value.empty()) return absl::InvalidArgumentError(absl::StrCat(spec.name, " needs a ", spec.value, ", not \"\""));
  out->push_back(std::move(value));
  return absl::OkStatus();
}

absl::Status AddPair(const FlagSpec& spec, const std::string& value, std::map<std::string, std::string>* out) {
  const std::size_t equals = value.find('=');
  // The text is not repeated: it may be a secret whose name was forgotten.
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.name, " needs NAME=VALUE, and what was given has no ", equals == 0 ? "name" : "\"=\""));
  }
  std::string name = value.substr(0, equals);
  if (!out->emplace(name, value.substr(equals + 1)).second) {
    return absl::InvalidArgumentError(absl::StrCat(spec.name, " sets ", Quote(name), " twice"));
  }
  return absl::OkStatus();
}

// A name alone is looked up later, and never repeated before it is found: it may be a value whose name was forgotten.
absl::Status AddEnv(const FlagSpec& spec, const std::string& value, Flags* flags) {
  if (value.find('=') != std::string::npos) return AddPair(spec, value, &flags->env);
  if (value.empty()) return absl::InvalidArgumentError(absl::StrCat(spec.name, " needs NAME=VALUE or NAME"));
  return Add(spec, value, &flags->env_names);
}

absl::Status WrongValue(const FlagSpec& spec, absl::string_view value, const std::vector<std::string>& known) {
  std::string message = absl::StrCat(spec.name, " ", Quote(value), ": must be ");
  for (std::size_t i = 0; i < known.size(); ++i) {
    absl::StrAppend(&message, i == 0 ? "" : (i + 1 == known.size() ? " or " : ", "), known[i]);
  }
  return absl::InvalidArgumentError(absl::StrCat(message, DidYouMean(value, known)));
}

absl::Status SetNetwork(const FlagSpec& spec, absl::string_view value, Flags* flags) {
  if (value == "none") {
    flags->network = policy::NetworkMode::kNone;
  } else if (value == "host") {
    flags->network = policy::NetworkMode::kHost;
  } else {
    return WrongValue(spec, value, {"none", "host"});
  }
  return absl::OkStatus();
}

absl::Status SetRequire(const FlagSpec& spec, absl::string_view value, Flags* flags) {
  for (const policy::Tier tier : {policy::Tier::kA, policy::Tier::kB, policy::Tier::kC}) {
    if (value != policy::TierName(tier)) continue;
    flags->require = tier;
    return absl::OkStatus();
  }
  return WrongValue(spec, value, {"A", "B", "C"});
}

absl::Status SetTimeout(const FlagSpec& spec, absl::string_view value, Flags* flags) {
  absl::Duration timeout;
  if (!absl::ParseDuration(value, &timeout) || timeout <= absl::ZeroDuration() || timeout > absl::Hours(24)) {
    return absl::InvalidArgumentError(
        absl::StrCat(spec.name, " ", Quote(value), ": must be a duration of at most a day, e.g. 500ms, 90s or 5m"));
  }
  flags->timeout = timeout;
  return absl::OkStatus();
}

absl::Status SetEra(const FlagSpec& spec, absl::string_view value, Flags* flags) {
  if (value == "auto") {
    flags->era = EraFlag::kAuto;
  } else if (value == "legacy") {
    flags->era = EraFlag::kLegacy;
  } else if (value == "modern") {
    flags->era = EraFlag::kModern;
  } else {
    return WrongValue(spec, value, {"auto", "legacy", "modern"});
  }
  return absl::OkStatus();
}

absl::Status AddArgument(const FlagSpec& spec, const std::string& value, Flags* flags) {
  std::map<std::string, std::string> pair;
  if (absl::Status status = AddPair(spec, value, &pair); !status.ok()) return status;
  for (const auto& [name, text] : flags->args) {
    if (name == pair.begin()->first) {
      return absl::InvalidArgumentError(absl::StrCat(spec.name, " sets ", Quote(name), " twice"));
    }
  }
  flags->args.push_back(*pair.begin());
  return absl::OkStatus();
}

absl::Status Apply(const FlagSpec& spec, std::string value, Flags* flags) {
  switch (spec.flag) {
    case Flag::kPolicy:
      return SetOnce(spec, std::move(value), &flags->policy);
    case Flag::kPreset:
      return SetOnce(spec, std::move(value), &flags->preset);
    case Flag::kRo:
      return Add(spec, std::move(value), &flags->ro);
    case Flag::kRw:
      return Add(spec, std::move(value), &flags->rw);
    case Flag::kNetwork:
      return SetNetwork(spec, value, flags);
    case Flag::kEnv:
      return AddEnv(spec, value, flags);
    case Flag::kCeiling:
      return Add(spec, std::move(value), &flags->ceilings);
    case Flag::kRequire:
      return SetRequire(spec, value, flags);
    case Flag::kWorkspace:
      return SetOnce(spec, std::move(value), &flags->workspace);
    case Flag::kVar:
      return AddPair(spec, value, &flags->var);
    case Flag::kCwd:
      return SetOnce(spec, std::move(value), &flags->cwd);
    case Flag::kStderr:
      return SetOnce(spec, std::move(value), &flags->stderr_to);
    case Flag::kReport:
      return SetOnce(spec, std::move(value), &flags->report);
    case Flag::kTool:
      return SetOnce(spec, std::move(value), &flags->tool);
    case Flag::kArg:
      return AddArgument(spec, value, flags);
    case Flag::kArguments:
      return SetOnce(spec, std::move(value), &flags->arguments);
    case Flag::kMethod:
      return SetOnce(spec, std::move(value), &flags->method);
    case Flag::kParams:
      return SetOnce(spec, std::move(value), &flags->params);
    case Flag::kTimeout:
      return SetTimeout(spec, value, flags);
    case Flag::kEra:
      return SetEra(spec, value, flags);
    case Flag::kJson:
      flags->json = true;
      return absl::OkStatus();
    case Flag::kStrict:
      flags->strict = true;
      return absl::OkStatus();
    case Flag::kVerbose:
      flags->verbose = true;
      return absl::OkStatus();
    case Flag::kHelp:
      flags->help = true;
      return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat(spec.name, " is not handled"));
}

// A flag word taken apart: "--ro=x" is {"--ro", "x"}.
struct FlagWord {
  absl::string_view name;
  std::optional<std::string> value;
};

FlagWord TakeApart(absl::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == absl::string_view::npos) return {word, std::nullopt};
  return {word.substr(0, equals), std::string(word.substr(equals + 1))};
}

// The value of the flag in words[*i]; moves *i to the value's word when it is a word of its own.
absl::StatusOr<std::string> ValueOf(Command command, const FlagSpec& spec, const FlagWord& flag,
                                    const std::vector<std::string>& words, std::size_t* i) {
  if (spec.value == nullptr) {
    if (flag.value.has_value()) return absl::InvalidArgumentError(absl::StrCat(spec.name, " takes no value"));
    return std::string();
  }
  if (flag.value.has_value()) return *flag.value;
  if (*i + 1 == words.size()) {
    return absl::InvalidArgumentError(absl::StrCat(spec.name, " needs a value: ", spec.name, " ", spec.value));
  }
  const std::string& next = words[*i + 1];
  if (next == "--" || FindFlag(command, TakeApart(next).name) != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(spec.name, " needs a value, and ", TakeApart(next).name,
                                                   " follows; if that is meant, write ", spec.name, "=",
                                                   TakeApart(next).name));
  }
  ++*i;
  return next;
}

// What a command can't do without, and what can't go together.
absl::Status CheckTogether(Command command, const Flags& flags) {
  if (command == Command::kCall && !flags.tool) {
    return absl::InvalidArgumentError(
        "call needs --tool NAME; `bulkhead tools` with the same COMMAND lists what there is");
  }
  if (command == Command::kCall && flags.arguments && !flags.args.empty()) {
    return absl::InvalidArgumentError("--arg and --arguments can't be used together");
  }
  if (command == Command::kRequest && !flags.method) {
    return absl::InvalidArgumentError("request needs --method NAME, e.g. --method tools/list");
  }
  return absl::OkStatus();
}

absl::Status CheckRest(const CommandSpec& spec, const std::vector<std::string>& rest) {
  if (rest.size() < spec.rest_min) {
    return absl::InvalidArgumentError(absl::StrCat(spec.rest_missing, ": bulkhead ", spec.usage));
  }
  if (rest.size() > spec.rest_max) {
    return absl::InvalidArgumentError(absl::StrCat(spec.name, " takes ", spec.rest_max == 0 ? "no" : "one",
                                                   " word, and ", Quote(rest[spec.rest_max]), " is too many"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view CommandName(Command command) { return SpecOf(command).name; }

absl::StatusOr<Command> ParseCommandName(absl::string_view name) {
  std::vector<std::string> names;
  for (const CommandSpec& spec : kCommandSpecs) {
    if (name == spec.name) return spec.command;
    names.push_back(spec.name);
  }
  if (absl::StartsWith(name, "-")) {
    return absl::InvalidArgumentError(absl::StrCat("the first word must be a command, not ",
                                                   Quote(TakeApart(name).name),
                                                   "; flags go after it: bulkhead run [flags] COMMAND"));
  }
  std::string help = DidYouMean(name, names);
  if (help.empty()) help = absl::StrCat("; to start it in a jail: bulkhead run ", Quote(name));
  return absl::InvalidArgumentError(absl::StrCat("there is no command ", Quote(name), help));
}

absl::StatusOr<Flags> ParseFlags(Command command, const std::vector<std::string>& words) {
  const CommandSpec& command_spec = SpecOf(command);
  Flags flags;
  std::vector<Flag> seen;
  std::size_t i = 0;
  for (; i < words.size() && words[i] != "--"; ++i) {
    if (words[i].size() < 2 || words[i][0] != '-') {
      if (command_spec.starts_server) break;
      flags.rest.push_back(words[i]);
      continue;
    }
    const FlagWord word = TakeApart(words[i]);
    const FlagSpec* spec = FindFlag(command, word.name);
    if (spec == nullptr) return UnknownFlag(command, word.name);
    for (const Flag earlier : seen) {
      if (earlier != spec->flag || spec->repeatable) continue;
      return absl::InvalidArgumentError(absl::StrCat(spec->name, " was given twice, and there can be only one"));
    }
    seen.push_back(spec->flag);
    absl::StatusOr<std::string> value = ValueOf(command, *spec, word, words, &i);
    if (!value.ok()) return value.status();
    if (absl::Status status = Apply(*spec, *std::move(value), &flags); !status.ok()) return status;
    if (flags.help) return flags;
  }
  if (i < words.size() && words[i] == "--") ++i;
  flags.rest.insert(flags.rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  if (absl::Status status = CheckRest(command_spec, flags.rest); !status.ok()) return status;
  if (absl::Status status = CheckTogether(command, flags); !status.ok()) return status;
  return flags;
}

}  // namespace bulkhead::cli
