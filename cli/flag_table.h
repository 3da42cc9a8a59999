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
  kTool,
  kArg,
  kArguments,
  kMethod,
  kParams,
  kTimeout,
  kEra,
  kJson,
  kStrict,
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
    {Flag::kEnv, "--env", "NAME[=VALUE]", true,
     "set a variable of the server's environment; without a value it has the one that it has in bulkhead's own, which "
     "is the way for secrets, since other users can see this command line"},
    {Flag::kCeiling, "--ceiling", "FILE", true, "a policy that the result must keep within; can only narrow"},
    {Flag::kRequire, "--require", "A|B|C", false, "the weakest tier to accept"},
    {Flag::kWorkspace, "--workspace", "DIR", false,
     "what ${workspace} stands for; without it the current folder, unless that is / or the home folder or above it"},
    {Flag::kVar, "--var", "NAME=VALUE", true, "what ${var:NAME} stands for"},
    {Flag::kCwd, "--cwd", "DIR", false, "the server's working folder"},
    {Flag::kStderr, "--stderr", "inherit|discard|FILE", false, "where the server's stderr goes; FILE is appended to"},
    {Flag::kReport, "--report", "FILE", false, "after the run: tier, layers, exit and usage, as JSON"},
    {Flag::kTool, "--tool", "NAME", false, "the tool to call"},
    {Flag::kArg, "--arg", "NAME=VALUE", true,
     "an argument of the tool: text where the tool's schema says so, else JSON if it is JSON, else text"},
    {Flag::kArguments, "--arguments", "JSON", false, "all arguments of the tool, as a JSON object"},
    {Flag::kMethod, "--method", "NAME", false, "the method to send, e.g. resources/read"},
    {Flag::kParams, "--params", "JSON", false, "its params, as a JSON object"},
    {Flag::kTimeout, "--timeout", "DURATION", false,
     "how long an answer may take, e.g. 90s or 5m; without it the policy's timeouts.request"},
    {Flag::kEra, "--era", "auto|legacy|modern", false,
     "which handshake to use: server/discover, then initialize if need be (auto), only initialize, or only the former"},
    {Flag::kJson, "--json", nullptr, false, "print JSON, for scripts"},
    {Flag::kStrict, "--strict", nullptr, false, "count a warning as a mistake"},
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
    {Command::kTools, "tools", "tools [flags] COMMAND [ARG...]", "start COMMAND, list the tools it offers, stop it",
     "The server runs in the same jail as with run. What it writes to stderr is shown when something fails, or with\n"
     "-v. --json prints the tools as the server sent them.\n"
     "\n"
     "Exit code: 0; 1 the server answered with an error; else as for run.\n",
     "bulkhead tools npx -y @modelcontextprotocol/server-everything\n", true, 1, kAnyNumber,
     "tools needs a COMMAND to start"},
    {Command::kResources, "resources", "resources [flags] COMMAND [ARG...]",
     "start COMMAND, list the resources it offers, stop it", "Like tools, for resources and resource templates.\n",
     "bulkhead resources node server.js\n", true, 1, kAnyNumber, "resources needs a COMMAND to start"},
    {Command::kPrompts, "prompts", "prompts [flags] COMMAND [ARG...]",
     "start COMMAND, list the prompts it offers, stop it", "Like tools, for prompts.\n",
     "bulkhead prompts node server.js\n", true, 1, kAnyNumber, "prompts needs a COMMAND to start"},
    {Command::kCall, "call", "call --tool NAME COMMAND [ARG...]",
     "start COMMAND, call one of its tools, print the result, stop it",
     "Text is printed as it is; --json prints the whole result as the server sent it. The result is printed before "
     "the\n"
     "server is stopped.\n"
     "\n"
     "Exit code: 0; 1 the tool failed, or the server answered with an error; else as for run.\n",
     "bulkhead call --tool read_text_file --arg path=/srv/data/a.txt --ro /srv/data node server.js /srv/data\n"
     "bulkhead call --tool echo --arguments '{\"message\":\"hello\"}' node server.js\n",
     true, 1, kAnyNumber, "call needs a COMMAND to start"},
    {Command::kRequest, "request", "request --method NAME COMMAND [ARG...]",
     "start COMMAND, send one request, print the result, stop it",
     "Prints the result. --json prints the raw exchange: the request's line, the answer's line, stderr and how the\n"
     "server ended. Everything, the start included, has to be done within --timeout (30 s without it).\n"
     "\n"
     "Exit code: 0; 1 the server answered with an error; else as for run.\n",
     "bulkhead request --method resources/read --params '{\"uri\":\"file:///srv/a\"}' node server.js\n", true, 1,
     kAnyNumber, "request needs a COMMAND to start"},
    {Command::kCheck, "check", "check [flags] FILE...",
     "validate policy files; every error, with file:line and JSON pointer",
     "Prints `FILE: ok`, or every mistake, for each FILE; and warns of grants that defeat the jail, such as the home\n"
     "folder or a folder on PATH to write. What run would look at only when it starts something (whether a granted\n"
     "path or a program exists) is not looked at.\n"
     "\n"
     "Exit code: 0 all are fine; 1 at least one is not, or, with --strict, has a warning; 64 wrong usage.\n",
     "bulkhead check files.json team.json\n", false, 1, kAnyNumber, "check needs a FILE to validate"},
    {Command::kDoctor, "doctor", "doctor [--json]", "what this machine can enforce, and what to do about the rest",
     "Tries every layer by starting a small program in it.\n"
     "\n"
     "Exit code: 0 a tier is reached; 1 none is.\n",
     "bulkhead doctor\n", false, 0, 0, ""},
    {Command::kPresets, "presets", "presets [NAME]", "list the built-in policies, or print one",
     "A policy file builds on one of them with \"extends\": [\"preset:NAME\"].\n",
     "bulkhead presets\nbulkhead presets node > files.json\n", false, 0, 1, ""},
};

// Whether `command` talks to the server itself.
constexpr bool Talks(Command command) {
  return command == Command::kTools || command == Command::kResources || command == Command::kPrompts ||
         command == Command::kCall || command == Command::kRequest;
}

// Whether `command` takes `flag`.
constexpr bool Takes(Command command, Flag flag) {
  switch (flag) {
    case Flag::kHelp:
      return true;
    case Flag::kJson:
      return command == Command::kExplain || command == Command::kDoctor || Talks(command);
    case Flag::kWorkspace:
    case Flag::kVar:
      return command != Command::kDoctor && command != Command::kPresets;
    case Flag::kStrict:
      return command == Command::kCheck;
    case Flag::kReport:
      return command == Command::kRun || command == Command::kExplain;
    case Flag::kTimeout:
    case Flag::kEra:
      return Talks(command);
    case Flag::kTool:
    case Flag::kArg:
    case Flag::kArguments:
      return command == Command::kCall;
    case Flag::kMethod:
    case Flag::kParams:
      return command == Command::kRequest;
    case Flag::kPolicy:
    case Flag::kPreset:
    case Flag::kRo:
    case Flag::kRw:
    case Flag::kNetwork:
    case Flag::kEnv:
    case Flag::kCeiling:
    case Flag::kRequire:
    case Flag::kCwd:
    case Flag::kStderr:
    case Flag::kVerbose:
      return command == Command::kRun || command == Command::kExplain || Talks(command);
  }
  return false;
}

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_FLAG_TABLE_H_
