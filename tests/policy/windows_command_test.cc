// Windows' rules for programs and command lines, tested on every system: golden lines, and the other way round - what
// a program reads from them - by the rules that Microsoft gives ("Parsing C command-line arguments").
#include "bulkhead/policy/windows_command.h"

#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kNode[] = "C:\\Program Files\\nodejs\\node.exe";
constexpr char kNpx[] = "C:\\Program Files\\nodejs\\npx.cmd";
constexpr char kSystem[] = "C:\\Windows\\System32";

absl::StatusOr<WindowsStart> Start(const std::string& program, std::vector<std::string> arguments,
                                   BatchFiles batch_files = BatchFiles::kRefuse) {
  arguments.insert(arguments.begin(), "as asked for");
  return MakeWindowsStart(program, arguments, batch_files, kSystem);
}

std::string Line(const std::string& program, const std::vector<std::string>& arguments,
                 BatchFiles batch_files = BatchFiles::kRefuse) {
  const absl::StatusOr<WindowsStart> start = Start(program, arguments, batch_files);
  return start.ok() ? start->command_line : absl::StrCat("refused: ", start.status().message());
}

std::string Batch(const std::vector<std::string>& arguments, const std::string& program = kNpx) {
  return Line(program, arguments, BatchFiles::kChecked);
}

// Programs

TEST(WindowsCommandTest, GoldenLinesOfPrograms) {
  const std::string node = absl::StrCat("\"", kNode, "\"");
  EXPECT_EQ(Line(kNode, {}), node);
  EXPECT_EQ(Line(kNode, {"server.js", "--port=1"}), node + " server.js --port=1");
  EXPECT_EQ(Line(kNode, {"x  y", "", "\""}), node + R"( "x  y" "" "\"")");
  EXPECT_EQ(Line(kNode, {"C:\\a b\\", "C:\\a\\"}), node + R"( "C:\a b\\" C:\a\)");
  EXPECT_EQ(Line(kNode, {R"(a\\b)", R"(a\"b)", R"(a\\"b c\)"}), node + R"( a\\b "a\\\"b" "a\\\\\"b c\\")");
  EXPECT_EQ(Line(kNode, {"tab\there", "line\nbreak"}), node + " \"tab\there\" \"line\nbreak\"");
  // No shell reads it, so these are letters like any others.
  EXPECT_EQ(Line(kNode, {"a&calc", "%PATH%", "^", "!x!", "|", "<>"}), node + " a&calc %PATH% ^ !x! | <>");
  EXPECT_EQ(Line("\\\\server\\share\\x.exe", {"é"}), "\"\\\\server\\share\\x.exe\" é");
  EXPECT_EQ(Start(kNode, {})->application, kNode);
}

// The first word is read without regard to backslashes, the others by the rule of 2n and 2n+1 of them before a quote.
std::vector<std::string> ReadLine(const std::string& line) {
  std::vector<std::string> argv;
  std::size_t at = 1;
  while (line[at] != '"') ++at;
  argv.push_back(line.substr(1, at - 1));
  ++at;
  while (at < line.size()) {
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t')) ++at;
    if (at == line.size()) break;
    std::string word;
    for (bool quoted = false; at < line.size() && (quoted || (line[at] != ' ' && line[at] != '\t'));) {
      std::size_t backslashes = 0;
      while (at < line.size() && line[at] == '\\') ++backslashes, ++at;
      if (at < line.size() && line[at] == '"') {
        word.append(backslashes / 2, '\\');
        if (backslashes % 2 == 1) {
          word += '"';
        } else {
          quoted = !quoted;
        }
        ++at;
      } else {
        word.append(backslashes, '\\');
        if (backslashes == 0) word += line[at++];
      }
    }
    argv.push_back(word);
  }
  return argv;
}

TEST(WindowsCommandTest, WhatAProgramReadsIsWhatWasMeant) {
  ASSERT_THAT(ReadLine(R"("p" "a\\b" a\\\"b c\"d "\\" "" e)"),
              ElementsAre("p", R"(a\\b)", R"(a\"b)", "c\"d", "\\", "", "e"));
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::string> argv = {kNode};
    for (unsigned n = random() % 4; n > 0; --n) {
      std::string argument;
      for (unsigned length = random() % 7; length > 0; --length) argument += "\\\\\\\"\" \ta%^\n"[random() % 11];
      argv.push_back(argument);
    }
    const absl::StatusOr<WindowsStart> start = MakeWindowsStart(kNode, argv, BatchFiles::kRefuse, kSystem);
    ASSERT_TRUE(start.ok()) << start.status();
    ASSERT_EQ(ReadLine(start->command_line), argv) << start->command_line;
  }
}

TEST(WindowsCommandTest, WhatIsNoFullPathIsNotStarted) {
  for (const char* program : {"", "node", "node.exe", ".\\x.exe", "\\x.exe", "C:x.exe", "/usr/bin/x", "C:\\a\"b.exe"}) {
    EXPECT_EQ(Start(program, {}).status().code(), absl::StatusCode::kInvalidArgument) << program;
  }
  EXPECT_THAT(Line("C:\\x.txt:evil.exe", {}), HasSubstr("names a stream of a file"));
}

TEST(WindowsCommandTest, TextThatIsNoUtf16IsRefused) {
  EXPECT_EQ(Line(kNode, {"a", std::string("b\0c", 3)}),
            "refused: argument 2 has a NUL in it, which no program can be given");
  EXPECT_EQ(Line(kNode, {"\xFF"}), "refused: argument 1 is not UTF-8, of which Windows' UTF-16 is made");
  EXPECT_EQ(Line(kNode, {"\xED\xA0\x80"}), "refused: argument 1 is not UTF-8, of which Windows' UTF-16 is made");
  EXPECT_EQ(Start("C:\\\xFF.exe", {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(WindowsCommandTest, LengthIsCountedInUtf16Units) {
  const std::size_t room = kWindowsCommandLineUnitsMax - Line("C:\\x.exe", {}).size() - 1;
  EXPECT_TRUE(Start("C:\\x.exe", {std::string(room - 1, 'x')}).ok());
  EXPECT_TRUE(Start("C:\\x.exe", {std::string(room, 'x')}).ok());
  EXPECT_EQ(
      Line("C:\\x.exe", {std::string(room + 1, 'x')}),
      "refused: the command line for \"C:\\\\x.exe\" is 32767 characters long, of at most 32766; pass a file instead");
  std::string two_bytes, four_bytes;
  for (std::size_t i = 0; i < room; ++i) two_bytes += "é";
  for (std::size_t i = 0; i < room / 2; ++i) four_bytes += "😀";
  EXPECT_TRUE(Start("C:\\x.exe", {two_bytes}).ok());
  EXPECT_FALSE(Start("C:\\x.exe", {two_bytes + "x"}).ok());
  EXPECT_TRUE(Start("C:\\x.exe", {four_bytes}).ok());
  EXPECT_FALSE(Start("C:\\x.exe", {four_bytes + "xx"}).ok());
}

// Batch files

TEST(BatchFileLineTest, IsRefusedUnlessThePolicySaysChecked) {
  EXPECT_EQ(
      Line(kNpx, {"-y"}),
      "refused: \"C:\\\\Program Files\\\\nodejs\\\\npx.cmd\" is a batch file, whose arguments can't be passed safely; "
      "start the program that it starts");
  EXPECT_EQ(Start(kNpx, {}).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST(BatchFileLineTest, GoldenLines) {
  const std::string cmd = "cmd.exe /d /e:on /v:off /s /c \"";
  EXPECT_EQ(Batch({}), cmd + R"("C:\Program Files\nodejs\npx.cmd"")");
  EXPECT_EQ(Batch({"-y", "some-server"}), cmd + R"("C:\Program Files\nodejs\npx.cmd" "-y" "some-server"")");
  EXPECT_EQ(Batch({"x  y", "", "C:\\a b\\"}), cmd + R"("C:\Program Files\nodejs\npx.cmd" "x  y" "" "C:\a b\\"")");
  EXPECT_EQ(Batch({"a=b", "d;e,f", "*.js", "/x", "tab\t"}, "C:/tools/x.bat"),
            cmd + "\"C:\\tools\\x.bat\" \"a=b\" \"d;e,f\" \"*.js\" \"/x\" \"tab\t\"\"");
  EXPECT_EQ(Start(kNpx, {}, BatchFiles::kChecked)->application, "C:\\Windows\\System32\\cmd.exe");
  EXPECT_EQ(MakeWindowsStart(kNpx, {"npx"}, BatchFiles::kChecked, "C:\\Windows\\System32\\")->application,
            "C:\\Windows\\System32\\cmd.exe");
}

// Of CVE-2024-24576 and its kin. Control first: a program that is no batch file gets each of them as it is.
class UnsafeArgumentTest : public ::testing::TestWithParam<std::string> {};

TEST_P(UnsafeArgumentTest, IsNotPassedToABatchFile) {
  const std::string argument = absl::StrCat("a", GetParam(), "calc");
  ASSERT_EQ(ReadLine(Line(kNode, {argument})), (std::vector<std::string>{kNode, argument}));
  ASSERT_THAT(Batch({"acalc"}), HasSubstr("\"acalc\""));
  EXPECT_THAT(Batch({"safe", argument}), HasSubstr("refused: argument 2 has a"));
  EXPECT_THAT(Batch({"safe", argument}), ::testing::Not(HasSubstr("calc")));
  EXPECT_THAT(Batch({}, absl::StrCat("C:\\a", GetParam(), "b\\x.cmd")), HasSubstr("refused: "));
}

INSTANTIATE_TEST_SUITE_P(Characters, UnsafeArgumentTest,
                         ::testing::Values("&", "|", "<", ">", "^", "%", "\"", "!", "\r", "\n", "\r\n", "%PATH%", "\"&",
                                           "!x!", "%CMDCMDLINE:~-1%", "^\"", "\x1A", "\x7F", "\v"));

// "if exist x (echo %~1)" with ") else (calc" is another command. A folder's name is not what who asks chooses.
TEST(BatchFileLineTest, ParenthesesAreForFoldersOnly) {
  for (const char* argument : {"(", ")", "x) else (calc"}) {
    ASSERT_EQ(ReadLine(Line(kNode, {argument})), (std::vector<std::string>{kNode, argument}));
    EXPECT_THAT(Batch({argument}), HasSubstr("refused: argument 1 has a"));
  }
  EXPECT_THAT(Batch({"x"}, "C:\\Program Files (x86)\\x.cmd"), HasSubstr("\"C:\\Program Files (x86)\\x.cmd\" \"x\""));
}

TEST(BatchFileLineTest, AnArgumentWithANulIsWrongFirst) {
  EXPECT_THAT(Batch({std::string("\0", 1)}), HasSubstr("argument 1 has a NUL in it"));
}

TEST(BatchFileLineTest, ADisguisedNameIsRefusedEvenWhenChecked) {
  for (const char* program : {"C:\\x.bat.", "C:\\x.cmd...", "C:\\x.bat ", "C:\\x.bat. .", "C:\\x.bat::$DATA",
                              "C:\\x.bat:s", "\\\\?\\C:\\x.bat", "\\\\.\\C:\\x.cmd", "//?/C:/x.bat"}) {
    ASSERT_TRUE(IsBatchFile(program)) << program;
    EXPECT_THAT(Line(program, {}), HasSubstr("is a batch file, whose arguments")) << program;
    EXPECT_THAT(Batch({}, program), HasSubstr("is a batch file in disguise; name it plainly")) << program;
  }
  EXPECT_THAT(Batch({}, "C:\\x.BAT"), HasSubstr("/c \"\"C:\\x.BAT\"\""));
  // A stream that ends like a batch file is one for Windows, but no file of its own.
  EXPECT_THAT(Line("C:\\x.txt:y.cmd", {}), HasSubstr("is a batch file"));
}

TEST(BatchFileLineTest, CmdReadsNoLongerLine) {
  const std::size_t room = kBatchCommandLineUnitsMax - Batch({""}).size();
  EXPECT_THAT(Batch({std::string(room - 1, 'x')}), HasSubstr("xx"));
  EXPECT_THAT(Batch({std::string(room, 'x')}), HasSubstr("xx"));
  EXPECT_THAT(Batch({std::string(room + 1, 'x')}), HasSubstr("is 8192 characters long, of at most 8191"));
}

// Names

TEST(WindowsNameTest, AbsoluteIsWhatNeedsNoCurrentDriveOrFolder) {
  for (const char* path : {"C:\\x", "c:/x", "\\\\server\\share", "//server/share", "\\\\?\\C:\\x"}) {
    EXPECT_TRUE(IsWindowsAbsolute(path)) << path;
  }
  for (const char* path : {"", "x", "\\x", "/x", "C:", "C:x", "1:\\x", ".\\x", "\\\\"}) {
    EXPECT_FALSE(IsWindowsAbsolute(path)) << path;
  }
}

TEST(WindowsNameTest, AProgramIsOneFileWhateverTheCurrentDrive) {
  for (const char* name : {"node", "node.exe", ".\\x.exe", "..\\x.exe", "a/b.exe", "C:\\x.exe", "\\\\s\\h\\x.exe"}) {
    EXPECT_EQ(WhyNoWindowsProgram(name), "") << name;
  }
  EXPECT_EQ(WhyNoWindowsProgram("\\x.exe"), "depends on the current drive");
  EXPECT_EQ(WhyNoWindowsProgram("/x.exe"), "depends on the current drive");
  EXPECT_EQ(WhyNoWindowsProgram("C:x.exe"), "depends on the current folder of a drive");
  EXPECT_EQ(WhyNoWindowsProgram("C:a\\x.exe"), "depends on the current folder of a drive");
  for (const char* name : {"xy:s", "x.exe:s", "C:\\x.exe:s", "C:\\x.exe::$DATA", "a\\x.exe:s", "\\\\s\\h\\x:y"}) {
    EXPECT_EQ(WhyNoWindowsProgram(name), "names a stream of a file") << name;
  }
}

TEST(WindowsLookUpTest, TheCurrentFolderIsNeverSearched) {
  EXPECT_THAT(WindowsSearchFolders(R"(C:\a;;.;b;..\c;\d;E:;F:g;"C:\h i";\\s\share;C:/j)"),
              ElementsAre("C:\\a", "C:\\h i", "\\\\s\\share", "C:/j"));
  EXPECT_THAT(WindowsSearchFolders("\"C:\\a;b\";C:\\c"), ElementsAre("C:\\a;b", "C:\\c"));
  EXPECT_THAT(WindowsSearchFolders(""), IsEmpty());
  EXPECT_THAT(WindowsSearchFolders("\"C:\\a;b"), ElementsAre("C:\\a;b"));
}

TEST(WindowsLookUpTest, ABareNameIsCompletedByPathext) {
  const std::string usual = ".COM;.EXE;.BAT;.CMD;.VBS;.JS;.WSF;.MSC;.PY";
  // Not "npx", which is a shell script that lies beside npx.cmd.
  EXPECT_THAT(WindowsFileNames("npx", usual), ElementsAre("npx.com", "npx.exe", "npx.bat", "npx.cmd"));
  EXPECT_THAT(WindowsFileNames("npx", ""), ElementsAre("npx.com", "npx.exe", "npx.bat", "npx.cmd"));
  EXPECT_THAT(WindowsFileNames("npx", " .cmd ;;.exe;.CMD"), ElementsAre("npx.cmd", "npx.exe"));
  EXPECT_THAT(WindowsFileNames("python3.11", ".EXE"), ElementsAre("python3.11.exe"));
  EXPECT_THAT(WindowsFileNames("Node.EXE", usual), ElementsAre("Node.EXE"));
  EXPECT_THAT(WindowsFileNames("x.py", usual), ElementsAre("x.py.com", "x.py.exe", "x.py.bat", "x.py.cmd"));
  EXPECT_THAT(WindowsFileNames("x", ".VBS;.PY"), IsEmpty());
}

}  // namespace
}  // namespace bulkhead::policy
