#include "bulkhead/policy/text.h"

#include <string>

#include "bulkhead/policy/env_names.h"
#include "bulkhead/policy/glob.h"
#include "bulkhead/policy/mistakes.h"
#include "bulkhead/policy/paths.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Text, and how it is shown.
struct Shown {
  const char* text;
  const char* as;
};

TEST(VisibleTest, WhatATerminalWouldNotShowAsItselfIsWrittenOut) {
  const Shown cases[] = {
      {"plain \\ \" ' é 漢 😀", "plain \\ \" ' é 漢 😀"},
      {"\x1b[31m", "\\x1b[31m"},
      {"a\tb\nc\rd\x7f", "a\\tb\\nc\\rd\\x7f"},
      {"\u009b31m", "\\u009b31m"},  // CSI in one character
      {"\u202egnp.exe", "\\u202egnp.exe"},
      {"a\u200bb\ufeff", "a\\u200bb\\ufeff"},
      {"a\u2028b\u2029", "a\\u2028b\\u2029"},
      {"\U000e0041", "\\U000e0041"},  // a letter of the tags, which are shown as nothing
      {"\xff\xc2 \xed\xa0\x80", "\\xff\\xc2 \\xed\\xa0\\x80"},
  };
  for (const Shown& one : cases) {
    EXPECT_EQ(Visible(one.text), one.as);
    EXPECT_EQ(Visible(one.as), one.as);
  }
  EXPECT_EQ(Visible(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(Visible("a\tb\nc\u0085", "\t\n"), "a\tb\nc\\u0085");
}

TEST(VisibleTest, EachRangeHasItsEdges) {
  // The neighbours of what is written out are shown.
  for (const char* text : {" ", "~", "\u00a0", "\u00ac", "\u00ae", "\u061b", "\u180a", "\u200a", "\u2010", "\u2027",
                           "\u202f", "\u205f", "\u2070", "\ufe0f", "\uffef", "\ufffc", "\U0001f468"}) {
    EXPECT_EQ(Visible(text), text);
  }
  for (const char* text : {"\x01", "\x1f", "\x7f", "\u0080", "\u009f", "\u00ad", "\u061c", "\u200b", "\u200f", "\u202a",
                           "\u202e", "\u2060", "\u2066", "\u2069", "\u206f", "\ufff9", "\ufffb", "\U000e0fff"}) {
    EXPECT_EQ(Visible(text)[0], '\\') << Visible(text);
  }
}

TEST(QuoteTest, ControlCharactersCantReachTheTerminal) {
  EXPECT_EQ(Quote("plain é's"), "\"plain é's\"");
  EXPECT_EQ(Quote("\x1b[31m\n\u009b"), "\"\\x1b[31m\\n\\u009b\"");
  EXPECT_EQ(Quote("a\"b\\n"), "\"a\\\"b\\\\n\"");
}

TEST(QuoteTest, CutsLongValuesBetweenCharacters) {
  EXPECT_EQ(Quote(std::string(kQuotedBytesMax, 'x')), "\"" + std::string(kQuotedBytesMax, 'x') + "\"");
  EXPECT_EQ(Quote(std::string(kQuotedBytesMax + 1, 'x')), "\"" + std::string(kQuotedBytesMax, 'x') + "…\"");
  // The character in the middle of the cut is left out whole.
  EXPECT_EQ(Quote(std::string(kQuotedBytesMax - 1, 'x') + "éé"), "\"" + std::string(kQuotedBytesMax - 1, 'x') + "…\"");
}

TEST(PointerTokenTest, EscapesAsRfc6901) { EXPECT_EQ(PointerToken("a/b~c"), "a~1b~0c"); }

TEST(PointerTokenTest, IsSafeToShow) { EXPECT_EQ(PointerToken("a\x1b\u202e\"\\"), "a\\x1b\\u202e\\\"\\\\"); }

TEST(PointerTokenTest, CutsLongKeysBetweenCharacters) {
  const std::string most(kQuotedBytesMax - 1, 'x');
  EXPECT_EQ(PointerToken(most + "x"), most + "x");
  EXPECT_EQ(PointerToken(most + "xx"), most + "x");
  EXPECT_EQ(PointerToken(most + "é"), most);
  EXPECT_EQ(PointerToken(most.substr(1) + "é"), most.substr(1) + "é");
}

TEST(NearMissTest, FindsSlipsButNotOtherWords) {
  EXPECT_EQ(NearMiss("requires", {"require", "restart"}), "require");
  EXPECT_EQ(NearMiss("reqiure", {"require"}), "require");  // neighbours swapped
  EXPECT_EQ(NearMiss("Open-Files", {"open_files"}), "open_files");
  EXPECT_EQ(NearMiss("D", {"A", "B", "C"}), "");
  EXPECT_EQ(NearMiss("something", {"require", "restart"}), "");
  EXPECT_EQ(NearMiss("", {"A"}), "");
  EXPECT_EQ(NearMiss(std::string(1 << 20, 'x'), {"require"}), "");
}

TEST(Utf8Test, FindsTheFirstInvalidByte) {
  constexpr auto kNone = absl::string_view::npos;
  EXPECT_EQ(FindInvalidUtf8("plain text, longer than a word"), kNone);
  EXPECT_EQ(FindInvalidUtf8("é€😀\xED\x9F\xBF\xF4\x8F\xBF\xBF"), kNone);
  EXPECT_EQ(FindInvalidUtf8("ab\xFF"), 2u);
  EXPECT_EQ(FindInvalidUtf8("\x80"), 0u);
  EXPECT_EQ(FindInvalidUtf8("\xC3"), 0u);              // cut short
  EXPECT_EQ(FindInvalidUtf8("\xC0\xAF"), 0u);          // overlong
  EXPECT_EQ(FindInvalidUtf8("\xE0\x9F\xBF"), 0u);      // overlong
  EXPECT_EQ(FindInvalidUtf8("\xED\xA0\x80"), 0u);      // a surrogate
  EXPECT_EQ(FindInvalidUtf8("\xF4\x90\x80\x80"), 0u);  // past U+10FFFF
}

TEST(MistakesTest, HaveAPlaceEachAndAreReportedOnce) {
  Mistakes mistakes;
  EXPECT_TRUE(mistakes.ToStatus().ok());
  mistakes.Add("a.json", {3, 7}, "/user", "is wrong; write another");
  mistakes.Add("a.json", {3, 7}, "/user", "is wrong; write another");
  mistakes.Add("a.json", {}, "", "is empty; write something");
  EXPECT_EQ(mistakes.ToStatus().message(),
            "a.json:3:7: /user: is wrong; write another\na.json:1:1: /: is empty; write something");
  EXPECT_EQ(mistakes.count(), 3u);
}

TEST(MistakesTest, TheRestIsCounted) {
  Mistakes mistakes;
  for (std::size_t i = 0; i < kMistakesMax; ++i) mistakes.Add("a.json", {static_cast<int>(i), 1}, "", "x");
  EXPECT_THAT(std::string(mistakes.ToStatus().message()), EndsWith("/: x"));
  mistakes.Add("a.json", {-1, 1}, "", "x");
  EXPECT_THAT(std::string(mistakes.ToStatus().message()), EndsWith("\n(1 more mistakes are not shown)"));
}

TEST(MistakesTest, TheirBytesAreBoundedToo) {
  const auto report = [](std::size_t more) {
    Mistakes mistakes;
    mistakes.Add("/", std::string(kMistakeBytesMax / 2 - 3, 'x'));
    mistakes.Add("/", std::string(kMistakeBytesMax / 2 - 3 + more, 'y'));
    mistakes.Add("/", "");
    return std::string(mistakes.ToStatus().message());
  };
  EXPECT_THAT(report(0), EndsWith("y\n(1 more mistakes are not shown)"));
  // What follows one that was left out is left out too: they are in the order of the text.
  EXPECT_THAT(report(1), EndsWith("x\n(2 more mistakes are not shown)"));
  Mistakes mistakes;
  mistakes.Add("/", std::string(kMistakeBytesMax * 2, 'x'));
  EXPECT_THAT(std::string(mistakes.ToStatus().message()), EndsWith("xxx"));
}

TEST(PathsTest, Normalise) {
  std::string normal;
  EXPECT_EQ(NormalisePath("/a//b/./c/", &normal), PathProblem::kNone);
  EXPECT_EQ(normal, "/a/b/c");
  EXPECT_EQ(NormalisePath("//", &normal), PathProblem::kNone);
  EXPECT_EQ(normal, "/");
  EXPECT_EQ(NormalisePath("", &normal), PathProblem::kEmpty);
  EXPECT_EQ(NormalisePath("a/b", &normal), PathProblem::kNotAbsolute);
  EXPECT_EQ(NormalisePath("/a/../b", &normal), PathProblem::kDotDot);
  EXPECT_EQ(NormalisePath("/a/..b", &normal), PathProblem::kNone);
  EXPECT_EQ(NormalisePath("/a\nb", &normal), PathProblem::kControlCharacter);
  EXPECT_EQ(NormalisePath("/a\u009bb", &normal), PathProblem::kControlCharacter);
  EXPECT_EQ(NormalisePath("/a\u00a0b\u00db", &normal), PathProblem::kNone);
  EXPECT_EQ(NormalisePath(std::string("/a\0b", 4), &normal), PathProblem::kControlCharacter);
  EXPECT_EQ(NormalisePath("/" + std::string(kPathBytesMax - 1, 'x'), &normal), PathProblem::kNone);
  EXPECT_EQ(NormalisePath("/" + std::string(kPathBytesMax, 'x'), &normal), PathProblem::kTooLong);
}

TEST(PathsTest, NormaliseOnWindows) {
  const auto normalise = [](absl::string_view path) {
    std::string normal;
    const PathProblem problem = NormalisePath(path, &normal, Platform::kWindows);
    return problem == PathProblem::kNone ? normal : std::string(PathProblemText(problem));
  };
  EXPECT_EQ(normalise("c:/data\\.\\x//y/"), "C:\\data\\x\\y");
  EXPECT_EQ(normalise("C:\\"), "C:\\");
  EXPECT_EQ(normalise("C:\\PROGRA~1\\a b\\ä.txt"), "C:\\PROGRA~1\\a b\\ä.txt");
  EXPECT_EQ(normalise("C:\\console\\com\\com10\\NULL.txt"), "C:\\console\\com\\com10\\NULL.txt");
  EXPECT_EQ(normalise("C:\\a\\..\\b"), "has a \"..\" component");
  EXPECT_EQ(normalise("C:\\a\nb"), "has a control character");
  for (const char* path : {"/data", "\\data", "data", "C:", "C:data", "\\\\server\\share\\x", "\\\\?\\C:\\x",
                           "\\\\.\\C:\\x", "1:\\x", "\u00c4:\\x"}) {
    EXPECT_EQ(normalise(path), "does not begin with a drive, as \"C:\\\\data\" does") << path;
  }
  for (const char* name :
       {"x.",   "x ",  "x. .",    "...",    "x:s", "x::$DATA", "x*",   "x?",       "<x",        "x>",     "x|y",
        "a\"b", "NUL", "nul.txt", "Con .x", "aux", "PRN",      "COM1", "lpt9.log", "COM\u00b9", "CONIN$", "conout$"}) {
    EXPECT_EQ(normalise(absl::StrCat("C:\\a\\", name, "\\b")),
              "has a name in it that Windows takes for another one, for a device or for a stream")
        << name;
  }
}

TEST(PathsTest, WithinIsByComponents) {
  EXPECT_TRUE(IsWithin("/a", "/a"));
  EXPECT_TRUE(IsWithin("/a/b", "/a"));
  EXPECT_TRUE(IsWithin("/a", "/"));
  EXPECT_FALSE(IsWithin("/ab", "/a"));
  EXPECT_FALSE(IsWithin("/", "/a"));
  EXPECT_TRUE(IsWithin("C:\\a", "C:\\a"));
  EXPECT_TRUE(IsWithin("C:\\a\\b", "C:\\a"));
  EXPECT_TRUE(IsWithin("C:\\a", "C:\\"));
  EXPECT_FALSE(IsWithin("C:\\ab", "C:\\a"));
  EXPECT_FALSE(IsWithin("C:\\", "C:\\a"));
  EXPECT_FALSE(IsWithin("D:\\a", "C:\\"));
  EXPECT_FALSE(IsWithin("C:\\A\\b", "C:\\a"));  // another folder, where a folder tells them apart
}

TEST(PathsTest, Join) {
  EXPECT_EQ(JoinPath("/p/q", "../base.json"), "/p/base.json");
  EXPECT_EQ(JoinPath("/p", "/x/../y"), "/y");
  EXPECT_EQ(JoinPath("/", "../../a"), "/a");
  EXPECT_EQ(JoinPath(".", "a/./b"), "a/b");
  EXPECT_EQ(JoinPath("c", "../../a"), "../a");
  EXPECT_EQ(FolderOf("/a/b"), "/a");
  EXPECT_EQ(FolderOf("/a"), "/");
  EXPECT_EQ(FolderOf("a"), ".");
}

TEST(PathsTest, JoinOnWindows) {
  const auto join = [](absl::string_view folder, absl::string_view path) {
    return JoinPath(folder, path, Platform::kWindows);
  };
  EXPECT_EQ(join("C:\\p\\q", "..\\base.json"), "C:/p/base.json");
  EXPECT_EQ(join("C:\\p", "D:\\x/../y"), "D:/y");
  EXPECT_EQ(join("C:/", "../../a"), "C:/a");
  EXPECT_EQ(join("\\\\server\\share", "a"), "//server/share/a");
  EXPECT_EQ(join(".", "a\\b"), "a/b");
  EXPECT_EQ(JoinPath("/p", "C:\\x"), "/p/C:\\x");  // elsewhere a name like any other
  EXPECT_EQ(FolderOf("C:\\a\\b", Platform::kWindows), "C:\\a");
  EXPECT_EQ(FolderOf("C:\\a", Platform::kWindows), "C:\\");
  EXPECT_EQ(FolderOf("C:/a/b\\c", Platform::kWindows), "C:/a/b");
}

TEST(GlobTest, Matches) {
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_TRUE(GlobMatches("--inspect*", "--inspect-brk=0"));
  EXPECT_FALSE(GlobMatches("--inspect*", "x--inspect"));
  EXPECT_TRUE(GlobMatches("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(GlobMatches("a*b*c", "aXbYbZ"));
  EXPECT_TRUE(GlobMatches("a?c", "a?c"));
  EXPECT_FALSE(GlobMatches("a?c", "ac"));
  EXPECT_FALSE(GlobMatches("", "a"));
  EXPECT_TRUE(GlobMatches("*", "*"));
  EXPECT_FALSE(GlobMatches("HOME", "home"));
}

TEST(GlobTest, ManyStarsTakeNoLongerThanTheProductOfLengths) {
  std::string glob;
  for (int i = 0; i < 100; ++i) glob += "a*";
  EXPECT_FALSE(GlobMatches(glob + "b", std::string(20000, 'a')));
}

TEST(GlobTest, CoverIsNeverSaidWhereItIsNot) {
  EXPECT_TRUE(GlobCovers("*", "LC_*"));
  EXPECT_TRUE(GlobCovers("L*", "LC_*"));
  EXPECT_TRUE(GlobCovers("LC_*", "LC_ALL"));
  EXPECT_TRUE(GlobCovers("a?", "a?"));
  EXPECT_FALSE(GlobCovers("LC_*", "L*"));
  EXPECT_FALSE(GlobCovers("a?", "a*"));
  EXPECT_FALSE(GlobCovers("a", "a*"));
  EXPECT_FALSE(GlobCovers("*a", "a*"));
  EXPECT_FALSE(GlobCovers("a", "?"));
}

TEST(GlobTest, IntersectionKeepsTheNarrowerOne) {
  EXPECT_THAT(IntersectGlobs({"LC_*", "HOME", "X*"}, {"LC_ALL", "H*", "*Y"}), ElementsAre("LC_ALL", "HOME"));
  EXPECT_THAT(IntersectGlobs({"A*"}, {"A*", "A*"}), ElementsAre("A*"));
  EXPECT_THAT(IntersectGlobs({"A"}, {}), IsEmpty());
}

TEST(EnvNamesTest, Names) {
  EXPECT_TRUE(IsEnvName("npm_config_//registry.example/:_authToken"));
  EXPECT_TRUE(IsEnvName("ProgramFiles(x86)"));
  for (const char* name : {"", "A=B", "A B", "A\n", "${A}", "LC_*", "A?", "é"}) EXPECT_FALSE(IsEnvName(name)) << name;
  EXPECT_TRUE(IsEnvName(std::string(kEnvNameBytesMax, 'A')));
  EXPECT_FALSE(IsEnvName(std::string(kEnvNameBytesMax + 1, 'A')));
}

TEST(EnvNamesTest, WhatMakesProgramsRunOtherCodeNeverPasses) {
  for (const char* name : {"GTK3_MODULES",
                           "GIT_ALLOW_PROTOCOL",
                           "GIT_TRACE_SETUP",
                           "GIT_SSH_COMMAND",
                           "ERL_AFLAGS",
                           "LESSOPEN",
                           "MAKEFLAGS",
                           "NODE_COMPILE_CACHE",
                           "QT_PLUGIN_PATH",
                           "RUSTC_WORKSPACE_WRAPPER",
                           "COR_PROFILER_PATH",
                           "GCONV_PATH",
                           "WSL_INTEROP",
                           "LD_PRELOAD",
                           "LD_LIBRARY_PATH",
                           "LD_AUDIT",
                           "DYLD_INSERT_LIBRARIES",
                           "GCONV_PATH",
                           "GLIBC_TUNABLES",
                           "HOSTALIASES",
                           "LOCPATH",
                           "BASH_ENV",
                           "ENV",
                           "SHELLOPTS",
                           "PS4",
                           "NODE_OPTIONS",
                           "NODE_PATH",
                           "NODE_REPL_EXTERNAL_MODULE",
                           "PYTHONSTARTUP",
                           "PYTHONPATH",
                           "PYTHONHOME",
                           "PYTHONWARNINGS",
                           "RUBYOPT",
                           "RUBYLIB",
                           "PERL5OPT",
                           "PERL5LIB",
                           "JAVA_TOOL_OPTIONS",
                           "_JAVA_OPTIONS",
                           "JDK_JAVA_OPTIONS",
                           "GIT_SSH",
                           "GIT_SSH_COMMAND",
                           "GIT_ASKPASS",
                           "GIT_CONFIG_COUNT",
                           "GIT_CONFIG_GLOBAL",
                           "GIT_EXEC_PATH",
                           "GIT_EXTERNAL_DIFF",
                           "DOTNET_STARTUP_HOOKS",
                           "OPENSSL_CONF",
                           "npm_config_node_options",
                           "NPM_CONFIG_SCRIPT-SHELL"}) {
    EXPECT_THAT(std::string(WhyNeverInherited(name, false)), HasSubstr("other code")) << name;
  }
  for (const char* name : {"npm_config__authToken", "npm_config_//registry.example/:_password"}) {
    EXPECT_THAT(std::string(WhyNeverInherited(name, false)), HasSubstr("credential")) << name;
  }
  for (const char* name : {"PATH", "HOME", "LANG", "TZDIR", "NODE_EXTRA_CA_CERTS", "NODE_ENV", "PYTHONUTF8",
                           "GIT_AUTHOR_NAME", "ENVIRONMENT", "npm_config_registry", "SSL_CERT_FILE", "ld_preload"}) {
    EXPECT_THAT(std::string(WhyNeverInherited(name, false)), IsEmpty()) << name;
  }
  EXPECT_THAT(std::string(WhyNeverInherited("Node_Options", true)), HasSubstr("other code"));
}

TEST(EnvNamesTest, AddressesOfPackagesPassOnlyWithoutAPassword) {
  EXPECT_EQ(WhyValueNeverInherited("UV_INDEX_URL", "https://u:p@packages.example/simple"), "holds a credential");
  EXPECT_EQ(WhyValueNeverInherited("UV_INDEX", "a=https://packages.example/ b=https://t@packages.example/"),
            "holds a credential");
  EXPECT_EQ(WhyValueNeverInherited("npm_config_registry", "https://u:p@packages.example"), "holds a credential");
  EXPECT_EQ(WhyValueNeverInherited("npm_config_registry", "https://packages.example/@scope/x"), "");
  EXPECT_EQ(WhyValueNeverInherited("UV_INDEX_URL", "https://packages.example/a@b"), "");
  EXPECT_EQ(WhyValueNeverInherited("HTTPS_PROXY", "http://u:p@proxy.example"), "");  // no way out without it
}

}  // namespace
}  // namespace bulkhead::policy
