#include "bulkhead/cli/flags.h"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "bulkhead/cli/flag_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

using Words = std::vector<std::string>;

Flags Parsed(Command command, const Words& words) {
  absl::StatusOr<Flags> flags = ParseFlags(command, words);
  EXPECT_TRUE(flags.ok()) << flags.status();
  return flags.ok() ? *flags : Flags();
}

std::string ErrorOf(Command command, const Words& words) {
  const absl::StatusOr<Flags> flags = ParseFlags(command, words);
  EXPECT_EQ(flags.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(flags.status().message());
}

TEST(FlagsTest, TheConfigurationOfTheReadmeIsUnderstood) {
  const Flags flags = Parsed(Command::kRun, {"--rw", "/srv/data", "/usr/bin/npx", "-y", "some-server", "/srv/data"});
  EXPECT_THAT(flags.rw, ElementsAre("/srv/data"));
  EXPECT_THAT(flags.rest, ElementsAre("/usr/bin/npx", "-y", "some-server", "/srv/data"));
}

TEST(FlagsTest, EveryFlagOfRunIsUnderstood) {
  const Flags flags =
      Parsed(Command::kRun,
             {"--policy",  "p.json",    "--preset",  "node",     "--ro",        "/a",    "--ro",  "/b",        "--rw",
              "/c",        "--network", "host",      "--env",    "A=1",         "--env", "B=x=y", "--ceiling", "c1",
              "--ceiling", "c2",        "--require", "B",        "--workspace", "w",     "--var", "N=v",       "--cwd",
              "d",         "--stderr",  "discard",   "--report", "r.json",      "-v",    "server"});
  EXPECT_EQ(flags.policy, "p.json");
  EXPECT_EQ(flags.preset, "node");
  EXPECT_THAT(flags.ro, ElementsAre("/a", "/b"));
  EXPECT_THAT(flags.rw, ElementsAre("/c"));
  EXPECT_EQ(flags.network, policy::NetworkMode::kHost);
  EXPECT_THAT(flags.env, ElementsAre(Pair("A", "1"), Pair("B", "x=y")));
  EXPECT_THAT(flags.ceilings, ElementsAre("c1", "c2"));
  EXPECT_EQ(flags.require, policy::Tier::kB);
  EXPECT_EQ(flags.workspace, "w");
  EXPECT_THAT(flags.var, ElementsAre(Pair("N", "v")));
  EXPECT_EQ(flags.cwd, "d");
  EXPECT_EQ(flags.stderr_to, "discard");
  EXPECT_EQ(flags.report, "r.json");
  EXPECT_TRUE(flags.verbose);
  EXPECT_THAT(flags.rest, ElementsAre("server"));
}

TEST(FlagsTest, AVariableWithoutAValueIsKeptByName) {
  const Flags flags = Parsed(Command::kRun, {"--env", "TOKEN", "--env", "A=1", "--env=B", "server"});
  EXPECT_THAT(flags.env_names, ElementsAre("TOKEN", "B"));
  EXPECT_THAT(flags.env, ElementsAre(Pair("A", "1")));
}

TEST(FlagsTest, EveryFlagOfACallIsUnderstood) {
  const Flags flags = Parsed(Command::kCall, {"--tool", "sum", "--arg", "a=1", "--arg", "b=x=y", "--timeout", "1m30s",
                                              "--era", "modern", "--json", "--ro", "/a", "server", "--tool"});
  EXPECT_EQ(flags.tool, "sum");
  EXPECT_THAT(flags.args, ElementsAre(Pair("a", "1"), Pair("b", "x=y")));
  EXPECT_EQ(flags.timeout, absl::Seconds(90));
  EXPECT_EQ(flags.era, EraFlag::kModern);
  EXPECT_TRUE(flags.json);
  EXPECT_THAT(flags.ro, ElementsAre("/a"));
  EXPECT_THAT(flags.rest, ElementsAre("server", "--tool"));
  EXPECT_EQ(Parsed(Command::kCall, {"--tool", "t", "--arguments", "{}", "s"}).arguments, "{}");
}

TEST(FlagsTest, EveryFlagOfARequestIsUnderstood) {
  const Flags flags = Parsed(Command::kRequest, {"--method", "tools/list", "--params", "{}", "server"});
  EXPECT_EQ(flags.method, "tools/list");
  EXPECT_EQ(flags.params, "{}");
  EXPECT_EQ(flags.timeout, std::nullopt);
  EXPECT_EQ(flags.era, EraFlag::kAuto);
}

TEST(FlagsTest, ACallNeedsItsToolAndOneKindOfArguments) {
  EXPECT_THAT(ErrorOf(Command::kCall, {"server"}), HasSubstr("call needs --tool NAME"));
  EXPECT_THAT(ErrorOf(Command::kRequest, {"server"}), HasSubstr("request needs --method NAME"));
  EXPECT_THAT(ErrorOf(Command::kCall, {"--tool", "t", "--arg", "a=1", "--arguments", "{}", "server"}),
              HasSubstr("can't be used together"));
  EXPECT_THAT(ErrorOf(Command::kCall, {"--tool", "t", "--arg", "a=1", "--arg", "a=2", "server"}),
              HasSubstr("sets a twice"));
}

TEST(FlagsTest, ATimeoutIsADurationOfAtMostADay) {
  EXPECT_EQ(Parsed(Command::kTools, {"--timeout", "24h", "s"}).timeout, absl::Hours(24));
  for (const char* wrong : {"24h1ms", "0s", "-1s", "5", "soon", "inf"}) {
    EXPECT_THAT(ErrorOf(Command::kTools, {"--timeout", wrong, "s"}), HasSubstr("must be a duration")) << wrong;
  }
}

TEST(FlagsTest, WithoutFlagsNothingIsAdded) {
  const Flags flags = Parsed(Command::kRun, {"server"});
  EXPECT_FALSE(flags.policy || flags.preset || flags.workspace || flags.cwd || flags.report || flags.stderr_to);
  EXPECT_FALSE(flags.network.has_value());
  EXPECT_FALSE(flags.require.has_value());
  EXPECT_THAT(flags.ro, IsEmpty());
  EXPECT_THAT(flags.rw, IsEmpty());
  EXPECT_THAT(flags.env, IsEmpty());
  EXPECT_FALSE(flags.verbose || flags.json || flags.help);
}

TEST(FlagsTest, FlagsEndAtTheFirstWordThatIsNotOne) {
  for (const char* word : {"--help", "-h", "-v", "--rw", "--bogus", "--", "--policy=x", "-", ""}) {
    const Flags flags = Parsed(Command::kRun, {"-v", "server", word, "--ro", "/x"});
    EXPECT_THAT(flags.rest, ElementsAre("server", word, "--ro", "/x"));
    EXPECT_THAT(flags.ro, IsEmpty());
    EXPECT_FALSE(flags.help);
  }
}

TEST(FlagsTest, FlagsEndAtTwoDashes) {
  EXPECT_THAT(Parsed(Command::kRun, {"-v", "--", "--server", "--", "-v"}).rest, ElementsAre("--server", "--", "-v"));
  EXPECT_THAT(Parsed(Command::kCheck, {"--", "--policy.json"}).rest, ElementsAre("--policy.json"));
}

TEST(FlagsTest, AnEmptyWordIsACommandAndNoFlag) {
  EXPECT_THAT(Parsed(Command::kRun, {"", "x"}).rest, ElementsAre("", "x"));
}

TEST(FlagsTest, AValueMayBeWrittenWithAnEqualsSign) {
  const Flags flags = Parsed(Command::kRun, {"--rw=/a=b", "--env=A=", "server"});
  EXPECT_THAT(flags.rw, ElementsAre("/a=b"));
  EXPECT_THAT(flags.env, ElementsAre(Pair("A", "")));
}

TEST(FlagsTest, OtherCommandsTakeFlagsAnywhere) {
  EXPECT_TRUE(Parsed(Command::kCheck, {"a.json", "--workspace", "/w", "b.json"}).workspace.has_value());
  EXPECT_THAT(Parsed(Command::kCheck, {"a.json", "--workspace", "/w", "b.json"}).rest, ElementsAre("a.json", "b.json"));
  EXPECT_TRUE(Parsed(Command::kPresets, {"node", "--help"}).help);
  EXPECT_TRUE(Parsed(Command::kDoctor, {"--json"}).json);
}

TEST(FlagsTest, HelpWinsOverWhatIsMissing) {
  EXPECT_TRUE(Parsed(Command::kRun, {"--help"}).help);
  EXPECT_TRUE(Parsed(Command::kRun, {"--rw", "/a", "-h", "--bogus"}).help);
}

TEST(FlagsTest, AnUnknownFlagIsAnErrorWithTheNearestOne) {
  EXPECT_EQ(ErrorOf(Command::kRun, {"--polcy", "x", "server"}),
            "run has no flag --polcy; did you mean \"--policy\"? (the server's own flags go after COMMAND)");
  EXPECT_EQ(ErrorOf(Command::kRun, {"--zzzzzzzz", "server"}),
            "run has no flag --zzzzzzzz (the server's own flags go after COMMAND)");
  EXPECT_EQ(ErrorOf(Command::kRun, {"--json", "server"}), "run has no flag --json; explain has");
  EXPECT_EQ(ErrorOf(Command::kDoctor, {"--jsn"}), "doctor has no flag --jsn; did you mean \"--json\"?");
}

TEST(FlagsTest, AnAbbreviatedFlagIsNotGuessed) {
  EXPECT_THAT(ErrorOf(Command::kRun, {"--pol", "x", "server"}), HasSubstr("did you mean \"--policy\"?"));
}

TEST(FlagsTest, WhatFollowsTheEqualsSignOfAnUnknownFlagIsNotShown) {
  EXPECT_THAT(ErrorOf(Command::kRun, {"--evn=TOKEN=canary", "server"}), Not(HasSubstr("canary")));
}

TEST(FlagsTest, AFlagWithoutItsValueIsAnError) {
  EXPECT_EQ(ErrorOf(Command::kRun, {"--rw"}), "--rw needs a value: --rw PATH");
  EXPECT_EQ(ErrorOf(Command::kRun, {"--rw", "--ro", "/a", "server"}),
            "--rw needs a value, and --ro follows; if that is meant, write --rw=--ro");
  EXPECT_THAT(ErrorOf(Command::kRun, {"--rw", "--", "server"}), HasSubstr("--rw needs a value"));
  EXPECT_EQ(ErrorOf(Command::kRun, {"-v=1", "server"}), "-v takes no value");
  EXPECT_THAT(Parsed(Command::kRun, {"--rw=--ro", "server"}).rw, ElementsAre("--ro"));
}

TEST(FlagsTest, AnEmptyValueIsAnError) {
  for (const char* flag :
       {"--policy", "--preset", "--ro", "--rw", "--ceiling", "--workspace", "--cwd", "--stderr", "--report"}) {
    EXPECT_THAT(ErrorOf(Command::kRun, {flag, "", "server"}), HasSubstr("not \"\"")) << flag;
  }
}

TEST(FlagsTest, WhatCanBeThereOnlyOnceIsNotOverwritten) {
  for (const char* flag : {"--policy", "--preset", "--workspace", "--cwd", "--stderr", "--report"}) {
    EXPECT_THAT(ErrorOf(Command::kRun, {flag, "a", flag, "b", "server"}), HasSubstr("twice")) << flag;
  }
  EXPECT_THAT(ErrorOf(Command::kRun, {"--network", "none", "--network", "host", "server"}), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf(Command::kRun, {"--env", "A=1", "--env", "A=2", "server"}), HasSubstr("--env sets A twice"));
}

TEST(FlagsTest, AnUnknownValueIsAnErrorThatListsTheKnownOnes) {
  EXPECT_EQ(ErrorOf(Command::kRun, {"--require", "D", "server"}),
            "--require D: must be A, B or C; did you mean \"A\"?");
  EXPECT_EQ(ErrorOf(Command::kRun, {"--network", "hots", "server"}),
            "--network hots: must be none or host; did you mean \"host\"?");
  EXPECT_EQ(ErrorOf(Command::kRun, {"--network", "allowlist", "server"}), "--network allowlist: must be none or host");
}

TEST(FlagsTest, AVariableNeedsANameAndItsTextIsNeverShown) {
  EXPECT_EQ(ErrorOf(Command::kRun, {"--env", "", "server"}), "--env needs NAME=VALUE or NAME");
  EXPECT_EQ(ErrorOf(Command::kRun, {"--env", "=canary", "server"}),
            "--env needs NAME=VALUE, and what was given has no name");
  EXPECT_THAT(ErrorOf(Command::kRun, {"--env", "A=canary", "--env", "A=canary2", "server"}), Not(HasSubstr("canary")));
  EXPECT_THAT(ErrorOf(Command::kRun, {"--var", "x", "server"}), HasSubstr("--var needs NAME=VALUE"));
}

TEST(FlagsTest, AMissingCommandOrFileIsAnError) {
  EXPECT_EQ(ErrorOf(Command::kRun, {"-v"}), "run needs a COMMAND to start: bulkhead run [flags] COMMAND [ARG...]");
  EXPECT_THAT(ErrorOf(Command::kRun, {"--"}), HasSubstr("run needs a COMMAND"));
  EXPECT_THAT(ErrorOf(Command::kExplain, {}), HasSubstr("explain needs a COMMAND"));
  EXPECT_THAT(ErrorOf(Command::kCheck, {}), HasSubstr("check needs a FILE"));
}

TEST(FlagsTest, AWordTooManyIsAnError) {
  EXPECT_EQ(ErrorOf(Command::kDoctor, {"now"}), "doctor takes no word, and now is too many");
  EXPECT_EQ(ErrorOf(Command::kPresets, {"node", "npx"}), "presets takes one word, and npx is too many");
}

TEST(CommandNameTest, EveryCommandHasItsEntry) {
  for (const Command command :
       {Command::kRun, Command::kExplain, Command::kTools, Command::kResources, Command::kPrompts, Command::kCall,
        Command::kRequest, Command::kCheck, Command::kDoctor, Command::kPresets}) {
    const absl::StatusOr<Command> parsed = ParseCommandName(CommandName(command));
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, command);
  }
}

TEST(CommandNameTest, AnUnknownCommandIsAnErrorThatHelps) {
  EXPECT_EQ(ParseCommandName("rnu").status().message(), "there is no command rnu; did you mean \"run\"?");
  EXPECT_EQ(ParseCommandName("npx").status().message(),
            "there is no command npx; to start it in a jail: bulkhead run npx");
  EXPECT_THAT(std::string(ParseCommandName("--policy=x").status().message()), HasSubstr("flags go after it"));
}

TEST(HelpTest, EveryCommandHasUsageItsFlagsAndAnExample) {
  for (const CommandSpec& spec : kCommandSpecs) {
    const std::string help = CommandHelp(spec.command);
    EXPECT_THAT(help, HasSubstr(std::string("Usage: bulkhead ") + spec.name));
    EXPECT_THAT(help, HasSubstr(std::string("Examples:\n  bulkhead ") + spec.name));
    for (const FlagSpec& flag : kFlagSpecs) {
      EXPECT_EQ(help.find(std::string("\n  ") + flag.name) != std::string::npos, Takes(spec.command, flag.flag))
          << spec.name << " " << flag.name;
    }
    EXPECT_THAT(GeneralHelp(), HasSubstr(spec.summary));
  }
}

TEST(HelpTest, NoLineIsTooWideForATerminal) {
  std::string all = GeneralHelp();
  for (const CommandSpec& spec : kCommandSpecs) all += CommandHelp(spec.command);
  std::size_t start = 0;
  for (std::size_t end; (end = all.find('\n', start)) != std::string::npos; start = end + 1) {
    EXPECT_LE(end - start, 120u) << all.substr(start, end - start);
  }
}

// The words of a line as a shell would split it; no documented line needs quotes.
Words Split(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

void ExpectUnderstood(const std::string& line) {
  Words words = Split(line);
  ASSERT_GE(words.size(), 2u) << line;
  words.erase(std::find(words.begin(), words.end(), ">"), words.end());
  const absl::StatusOr<Command> command = ParseCommandName(words[1]);
  ASSERT_TRUE(command.ok()) << line << ": " << command.status();
  const absl::StatusOr<Flags> flags = ParseFlags(*command, Words(words.begin() + 2, words.end()));
  EXPECT_TRUE(flags.ok()) << line << ": " << flags.status();
}

TEST(ExamplesTest, TheOnesOfTheHelpAreUnderstood) {
  for (const CommandSpec& spec : kCommandSpecs) {
    std::istringstream lines(spec.examples);
    for (std::string line; std::getline(lines, line);) ExpectUnderstood(line);
  }
}

TEST(ExamplesTest, TheOnesOfTheDocumentationAreUnderstood) {
  std::ifstream page(std::string(getenv("TEST_SRCDIR")) + "/" + getenv("TEST_WORKSPACE") + "/docs/cli.md");
  int examples = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("bulkhead ", 0) != 0) continue;
    ExpectUnderstood(line);
    ++examples;
  }
  EXPECT_GE(examples, 10);
}

}  // namespace
}  // namespace bulkhead::cli
