// argv, environment and working folder of one request, against a policy.
#include "bulkhead/policy/command.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/policy/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/policy/testing.h"

namespace bulkhead::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;

Policy PolicyOf(const std::string& members, const ParseOptions& options = Host()) {
  absl::StatusOr<Policy> policy = ParsePolicy(File(members), options);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return *std::move(policy);
}

CommandRequest Request(std::vector<std::string> argv) {
  CommandRequest request;
  request.argv = std::move(argv);
  request.host_cwd = "/host/cwd";
  request.host_env = {{"HOME", "/home/u"}, {"PATH", "/usr/bin"}, {"CANARY_SECRET", "canary"}};
  return request;
}

absl::StatusOr<ValidatedCommand> Validate(const std::string& members, const CommandRequest& request) {
  return ValidateCommand(PolicyOf(members), request);
}

ValidatedCommand Allowed(const std::string& members, const CommandRequest& request) {
  absl::StatusOr<ValidatedCommand> command = Validate(members, request);
  EXPECT_TRUE(command.ok()) << command.status();
  return command.ok() ? *std::move(command) : ValidatedCommand();
}

std::string Refused(const std::string& members, const CommandRequest& request) {
  const absl::Status status = Validate(members, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
  return std::string(status.message());
}

std::string Wrong(const std::string& members, const CommandRequest& request) {
  const absl::Status status = Validate(members, request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// argv

TEST(ProgramTest, ABareNameIsLookedUpAndAPathIsNot) {
  EXPECT_TRUE(Allowed("", Request({"npx", "-y"})).look_up);
  EXPECT_FALSE(Allowed("", Request({"/usr/bin/npx"})).look_up);
  EXPECT_THAT(Allowed("", Request({"/opt/a b/server", "x  y", "", "\"", "\n"})).argv,
              ElementsAre("/opt/a b/server", "x  y", "", "\"", "\n"));
}

TEST(ProgramTest, ARelativePathStartsFromTheWorkingFolder) {
  CommandRequest request = Request({"./bin/x"});
  EXPECT_EQ(Allowed("", request).argv[0], "/host/cwd/./bin/x");
  request.cwd = "/w";
  EXPECT_EQ(Allowed("", request).argv[0], "/w/./bin/x");
  EXPECT_FALSE(Allowed("", request).look_up);
  EXPECT_EQ(Allowed(R"("command": {"allow": ["/w/bin/x"]})", request).argv[0], "/w/./bin/x");
}

TEST(ProgramTest, WhatIsNoCommandIsWrong) {
  EXPECT_EQ(Wrong("", Request({})), "the command is empty; name the program to start");
  EXPECT_EQ(Wrong("", Request({""})), "the command is empty; name the program to start");
  EXPECT_EQ(Wrong("", Request({std::string("a\0", 2)})), "the command has a NUL in it, which no program can be given");
  EXPECT_EQ(Wrong("", Request({"a", "b", std::string("\0", 1)})),
            "argument 2 has a NUL in it, which no program can be given");
}

TEST(ProgramTest, ASpaceInABareNameIsAMistakeWithAHint) {
  EXPECT_EQ(Wrong("", Request({"npx -y  server"})),
            "the command \"npx -y  server\" has a space in it; arguments belong in argv, one each: \"npx\", \"-y\", "
            "\"server\" "
            "(a program whose name has a space is started by its full path)");
  EXPECT_THAT(Wrong("", Request({"./my server"})), HasSubstr("has a space in it"));
  EXPECT_THAT(Wrong("", Request({"node\tx"})), HasSubstr("has a space in it"));
  Allowed("", Request({"/opt/my server"}));
}

TEST(ProgramTest, DoorsToOpenFilesAreNoPrograms) {
  for (const char* program :
       {"/proc/self/exe", "/proc/1/root/bin/sh", "/dev/fd/3", "/usr/../proc/self/exe", "//proc/./self/exe"}) {
    EXPECT_THAT(Refused("", Request({program})), HasSubstr("a door to one that is open")) << program;
  }
}

TEST(ProgramTest, OnlyWhatIsAllowed) {
  const std::string allow = R"("command": {"allow": ["npx", "/usr/bin/node"]})";
  Allowed(allow, Request({"npx"}));
  Allowed(allow, Request({"/usr/bin/node"}));
  Allowed(allow, Request({"/usr//bin/./node"}));
  EXPECT_EQ(Refused(allow, Request({"sh"})),
            "files.json: the command \"sh\" is not allowed; /command/allow has \"npx\", \"/usr/bin/node\"; start one "
            "of these, "
            "or add it to /command/allow");
  EXPECT_THAT(Refused(allow, Request({"node"})), HasSubstr("start it as \"/usr/bin/node\", or add \"node\""));
  EXPECT_THAT(Refused(allow, Request({"/evil/npx"})), HasSubstr("start it as \"npx\", or add \"/evil/npx\""));
  EXPECT_THAT(Refused(allow, Request({"/usr/lib/../bin/node"})), HasSubstr("is not allowed"));
  EXPECT_THAT(Refused(R"("command": {"allow": []})", Request({"npx"})), HasSubstr("/command/allow has nothing"));
}

TEST(ArgumentsTest, AreRuledByGlobsEachByItself) {
  const std::string rules = R"("command": {"args": {"deny": ["--inspect*"], "allow": ["-*", "/srv/*"]}})";
  Allowed(rules, Request({"node", "-y", "/srv/x"}));
  Allowed(rules, Request({"--inspect"}));  // the program's name is no argument
  EXPECT_EQ(Refused(rules, Request({"node", "-y", "--inspect=canary"})),
            "files.json: argument 2 (\"--inspect\") is denied by \"--inspect*\" of /command/args/deny; leave it out");
  EXPECT_EQ(Refused(rules, Request({"node", "canary"})),
            "files.json: argument 1 matches nothing of /command/args/allow; leave it out, or add a pattern for it");
  EXPECT_THAT(Refused(R"("command": {"args": {"allow": []}})", Request({"node", ""})),
              HasSubstr("argument 1 matches nothing"));
}

TEST(ArgumentsTest, TheirNumberIsBounded) {
  const std::string rules = R"("command": {"args": {"max": 2}})";
  Allowed(rules, Request({"node", "1"}));
  Allowed(rules, Request({"node", "1", "2"}));
  EXPECT_EQ(Refused(rules, Request({"node", "1", "2", "3"})),
            "files.json: 3 arguments are more than /command/args/max, which is 2; pass fewer, or raise it");
  std::vector<std::string> argv(257, "x");
  Allowed("", Request(argv));
  argv.push_back("x");
  EXPECT_THAT(Refused("", Request(argv)), HasSubstr("which is 256"));
}

TEST(ArgumentsTest, TheirLengthIsBounded) {
  Allowed("", Request({"node", std::string(kArgumentBytesMax - 1, 'x')}));
  Allowed("", Request({"node", std::string(kArgumentBytesMax, 'x')}));
  EXPECT_EQ(Wrong("", Request({"node", std::string(kArgumentBytesMax + 1, 'x')})),
            "argument 1 is 131072 bytes long, of at most 131071; pass a file instead");
}

// Batch files: cmd.exe takes arguments apart again. Tested on every system.

class BatchFileTest : public ::testing::TestWithParam<const char*> {};

TEST_P(BatchFileTest, IsSeenWhateverHidesIt) {
  CommandRequest request = Request({GetParam(), "a&calc"});
  request.host_cwd = "C:\\w";
  Allowed("", Request({absl::StrCat("/", GetParam())}));  // elsewhere it is a name like any other
  request.platform = Platform::kWindows;
  EXPECT_THAT(Refused("", request), HasSubstr("is a batch file"));
}

INSTANTIATE_TEST_SUITE_P(Names, BatchFileTest,
                         ::testing::Values("x.bat", "x.BAT", "npx.cmd", "NpX.CmD", "C:\\a\\x.bat", "C:/a/x.cmd",
                                           "x.bat.", "x.cmd...", "C:\\x.bat ", "C:\\x.bat. .", "x.bat::$DATA",
                                           "x.bat:stream", "x.txt:y.cmd", "C:x.bat", ".\\x.bat",
                                           "\\\\server\\share\\x.cmd"));

TEST(BatchFileTest, OtherProgramsAreNot) {
  for (const char* name : {"node.exe", "C:\\x.bat\\node.exe", "bat", "x.batx", "x.bat.exe", "npx"}) {
    CommandRequest request = Request({name});
    request.platform = Platform::kWindows;
    request.host_cwd = "C:\\w";
    Allowed("", request);
  }
}

ParseOptions WindowsHost() {
  ParseOptions options = Host();
  options.platform = Platform::kWindows;
  return options;
}

CommandRequest WindowsRequest(std::vector<std::string> argv) {
  CommandRequest request;
  request.argv = std::move(argv);
  request.host_cwd = "C:\\w";
  request.platform = Platform::kWindows;
  return request;
}

absl::StatusOr<ValidatedCommand> ValidateOnWindows(const std::string& members, const CommandRequest& request) {
  return ValidateCommand(PolicyOf(members, WindowsHost()), request);
}

constexpr char kChecked[] = R"("command": {"batch_files": "checked"})";

TEST(BatchFileTest, IsStartedWhenThePolicySaysChecked) {
  EXPECT_TRUE(ValidateOnWindows(kChecked, WindowsRequest({"npx.cmd", "-y", "a b", ""})).ok());
  EXPECT_EQ(ValidateOnWindows("", WindowsRequest({"npx.cmd"})).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ValidateOnWindows(R"("command": {"batch_files": "refuse"})", WindowsRequest({"npx.cmd"})).status().code(),
            absl::StatusCode::kPermissionDenied);
}

TEST(BatchFileTest, CheckedArgumentsAreStillRefusedWhereCmdWouldChangeThem) {
  for (const char* argument : {"a&canary", "%canary%", "\"&canary", "^canary", "!canary!", "a|canary", "<canary",
                               ">canary", "a\rcanary", "a\ncanary"}) {
    ASSERT_TRUE(ValidateOnWindows(kChecked, WindowsRequest({"npx.exe", argument})).ok()) << argument;
    const absl::Status status = ValidateOnWindows(kChecked, WindowsRequest({"npx.cmd", "-y", argument})).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << argument;
    EXPECT_THAT(std::string(status.message()), HasSubstr("argument 2 has a"));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("canary")));
  }
  EXPECT_EQ(ValidateOnWindows(kChecked, WindowsRequest({"npx.cmd", "--a=b&c"})).status().message(),
            "files.json: argument 1 (\"--a\") has a '&' in it, which can't be passed to the batch file \"npx.cmd\"; "
            "start the program that it starts");
}

// Elsewhere a file is what it is, whatever it is called.
TEST(BatchFileTest, TheRulesAreWindowsAlone) {
  for (const char* rules : {"", kChecked}) {
    EXPECT_TRUE(Validate(rules, Request({"/srv/tool.bat", "a&b"})).ok()) << rules;
  }
}

TEST(WindowsProgramTest, IsOneFileWhateverTheCurrentDrive) {
  const auto program = [](const std::string& name) { return ValidateOnWindows("", WindowsRequest({name})); };
  EXPECT_EQ(program("C:\\a b\\x.exe")->argv[0], "C:\\a b\\x.exe");
  EXPECT_EQ(program(".\\x.exe")->argv[0], "C:\\w\\.\\x.exe");
  EXPECT_TRUE(program("x.exe")->look_up);
  for (const char* name : {"\\x.exe", "C:x.exe", "x.txt:evil.exe", "C:\\x.txt:evil.exe", "a\\x.txt:evil.exe"}) {
    EXPECT_EQ(program(name).status().code(), absl::StatusCode::kPermissionDenied) << name;
  }
  EXPECT_EQ(program("\\x.exe").status().message(),
            "files.json: the command \"\\\\x.exe\" depends on the current drive; write the full path of a file");
}

TEST(WindowsProgramTest, OnlyWhatIsAllowedHoweverItIsWritten) {
  const std::string allow = R"("command": {"allow": ["npx", "C:\\nodejs\\node.exe"]})";
  for (const char* name : {"npx", "C:\\nodejs\\node.exe", "c:/nodejs/node.exe", "C:\\nodejs\\.\\\\node.exe"}) {
    EXPECT_TRUE(ValidateOnWindows(allow, WindowsRequest({name})).ok()) << name;
  }
  // A folder may tell capitals from small letters; what Windows may read as another name is nobody's.
  for (const char* name : {"npx.exe", "C:\\nodejs\\NODE.exe", "C:\\nodejs\\node.exe.", "C:\\nodejs\\x\\..\\node.exe",
                           "D:\\nodejs\\node.exe", "\\\\?\\C:\\nodejs\\node.exe"}) {
    EXPECT_EQ(ValidateOnWindows(allow, WindowsRequest({name})).status().code(), absl::StatusCode::kPermissionDenied)
        << name;
  }
}

TEST(WindowsProgramTest, IsNotLookedForWhereTheServerMayWrite) {
  CommandRequest request = WindowsRequest({"tool"});
  request.host_env = {{"Path", "C:\\tools;c:/data/;C:\\data\\bin"}};
  const auto command = ValidateOnWindows(R"("filesystem": {"rw": ["C:/data"]})", request);
  ASSERT_TRUE(command.ok()) << command.status();
  std::vector<bool> granted;
  for (const LookUpFolder& folder : command->look_up_folders) granted.push_back(folder.granted_for_writing);
  EXPECT_THAT(granted, ElementsAre(false, true, true));
}

TEST(WindowsFolderTest, IsOneOfThoseThatAreAllowed) {
  CommandRequest request = WindowsRequest({"npx"});
  const auto cwd = [&request](const std::string& members, const std::string& asked) {
    request.cwd = asked;
    const auto command = ValidateOnWindows(members, request);
    return command.ok() ? command->cwd : std::string(command.status().message());
  };
  const std::string allow = R"("cwd": {"allow": ["C:\\w"]})";
  EXPECT_EQ(cwd("", "D:/x/"), "D:\\x");
  EXPECT_EQ(cwd("", "\\\\server\\share"), "\\\\server\\share");
  EXPECT_EQ(cwd(allow, ""), "C:\\w");
  EXPECT_EQ(cwd(allow, "c:/w/x"), "C:\\w\\x");
  EXPECT_THAT(cwd(allow, "C:\\wx"), HasSubstr("is not allowed"));
  EXPECT_THAT(cwd(allow, "\\\\server\\w"), HasSubstr("is not allowed"));
  EXPECT_THAT(cwd(allow, "C:\\w\\..\\x"), HasSubstr("has a \"..\" component"));
  EXPECT_THAT(cwd("", "x"), HasSubstr("does not begin with a drive"));
}

// Environment

std::vector<std::pair<std::string, std::string>> EnvOf(const ValidatedCommand& command) {
  std::vector<std::pair<std::string, std::string>> env;
  for (const EnvEntry& entry : command.env) env.emplace_back(entry.name, entry.value);
  return env;
}

TEST(EnvTest, IsEmptyButForWhatThePolicyLetsIn) {
  EXPECT_THAT(EnvOf(Allowed("", Request({"x"}))), ElementsAre(Pair("HOME", "/home/u"), Pair("PATH", "/usr/bin")));
  EXPECT_THAT(EnvOf(Allowed(R"("env": {"inherit": []})", Request({"x"}))), IsEmpty());
  // With values of its own too: some hosts hand over everything on that branch.
  EXPECT_THAT(EnvOf(Allowed(R"("env": {"set": {"A": "1"}})", Request({"x"}))),
              ElementsAre(Pair("A", "1"), Pair("HOME", "/home/u"), Pair("PATH", "/usr/bin")));
}

TEST(EnvTest, ByNameByGlobAndByValue) {
  CommandRequest request = Request({"x"});
  request.host_env = {{"LC_ALL", "C"}, {"LC_TIME", "C"}, {"LANG", "C"}, {"A", "host"}};
  const ValidatedCommand command =
      Allowed(R"("env": {"inherit": ["LC_*", "A"], "set": {"A": "policy", "B": ""}})", request);
  EXPECT_THAT(EnvOf(command),
              ElementsAre(Pair("A", "policy"), Pair("B", ""), Pair("LC_ALL", "C"), Pair("LC_TIME", "C")));
  EXPECT_EQ(command.env[0].source, EnvEntry::Source::kSet);
  EXPECT_EQ(command.env[2].source, EnvEntry::Source::kInherited);
  EXPECT_THAT(command.env_dropped, IsEmpty());
}

TEST(EnvTest, OddValuesPassUnharmed) {
  CommandRequest request = Request({"x"});
  request.host_env = {{"EMPTY", ""}, {"LINES", "a\nb=c\n"}, {"BYTES", "\xFF\xFE"}, {"PARENS", " () x"}, {"ODD%%", "="}};
  EXPECT_THAT(EnvOf(Allowed(R"("env": {"inherit": ["*"]})", request)),
              ElementsAre(Pair("BYTES", "\xFF\xFE"), Pair("EMPTY", ""), Pair("LINES", "a\nb=c\n"), Pair("ODD%%", "="),
                          Pair("PARENS", " () x")));
}

TEST(EnvTest, ShellFunctionsNeverPass) {
  CommandRequest request = Request({"x"});
  request.host_env = {{"BASH_FUNC_x%%", "() {  :\n}"}, {"BASH_FUNC_y", "1"}, {"HOME", "() { :;}; echo canary"}};
  const ValidatedCommand command = Allowed(R"("env": {"inherit": ["*", "HOME"]})", request);
  EXPECT_THAT(EnvOf(command), IsEmpty());
  EXPECT_THAT(command.env_dropped, ElementsAre("BASH_FUNC_x%%: is a shell function", "BASH_FUNC_y: is a shell function",
                                               "HOME: is a shell function"));
}

TEST(EnvTest, InjectionVariablesPassOnlyWhenSet) {
  CommandRequest request = Request({"x"});
  request.host_env = {{"NODE_OPTIONS", "canary"}, {"LD_PRELOAD", "canary"}, {"NODE_ENV", "test"}};
  const ValidatedCommand inherited = Allowed(R"("env": {"inherit": ["*"]})", request);
  EXPECT_THAT(EnvOf(inherited), ElementsAre(Pair("NODE_ENV", "test")));
  EXPECT_THAT(inherited.env_dropped, ElementsAre("LD_PRELOAD: makes other programs run other code",
                                                 "NODE_OPTIONS: makes other programs run other code"));
  EXPECT_THAT(
      EnvOf(Allowed(R"("env": {"inherit": ["*"], "set": {"NODE_OPTIONS": "--max-old-space-size=64"}})", request)),
      ElementsAre(Pair("NODE_ENV", "test"), Pair("NODE_OPTIONS", "--max-old-space-size=64")));
}

TEST(EnvTest, WhatIsNoVariableNeverPasses) {
  CommandRequest request = Request({"x"});
  request.host_env = {{"", "x"}, {"A=B", "x"}, {std::string("N\0M", 3), "x"}, {"V", std::string("x\0y", 3)}};
  const ValidatedCommand command = Allowed(R"("env": {"inherit": ["*"]})", request);
  EXPECT_THAT(EnvOf(command), IsEmpty());
  EXPECT_THAT(command.env_dropped, ElementsAre(HasSubstr("has a NUL in it"), "V: has a NUL in it"));
}

TEST(EnvTest, CredentialsInAddressesOfPackagesStayOutside) {
  CommandRequest request = Request({"uvx", "x"});
  request.host_env = {{"UV_INDEX_URL", "https://u:canary@packages.example"},
                      {"UV_DEFAULT_INDEX", "https://packages.example"}};
  const absl::StatusOr<Policy> policy = ParsePolicy({"preset:uvx", *PresetText("uvx")}, Host());
  const absl::StatusOr<ValidatedCommand> command = ValidateCommand(*policy, request);
  ASSERT_TRUE(command.ok());
  EXPECT_THAT(command->env_dropped, ElementsAre("UV_INDEX_URL: holds a credential"));
  EXPECT_THAT(EnvOf(*command), ::testing::Contains(Pair("UV_DEFAULT_INDEX", "https://packages.example")));
}

TEST(EnvTest, SizesAreBounded) {
  CommandRequest request = Request({"x"});
  const auto value = [](std::size_t size) { return std::string(size - 2, 'x'); };  // "A=" comes before it
  request.host_env = {{"A", value(kArgumentBytesMax)}};
  const std::string all = R"("env": {"inherit": ["*"]})";
  Allowed(all, request);
  request.host_env = {{"A", value(kArgumentBytesMax + 1)}};
  EXPECT_EQ(
      Wrong(all, request),
      "the environment variable \"A\" is 131072 bytes long, of at most 131071; shorten it, or leave it out of /env");
  Allowed("", request);  // what does not pass does not count

  request.host_env.clear();
  for (char name = 'A'; name < 'A' + 8; ++name) request.host_env[std::string(1, name)] = value(kArgumentBytesMax);
  Allowed(all, request);  // eight of them, with their NULs, are exactly kEnvironmentBytesMax
  request.host_env["A"].pop_back();
  Allowed(all, request);
  request.host_env["A"].push_back('x');
  request.host_env["Z"] = "";
  EXPECT_THAT(Wrong(all, request), HasSubstr("the environment is 1048579 bytes long, of at most 1048576"));
}

TEST(EnvTest, NoMessageHoldsAValue) {
  CommandRequest request = Request({"x"});
  request.host_env = {{"A", std::string(kArgumentBytesMax, 'x') + "canary"}};
  EXPECT_THAT(Wrong(R"("env": {"inherit": ["A"]})", request), Not(HasSubstr("xx")));
}

TEST(EnvTest, WindowsNamesDifferByMoreThanCase) {
  CommandRequest request = Request({"x.exe"});
  request.platform = Platform::kWindows;
  request.host_cwd = "C:\\";
  request.host_env = {{"Path", "C:\\host"}, {"PATH", "C:\\HOST"}, {"home", "h"}, {"Node_Options", "x"}};
  EXPECT_THAT(EnvOf(Allowed(R"("env": {"inherit": ["PATH", "HOME", "*"]})", request)),
              ElementsAre(Pair("home", "h"), Pair("PATH", "C:\\HOST")));
  EXPECT_THAT(EnvOf(Allowed(R"("env": {"inherit": ["path"], "set": {"PaTh": "C:\\policy"}})", request)),
              ElementsAre(Pair("PaTh", "C:\\policy")));
}

TEST(EnvTest, WindowsHasItsOwnDefaultList) {
  CommandRequest request = WindowsRequest({"x.exe"});
  request.host_env = {{"SystemRoot", "C:\\Windows"}, {"Path", "p"},  {"ComSpec", "c"}, {"APPDATA", "a"},
                      {"PATHEXT", ".EXE"},           {"HOME", "no"}, {"TOKEN", "no"}};
  EXPECT_THAT(EnvOf(*ValidateOnWindows("", request)),
              ElementsAre(Pair("APPDATA", "a"), Pair("ComSpec", "c"), Pair("Path", "p"), Pair("PATHEXT", ".EXE"),
                          Pair("SystemRoot", "C:\\Windows")));
}

TEST(EnvTest, InjectionVariablesAreKnownInAnyCaseOnWindows) {
  CommandRequest request = WindowsRequest({"x.exe"});
  request.host_env = {{"Node_Options", "canary"}, {"bash_env", "canary"}, {"ok", "1"}};
  const absl::StatusOr<ValidatedCommand> command = ValidateOnWindows(R"("env": {"inherit": ["*"]})", request);
  EXPECT_THAT(EnvOf(*command), ElementsAre(Pair("ok", "1")));
  EXPECT_THAT(command->env_dropped, ElementsAre("Node_Options: makes other programs run other code",
                                                "bash_env: makes other programs run other code"));
}

TEST(EnvTest, WindowsTakesNoNameTwice) {
  const std::string twice = R"("env": {"set": {"Path": "a", "PATH": "b"}})";
  EXPECT_EQ(ErrorOf(File(twice)), "(no error)");
  EXPECT_EQ(ErrorOf(File(twice), WindowsHost()),
            "files.json:1: /env/set/PATH: is the same name as \"Path\" on Windows; take one away");
}

// PATH

std::vector<std::string> LookUpFolders(const ValidatedCommand& command) {
  std::vector<std::string> folders;
  for (const LookUpFolder& folder : command.look_up_folders) {
    folders.push_back(absl::StrCat(folder.path, folder.granted_for_writing ? " (writable)" : ""));
  }
  return folders;
}

TEST(LookUpTest, TheCurrentFolderIsNeverSearched) {
  CommandRequest request = Request({"x"});
  request.host_env = {{"PATH", ":/usr/bin::.:bin:../x:./y:/usr//local/./bin/:/usr/bin:"}};
  EXPECT_THAT(LookUpFolders(Allowed("", request)), ElementsAre("/usr/bin", "/usr/local/bin"));
  request.host_env = {{"PATH", ""}};
  EXPECT_THAT(LookUpFolders(Allowed("", request)), IsEmpty());
  request.host_env.clear();
  EXPECT_THAT(LookUpFolders(Allowed("", request)), IsEmpty());
}

TEST(LookUpTest, ItIsTheServersOwnPath) {
  const CommandRequest request = Request({"x"});  // the host's is /usr/bin
  EXPECT_THAT(LookUpFolders(Allowed(R"("env": {"inherit": []})", request)), IsEmpty());
  EXPECT_THAT(LookUpFolders(Allowed(R"("env": {"set": {"PATH": "/opt/bin"}})", request)), ElementsAre("/opt/bin"));
}

TEST(LookUpTest, WhereTheServerMayWriteIsMarked) {
  CommandRequest request = Request({"x"});
  request.host_env = {{"PATH", "/usr/bin:/ws/bin:/wsx:/home/u/bin"}, {"HOME", "/home/u/"}};
  EXPECT_THAT(LookUpFolders(Allowed(R"("filesystem": {"ro": ["/ws", "/home/u"]})", request)),
              ElementsAre("/usr/bin", "/ws/bin", "/wsx", "/home/u/bin"));
  EXPECT_THAT(LookUpFolders(Allowed(R"("filesystem": {"rw": ["/ws"]})", request)),
              ElementsAre("/usr/bin", "/ws/bin (writable)", "/wsx", "/home/u/bin"));
  EXPECT_THAT(LookUpFolders(Allowed(R"("filesystem": {"home": "rw"})", request)),
              ElementsAre("/usr/bin", "/ws/bin", "/wsx", "/home/u/bin (writable)"));
  EXPECT_THAT(LookUpFolders(Allowed(R"("filesystem": {"rw": ["/"]})", request)),
              ::testing::Each(HasSubstr("(writable)")));
}

TEST(LookUpTest, OnWindowsToo) {
  CommandRequest request = WindowsRequest({"x"});
  request.host_env = {{"Path", ".;C:\\a;;b;\"C:\\c d\";C:\\a"}};
  EXPECT_THAT(LookUpFolders(*ValidateOnWindows("", request)), ElementsAre("C:\\a", "C:\\c d"));
}

// Working folder

TEST(CwdTest, AskedForThenThePolicysThenTheHosts) {
  CommandRequest request = Request({"x"});
  EXPECT_EQ(Allowed("", request).cwd, "/host/cwd");
  EXPECT_FALSE(Allowed("", request).cwd_asked_for);
  EXPECT_EQ(Allowed(R"("cwd": {"default": "/d"})", request).cwd, "/d");
  EXPECT_TRUE(Allowed(R"("cwd": {"default": "/d"})", request).cwd_asked_for);
  request.cwd = "/a//b/./";
  EXPECT_EQ(Allowed(R"("cwd": {"default": "/d"})", request).cwd, "/a/b");
}

TEST(CwdTest, OnlyWhereAllowed) {
  const std::string allow = R"("cwd": {"allow": ["/a", "/b/c"]})";
  CommandRequest request = Request({"x"});
  for (const char* cwd : {"/a", "/a/x", "/b/c"}) {
    request.cwd = cwd;
    EXPECT_EQ(Allowed(allow, request).cwd, cwd);
  }
  for (const char* cwd : {"/ab", "/b", "/"}) {
    request.cwd = cwd;
    EXPECT_THAT(Refused(allow, request),
                HasSubstr("is not allowed; /cwd/allow has \"/a\", \"/b/c\"; start in one of these"));
  }
  request.cwd.clear();
  EXPECT_THAT(Refused(allow, request), HasSubstr("\"/host/cwd\" is not allowed"));
  Allowed(R"("cwd": {"allow": ["/a"], "default": "/a"})", request);
}

TEST(CwdTest, WhatIsNoFolderIsWrong) {
  CommandRequest request = Request({"x"});
  request.cwd = "rel";
  EXPECT_EQ(Wrong("", request), "the working folder \"rel\" is not absolute; write the full path");
  request.cwd = "/a/../b";
  EXPECT_THAT(Wrong("", request), HasSubstr("has a \"..\" component"));
  request.cwd = std::string("/a\0b", 4);
  EXPECT_THAT(Wrong("", request), HasSubstr("has a control character"));
  request.cwd = "/a\nb";
  EXPECT_THAT(Wrong("", request), HasSubstr("has a control character"));
  request.cwd.clear();
  request.host_cwd.clear();
  EXPECT_THAT(Wrong("", request), HasSubstr("\"\" is empty"));
}

// runc started containers in /proc/self/fd/N, a folder of the host that it had open: CVE-2024-21626.
TEST(CwdTest, DoorsToOpenFilesAreRefused) {
  CommandRequest request = Request({"x"});
  for (const char* cwd : {"/proc", "/proc/self/fd/7", "/proc//./1/root", "/dev/fd/7"}) {
    request.cwd = cwd;
    EXPECT_THAT(Refused("", request), HasSubstr("CVE-2024-21626")) << cwd;
  }
  request.cwd = "/process";
  Allowed("", request);
}

}  // namespace
}  // namespace bulkhead::policy
