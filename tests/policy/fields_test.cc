// Defaults, variables, paths, what is added on the command line.
#include "bulkhead/policy/fields.h"

#include <string>

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
using ::testing::MatchesRegex;
using ::testing::Not;

TEST(DefaultsTest, APolicyThatSaysNothingGrantsNothing) {
  const PolicyFields fields = Parsed(File(""));
  EXPECT_EQ(fields.require, Tier::kA);
  EXPECT_EQ(fields.user, "auto");
  EXPECT_EQ(fields.command.allow, std::nullopt);
  EXPECT_EQ(fields.command.batch_files, BatchFiles::kRefuse);
  EXPECT_THAT(fields.env.inherit, ElementsAre("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"));
  EXPECT_THAT(fields.env.set, IsEmpty());
  EXPECT_THAT(fields.filesystem.rx, IsEmpty());
  EXPECT_THAT(fields.filesystem.ro, IsEmpty());
  EXPECT_THAT(fields.filesystem.rw, IsEmpty());
  EXPECT_EQ(fields.filesystem.home, HomeMode::kPrivate);
  EXPECT_EQ(fields.filesystem.tmp, TmpMode::kPrivate);
  EXPECT_EQ(fields.network, NetworkMode::kNone);
  EXPECT_EQ(fields.syscall_profile, SyscallProfile::kBaseline);
  EXPECT_EQ(fields.limits.open_files, 4096u);
  EXPECT_EQ(fields.limits.processes, 0u);
  EXPECT_EQ(fields.timeouts.term_grace, absl::Seconds(2));
  EXPECT_FALSE(fields.timeouts.term_grace_was_set);
  EXPECT_EQ(fields.stderr_rules.mode, StderrMode::kInherit);
  EXPECT_THAT(fields.warnings, IsEmpty());
  EXPECT_THAT(Parsed(File(R"("env": {"inherit": []})")).env.inherit, IsEmpty());
}

PathGrant OnlyGrant(const std::string& grant, const ParseOptions& options = Host()) {
  const PolicyFields fields = Parsed(File(absl::StrCat("\"filesystem\": {\"ro\": [", grant, "]}")), options);
  EXPECT_EQ(fields.filesystem.ro.size(), 1u) << grant;
  return fields.filesystem.ro.empty() ? PathGrant() : fields.filesystem.ro[0];
}

TEST(PathTest, IsExpandedAndMadeNormal) {
  EXPECT_EQ(OnlyGrant("\"/a//./b/\"").path, "/a/b");
  EXPECT_EQ(OnlyGrant("\"${workspace}/out\"").path, "/home/u/ws/out");
  EXPECT_EQ(OnlyGrant("\"/x/${env:WORD}/y\"").path, "/x/word/y");
  EXPECT_EQ(OnlyGrant("\"${var:DATA}\"").path, "/var/data");
}

TEST(PathTest, ThatBeginsWithAVariableStaysBeneathIt) {
  EXPECT_EQ(OnlyGrant("\"/home/u/ws/out\"").beneath, "");
  EXPECT_EQ(OnlyGrant("\"/x/${env:WORD}\"").beneath, "");
  EXPECT_EQ(OnlyGrant("\"${workspace}/out\"").beneath, "/home/u/ws");
  EXPECT_EQ(OnlyGrant("\"${workspace}\"").beneath, "/home/u/ws");
  EXPECT_EQ(OnlyGrant("\"${env:PLACE}/x\"").beneath, "/env/place");
  ParseOptions options = Host();
  options.variables.workspace = "/ws//x/";
  EXPECT_EQ(OnlyGrant("\"${workspace}/out\"", options).beneath, "/ws/x");
}

TEST(PathTest, KnowsWhereItComesFrom) {
  EXPECT_EQ(Parsed({"files.json", "{\"version\": 1, \"filesystem\": {\n\"ro\": [\n\"/a\"]}}"}).filesystem.ro[0].origin,
            "files.json:3");
}

TEST(PathTest, GrantedTwiceIsOneGrant) {
  EXPECT_FALSE(OnlyGrant(R"("/a", {"path": "/a/", "optional": true})").optional);
  EXPECT_TRUE(OnlyGrant(R"({"path": "/a", "optional": true}, {"path": "/a", "optional": true})").optional);
  EXPECT_EQ(OnlyGrant(R"("/home/u/ws", "${workspace}")").beneath, "/home/u/ws");
}

TEST(PathTest, UnsetIsAnErrorThatSaysHowToSetIt) {
  ParseOptions options;
  EXPECT_EQ(ErrorOf(File(R"("filesystem": {"ro": ["${workspace}"]})"), options),
            "files.json:1: /filesystem/ro/0: ${workspace} is not set; start with --workspace DIR");
  EXPECT_EQ(
      ErrorOf(File(R"("filesystem": {"ro": ["${env:EMPTY}/x"]})")),
      "files.json:1: /filesystem/ro/0: ${env:EMPTY} is not set; set EMPTY in the environment that bulkhead is started "
      "with");
  EXPECT_EQ(ErrorOf(File(R"("cwd": {"default": "${var:X}"}, "command": {"allow": ["${tmp}/x"]})"), options),
            "files.json:1: /command/allow/0: ${tmp} is not set; set TMPDIR to an absolute path\n"
            "files.json:1: /cwd/default: ${var:X} is not set; start with --var X=VALUE");
}

TEST(PathTest, UnsetInAnOptionalGrantLeavesItOutWithAWarning) {
  const PolicyFields fields =
      Parsed(File(R"("filesystem": {"ro": [{"path": "${workspace}/x", "optional": true}, "/a"]})"), ParseOptions());
  EXPECT_THAT(PathsOf(fields.filesystem.ro), ElementsAre("/a"));
  EXPECT_THAT(fields.warnings, ElementsAre("files.json:1: left out \"${workspace}/x\": ${workspace} is not set"));
}

// What a variable stands for comes from outside: it must not lead anywhere else, and is not repeated.
TEST(PathTest, AVariablesValueCantLeadElsewhere) {
  ParseOptions options = Host();
  for (const char* value : {"../canary", "canary/../../etc", "x\ncanary"}) {
    options.variables.env["BAD"] = value;
    const std::string error = ErrorOf(File(R"("filesystem": {"ro": ["${workspace}/${env:BAD}"]})"), options);
    EXPECT_THAT(error, HasSubstr("files.json:1: /filesystem/ro/0: \"${workspace}/${env:BAD}\", once expanded, has a"));
    EXPECT_THAT(error, Not(HasSubstr("canary")));
    const PolicyFields fields =
        Parsed(File(R"("filesystem": {"ro": [{"path": "${workspace}/${env:BAD}", "optional": true}]})"), options);
    EXPECT_THAT(fields.filesystem.ro, IsEmpty());
    EXPECT_THAT(fields.warnings, ElementsAre(Not(HasSubstr("canary"))));
  }
  options.variables.env["BAD"] = "relative";
  EXPECT_THAT(ErrorOf(File(R"("filesystem": {"ro": ["${env:BAD}"]})"), options), HasSubstr("is not absolute"));
}

TEST(ValueTest, IsExpandedOnceAndNeverShown) {
  ParseOptions options = Host();
  options.variables.env["SECRET"] = "canary ${home}\nline";
  EXPECT_EQ(Parsed(File(R"("env": {"set": {"A": "<${env:SECRET}>"}})"), options).env.set.at("A"),
            "<canary ${home}\nline>");
  EXPECT_EQ(Parsed(File(R"("env": {"set": {"A": "${env:EMPTY}"}})"), options).env.set.at("A"), "");
  options.variables.env["SECRET"] = "() { canary; }";
  const std::string error = ErrorOf(File(R"("env": {"set": {"A": "${env:SECRET}"}})"), options);
  EXPECT_THAT(error, HasSubstr("/env/set/A: once expanded, begins with \"()\""));
  EXPECT_THAT(error, Not(HasSubstr("canary")));
  EXPECT_EQ(
      ErrorOf(File(R"("env": {"set": {"A": "${env:NOPE}"}})"), options),
      "files.json:1: /env/set/A: ${env:NOPE} is not set; set NOPE in the environment that bulkhead is started with");
}

TEST(ValueTest, AllOfTheEnvironmentIsWarnedAbout) {
  EXPECT_THAT(Parsed(File(R"("env": {"inherit": ["*"]})")).warnings, ElementsAre(HasSubstr("whole environment")));
}

TEST(CacheTest, IsOnePoliciesOwn) {
  const auto cache_of = [](const std::string& name, const std::string& folder = "/p") {
    ParseOptions options = Host();
    options.folder = folder;
    return Parsed(File(R"("filesystem": {"rw": ["${cache}"]})", name), options);
  };
  const PolicyFields files = cache_of("files.json");
  EXPECT_THAT(files.cache_key, MatchesRegex("files-[0-9a-f]{16}"));
  ASSERT_EQ(files.filesystem.rw.size(), 1u);
  EXPECT_EQ(files.filesystem.rw[0].path, "/home/u/.cache/bulkhead/" + files.cache_key);
  EXPECT_EQ(files.filesystem.rw[0].beneath, files.filesystem.rw[0].path);
  EXPECT_EQ(cache_of("/p/files.json").cache_key, files.cache_key);  // however it is named
  EXPECT_EQ(cache_of("x/../files.json").cache_key, files.cache_key);
  EXPECT_NE(cache_of("/q/files.json").cache_key, files.cache_key);
  EXPECT_NE(cache_of("files.json", "/q").cache_key, files.cache_key);
}

TEST(CacheTest, KeysAreStableAndOnePathComponent) {
  EXPECT_EQ(CacheKey("preset:npx"), "npx-" + CacheKey("preset:npx").substr(4));
  // FNV-1a of "a": the test vector of its authors.
  EXPECT_EQ(CacheKey("a"), "a-af63dc4c8601ec8c");
  EXPECT_THAT(CacheKey("/p/../.. x\n.json"), MatchesRegex("___x_-[0-9a-f]{16}"));
  EXPECT_THAT(CacheKey("/p/" + std::string(500, 'x')), MatchesRegex("x{40}-[0-9a-f]{16}"));
  EXPECT_THAT(CacheKey(""), MatchesRegex("-[0-9a-f]{16}"));
}

TEST(CacheTest, WithoutAPlaceItIsUnset) {
  ParseOptions options = Host();
  options.variables.cache_root.reset();
  EXPECT_THAT(ErrorOf(File(R"("filesystem": {"rw": ["${cache}"]})"), options),
              HasSubstr("${cache} is not set; set HOME"));
}

TEST(AdditionsTest, ComeOnTopOfThePolicy) {
  ParseOptions options = Host();
  options.additions.ro = {"/r/"};
  options.additions.rw = {"/w"};
  options.additions.network = NetworkMode::kHost;
  options.additions.env = {{"A", "added ${home}"}, {"NODE_OPTIONS", "--x"}};
  options.additions.require = Tier::kC;
  options.additions.stderr_rules = StderrRules{StderrMode::kFile, "/log/"};
  const PolicyFields fields =
      Parsed(File(R"("require": "B", "filesystem": {"ro": ["/a"]}, "env": {"set": {"A": "x", "B": "y"}})"), options);
  EXPECT_THAT(PathsOf(fields.filesystem.ro), ElementsAre("/a", "/r"));
  EXPECT_EQ(fields.filesystem.ro[1].origin, "--ro");
  EXPECT_THAT(PathsOf(fields.filesystem.rw), ElementsAre("/w"));
  EXPECT_EQ(fields.filesystem.rw[0].origin, "--rw");
  EXPECT_EQ(fields.network, NetworkMode::kHost);
  EXPECT_EQ(fields.env.set.at("A"), "added ${home}");  // nothing is expanded: a shell has done that
  EXPECT_EQ(fields.env.set.at("B"), "y");
  EXPECT_EQ(fields.env.set.at("NODE_OPTIONS"), "--x");
  EXPECT_EQ(fields.require, Tier::kC);
  EXPECT_EQ(fields.stderr_rules.file, "/log");
}

TEST(AdditionsTest, AreChecked) {
  ParseOptions options = Host();
  options.additions.ro = {"data"};
  options.additions.rw = {"/a/../b", ""};
  options.additions.env = {{"A=B", ""}, {"F", "() { canary; }"}, {"N", std::string("a\0", 2)}, {"BASH_FUNC_x%%", "x"}};
  options.additions.network = NetworkMode::kAllowlist;
  options.additions.stderr_rules = StderrRules{StderrMode::kFile, "log"};
  const std::string error = ErrorOf(File(""), options);
  EXPECT_EQ(error,
            "--ro: \"data\" is not absolute; write the full path\n"
            "--rw: \"/a/../b\" has a \"..\" component; write the full path\n"
            "--rw: \"\" is empty; write the full path\n"
            "--env \"A=B\": \"A=B\" is not the name of an environment variable; write one such as \"LANG\"\n"
            "--env \"BASH_FUNC_x%%\": \"BASH_FUNC_x%%\" is a shell function, which never passes; leave it out\n"
            "--env \"F\": begins with \"()\" like a shell function, which never passes; write another value\n"
            "--env \"N\": holds a NUL character; take it out\n"
            "--network: \"allowlist\" is not enforced yet; write none or host\n"
            "--stderr: \"log\" is not absolute; write the full path");
}

// What a Windows user writes, and what the presets say of other systems.
TEST(WindowsPathTest, BeginsWithADriveOrIsNoGrant) {
  ParseOptions windows = Host();
  windows.platform = Platform::kWindows;
  windows.variables.workspace = "C:\\Users\\u\\ws";
  windows.variables.home = "C:\\Users\\u";
  windows.variables.cache_root = "C:\\Users\\u/.cache/bulkhead";
  const PolicyFields fields =
      Parsed(File(R"("filesystem": {"ro": ["C:\\data", "${workspace}\\in", {"path": "/srv", "optional": true}],
                                    "rw": ["${workspace}/out"]})"),
             windows);
  EXPECT_THAT(fields.filesystem.ro[0].path, "C:\\data");
  EXPECT_THAT(fields.filesystem.ro[1].path, "C:\\Users\\u\\ws\\in");
  EXPECT_EQ(fields.filesystem.ro.size(), 2u);
  EXPECT_THAT(fields.filesystem.rw[0].path, "C:\\Users\\u\\ws\\out");
  EXPECT_EQ(fields.filesystem.rw[0].beneath, "C:\\Users\\u\\ws");
  EXPECT_THAT(fields.warnings, ElementsAre(HasSubstr("left out \"/srv\": \"/srv\" does not begin with a drive")));
  EXPECT_THAT(ErrorOf(File(R"("filesystem": {"ro": ["/srv"]})"), windows),
              HasSubstr("\"/srv\" does not begin with a drive, as \"C:\\\\data\" does; write the full path"));
  EXPECT_THAT(ErrorOf(File(R"("filesystem": {"ro": ["C:\\a\\..\\b"]})"), windows), HasSubstr("\"..\" component"));
  EXPECT_THAT(ErrorOf(File(R"("filesystem": {"ro": ["C:\\data"]})")), HasSubstr("is not absolute"));
  for (const std::string& preset : PresetNames()) {
    if (!WhyPresetIsRefused(preset).empty()) continue;
    const PolicyFields of = Parsed({absl::StrCat("preset:", preset), *PresetText(preset)}, windows);
    EXPECT_THAT(of.warnings, ::testing::Each(Not(HasSubstr("drive")))) << preset;
  }
}

}  // namespace
}  // namespace bulkhead::policy
