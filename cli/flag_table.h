// The words of the command line, as data: the parser, the help texts and "did you mean" all read these tables.
#ifndef BULKHEAD_CLI_FLAG_TABLE_H_
#define BULKHEAD_CLI_FLAG_TABLE_H_

#include "bulkhead/cli/flags.h"

namespace bulkhead::cli {

enum class Flag {
  kPolicy,
  kPreset,
  kRo,
  kRw,
  kNetwork,
  kEnv,
  kCeiling,
  kRequire,
  kWorkspace,
  kVar,
  kCwd,
  kStderr,
  kReport,
  kJson,
  kVerbose,
  kHelp,
};

struct FlagSpec {
  Flag flag;
  const char* name;
  const char* value;  // what the help calls its value; null: the flag takes none
  bool repeatable;
  const char* help;
};

// In the order of the help text.
inline constexpr FlagSpec kFlagSpecs[] = {
    {Flag::kPolicy, "--policy", "FILE", false,
     "the policy file; without it, and without --preset, the preset that fits COMMAND"},
    {Flag::kPreset, "--preset", "NAME", false, "a built-in policy: see `bulkhead presets`"},
    {Flag::kRo, "--ro", "PATH", true, "let the server read PATH, and what is below it"},
    {Flag::kRw, "--rw", "PATH", true, "let the server read and write PATH, and what is below it"},
    {Flag::kNetwork, "--network", "none|host", false, "no network at all, or the host's own"},
    {Flag::kEnv, "--env", "NAME=VALUE", true,
     "set a variable of the server's environment; other users can see this command line, so that a secret is better "
     "put "
     "in bulkhead's own environment and passed on by the policy's env.inherit"},
    {Flag::kCeiling, "--ceiling", "FILE", true, "a policy that the result must keep within; can only narrow"},
    {Flag::kRequire, "--require", "A|B|C", false, "the weakest tier to accept"},
    {Flag::kWorkspace, "--workspace", "DIR", false,
     "what ${workspace} stands for; without it the current folder, unless that is / or the home folder or above it"},
    {Flag::kVar, "--var", "NAME=VALUE", true, "what ${var:NAME} stands for"},
    {Flag::kCwd, "--cwd", "DIR", false, "the server's working folder"},
    {Flag::kStderr, "--stderr", "inherit|discard|FILE", false, "where the server's stderr goes; FILE is appended to"},
    {Flag::kReport, "--report", "FILE", false, "after the run: tier, layers, exit and usage, as JSON"},
    {Flag::kJson, "--json", nullptr, false, "print JSON, for scripts"},
    {Flag::kVerbose, "-v", nullptr, true, "say on stderr what was resolved"},
    {Flag::kHelp, "--help", nullptr, true, "print this"},
};

struct CommandSpec {
  Command command;
  const char* name;
  const char* usage;
  const char* summary;   // one line, for the list of commands
  const char* about;     // what else its own help says
  const char* examples;  // one a line
  bool starts_server;    // flags end at the first word that is not one
  unsigned rest_min, rest_max;
  const char* rest_missing;  // the error when there are fewer than rest_min words
};

inline constexpr unsigned kAnyNumber = ~0u;

// In the order of the help text.
inline constexpr CommandSpec kCommandSpecs[] = {
    {Command::kRun, "run", "run [flags] COMMAND [ARG...]", "start COMMAND in its jail, stdio passed straight through",
     "Flags end at the first word that is not one, or at --; all after it belongs to the server, untouched.\n"
     "Nothing of Bulkhead's own is written on a good run, except with -v. When the host that started it is gone,\n"
     "the server and everything it started is ended.\n"
     "\n"
     "Exit code: the server's own; 128+signal; 125 Bulkhead failed or the policy file is wrong; 126 refused by the\n"
     "policy or not executable; 127 not found; 64 wrong usage.\n",
     "bulkhead run --rw /srv/data npx -y @modelcontextprotocol/server-filesystem /srv/data\n"
     "bulkhead run --policy files.json --workspace /srv/project node server.js\n",
     true, 1, kAnyNumber, "run needs a COMMAND to start"},
    {Command::kExplain, "explain", "explain [flags] COMMAND [ARG...]", "print the plan for it, start nothing",
     "Takes the same flags as run, so that `run` can be replaced by `explain` in a line that works or doesn't.\n"
     "Prints what would be started, with which environment (names, never values), files, network, limits and\n"
     "system calls, where each comes from, and what every layer does and does not do. -v adds each step.\n"
     "\n"
     "Exit code: 0, or what run would have exited with.\n",
     "bulkhead explain --rw /srv/data npx -y @modelcontextprotocol/server-filesystem /srv/data\n", true, 1, kAnyNumber,
     "explain needs a COMMAND to explain"},
    {Command::kCheck, "check", "check [flags] FILE...",
     "validate policy files; every error, with file:line and JSON pointer",
     "Prints `FILE: ok`, or every mistake, for each FILE. What run would look at only when it starts something "
     "(whether\n"
     "a granted path or a program exists) is not looked at.\n"
     "\n"
     "Exit code: 0 all are fine; 1 at least one is not; 64 wrong usage.\n",
     "bulkhead check files.json team.json\n", false, 1, kAnyNumber, "check needs a FILE to validate"},
    {Command::kDoctor, "doctor", "doctor [--json]",
     "what this machine can enforce, which tier, and what to do about the rest",
     "Tries every layer by starting a small program in it.\n"
     "\n"
     "Exit code: 0 a tier is reached; 1 none is.\n",
     "bulkhead doctor\n", false, 0, 0, ""},
    {Command::kPresets, "presets", "presets [NAME]", "list the built-in policies, or print one",
     "A policy file builds on one of them with \"extends\": [\"preset:NAME\"].\n",
     "bulkhead presets\nbulkhead presets node > files.json\n", false, 0, 1, ""},
};

// Whether `command` takes `flag`.
constexpr bool Takes(Command command, Flag flag) {
  switch (command) {
    case Command::kRun:
      return flag != Flag::kJson;
    case Command::kExplain:
      return true;
    case Command::kCheck:
      return flag == Flag::kWorkspace || flag == Flag::kVar || flag == Flag::kHelp;
    case Command::kDoctor:
      return flag == Flag::kJson || flag == Flag::kHelp;
    case Command::kPresets:
      return flag == Flag::kHelp;
  }
  return false;
}

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_FLAG_TABLE_H_
