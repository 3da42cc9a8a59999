// extends and without.
#include "bulkhead/policy/compose.h"

#include <map>
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
using ::testing::Not;

std::string Json(const std::string& members) { return File(members).text; }

TEST(ExtendsTest, ListsAddScalarsReplaceObjectsMerge) {
  const ParseOptions options = HostWithFiles({{"/p/base.json", Json(R"(
      "require": "B", "env": {"inherit": ["A", "B"], "set": {"X": "1", "Y": "1"}},
      "filesystem": {"ro": ["/a", "/b"], "home": "ro"}, "limits": {"processes": 5, "open_files": 50},
      "stderr": {"file": "/log"})")}});
  const PolicyFields fields = Parsed(File(R"("extends": ["base.json"],
      "env": {"inherit": ["B", "C"], "set": {"Y": "2", "Z": "2"}}, "filesystem": {"ro": ["/c"], "rw": ["/d"]},
      "limits": {"processes": 6}, "stderr": "discard")"),
                                     options);
  EXPECT_EQ(fields.require, Tier::kB);
  EXPECT_THAT(fields.env.inherit, ElementsAre("A", "B", "C"));
  EXPECT_EQ(fields.env.set, (std::map<std::string, std::string>{{"X", "1"}, {"Y", "2"}, {"Z", "2"}}));
  EXPECT_THAT(PathsOf(fields.filesystem.ro), ElementsAre("/a", "/b", "/c"));
  EXPECT_THAT(PathsOf(fields.filesystem.rw), ElementsAre("/d"));
  EXPECT_EQ(fields.filesystem.home, HomeMode::kReadOnly);
  EXPECT_EQ(fields.limits.processes, 6u);
  EXPECT_EQ(fields.limits.open_files, 50u);
  EXPECT_EQ(fields.stderr_rules.mode, StderrMode::kDiscard);
  EXPECT_EQ(fields.filesystem.ro[0].origin, "base.json:3");
  EXPECT_EQ(fields.filesystem.ro[2].origin, "files.json:2");
}

TEST(ExtendsTest, TheLaterOneReplaces) {
  const ParseOptions options =
      HostWithFiles({{"/p/a.json", Json(R"("user": "a")")}, {"/p/b.json", Json(R"("user": "b")")}});
  EXPECT_EQ(Parsed(File(R"("extends": ["a.json", "b.json"])"), options).user, "b");
  EXPECT_EQ(Parsed(File(R"("extends": ["b.json", "a.json"])"), options).user, "a");
  EXPECT_EQ(Parsed(File(R"("extends": ["b.json", "a.json"], "user": "c")"), options).user, "c");
}

TEST(ExtendsTest, FilesAreFoundFromTheOneThatNamesThem) {
  const ParseOptions options = HostWithFiles({{"/p/sub/a.json", Json(R"("extends": ["../b.json"])")},
                                              {"/p/b.json", Json(R"("extends": ["/q/c.json"])")},
                                              {"/q/c.json", Json(R"("user": "c")")}});
  EXPECT_EQ(Parsed(File(R"("extends": ["sub/a.json"])"), options).user, "c");
  EXPECT_EQ(Parsed(File(R"("extends": ["a.json"])", "/p/sub/x.json"), options).user, "c");
}

TEST(ExtendsTest, MistakesNameTheirOwnFile) {
  const ParseOptions options =
      HostWithFiles({{"/p/sub/a.json", "{\"version\": 1,\n\"usr\": \"c\"}"}, {"/p/b.json", "{"}});
  EXPECT_EQ(
      ErrorOf(File(R"("extends": ["sub/a.json", "b.json"], "mode": 1)"), options),
      "files.json:1: /mode: is not known here; it belongs in /network/mode\n"
      "sub/a.json:2: /usr: is not known here; did you mean \"user\"?\n"
      "b.json:1: /: is not JSON: the text ends where a name in quotes should be; a bracket or a quote is not closed");
}

TEST(ExtendsTest, AFileThatIsExtendedTwiceHasItsMistakesOnce) {
  const ParseOptions options = HostWithFiles({{"/p/a.json", Json(R"("extends": ["c.json"])")},
                                              {"/p/b.json", Json(R"("extends": ["c.json"])")},
                                              {"/p/c.json", Json(R"("user": 5)")}});
  EXPECT_EQ(ErrorOf(File(R"("extends": ["a.json", "b.json"])"), options),
            "c.json:1: /user: must be text, not a number; write \"...\"");
}

TEST(ExtendsTest, WhatCantBeReadSaysWhy) {
  EXPECT_EQ(ErrorOf(File(R"("extends": ["base.json"])"), HostWithFiles({})),
            "files.json:1: /extends/0: \"base.json\" can't be extended: no such file");
  EXPECT_EQ(ErrorOf(File(R"("extends": ["base.json"])")),
            "files.json:1: /extends/0: \"base.json\" can't be extended: no files are read here; extend a preset");
  ParseOptions options = HostWithFiles({});
  options.folder.clear();
  EXPECT_EQ(
      ErrorOf(File(R"("extends": ["base.json"])"), options),
      "files.json:1: /extends/0: \"base.json\" can't be extended: it is not known where this policy lies; write the "
      "full path");
}

TEST(ExtendsTest, ACycleIsAnError) {
  const ParseOptions options = HostWithFiles({{"/p/files.json", Json("")},
                                              {"/p/a.json", Json(R"("extends": ["./b.json"])")},
                                              {"/p/b.json", Json(R"("extends": ["x/../a.json"])")}});
  EXPECT_EQ(ErrorOf(File(R"("extends": ["a.json"])"), options),
            "b.json:1: /extends/0: \"x/../a.json\" is extended by itself (/p/files.json > /p/a.json > /p/b.json > "
            "/p/a.json); take one of these away");
  EXPECT_THAT(ErrorOf(File(R"("extends": ["files.json"])"), options), HasSubstr("is extended by itself"));
}

TEST(ExtendsTest, DepthIsBounded) {
  std::map<std::string, std::string> files;
  for (int i = 1; i < 20; ++i) {
    files[absl::StrCat("/p/", i, ".json")] = Json(absl::StrCat("\"extends\": [\"", i - 1, ".json\"]"));
  }
  files["/p/0.json"] = Json(R"("user": "deep")");
  const ParseOptions options = HostWithFiles(files);
  // N.json lies one level below, and N more beneath it.
  const auto extend = [](int n) { return File(absl::StrCat("\"extends\": [\"", n, ".json\"]")); };
  EXPECT_EQ(Parsed(extend(kExtendsDepthMax - 2), options).user, "deep");
  EXPECT_EQ(Parsed(extend(kExtendsDepthMax - 1), options).user, "deep");
  EXPECT_EQ(ErrorOf(extend(kExtendsDepthMax), options),
            "1.json:1: /extends/0: \"0.json\" is more than 8 levels deep; extend fewer policies in a row");
}

TEST(ExtendsTest, TheNumberOfFilesIsBounded) {
  const ParseOptions options = HostWithFiles({{"/p/0.json", Json("")}});
  const auto extend = [](std::size_t files) {  // the policy itself is one
    std::string text = "\"extends\": [\"0.json\"";
    for (std::size_t i = 2; i < files; ++i) text += ", \"0.json\"";
    return File(text + "]");
  };
  Parsed(extend(kExtendsFilesMax - 1), options);
  Parsed(extend(kExtendsFilesMax), options);
  EXPECT_THAT(ErrorOf(extend(kExtendsFilesMax + 1), options),
              HasSubstr("is one policy too many; no more than 64 can make up one"));
}

class WithoutTest : public ::testing::Test {
 protected:
  const ParseOptions options_ = HostWithFiles({{"/p/base.json", Json(R"(
      "require": "B", "env": {"inherit": ["A", "B"], "set": {"X": "canary", "Y": "1"}}, "command": {"allow": ["npx"]},
      "filesystem": {"ro": ["/a", {"path": "${var:NOPE}/x", "optional": true}]}, "stderr": {"file": "/log"},
      "network": {"mode": "host"}, "cwd": {"allow": ["/w"]})")}});
  PolicyFields Without(const std::string& without, const std::string& more = "") {
    return Parsed(File(absl::StrCat(R"("extends": ["base.json"], "without": )", without, more)), options_);
  }
  std::string ErrorWithout(const std::string& without) {
    return ErrorOf(File(absl::StrCat(R"("extends": ["base.json"], "without": )", without)), options_);
  }
};

TEST_F(WithoutTest, TakesAwayFromWhatWasExtended) {
  EXPECT_THAT(Without("{}").env.inherit, ElementsAre("A", "B"));
  EXPECT_THAT(Without(R"({"env": {"inherit": ["A"]}})").env.inherit, ElementsAre("B"));
  EXPECT_THAT(Without(R"({"env": {"set": {"Y": "1"}}})").env.set.count("Y"), 0u);
  EXPECT_EQ(Without(R"({"network": {"mode": "host"}})").network, NetworkMode::kNone);
  EXPECT_EQ(Without(R"({"require": "B"})").require, Tier::kA);
  EXPECT_EQ(Without(R"({"stderr": {"file": "/log"}})").stderr_rules.mode, StderrMode::kInherit);
}

TEST_F(WithoutTest, NotFromWhatThePolicySaysItself) {
  EXPECT_THAT(Without(R"({"env": {"inherit": ["A"]}})", R"(, "env": {"inherit": ["A"]})").env.inherit,
              ElementsAre("B", "A"));
}

TEST_F(WithoutTest, TakesAPathAsItIsWrittenOptionalOrNot) {
  // Its variable is not set, and does not have to be.
  EXPECT_THAT(Without("{}").warnings, Not(IsEmpty()));
  EXPECT_THAT(Without(R"({"filesystem": {"ro": ["${var:NOPE}/x"]}})").warnings, IsEmpty());
  EXPECT_THAT(PathsOf(Without(R"({"filesystem": {"ro": [{"path": "/a"}]}})").filesystem.ro), IsEmpty());
}

TEST_F(WithoutTest, AnEmptiedListGrantsNothingInsteadOfTheDefault) {
  EXPECT_THAT(Without(R"({"env": {"inherit": ["A", "B"]}})").env.inherit, IsEmpty());
  EXPECT_THAT(*Without(R"({"command": {"allow": ["npx"]}})").command.allow, IsEmpty());
  EXPECT_THAT(ErrorWithout(R"({"cwd": {"allow": ["/w"]}})"), HasSubstr("/cwd/allow: is empty"));
}

TEST_F(WithoutTest, WhatIsNotThereIsAnError) {
  EXPECT_EQ(
      ErrorWithout(R"({"env": {"inherit": ["A", "C"]}, "filesystem": {"rw": ["/a"]}})"),
      "files.json:1: /without/env/inherit/1: is not in what was extended, so it can't be taken away; take this line "
      "out\n"
      "files.json:1: /without/filesystem/rw/0: is not in what was extended, so it can't be taken away; take this "
      "line out");
  EXPECT_THAT(ErrorWithout(R"({"require": "C"})"), HasSubstr("/without/require: is not what was extended"));
  EXPECT_THAT(ErrorWithout(R"({"user": "x"})"), HasSubstr("/without/user: is not what was extended"));
  EXPECT_THAT(ErrorOf(File(R"("without": {"env": {"inherit": ["HOME"]}})")), HasSubstr("is not in what was extended"));
}

TEST_F(WithoutTest, AValueMustBeTheSameAndIsNotShown) {
  const std::string error = ErrorWithout(R"({"env": {"set": {"X": "other"}}})");
  EXPECT_THAT(error, HasSubstr("/without/env/set/X: is not in what was extended with this value"));
  EXPECT_THAT(error, Not(HasSubstr("canary")));
}

TEST_F(WithoutTest, IsCheckedLikeAPolicy) {
  EXPECT_THAT(ErrorWithout(R"({"env": {"inherti": []}})"),
              HasSubstr("/without/env/inherti: is not known here; did you mean"));
  EXPECT_THAT(ErrorWithout(R"({"extends": []})"), HasSubstr("/without/extends: is not known here"));
}

TEST(ExtendsTest, AFileOfWindowsIsFoundFromItsOwnFolder) {
  ParseOptions options = HostWithFiles({{"C:/p/sub/base.json", R"({"version": 1, "require": "C"})"}});
  options.folder = "C:\\p";
  options.platform = Platform::kWindows;
  for (const char* name : {"sub\\files.json", "C:\\p\\sub\\files.json"}) {
    EXPECT_EQ(Parsed(File(R"("extends": ["base.json"])", name), options).require, Tier::kC) << name;
  }
  EXPECT_EQ(Parsed(File(R"("extends": ["C:\\p\\sub\\base.json"])", "files.json"), options).require, Tier::kC);
}

TEST(IdentityTest, TellsPoliciesApart) {
  EXPECT_EQ(PolicyIdentity("preset:node", "/p"), "preset:node");
  EXPECT_EQ(PolicyIdentity("./a.json", "/p"), "/p/a.json");
  EXPECT_EQ(PolicyIdentity("/q/../a.json", "/p"), "/a.json");
  EXPECT_EQ(PolicyIdentity("a.json", ""), "a.json");
  EXPECT_EQ(PolicyIdentity("C:\\q\\a.json", "C:\\p", Platform::kWindows), "C:/q/a.json");
  EXPECT_EQ(PolicyIdentity("a.json", "C:\\p", Platform::kWindows), "C:/p/a.json");
}

}  // namespace
}  // namespace bulkhead::policy
