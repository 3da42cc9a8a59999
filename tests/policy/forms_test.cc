#include "bulkhead/policy/forms.h"

#include <cstdint>
#include <optional>
#include <string>

#include "bulkhead/policy/command.h"
#include "bulkhead/policy/variables.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(SizeTest, IsAWholeNumberWithAUnit) {
  EXPECT_EQ(ParseSize("0B"), 0u);
  EXPECT_EQ(ParseSize("1KiB"), 1024u);
  EXPECT_EQ(ParseSize("512MiB"), 512u << 20);
  EXPECT_EQ(ParseSize("3GiB"), std::uint64_t{3} << 30);
  for (const char* text :
       {"", "1", "B", "1 MiB", "1.5GiB", "-1B", "+1B", "1mib", "1MB", "1M", "1GiBx", " 1B", "0x1B"}) {
    EXPECT_EQ(ParseSize(text), std::nullopt) << text;
  }
}

TEST(SizeTest, WhatDoesNotFitIsNone) {
  EXPECT_EQ(ParseSize("18446744073709551615B"), UINT64_MAX);
  EXPECT_EQ(ParseSize("18446744073709551616B"), std::nullopt);
  EXPECT_EQ(ParseSize("17179869183GiB"), std::uint64_t{17179869183} << 30);
  EXPECT_EQ(ParseSize("17179869184GiB"), std::nullopt);
}

TEST(DurationTest, IsAWholeNumberWithAUnit) {
  EXPECT_EQ(ParseDurationMs("0s"), 0u);
  EXPECT_EQ(ParseDurationMs("500ms"), 500u);
  EXPECT_EQ(ParseDurationMs("30s"), 30000u);
  EXPECT_EQ(ParseDurationMs("2m"), 120000u);
  EXPECT_EQ(ParseDurationMs("1h"), 3600000u);
  for (const char* text : {"", "1", "s", "1min", "1.5s", "-1s", "1S", "1 s", "1d", "99999999999999999999s"}) {
    EXPECT_EQ(ParseDurationMs(text), std::nullopt) << text;
  }
}

TEST(QuantityTest, TextIsAsShortAsItGoesExactly) {
  EXPECT_EQ(SizeText(1u << 20), "1MiB");
  EXPECT_EQ(SizeText(1025), "1025B");
  EXPECT_EQ(DurationText(90000), "90s");
  EXPECT_EQ(DurationText(0), "0ms");
}

struct Case {
  Form form;
  std::string text;
  std::string error;  // a part of it; empty: none
};

class CheckTextTest : public ::testing::TestWithParam<Case> {};

TEST_P(CheckTextTest, SaysWhatIsWrong) {
  const Case& c = GetParam();
  const std::string error = CheckText(c.form, c.text);
  if (c.error.empty()) {
    EXPECT_THAT(error, IsEmpty()) << c.text;
  } else {
    EXPECT_THAT(error, HasSubstr(c.error)) << c.text;
    // "what is wrong; what would help"
    EXPECT_TRUE(error.find("; ") != std::string::npos) << error;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Paths, CheckTextTest,
    ::testing::Values(
        Case{Form::kPath, "/", ""}, Case{Form::kPath, "/a b/é", ""}, Case{Form::kPath, "${workspace}", ""},
        Case{Form::kPath, "${home}/.cache/x", ""}, Case{Form::kPath, "/srv/${env:USER}/x", ""},
        Case{Form::kPath, "/a/...", ""}, Case{Form::kPath, "", "is empty"},
        Case{Form::kPath, "../data",
             "\"../data\" is not absolute; write the full path or start it with "
             "${workspace}"},
        Case{Form::kPath, "~/x", "write ${home} for \"~\""}, Case{Form::kPath, "/a/../b", "\"..\" component"},
        Case{Form::kPath, "${workspace}/..", "\"..\" component"}, Case{Form::kPath, "/a\nb", "control character"},
        Case{Form::kPath, std::string("/a\0b", 4), "control character"},
        Case{Form::kPath, "${workspace}x", "write \"${workspace}/x\""},
        Case{Form::kPath, "${worksapce}", "did you mean \"${workspace}\"?"},
        Case{Form::kPath, "${HOME}", "did you mean \"${home}\"?"},
        Case{Form::kPath, "${FOO}", "did you mean \"${env:FOO}\"?"}, Case{Form::kPath, "${env:}", "is not a variable"},
        Case{Form::kPath, "${env:${home}}", "is not a variable"}, Case{Form::kPath, "${home", "without its \"}\""},
        Case{Form::kPath, ":runtime", "goes in /filesystem/rx"},
        Case{Form::kPath, "/" + std::string(5000, 'x'), "is longer than"}, Case{Form::kRuntimePath, ":runtime", ""},
        Case{Form::kRuntimePath, ":runtim", "did you mean \":runtime\"?"}));

INSTANTIATE_TEST_SUITE_P(
    Names, CheckTextTest,
    ::testing::Values(
        Case{Form::kCommand, "npx", ""}, Case{Form::kCommand, "/usr/bin/node", ""},
        Case{Form::kCommand, "${home}/bin/x", ""}, Case{Form::kCommand, "/opt/a b", ""},
        Case{Form::kCommand, "node x.js", "has a space in it"}, Case{Form::kCommand, "bin/x", "is not absolute"},
        Case{Form::kCommand, "", "is empty"}, Case{Form::kCommand, "..", "is a folder"},
        Case{Form::kCommand, "${env:X}", "is not a path"}, Case{Form::kExtends, "preset:node", ""},
        Case{Form::kExtends, "../base.json", ""},
        Case{Form::kExtends, "preset:pyhton", "did you mean \"preset:python\"?"},
        Case{Form::kExtends, "preset:zzz", "`bulkhead presets` lists them"}, Case{Form::kExtends, "", "is empty"},
        Case{Form::kExtends, "${home}/x.json", "not expanded here"}, Case{Form::kUser, "auto", ""},
        Case{Form::kUser, "www-data", ""}, Case{Form::kUser, "1000", "is not a user's name"},
        Case{Form::kUser, "", "is not a user's name"}, Case{Form::kUser, "a b", "is not a user's name"},
        Case{Form::kUser, std::string(32, 'a'), ""}, Case{Form::kUser, std::string(33, 'a'), "is not a user's name"},
        Case{Form::kEnvName, "HOME", ""}, Case{Form::kEnvName, "A=B", "is not the name"},
        Case{Form::kEnvName, "BASH_FUNC_x%%", "is a shell function"}, Case{Form::kEnvGlob, "LC_*", ""},
        Case{Form::kEnvGlob, "*", ""}, Case{Form::kEnvGlob, "A =*", "is not a name or pattern"},
        Case{Form::kEnvGlob, "LD_PRELOAD", "never passes from the host"}, Case{Form::kEnvGlob, "LD_*", ""},
        Case{Form::kEnvGlob, "NODE_OPTIONS", "give it a value of its own in /env/set"}, Case{Form::kEnvValue, "", ""},
        Case{Form::kEnvValue, "a\nb", ""}, Case{Form::kEnvValue, "costs $5", ""},
        Case{Form::kEnvValue, "() { :; }", "begins with \"()\""}, Case{Form::kEnvValue, "${nope}", "is not a variable"},
        Case{Form::kAllowedSyscall, "ptrace", ""}, Case{Form::kAllowedSyscall, "Ptrace", "did you mean \"ptrace\"?"},
        Case{Form::kAllowedSyscall, "", "is not the name"},
        Case{Form::kAllowedSyscall, "io_uring_setup", "can't be allowed"},
        Case{Form::kAllowedSyscall, "ioctl", "but for the arguments"}, Case{Form::kAllowedSyscall, "execve", ""},
        Case{Form::kDeniedSyscall, "io_uring_setup", ""}, Case{Form::kDeniedSyscall, "ioctl", ""},
        Case{Form::kDeniedSyscall, "mkdri", "\"mkdir\"?"}, Case{Form::kDeniedSyscall, "execve", "can't be denied"},
        Case{Form::kDeniedSyscall, "exit_group", "can't be denied"}));

INSTANTIATE_TEST_SUITE_P(Others, CheckTextTest,
                         ::testing::Values(Case{Form::kGlob, "--inspect*", ""}, Case{Form::kGlob, "", "is empty"},
                                           Case{Form::kGlob, "${env:X}", "arguments, which everyone can read"},
                                           Case{Form::kGlob, "${workspace}/*", "has a variable"},
                                           Case{Form::kGlob, std::string(1024, 'x'), ""},
                                           Case{Form::kGlob, std::string(1025, 'x'), "is longer"},
                                           Case{Form::kDigest, std::string(64, 'a'), ""},
                                           Case{Form::kDigest, std::string(64, 'A'), "lower-case"},
                                           Case{Form::kDigest, std::string(63, 'a'), "is not a SHA-256"},
                                           Case{Form::kHostPort, "api.github.com:443", ""},
                                           Case{Form::kHostPort, "10.0.0.7:5432", ""},
                                           Case{Form::kHostPort, "[::1]:80", ""}, Case{Form::kHostPort, "a:65535", ""},
                                           Case{Form::kHostPort, "a:65536", "has no port"},
                                           Case{Form::kHostPort, "a:0", "has no port"},
                                           Case{Form::kHostPort, "a:", "has no port"},
                                           Case{Form::kHostPort, "a", "is not a host and a port"},
                                           Case{Form::kHostPort, ":80", "is not a host and a port"},
                                           Case{Form::kHostPort, "::1:80", "is not a host and a port"},
                                           Case{Form::kHostPort, "*.example.com:80", "is not a host and a port"},
                                           Case{Form::kHostPort, "http://a:80", "is not a host and a port"}));

TEST(CheckTextTest, AnEnvironmentValueIsNeverRepeated) {
  EXPECT_THAT(CheckText(Form::kEnvValue, "() canary"), Not(HasSubstr("canary")));
  EXPECT_THAT(CheckText(Form::kEnvValue, "canary ${"), Not(HasSubstr("canary")));
}

class VariablesTest : public ::testing::Test {
 protected:
  Expanded Expand(absl::string_view text, bool empty_is_unset = true) {
    return policy::Expand(text, variables_, "/cache/key", empty_is_unset);
  }
  Variables variables_;
};

TEST_F(VariablesTest, StandForWhatWasGiven) {
  variables_.workspace = "/ws";
  variables_.home = "/home/u";
  variables_.tmp = "/tmp";
  variables_.env["E"] = "e";
  variables_.var["V"] = "v";
  EXPECT_EQ(Expand("${workspace}/${env:E}/${var:V}").text, "/ws/e/v");
  EXPECT_EQ(Expand("${home}:${tmp}:${cache}").text, "/home/u:/tmp:/cache/key");
  EXPECT_EQ(Expand("$5 and {x}").text, "$5 and {x}");
  EXPECT_EQ(Expand("${workspace}/a").leading_value, "/ws");
  EXPECT_EQ(Expand("/a/${workspace}").leading_value, std::nullopt);
  EXPECT_THAT(Expand("${env:E}${env:E}").env_names, ElementsAre("E"));
}

TEST_F(VariablesTest, WhatTheyStandForIsBounded) {
  for (const bool whole : {true, false}) {
    const std::string half(kArgumentBytesMax / 2, 'x');
    variables_.env["E"] = whole ? half + half : half;
    variables_.env["ONE"] = "x";
    const std::string most = whole ? "a${env:E}" : "${env:E}a${env:E}";
    ASSERT_EQ(kArgumentBytesMax % 2, 1u);
    EXPECT_FALSE(Expand(most.substr(whole ? 1 : 0)).too_long);
    EXPECT_FALSE(Expand(most).too_long);
    EXPECT_EQ(Expand(most).text.size(), kArgumentBytesMax);
    EXPECT_TRUE(Expand(most + "${env:ONE}").too_long);
  }
}

TEST_F(VariablesTest, AreExpandedOnce) {
  variables_.env["E"] = "${var:V}";
  variables_.var["V"] = "${env:E}";
  EXPECT_EQ(Expand("${env:E} ${var:V}").text, "${var:V} ${env:E}");
}

TEST_F(VariablesTest, UnsetIsNamed) {
  variables_.env["EMPTY"] = "";
  EXPECT_EQ(Expand("/x/${workspace}").unset, "${workspace}");
  EXPECT_EQ(Expand("${env:NOPE}").unset, "${env:NOPE}");
  EXPECT_EQ(Expand("${env:EMPTY}", true).unset, "${env:EMPTY}");
  EXPECT_EQ(Expand("${env:EMPTY}", false).unset, "");
}

TEST_F(VariablesTest, HowToSetThem) {
  EXPECT_EQ(HowToSet("${workspace}"), "start with --workspace DIR");
  EXPECT_EQ(HowToSet("${var:X}"), "start with --var X=VALUE");
  EXPECT_EQ(HowToSet("${env:X}"), "set X in the environment that bulkhead is started with");
  for (const char* name : {"${home}", "${tmp}", "${cache}"}) EXPECT_THAT(HowToSet(name), HasSubstr("absolute path"));
}

}  // namespace
}  // namespace bulkhead::policy
