// The real command, from outside: exit codes, what is written where, and that nothing is started or written when
// something is wrong.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/bulkhead_process.h"

namespace bulkhead::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

constexpr char kCanary[] = "canary-7f3a";

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A home, and in it a folder to work in.
class CliTest : public ::testing::Test {
 protected:
  CliTest() {
    project_ = home_.path() + "/project";
    mkdir(project_.c_str(), 0777);
    chmod(project_.c_str(), 0777);
    if (geteuid() == 0 && chown(project_.c_str(), 65534, 65534) != 0) project_.clear();
  }

  Invocation WithWords(Words words) const {
    Invocation invocation;
    invocation.words = std::move(words);
    invocation.env = {{"HOME", home_.path()}, {"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"CANARY", kCanary}};
    invocation.cwd = project_;
    return invocation;
  }

  Result Bulkhead(Words words) const { return RunBulkhead(WithWords(std::move(words))); }

  // `bulkhead run FLAGS... /bin/sh -c "echo started; touch marker"`, with the marker's folder granted.
  Result RunMarker(const Words& flags) const {
    Words words = {"run", "--rw", project_};
    words.insert(words.end(), flags.begin(), flags.end());
    words.insert(words.end(), {"/bin/sh", "-c", "echo started; : > " + project_ + "/marker"});
    return Bulkhead(words);
  }

  // Neither the marker nor anything else: no cache folder, no report, no log.
  void ExpectNothingStartedOrWritten(const Result& result, const std::vector<std::string>& names_before) const {
    EXPECT_THAT(result.out, Not(HasSubstr("started")));
    EXPECT_THAT(home_.Names(), ::testing::ElementsAreArray(names_before));
  }

  TemporaryFolder home_;
  std::string project_;
};

// Every line of ours says who is speaking.
void ExpectOurs(const std::string& err) {
  ASSERT_THAT(err, Not(IsEmpty()));
  ASSERT_THAT(err, EndsWith("\n"));
  std::size_t start = 0;
  for (std::size_t end; (end = err.find('\n', start)) != std::string::npos; start = end + 1) {
    EXPECT_THAT(err.substr(start, end - start), StartsWith("bulkhead: "));
  }
}

// ---- wrong usage: 64, a sentence, and where to read more -----------------------------------------------------------

struct WrongUsage {
  Words words;
  std::string says;
};

void PrintTo(const WrongUsage& usage, std::ostream* out) { *out << ::testing::PrintToString(usage.words); }

class UsageTest : public CliTest, public ::testing::WithParamInterface<WrongUsage> {};

TEST_P(UsageTest, IsSaidAndNothingIsStarted) {
  const std::vector<std::string> before = home_.Names();
  const Result result = Bulkhead(GetParam().words);
  EXPECT_EQ(result.exit_code, 64);
  EXPECT_THAT(result.err, HasSubstr(GetParam().says));
  EXPECT_THAT(result.err, HasSubstr("--help\n"));
  EXPECT_EQ(result.out, "");
  ExpectOurs(result.err);
  ExpectNothingStartedOrWritten(result, before);
}

INSTANTIATE_TEST_SUITE_P(
    All, UsageTest,
    ::testing::Values(WrongUsage{{}, "a command is missing"}, WrongUsage{{"rnu"}, "did you mean \"run\"?"},
                      WrongUsage{{"tols"}, "there is no command tols"}, WrongUsage{{""}, "there is no command \"\""},
                      WrongUsage{{"--bogus"}, "the first word must be a command"},
                      WrongUsage{{"run"}, "run needs a COMMAND"},
                      WrongUsage{{"run", "-v", "--"}, "run needs a COMMAND"},
                      WrongUsage{{"run", "--polcy", "x", "true"}, "did you mean \"--policy\"?"},
                      WrongUsage{{"run", "--require", "Z", "true"}, "must be A, B or C"},
                      WrongUsage{{"run", "--network", "all", "true"}, "must be none or host"},
                      WrongUsage{{"run", "--env", "NOVALUE", "true"}, "write NAME=VALUE, or set it there"},
                      WrongUsage{{"run", "--preset", "nodejs", "true"}, "did you mean \"node\"?"},
                      WrongUsage{{"run", "--policy", "a", "--preset", "node", "true"}, "can't be used together"},
                      WrongUsage{{"run", "--rw", "~/x", "true"}, "write the full path"},
                      WrongUsage{{"run", ""}, "empty"}, WrongUsage{{"explain", ""}, "empty"},
                      WrongUsage{{"run", "npx -y server"}, "argv"}, WrongUsage{{"explain"}, "explain needs a COMMAND"},
                      WrongUsage{{"check"}, "check needs a FILE"}, WrongUsage{{"tools"}, "tools needs a COMMAND"},
                      WrongUsage{{"call", "x"}, "call needs --tool"},
                      WrongUsage{{"call", "--tool", "t", "--arguments", "[]", "x"}, "must be a JSON object"},
                      WrongUsage{{"request", "--method", "m", "--params", "{", "x"},
                                 "--params is not JSON: {; in a shell put it in single quotes: --params '{\""},
                      WrongUsage{{"tools", "--report", "f", "x"}, "no flag --report"},
                      WrongUsage{{"check", "--json", "x"}, "no flag --json"}, WrongUsage{{"doctor", "x"}, "too many"},
                      WrongUsage{{"presets", "ndoe"}, "did you mean \"node\"?"}));

// ---- help, version -------------------------------------------------------------------------------------------------

TEST_F(CliTest, HelpIsEverywhereWithAnExample) {
  for (const Words& words : std::vector<Words>{{"--help"},
                                               {"-h"},
                                               {"run", "--help"},
                                               {"run", "-h"},
                                               {"explain", "--help"},
                                               {"tools", "--help"},
                                               {"resources", "--help"},
                                               {"prompts", "--help"},
                                               {"call", "--help"},
                                               {"request", "--help"},
                                               {"check", "--help"},
                                               {"doctor", "--help"},
                                               {"presets", "--help"}}) {
    const Result result = Bulkhead(words);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.out, AllOf(HasSubstr("Usage: bulkhead "), HasSubstr("Examples:\n  bulkhead ")));
    EXPECT_EQ(result.err, "");
  }
}

TEST_F(CliTest, TheVersionIsOneLine) {
  const Result result = Bulkhead({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, MatchesRegex("bulkhead [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_EQ(result.err, "");
}

TEST_F(CliTest, AResultThatCannotBeWrittenIsAFailure) {
  Invocation invocation = WithWords({"presets"});
  ASSERT_EQ(RunBulkhead(invocation).exit_code, 0);
  invocation.stdout_path = "/dev/full";
  const Result result = RunBulkhead(invocation);
  EXPECT_EQ(result.exit_code, 125);
  EXPECT_EQ(result.err, "bulkhead: cannot write the result to stdout: No space left on device\n");
}

TEST_F(CliTest, ClosedStandardDescriptorsAreNoDisaster) {
  for (const std::vector<int>& closed : std::vector<std::vector<int>>{{0}, {1}, {2}, {0, 1, 2}}) {
    Invocation invocation = WithWords({"presets"});
    invocation.closed = closed;
    EXPECT_EQ(RunBulkhead(invocation).exit_code, 0);
    invocation.words = {"bogus"};
    EXPECT_EQ(RunBulkhead(invocation).exit_code, 64);
  }
}

// ---- policies that can't be used -----------------------------------------------------------------------------------

class BadPolicyTest : public CliTest {
 protected:
  // `path` is refused by run and by check, in time, with a message that holds `says`.
  void ExpectRefused(const std::string& path, const std::string& says) {
    const std::vector<std::string> before = home_.Names();
    const Result run = RunMarker({"--policy", path});
    EXPECT_EQ(run.exit_code, 125);
    EXPECT_THAT(run.err, HasSubstr(says));
    EXPECT_LT(run.err.size(), 4096u);
    ExpectOurs(run.err);
    ExpectNothingStartedOrWritten(run, before);
    const Result explain = Bulkhead({"explain", "--policy", path, "/bin/true"});
    EXPECT_EQ(explain.exit_code, 125);
    EXPECT_EQ(explain.err, run.err);
    const Result check = Bulkhead({"check", path});
    EXPECT_EQ(check.exit_code, 1);
    EXPECT_THAT(check.out, HasSubstr(says));
    EXPECT_EQ(check.err, "");
  }
};

TEST_F(BadPolicyTest, AMissingFileIsOurFailureAndNotCommandNotFound) {
  ExpectRefused(home_.path() + "/nowhere.json", "nowhere.json");
}

TEST_F(BadPolicyTest, AFolder) { ExpectRefused(project_, "project"); }

TEST_F(BadPolicyTest, AFifoIsNotWaitedFor) {
  const std::string fifo = home_.path() + "/fifo.json";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  ExpectRefused(fifo, "fifo.json");
}

TEST_F(BadPolicyTest, AFileThatMayNotBeRead) {
  const std::string file = home_.Write("secret.json", "{\"version\": 1}");
  Invocation invocation = WithWords({"check", file});
  invocation.as_ordinary_user = true;
  ASSERT_EQ(RunBulkhead(invocation).exit_code, 0);  // else the rest proves nothing
  ASSERT_EQ(chmod(file.c_str(), 0), 0);
  const Result check = RunBulkhead(invocation);
  EXPECT_EQ(check.exit_code, 1);
  EXPECT_THAT(check.out, AllOf(HasSubstr("secret.json"), HasSubstr("permission denied")));
  invocation.words = {"run", "--policy", file, "/bin/echo", "started"};
  const Result run = RunBulkhead(invocation);
  EXPECT_EQ(run.exit_code, 125);
  EXPECT_EQ(run.out, "");
  ExpectOurs(run.err);
}

TEST_F(BadPolicyTest, AnEmptyFile) { ExpectRefused(home_.Write("empty.json", ""), "empty.json"); }

TEST_F(BadPolicyTest, NoJson) { ExpectRefused(home_.Write("bad.json", "{\n\"version\": 1,\n oops }"), "bad.json:3"); }

TEST_F(BadPolicyTest, AFileOfTenMebibytes) {
  ExpectRefused(home_.Write("big.json", "{\"version\": 1, \"x\": \"" + std::string(10u << 20, 'x') + "\"}"),
                "big.json");
}

TEST_F(BadPolicyTest, ArraysAHundredThousandDeep) {
  ExpectRefused(home_.Write("deep.json", std::string(100000, '[')), "deep.json");
}

TEST_F(BadPolicyTest, AnUnknownKeyIsNamedWithLineAndPointer) {
  ExpectRefused(home_.Write("key.json", "{\n  \"version\": 1,\n  \"filesystem\": {\"rw2\": []}\n}"),
                "key.json:3:18: /filesystem/rw2");
}

TEST_F(CliTest, ACeilingThatCannotBeReadOrParsedIsARefusal) {
  const std::vector<std::string> before = home_.Names();
  const Result missing = RunMarker({"--ceiling", home_.path() + "/nowhere.json"});
  EXPECT_EQ(missing.exit_code, 126);
  ExpectOurs(missing.err);
  ExpectNothingStartedOrWritten(missing, before);
  EXPECT_EQ(RunMarker({"--ceiling", home_.Write("bad.json", "{")}).exit_code, 126);
}

// ---- run -----------------------------------------------------------------------------------------------------------

TEST_F(CliTest, AGoodRunStartsTheServerAndWritesNothingOfOurs) {
  const Result result = RunMarker({});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "started\n");
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(home_.Names(), ::testing::Contains("project/marker"));
}

TEST_F(CliTest, TheServersOwnWordsAreUntouched) {
  const Result result = Bulkhead({"run", "/bin/echo", "--help", "-v", "--rw", "", "a b", "--"});
  EXPECT_EQ(result.out, "--help -v --rw  a b --\n");
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(Bulkhead({"run", "--", "/bin/echo", "--"}).out, "--\n");
}

TEST_F(CliTest, StdioPassesStraightThrough) {
  Invocation invocation = WithWords({"run", "/bin/sh", "-c", "cat; echo problem >&2"});
  invocation.stdin_text = "line one\nline two\n";
  const Result result = RunBulkhead(invocation);
  EXPECT_EQ(result.out, "line one\nline two\n");
  EXPECT_EQ(result.err, "problem\n");
}

TEST_F(CliTest, TheExitCodeIsTheServers) {
  EXPECT_EQ(Bulkhead({"run", "/bin/sh", "-c", "exit 7"}).exit_code, 7);
  EXPECT_EQ(Bulkhead({"run", "/bin/sh", "-c", "kill -TERM $$"}).exit_code, 128 + 15);
}

TEST_F(CliTest, ACommandThatIsNotThereIs127) {
  for (const char* command : {"no-such-server", "/opt/no-such-server", "./no-such-server"}) {
    const Result result = Bulkhead({"run", command});
    EXPECT_EQ(result.exit_code, 127) << command;
    EXPECT_THAT(result.err, HasSubstr("no-such-server")) << command;
    ExpectOurs(result.err);
    EXPECT_EQ(Bulkhead({"explain", command}).exit_code, 127) << command;
  }
}

TEST_F(CliTest, WhatCannotBeExecutedIs126) {
  const std::string file = home_.Write("text", "no program");
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  for (const std::string& command : {file, project_}) {
    const Result result = Bulkhead({"run", "--ro", home_.path(), command});
    EXPECT_EQ(result.exit_code, 126) << command;
    ExpectOurs(result.err);
  }
}

TEST_F(CliTest, WhatThePolicyRefusesIs126) {
  const std::string file = home_.Write(
      "p.json", R"({"version": 1, "extends": ["preset:default"], "command": {"args": {"deny": ["--inspect*"]}}})");
  ASSERT_EQ(Bulkhead({"run", "--policy", file, "/bin/true", "--other"}).exit_code, 0);
  const Result result = Bulkhead({"run", "--policy", file, "/bin/true", "--inspect=1"});
  EXPECT_EQ(result.exit_code, 126);
  ExpectOurs(result.err);
}

TEST_F(CliTest, VerboseSaysWhatWasResolvedButNoValue) {
  const Result result = Bulkhead({"run", "-v", "--env", std::string("TOKEN=") + kCanary, "/bin/true"});
  EXPECT_EQ(result.exit_code, 0);
  ExpectOurs(result.err);
  EXPECT_THAT(result.err, AllOf(HasSubstr("program: "), HasSubstr("policy: preset:default"), HasSubstr("tier A")));
  EXPECT_THAT(result.err, Not(HasSubstr(kCanary)));
}

TEST_F(CliTest, AVariableOfTheHostPassesWhenItIsNamed) {
  const Words shell = {"/bin/sh", "-c", "printf %s \"$CANARY\""};
  const auto run = [&](Words words) {
    words.insert(words.end(), shell.begin(), shell.end());
    return Bulkhead(words);
  };
  EXPECT_EQ(run({"run"}).out, "");  // control
  const Result passed = run({"run", "-v", "--env", "CANARY"});
  EXPECT_EQ(passed.out, kCanary);
  EXPECT_THAT(passed.err, Not(HasSubstr(kCanary)));
  const Result explained = run({"explain", "--json", "--env", "CANARY"});
  EXPECT_THAT(explained.out, AllOf(HasSubstr("CANARY"), Not(HasSubstr(kCanary))));
  const std::string ceiling = home_.Write("ceiling.json", R"({"version": 1, "filesystem": {"rx": [":runtime"]}})");
  EXPECT_EQ(run({"run", "--ceiling", ceiling, "--env", "CANARY"}).out, "") << "a ceiling still narrows";
  const std::string set = home_.Write(
      "set.json", R"({"version": 1, "extends": ["preset:default"], "env": {"set": {"CANARY": "of the policy"}}})");
  EXPECT_EQ(run({"run", "--policy", set}).out, "of the policy");
  EXPECT_EQ(run({"run", "--policy", set, "--env", "CANARY"}).out, kCanary) << "what is asked for by name wins";
}

// By name neither: what makes the server run other code has to be written out.
TEST_F(CliTest, WhatNeverPassesFromTheHostCannotBeNamedEither) {
  Invocation invocation;
  invocation.env = {{"HOME", home_.path()}, {"PATH", "/usr/bin:/bin"}, {"NODE_OPTIONS", kCanary}, {"F", "() { :; }"}};
  const auto run = [&](const std::string& variable) {
    invocation.words = {"run", "--env", variable, "/bin/sh", "-c", "printf %s \"$NODE_OPTIONS$F\""};
    return RunBulkhead(invocation);
  };
  EXPECT_EQ(run("NODE_OPTIONS=" + std::string(kCanary)).out, kCanary);  // control: written out
  const Result refused = run("NODE_OPTIONS");
  EXPECT_EQ(refused.exit_code, 125);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, AllOf(HasSubstr("\"NODE_OPTIONS\" never passes from the host"), Not(HasSubstr(kCanary))));
  EXPECT_EQ(run("F").out, "") << "a shell function by its value";
}

TEST_F(CliTest, StderrCanBeDiscardedOrAppendedToAFile) {
  const Words shell = {"/bin/sh", "-c", "echo problem >&2"};
  Words words = {"run", "--stderr", "discard"};
  words.insert(words.end(), shell.begin(), shell.end());
  EXPECT_EQ(Bulkhead(words).err, "");
  const std::string log = home_.Write("log", "before\n");
  words[2] = log;
  EXPECT_EQ(Bulkhead(words).err, "");
  Words read = {"run", "--ro", log, "/bin/cat", log};
  EXPECT_EQ(Bulkhead(read).out, "before\nproblem\n");
}

TEST_F(CliTest, TheReportIsJsonWithTierAndExit) {
  const std::string report = home_.path() + "/report.json";
  ASSERT_EQ(Bulkhead({"run", "--report", report, "/bin/sh", "-c", "exit 3"}).exit_code, 3);
  const Result text = Bulkhead({"run", "--ro", report, "/bin/cat", report});
  EXPECT_TRUE(nlohmann::json::accept(text.out)) << text.out;
}

// ---- explain, check, doctor, presets -------------------------------------------------------------------------------

TEST_F(CliTest, ExplainStartsAndWritesNothing) {
  const std::vector<std::string> before = home_.Names();
  const Result result = Bulkhead({"explain", "--rw", project_, "--report", home_.path() + "/r.json", "/bin/sh", "-c",
                                  "echo started; : > " + project_ + "/marker"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(home_.Names(), ::testing::ElementsAreArray(before));
}

TEST_F(CliTest, ExplainNamesWhatIsGrantedAndWhereItComesFrom) {
  const Result result = Bulkhead({"explain", "--rw", project_, "--network", "host", "--env", "A=1", "/bin/true"});
  EXPECT_THAT(result.out, AllOf(HasSubstr("/bin/true"), HasSubstr(project_ + "  --rw"), HasSubstr("network\n  host"),
                                HasSubstr("from --env"), HasSubstr("not for run"), HasSubstr("ptrace"),
                                HasSubstr("tier A"), HasSubstr("landlock")));
}

TEST_F(CliTest, ExplainNeverShowsAValueOfTheEnvironment) {
  const std::string file = home_.Write("p.json", R"({"version": 1, "extends": ["preset:default"], "env": {
      "inherit": ["CANARY"], "set": {"S": "canary-7f3a"}}})");
  for (const Words& words : std::vector<Words>{{"explain", "--policy", file, "/bin/true"},
                                               {"explain", "-v", "--policy", file, "/bin/true"},
                                               {"explain", "--json", "--policy", file, "/bin/true"}}) {
    const Result result = Bulkhead(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("CANARY"));
    EXPECT_THAT(result.out, Not(HasSubstr(kCanary)));
  }
}

TEST_F(CliTest, ASecretReachesTheServerAndNothingElse) {
  const std::string file = home_.Write(
      "p.json", R"({"version": 1, "extends": ["preset:default"], "env": {"secret": {"TOKEN": {"env": "CANARY"}}}})");
  const std::string report = home_.path() + "/report.json";
  const Result run = Bulkhead(
      {"run", "-v", "--policy", file, "--report", report, "/bin/sh", "-c", "printf '<%s>' \"$TOKEN\"; exit 3"});
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_EQ(run.out, std::string("<") + kCanary + ">");
  EXPECT_THAT(run.err, Not(HasSubstr(kCanary)));
  EXPECT_THAT(Contents(report), AllOf(HasSubstr("\"code\":3"), Not(HasSubstr(kCanary))));
  for (const Words& words : std::vector<Words>{{"explain", "--policy", file, "/bin/true"},
                                               {"explain", "-v", "--policy", file, "/bin/true"},
                                               {"explain", "--json", "--policy", file, "/bin/true"}}) {
    const Result explain = Bulkhead(words);
    EXPECT_EQ(explain.exit_code, 0) << explain.err;
    EXPECT_THAT(explain.out, AllOf(HasSubstr("TOKEN"), HasSubstr("CANARY"), Not(HasSubstr(kCanary))));
  }
  const Result failed = Bulkhead({"run", "-v", "--policy", file, "/no/such/program"});
  EXPECT_EQ(failed.exit_code, 127);
  EXPECT_THAT(failed.err, Not(HasSubstr(kCanary)));
}

TEST_F(CliTest, ASecretFromADescriptorOrNone) {
  const std::string file = home_.Write(
      "p.json", R"({"version": 1, "extends": ["preset:default"], "env": {"secret": {"TOKEN": {"fd": 9}}}})");
  const Result missing = Bulkhead({"run", "--policy", file, "/bin/true"});
  EXPECT_EQ(missing.exit_code, 125);
  EXPECT_THAT(missing.err, HasSubstr("cannot give the server its secret TOKEN: descriptor 9 is not open"));
}

TEST_F(CliTest, AContainerEnginesClientIsRefusedWithTheReason) {
  for (const char* client : {"docker", "/usr/bin/podman"}) {
    const Result result = Bulkhead({"run", client, "run", "-i", "mcp/time"});
    EXPECT_EQ(result.exit_code, 126);
    EXPECT_THAT(result.err, AllOf(StartsWith("bulkhead: preset:docker: "), HasSubstr("outside of this jail")));
  }
}

TEST_F(CliTest, ExplainSaysWhereEachLineComesFrom) {
  const std::string ceiling = home_.Write("ceiling.json", R"({"version": 1,
      "filesystem": {"rx": [":runtime"], "rw": ["/"]}, "env": {"inherit": ["*"]},
      "limits": {"processes": 8}})");
  const std::string file = home_.Write("p.json", R"({"version": 1, "extends": ["preset:default"],
      "env": {"inherit": ["CAN*"], "set": {"TZ": "UTC"}},
      "limits": {"processes": 64,
                 "file_size": "1MiB"}})");
  const Result text =
      Bulkhead({"explain", "--policy", file, "--ceiling", ceiling, "--network", "none", "--env", "A=1", "/bin/true"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  const Result result = Bulkhead(
      {"explain", "--json", "--policy", file, "--ceiling", ceiling, "--network", "none", "--env", "A=1", "/bin/true"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json origins = nlohmann::json::parse(result.out, nullptr, false)["origins"];
  const std::map<std::string, std::string> expected = {{"/limits/processes", ceiling + ":3"},
                                                       {"/limits/file_size", file + ":4"},
                                                       {"/env/inherit/CAN*", file + ":2"},
                                                       {"/network/mode", "--network"},
                                                       {"/env/set/A", "--env"}};
  for (const auto& [pointer, origin] : expected) {
    EXPECT_EQ(origins.value(pointer, ""), origin) << pointer;
    EXPECT_THAT(text.out, HasSubstr(origin));
  }
  EXPECT_THAT(text.out,
              AllOf(ContainsRegex("cpu_time +no limit of ours +default"), HasSubstr("from the host (" + file)));
}

TEST_F(CliTest, ExplainAsJsonHasAVersionAndTheWholePlan) {
  const Result result = Bulkhead({"explain", "--json", "--rw", project_, "--require", "B", "/bin/sh", "-c", "exit"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.out;
  EXPECT_EQ(json["explain_version"], 1);
  EXPECT_EQ(json["argv"], nlohmann::json({"/bin/sh", "-c", "exit"}));
  EXPECT_EQ(json["require"], "B");
  EXPECT_EQ(json["network"]["mode"], "none");
  EXPECT_EQ(json["timeouts"]["term_grace_ms"], 1000);
  EXPECT_EQ(json["timeouts"]["term_grace_from"], "run");
  ASSERT_EQ(json["tiers"].size(), 2u);
  EXPECT_EQ(json["tiers"][0]["tier"], "A");
  EXPECT_EQ(json["tiers"][1]["tier"], "B");
  EXPECT_THAT(json["tiers"][0]["layers"], Not(IsEmpty()));
  EXPECT_THAT(json["tiers"][0]["steps"], Not(IsEmpty()));
  bool granted = false;
  for (const nlohmann::json& grant : json["files"]["grants"]) {
    granted = granted || (grant["access"] == "rw" && grant["path"] == project_ && grant["origin"] == "--rw");
  }
  EXPECT_TRUE(granted) << json["files"];
}

TEST_F(CliTest, CheckWarnsOfWhatDefeatsTheJail) {
  const std::string wide = home_.Write("wide.json", R"({"version": 1, "require": "C", "filesystem": {"ro": ["/"]}})");
  const Result warned = Bulkhead({"check", wide});
  EXPECT_EQ(warned.exit_code, 0);
  EXPECT_THAT(warned.out, AllOf(HasSubstr("warning: " + wide + ": /require: in tier C"),
                                HasSubstr("warning: " + wide + ":1: /filesystem/ro: \"/\" is the whole disk"),
                                HasSubstr(wide + ": ok\n")));
  const Result strict = Bulkhead({"check", "--strict", wide});
  EXPECT_EQ(strict.exit_code, 1);
  EXPECT_THAT(strict.out, AllOf(HasSubstr("/require: in tier C"), ::testing::Not(HasSubstr(": ok"))));
  const std::string good = home_.Write("good.json", R"({"version": 1, "extends": ["preset:node"]})");
  EXPECT_EQ(Bulkhead({"check", "--strict", good}).exit_code, 0);
}

// Who can rewrite what a policy is built on can rewrite the policy.
TEST_F(CliTest, CheckWarnsOfAGrantToWriteWhatIsExtended) {
  ASSERT_EQ(mkdir((project_ + "/base").c_str(), 0755), 0);
  std::ofstream(project_ + "/base/base.json") << R"({"version": 1})";
  const std::string extends =
      R"({"version": 1, "extends": [")" + project_ + R"(/base/base.json"], "filesystem": {"rw": [")";
  const std::string beside = home_.Write("beside.json", extends + project_ + R"(/out"]}})");
  EXPECT_THAT(Bulkhead({"check", beside}).out, beside + ": ok\n");
  const std::string over = home_.Write("over.json", extends + project_ + R"(/base"]}})");
  EXPECT_THAT(Bulkhead({"check", over}).out, HasSubstr("lets the server rewrite \"" + project_ + "/base/base.json\""));
}

TEST_F(CliTest, CheckSaysWhichFilesAreFineAndEveryMistake) {
  const std::string good = home_.Write("good.json", R"({"version": 1, "extends": ["preset:node"]})");
  const std::string bad = home_.Write("bad.json", "{\n\"version\": 1,\n\"bogus\": 1,\n\"user\": 7\n}");
  const Result fine = Bulkhead({"check", good});
  EXPECT_EQ(fine.exit_code, 0);
  EXPECT_EQ(fine.out, good + ": ok\n");
  const Result mixed = Bulkhead({"check", bad, good});
  EXPECT_EQ(mixed.exit_code, 1);
  EXPECT_THAT(mixed.out,
              AllOf(HasSubstr("bad.json:3:1: /bogus"), HasSubstr("bad.json:4:9: /user"), HasSubstr(good + ": ok\n")));
  EXPECT_EQ(mixed.err, "");
}

// What drives a terminal, or makes it show another text than there is: CSI as one character, a turn of the direction,
// and a space without width.
constexpr char kTerminal[] = "\u009b31m\u202e\u200b";
constexpr char kWrittenOut[] = "\\u009b31m\\u202e\\u200b";

void ExpectShown(const Result& result) {
  const std::string text = result.out + result.err;
  EXPECT_THAT(text, HasSubstr(kWrittenOut));
  for (const char* raw : {"\u009b", "\u202e", "\u200b", "\x1b"}) EXPECT_THAT(text, Not(HasSubstr(raw))) << text;
}

TEST_F(CliTest, NothingThatDrivesATerminalReachesItFromAPolicy) {
  const std::string name = std::string("x") + kTerminal;
  // A key, a value and the file's own name, in a mistake, a warning and a note.
  // In the text these are escapes: a policy that holds them as they are is refused as a whole.
  const std::string escaped = std::string("x") + kWrittenOut;
  ExpectShown(Bulkhead({"check", home_.Write("key.json", "{\"version\": 1, \"" + escaped + "\": 1}")}));
  ExpectShown(Bulkhead({"check", home_.Write("value.json", "{\"version\": 1, \"user\": \"" + escaped + "\"}")}));
  ExpectShown(Bulkhead({"check", home_.Write(name + ".json", "{")}));
  ExpectShown(Bulkhead({"check", home_.Write(name + ".json", "{\"version\": 1, \"filesystem\": {\"ro\": [\"/\"]}}")}));
  ExpectShown(Bulkhead({"run", "--policy", home_.Write(name + "2.json", "{"), "/bin/true"}));
}

TEST_F(CliTest, NothingThatDrivesATerminalReachesItFromArgumentsAndNames) {
  const std::string name = std::string("x") + kTerminal;
  ExpectShown(Bulkhead({"explain", "/bin/echo", name}));
  ExpectShown(Bulkhead({"explain", "--env", "A=b", "--ro", home_.Write(name, ""), "/bin/true"}));
  const std::string variable = home_.Write("env.json", R"({"version": 1, "extends": ["preset:default"],
      "filesystem": {"ro": ["${env:NOTES}"]}})");
  Invocation invocation = WithWords({"explain", "-v", "--policy", variable, "/bin/true"});
  // What is no control character may be the name of a granted file.
  invocation.env["NOTES"] = home_.Write("\u202enotes", "");
  const std::string granted = RunBulkhead(invocation).out;
  EXPECT_THAT(granted, AllOf(HasSubstr("\\u202enotes"), Not(HasSubstr("\u202e"))));
  ExpectShown(Bulkhead({"run", name}));
  ExpectShown(Bulkhead({"run", "--ro", home_.path() + "/missing" + name, "/bin/true"}));
  ExpectShown(Bulkhead({"run", "--" + name, "/bin/true"}));
  ExpectShown(Bulkhead({name}));
  ExpectShown(Bulkhead({"presets", name}));
}

TEST_F(CliTest, NothingThatDrivesATerminalReachesItFromAWorkspace) {
  // Names of files that only a link or a script's first line leads to; and the keeper says what it can't run.
  const std::string name = std::string("x\nbulkhead: all is well") + kTerminal;
  const std::string outside = home_.Write(name, "#!/bin/sh\n");
  const std::string link = project_ + "/link";
  ASSERT_EQ(symlink(outside.c_str(), link.c_str()), 0);
  const std::string policy = home_.Write("link.json", R"({"version": 1, "extends": ["preset:default"],
      "filesystem": {"ro": ["${workspace}/link"]}})");
  const Result led_out = Bulkhead({"run", "--policy", policy, "--workspace", project_, "/bin/true"});
  EXPECT_EQ(led_out.exit_code, 126);
  ExpectShown(led_out);
  EXPECT_THAT(led_out.err, Not(HasSubstr("\nbulkhead: all is well")));
  const std::string script = project_ + "/script";
  std::ofstream(script) << "#!/nowhere/" << kTerminal << "\n";
  chmod(script.c_str(), 0755);
  ExpectShown(Bulkhead({"run", "--rw", project_, script}));
  chmod(outside.c_str(), 0644);
  const Result not_executable = Bulkhead({"run", "--ro", home_.path(), outside});
  ExpectShown(not_executable);
  EXPECT_THAT(not_executable.err, Not(HasSubstr("\nbulkhead: all is well")));
}

// Runs of spaces and line breaks as one space each.
std::string Unwrapped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '\n') {
      out += c;
    } else if (out.empty() || out.back() != ' ') {
      out += ' ';
    }
  }
  return out;
}

TEST_F(CliTest, ExplainSaysWhatAGuardKeepsRefusing) {
  const std::string policy = home_.Write(
      "allow.json", R"({"version": 1, "extends": ["preset:default"], "syscalls": {"allow": ["openat2", "keyctl"]}})");
  const std::string out = Bulkhead({"explain", "--policy", policy, "/bin/true"}).out;
  const std::string line = "allowed after all openat2 " + policy + ":1";
  if (geteuid() == 0) {
    // The server has another uid, and could make setuid files for root with it.
    EXPECT_THAT(Unwrapped(out), HasSubstr(line + ", but refused all the same: ENOSYS for openat2 allowed"));
    EXPECT_THAT(out, HasSubstr("chmod(mode & 06000)"));
  } else {
    EXPECT_THAT(Unwrapped(out), HasSubstr(line + " allowed"));
  }
  EXPECT_THAT(Unwrapped(out), HasSubstr("allowed after all keyctl " + policy + ":1 "));
  // Columns are as wide as what is in them, and begin at one place.
  const auto column = [&](const std::string& name) {
    const std::size_t line = out.rfind("  allowed after all  " + name);
    return line == std::string::npos ? line : out.find(policy, line) - line;
  };
  EXPECT_EQ(column("openat2"), column("keyctl"));
  EXPECT_LT(column("keyctl"), 80u);
}

// Each rule has its errno and who made it: a list of ours, or a line of the policy.
TEST_F(CliTest, ExplainSaysWhoRefusesEachSystemCall) {
  const std::string policy = home_.Write("deny.json", R"({"version": 1, "extends": ["preset:default"], "require": "B",
    "syscalls": {
      "deny": ["umask",
               "keyctl"]}})");
  const std::vector<std::string> words = {"explain", "--policy", policy, "/bin/true"};
  const std::string text = Unwrapped(Bulkhead(words).out);
  EXPECT_THAT(text, HasSubstr("system calls denied (baseline, default) "));
  EXPECT_THAT(text, HasSubstr(" EPERM " + policy + ":3 umask "));
  EXPECT_THAT(text, Not(HasSubstr(":4 keyctl"))) << "refused anyway, with an errno that callers know";
  for (const auto& [error, calls] : std::map<std::string, std::vector<std::string>>{
           {"EPERM", {"ioctl(TIOCSTI)", "ioctl(TIOCLINUX)", "clone(any CLONE_NEW* flag)", "ptrace"}},
           {"ENOSYS",
            {"keyctl", "clone3", "any call newer than Linux 7.0",
             "any call of another architecture or ABI, such as i386 and x32"}},
           {"EAFNOSUPPORT", {"socket(other than AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)"}}}) {
    const std::string head = " " + error + " baseline (built in) ";
    const std::size_t start = text.find(head);
    ASSERT_NE(start, std::string::npos) << error;
    const std::string line = text.substr(start, text.find("(built in)", start + head.size()) - start);
    for (const std::string& call : calls) EXPECT_THAT(line, HasSubstr(call));
  }
  // Only without namespaces is there a list against sockets.
  const std::size_t tier_b = text.find("tier B");
  ASSERT_NE(tier_b, std::string::npos);
  EXPECT_THAT(text.substr(tier_b), HasSubstr("EACCES sockets_none (built in) socket "));
  EXPECT_THAT(text.substr(tier_b), HasSubstr("EPERM supervisor_guard (built in) "));
  EXPECT_THAT(text.substr(0, tier_b), Not(HasSubstr("EACCES")));

  const std::string narrowed = Unwrapped(Bulkhead({"explain", "--ceiling", policy, "/bin/true"}).out);
  EXPECT_THAT(narrowed, HasSubstr(" EPERM " + policy + ":3 umask ")) << "also where it is the ceiling's";

  const nlohmann::json json =
      nlohmann::json::parse(Bulkhead({"explain", "--json", "--policy", policy, "/bin/true"}).out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["origins"]["/syscalls/deny/umask"], policy + ":3");
  ASSERT_EQ(json["tiers"].size(), 2u);
  std::set<std::string> lists[2];
  for (const int tier : {0, 1}) {
    std::set<std::string> calls;
    for (const nlohmann::json& denied : json["tiers"][tier]["denied"]) {
      lists[tier].insert(denied["by"].get<std::string>());
      for (const nlohmann::json& call : denied["calls"]) EXPECT_TRUE(calls.insert(call).second) << call;
      EXPECT_TRUE(denied["by"] != "policy" || denied["calls"] == nlohmann::json({"umask"})) << denied;
    }
    EXPECT_THAT(calls, testing::Contains("umask"));
  }
  EXPECT_THAT(lists[0], AllOf(testing::Contains("baseline"), testing::Contains("policy")));
  EXPECT_THAT(lists[1], testing::IsSupersetOf(lists[0]));
  EXPECT_THAT(lists[1], AllOf(testing::Contains("sockets_none"), testing::Contains("supervisor_guard")));
  EXPECT_THAT(json["syscalls"]["denied"]["EPERM"], testing::Contains("umask"));
  EXPECT_FALSE(json["syscalls"]["denied"].contains("EACCES"));
}

TEST_F(CliTest, ThePolicyOfTheDocumentationIsFine) {
  std::ifstream page(std::string(getenv("TEST_SRCDIR")) + "/" + getenv("TEST_WORKSPACE") + "/docs/cli.md");
  const std::string text{std::istreambuf_iterator<char>(page), std::istreambuf_iterator<char>()};
  const std::string fence = "```jsonc\n";
  const std::size_t start = text.find(fence);
  ASSERT_NE(start, std::string::npos);
  const std::size_t end = text.find("```", start + fence.size());
  const std::string policy = home_.Write("docs.json", text.substr(start + fence.size(), end - start - fence.size()));
  EXPECT_EQ(Bulkhead({"check", "--workspace", project_, policy}).out, policy + ": ok\n");
}

TEST_F(CliTest, EveryPresetIsListedPrintedAndFine) {
  const Result list = Bulkhead({"presets"});
  EXPECT_EQ(list.exit_code, 0);
  for (const char* name : {"default", "node", "npx", "python", "uvx"}) {
    EXPECT_THAT(list.out, MatchesRegex("(.*\n)*" + std::string(name) + " +[^ \n].*\n(.*\n)*"));
    const Result one = Bulkhead({"presets", name});
    EXPECT_EQ(one.exit_code, 0);
    const Result check = Bulkhead({"check", home_.Write("preset.json", one.out)});
    EXPECT_EQ(check.exit_code, 0) << check.out;
  }
}

TEST_F(CliTest, DoctorNamesATierAndARemedyForWhatIsMissing) {
  const Result result = Bulkhead({"doctor", "--json"});
  const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.out;
  EXPECT_EQ(json["doctor_version"], 1);
  EXPECT_EQ(result.exit_code, json["tier"].is_null() ? 1 : 0);
  ASSERT_THAT(json["checks"], Not(IsEmpty()));
  for (const nlohmann::json& check : json["checks"]) {
    EXPECT_EQ(check["remedy"] == "", check["available"] == true) << check;
  }
  EXPECT_EQ(Bulkhead({"doctor"}).exit_code, result.exit_code);
}

// ---- A strange host

TEST_F(CliTest, AReportThatNobodyReadsIsAnErrorAndDoesNotWait) {
  const std::string fifo = home_.path() + "/fifo";
  EXPECT_EQ(Bulkhead({"run", "--report", home_.path() + "/report", "/bin/true"}).exit_code, 0);  // control
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const Result result = Bulkhead({"run", "--report", fifo, "/bin/true"});
  EXPECT_EQ(result.exit_code, 125);
  EXPECT_THAT(result.err, HasSubstr("it is a fifo that nobody reads"));
}

TEST_F(CliTest, AReportThatCannotBeWrittenIsSaidAtTheEnd) {
  const Result result = Bulkhead({"run", "--report", "/dev/full", "/bin/sh", "-c", "echo ran; exit 3"});
  EXPECT_EQ(result.exit_code, 3) << "the server's";
  EXPECT_EQ(result.out, "ran\n");
  EXPECT_THAT(result.err, HasSubstr("the report is not complete: no space left"));
}

TEST_F(CliTest, AHomeThatIsTheRootByAnotherNameIsNone) {
  for (const char* home : {"/", "/..", "/usr/..", "/proc/self/root"}) {
    Invocation invocation = WithWords({"run", "/bin/echo", "ran"});
    invocation.env["HOME"] = home;
    const Result result = RunBulkhead(invocation);
    EXPECT_EQ(result.out, "ran\n") << home << ": " << result.err;
  }
}

TEST_F(CliTest, AHostsLimitOfFileSizesIsAnErrorWithAReason) {
  const std::string binary = std::string(getenv("TEST_SRCDIR")) + "/" + getenv("TEST_WORKSPACE") + "/cli/bulkhead";
  const auto with_limit = [&](const std::string& blocks) {
    Invocation invocation = WithWords({"-c", "ulimit -f " + blocks + "; exec \"$0\" run /bin/echo ran", binary});
    invocation.program = "/bin/sh";
    return RunBulkhead(invocation);
  };
  EXPECT_EQ(with_limit("unlimited").out, "ran\n");  // control
  const Result result = with_limit("1");
  EXPECT_EQ(result.exit_code, 125) << "not SIGXFSZ";
  EXPECT_THAT(result.err, HasSubstr("File too large"));
}

}  // namespace
}  // namespace bulkhead::cli
