// Only what both grant: field by field, then as a property over made-up policies.
#include "bulkhead/policy/ceiling.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bulkhead/policy/glob.h"
#include "bulkhead/policy/paths.h"
#include "bulkhead/policy/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/policy/no_more.h"
#include "tests/policy/testing.h"

namespace bulkhead::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

ParseOptions HostWithCeilings(const std::vector<std::string>& ceilings, ParseOptions options = Host()) {
  for (const std::string& members : ceilings) options.ceilings.push_back(File(members, "ceiling.json"));
  return options;
}

// `policy` under `ceiling`; both are the members of a policy's object. Also what is not enforced yet: once it is, its
// ceiling must be there.
PolicyFields Under(const std::string& ceiling, const std::string& policy) {
  return ParsedUnenforced(File(policy), HostWithCeilings({ceiling}));
}

std::string Files(const std::string& lists) { return absl::StrCat("\"filesystem\": {", lists, "}"); }

TEST(CeilingTest, WithoutOneNothingIsNarrowed) {
  const PolicyFields fields = Parsed(File(R"("filesystem": {"rw": ["/a"]}, "network": {"mode": "host"})"));
  EXPECT_THAT(PathsOf(fields.filesystem.rw), ElementsAre("/a"));
  EXPECT_EQ(fields.network, NetworkMode::kHost);
  EXPECT_FALSE(fields.narrowed);
  EXPECT_TRUE(Under("", "").narrowed);
}

TEST(CeilingTest, ThatSaysNothingGrantsNothing) {
  const PolicyFields fields = Under("", R"("require": "C", "user": "root", "env": {"inherit": ["HOME", "FOO"],
      "set": {"A": "1"}, "secret": {"S": {"env": "S"}}}, "filesystem": {"rx": [":runtime"], "ro": ["/a"], "rw": ["/b"],
      "home": "rw", "tmp": "host"}, "network": {"mode": "host"}, "syscalls": {"allow": ["bpf"]},
      "stderr": {"file": "/b/log"})");
  EXPECT_EQ(fields.require, Tier::kA);
  EXPECT_EQ(fields.user, "auto");
  EXPECT_THAT(fields.env.inherit, ElementsAre("HOME"));  // absent, the six of POSIX: the same as in a policy
  EXPECT_THAT(fields.env.set, IsEmpty());
  EXPECT_THAT(fields.env.secret, IsEmpty());
  EXPECT_THAT(fields.filesystem.rx, IsEmpty());
  EXPECT_THAT(fields.filesystem.ro, IsEmpty());
  EXPECT_THAT(fields.filesystem.rw, IsEmpty());
  EXPECT_EQ(fields.filesystem.home, HomeMode::kPrivate);
  EXPECT_EQ(fields.filesystem.tmp, TmpMode::kPrivate);
  EXPECT_EQ(fields.network, NetworkMode::kNone);
  EXPECT_THAT(fields.syscalls_allow, IsEmpty());
  EXPECT_EQ(fields.stderr_rules.mode, StderrMode::kInherit);
}

TEST(CeilingTest, ThatSaysNothingHasNoOpinionOnLimits) {
  const std::string limits = R"("command": {"args": {"max": 1000}}, "limits": {"processes": 5, "open_files": 100000},
      "messages": {"max_message_bytes": "1GiB", "max_junk_lines": 500, "max_queued_bytes": "1GiB"},
      "timeouts": {"probe": "1h", "start": "1h", "request": "1h", "stdin_grace": "1h", "term_grace": "1h"},
      "restart": {"max_in_a_row": 100, "backoff_initial": "1ms", "backoff_max": "2ms", "healthy_after": "0s"})";
  const PolicyFields alone = Parsed(File(limits));
  const PolicyFields fields = Under("", limits);
  EXPECT_EQ(fields.command.allow, std::nullopt);
  EXPECT_THAT(fields.cwd_allow, IsEmpty());
  EXPECT_THAT(fields.command.args_allow, ElementsAre("*"));
  EXPECT_EQ(fields.command.args_max, 1000u);
  EXPECT_EQ(fields.limits.processes, 5u);
  EXPECT_EQ(fields.limits.open_files, 100000u);
  EXPECT_EQ(fields.limits.memory_bytes, 0u);
  EXPECT_EQ(fields.messages.max_message_bytes, alone.messages.max_message_bytes);
  EXPECT_EQ(fields.messages.max_junk_lines, 500u);
  EXPECT_EQ(fields.timeouts.request, absl::Hours(1));
  EXPECT_EQ(fields.timeouts.term_grace, absl::Hours(1));
  EXPECT_EQ(fields.restart.max_in_a_row, 100u);
  EXPECT_EQ(fields.restart.backoff_max, absl::Milliseconds(2));
  // What the policy leaves out keeps the policy's default.
  EXPECT_EQ(Under("", "").limits.open_files, 4096u);
  EXPECT_EQ(Under("", "").timeouts.term_grace, absl::Seconds(2));
  EXPECT_FALSE(Under("", "").timeouts.term_grace_was_set);
}

TEST(CeilingTest, OfLimitsTheSmallerHolds) {
  const PolicyFields fields = Under(
      R"("command": {"args": {"max": 9}}, "limits": {"memory": "1GiB", "processes": 50, "open_files": 100, "cpu_time": "1h"},
         "messages": {"max_message_bytes": "1KiB"}, "timeouts": {"start": "1s", "term_grace": "1s"},
         "restart": {"max_in_a_row": 1, "backoff_initial": "1m", "healthy_after": "1h"})",
      R"("limits": {"processes": 60, "open_files": 50, "file_size": "1MiB"}, "timeouts": {"start": "500ms"})");
  EXPECT_EQ(fields.command.args_max, 9u);
  EXPECT_EQ(fields.limits.memory_bytes, 1u << 30);
  EXPECT_EQ(fields.limits.processes, 50u);
  EXPECT_EQ(fields.limits.open_files, 50u);
  EXPECT_EQ(fields.limits.file_size_bytes, 1u << 20);
  EXPECT_EQ(fields.limits.cpu_time, absl::Hours(1));
  EXPECT_EQ(fields.messages.max_message_bytes, 1024u);
  EXPECT_EQ(fields.timeouts.start, absl::Milliseconds(500));
  EXPECT_EQ(fields.timeouts.term_grace, absl::Seconds(1));
  EXPECT_TRUE(fields.timeouts.term_grace_was_set);  // so that `run` keeps it too
  EXPECT_EQ(fields.restart.max_in_a_row, 1u);
  EXPECT_EQ(fields.restart.backoff_initial, absl::Minutes(1));
  EXPECT_EQ(fields.restart.backoff_max, absl::Minutes(1));
  EXPECT_EQ(fields.restart.healthy_after, absl::Hours(1));
}

struct PathCase {
  std::string ceiling, policy;          // the lists of `filesystem`
  std::vector<std::string> rx, ro, rw;  // what is left
};
class PathCeilingTest : public ::testing::TestWithParam<PathCase> {};

TEST_P(PathCeilingTest, LeavesWhatBothGrant) {
  const FilesystemRules files = Under(Files(GetParam().ceiling), Files(GetParam().policy)).filesystem;
  EXPECT_THAT(PathsOf(files.rx), ::testing::UnorderedElementsAreArray(GetParam().rx));
  EXPECT_THAT(PathsOf(files.ro), ::testing::UnorderedElementsAreArray(GetParam().ro));
  EXPECT_THAT(PathsOf(files.rw), ::testing::UnorderedElementsAreArray(GetParam().rw));
}

INSTANTIATE_TEST_SUITE_P(
    Trees, PathCeilingTest,
    ::testing::Values(
        // The same, beneath, above, beside.
        PathCase{R"("rw": ["/a"])", R"("rw": ["/a"])", {}, {}, {"/a"}},
        PathCase{R"("rw": ["/a"])", R"("rw": ["/a/b"])", {}, {}, {"/a/b"}},
        PathCase{R"("rw": ["/a/b"])", R"("rw": ["/a"])", {}, {}, {"/a/b"}},
        PathCase{R"("rw": ["/a"])", R"("rw": ["/ab"])", {}, {}, {}},
        PathCase{R"("ro": ["/a/b", "/a/c", "/d"])", R"("ro": ["/a"])", {}, {"/a/b", "/a/c"}, {}},
        // A narrower ceiling inside a wider one says nothing more.
        PathCase{R"("ro": ["/a", "/a/b"])", R"("ro": ["/a"])", {}, {"/a"}, {}},
        PathCase{R"("ro": ["/a/b", "/a/b/c"])", R"("ro": ["/a"])", {}, {"/a/b"}, {}},
        // What the ceiling only lets read is only read.
        PathCase{R"("ro": ["/a"])", R"("rw": ["/a/b"])", {}, {"/a/b"}, {}},
        PathCase{R"("ro": ["/a"])", R"("rx": ["/a/b"])", {}, {"/a/b"}, {}},
        PathCase{R"("rx": ["/a"])", R"("rw": ["/a"])", {}, {"/a"}, {}},
        PathCase{R"("rw": ["/a"])", R"("rx": ["/a"])", {}, {"/a"}, {}},
        PathCase{R"("rw": ["/a"], "rx": ["/b"])", R"("ro": ["/a", "/b"])", {}, {"/a", "/b"}, {}},
        PathCase{R"("ro": ["/a"], "rw": ["/a/b"])", R"("rw": ["/a"])", {}, {"/a"}, {"/a/b"}},
        PathCase{R"("ro": ["/a/c"], "rw": ["/a/b"])", R"("rw": ["/a"])", {}, {"/a/c"}, {"/a/b"}},
        // Writing and running are two rights: a cache has both.
        PathCase{R"("rx": ["/c"], "rw": ["/c"])", R"("rx": ["/c"], "rw": ["/c"])", {"/c"}, {}, {"/c"}},
        PathCase{R"("rw": ["/c"])", R"("rx": ["/c"], "rw": ["/c"])", {}, {"/c"}, {"/c"}},
        PathCase{R"("rx": ["/c"])", R"("rx": ["/c"], "rw": ["/c"])", {"/c"}, {"/c"}, {}},
        // The root, and what comes with the system.
        PathCase{R"("rw": ["/"])", R"("rw": ["/a"])", {}, {}, {"/a"}},
        PathCase{R"("ro": ["/a"])", R"("ro": ["/"])", {}, {"/a"}, {}},
        PathCase{R"("rx": [":runtime"])", R"("rx": [":runtime"])", {":runtime"}, {}, {}},
        PathCase{R"("rx": ["/usr"])", R"("rx": [":runtime"])", {}, {}, {}},
        PathCase{R"("rx": ["/"])", R"("rx": [":runtime"])", {":runtime"}, {}, {}},
        PathCase{R"("ro": ["/"])", R"("rx": [":runtime"])", {}, {}, {}},
        PathCase{R"("rx": [":runtime"])", R"("rx": ["/", "/usr/bin"])", {":runtime"}, {}, {}},
        PathCase{R"("rx": [":runtime"])", R"("ro": ["/"])", {}, {}, {}},
        // Variables are the same for both.
        PathCase{R"("rw": ["${workspace}"])", R"("rw": ["/home/u/ws/out"])", {}, {}, {"/home/u/ws/out"}},
        PathCase{R"("rw": ["${cache}"])",
                 R"("rw": ["${cache}"])",
                 {},
                 {},
                 {absl::StrCat("/home/u/.cache/bulkhead/", CacheKey("files.json"))}}));

TEST(PathCeilingTest, ALinkCantLeadOutOfEither) {
  const auto only = [](const std::string& ceiling, const std::string& policy) {
    const auto files =
        Under(Files(absl::StrCat("\"ro\": [\"", ceiling, "\"]")), Files(absl::StrCat("\"ro\": [\"", policy, "\"]")))
            .filesystem;
    EXPECT_EQ(files.ro.size(), 1u);
    return files.ro.empty() ? PathGrant() : files.ro[0];
  };
  // Beneath the ceiling's folder.
  EXPECT_EQ(only("/a", "/a/b").beneath, "");
  EXPECT_THAT(only("/a", "/a/b").also_beneath, ElementsAre("/a"));
  // Beneath both, the variable's and the ceiling's, whichever is the outer one.
  EXPECT_EQ(only("/home", "${workspace}/x").beneath, "/home/u/ws");
  EXPECT_THAT(only("/home", "${workspace}/x").also_beneath, ElementsAre("/home"));
  EXPECT_THAT(only("/home/u/ws/x", "${workspace}/x/y").also_beneath, ElementsAre("/home/u/ws/x"));
  EXPECT_EQ(only("/home/u/ws/x", "${workspace}/x/y").beneath, "/home/u/ws");
  // The ceiling's own variable binds too.
  EXPECT_THAT(only("${workspace}/x", "/home/u/ws/x/y").also_beneath, ElementsAre("/home/u/ws", "/home/u/ws/x"));
  // Named by both: nothing more to hold on to.
  EXPECT_THAT(only("/a/b", "/a/b").also_beneath, IsEmpty());
  // The ceiling's folder in the policy's: it must lie in there, and may be missing.
  const PathGrant narrowed = only("/a/b", "/a");
  EXPECT_THAT(narrowed.also_beneath, ElementsAre("/a"));
  EXPECT_TRUE(narrowed.optional);
  EXPECT_EQ(narrowed.origin, "files.json:1, ceiling.json:1");
  EXPECT_FALSE(only("/a", "/a/b").optional);
}

TEST(CeilingTest, ProtectAndHideOfBothHold) {
  const FilesystemRules files =
      Under(Files(R"("rw": ["/a", "/x", "/h"], "protect": ["/a/p", "/x"], "hide": ["/a/h", "/h"])"),
            Files(R"("rw": ["/a", "/a/p/q", "/x/y", "/h/i"], "protect": ["/a/own"])"))
          .filesystem;
  EXPECT_THAT(PathsOf(files.protect), UnorderedElementsAre("/a/own", "/a/p", "/x"));
  EXPECT_THAT(PathsOf(files.hide), UnorderedElementsAre("/a/h", "/h"));
  EXPECT_THAT(PathsOf(files.rw), ElementsAre("/a"));
  EXPECT_THAT(PathsOf(files.ro), UnorderedElementsAre("/a/p/q", "/x/y"));  // inside a protected one: read only
}

// What differs only in case is one name on Windows: neither a way around a ceiling nor a reason to lose a grant.
TEST(CeilingTest, WindowsNamesAreComparedWithoutCase) {
  ParseOptions windows = Host();
  windows.platform = Platform::kWindows;
  const auto under = [&](const std::string& ceiling, const std::string& policy, const ParseOptions& host) {
    return ParsedUnenforced(File(policy), HostWithCeilings({ceiling}, host)).env;
  };
  const std::string all = R"("env": {"inherit": ["*"]})";
  const std::string sets = R"("env": {"inherit": ["Path"], "set": {"node_options": "x", "Tz": "UTC"}})";
  ASSERT_THAT(under(all, sets, Host()).set, ::testing::SizeIs(2));  // elsewhere "node_options" is a word like any other
  EXPECT_THAT(under(all, sets, windows).set, ElementsAre(::testing::Pair("Tz", "UTC")));
  EXPECT_THAT(under(R"("env": {"inherit": ["PATH", "TZ"]})", sets, windows).inherit, ElementsAre("PATH"));
  EXPECT_THAT(under(R"("env": {"inherit": ["PATH", "TZ"]})", sets, windows).set,
              ElementsAre(::testing::Pair("Tz", "UTC")));
  EXPECT_THAT(under(R"("env": {"set": {"NODE_OPTIONS": "x"}})", sets, windows).set,
              ElementsAre(::testing::Pair("node_options", "x")));
  EXPECT_THAT(
      under(R"("env": {"secret": {"TOKEN": {"fd": 3}}})", R"("env": {"secret": {"Token": {"fd": 3}}})", windows).secret,
      ::testing::SizeIs(1));
}

TEST(CeilingTest, FilesOfWindows) {
  ParseOptions windows = Host();
  windows.platform = Platform::kWindows;
  const auto under = [&windows](const std::string& policy) {
    return Parsed(File(policy), HostWithCeilings({R"("filesystem": {"rw": ["C:\\data"]})"}, windows));
  };
  EXPECT_THAT(PathsOf(under(R"("filesystem": {"rw": ["c:/data/x", "C:\\database", "D:\\data"]})").filesystem.rw),
              ElementsAre("C:\\data\\x"));
  EXPECT_EQ(under(R"("stderr": {"file": "C:\\data\\log.txt"})").stderr_rules.file, "C:\\data\\log.txt");
  EXPECT_EQ(under(R"("stderr": {"file": "C:\\log.txt"})").stderr_rules.mode, StderrMode::kInherit);
}

TEST(CeilingTest, PlacesAndNetworkAreTheNarrowerOnes) {
  const auto home = [](const std::string& ceiling, const std::string& policy) {
    return Under(Files(absl::StrCat("\"home\": \"", ceiling, "\"")), Files(absl::StrCat("\"home\": \"", policy, "\"")))
        .filesystem.home;
  };
  EXPECT_EQ(home("ro", "rw"), HomeMode::kReadOnly);
  EXPECT_EQ(home("rw", "ro"), HomeMode::kReadOnly);
  EXPECT_EQ(home("private", "ro"), HomeMode::kPrivate);
  EXPECT_EQ(home("rw", "private"), HomeMode::kPrivate);
  EXPECT_EQ(home("none", "rw"), HomeMode::kNone);
  EXPECT_EQ(home("rw", "none"), HomeMode::kNone);
  EXPECT_EQ(Under(Files(R"("tmp": "host")"), Files(R"("tmp": "host")")).filesystem.tmp, TmpMode::kHost);
  EXPECT_EQ(Under(Files(R"("tmp": "host")"), "").filesystem.tmp, TmpMode::kPrivate);

  const std::string host = R"("network": {"mode": "host"})", none = R"("network": {"mode": "none"})";
  const std::string some = R"("network": {"mode": "allowlist", "allow": ["a.example:1", "b.example:1"]})";
  EXPECT_EQ(Under(host, host).network, NetworkMode::kHost);
  EXPECT_EQ(Under(none, host).network, NetworkMode::kNone);
  EXPECT_EQ(Under(host, none).network, NetworkMode::kNone);
  EXPECT_EQ(Under(some, host).network, NetworkMode::kAllowlist);
  EXPECT_THAT(Under(some, host).network_allow, ElementsAre("a.example:1", "b.example:1"));
  EXPECT_EQ(Under(host, some).network, NetworkMode::kAllowlist);
  EXPECT_THAT(Under(host, some).network_allow, ElementsAre("a.example:1", "b.example:1"));
  EXPECT_THAT(Under(some, R"("network": {"mode": "allowlist", "allow": ["b.example:1", "c.example:1"]})").network_allow,
              ElementsAre("b.example:1"));
}

TEST(CeilingTest, RequireAndUserAreTheStrongerOnes) {
  EXPECT_EQ(Under(R"("require": "B")", R"("require": "C")").require, Tier::kB);
  EXPECT_EQ(Under(R"("require": "B")", R"("require": "A")").require, Tier::kA);
  EXPECT_EQ(Under(R"("user": "u")", R"("user": "u")").user, "u");
  EXPECT_EQ(Under(R"("user": "root")", R"("user": "u")").user, "auto");
  EXPECT_EQ(Under(R"("user": "root")", R"("user": "root")").user, "root");
  EXPECT_EQ(Under(R"("user": "root")", "").user, "auto");
}

TEST(CeilingTest, CommandsAreThoseOfBoth) {
  const auto allow = [](const std::string& list) { return absl::StrCat("\"command\": {\"allow\": [", list, "]}"); };
  EXPECT_THAT(*Under(allow(R"("npx", "/usr/bin/node")"), "").command.allow, ElementsAre("npx", "/usr/bin/node"));
  EXPECT_THAT(*Under("", allow(R"("npx")")).command.allow, ElementsAre("npx"));
  // Whether npx is /usr/bin/npx depends on a PATH: not the same.
  EXPECT_THAT(*Under(allow(R"("/usr/bin/npx", "node")"), allow(R"("npx", "node")")).command.allow, ElementsAre("node"));
  EXPECT_THAT(*Under(allow(R"("a")"), allow(R"("b")")).command.allow, IsEmpty());
  const CommandRules both = Under(R"("command": {"args": {"deny": ["x"], "allow": ["--*"]}})",
                                  R"("command": {"args": {"deny": ["y"], "allow": ["--a*", "b"]}})")
                                .command;
  EXPECT_THAT(both.args_deny, UnorderedElementsAre("x", "y"));
  EXPECT_THAT(both.args_allow, ElementsAre("--a*"));
  EXPECT_EQ(Under("", R"("command": {"batch_files": "checked"})").command.batch_files, BatchFiles::kRefuse);
}

TEST(CeilingTest, PinsOfBothHoldAndMustAgree) {
  const auto pin = [](const std::string& path, char digit) {
    return absl::StrCat(R"("command": {"sha256": {")", path, "\": \"", std::string(64, digit), "\"}}");
  };
  EXPECT_EQ(Under(pin("/a", 'a'), pin("/b", 'b')).command.sha256.size(), 2u);
  EXPECT_EQ(Under(pin("/a", 'a'), pin("/a", 'a')).command.sha256.size(), 1u);
  const auto error =
      ParseFields(File(pin("/a", 'b')), HostWithCeilings({pin("/a", 'a')}), Unenforced::kAccept).status();
  EXPECT_THAT(std::string(error.message()), HasSubstr("ceiling.json:1:38: /command/sha256/~1a: pins another content"));
}

TEST(CeilingTest, FoldersToStartInAreThoseOfBoth) {
  const auto allow = [](const std::string& list) { return absl::StrCat("\"cwd\": {\"allow\": [", list, "]}"); };
  EXPECT_THAT(Under(allow(R"("/a")"), "").cwd_allow, ElementsAre("/a"));
  EXPECT_THAT(Under("", allow(R"("/a")")).cwd_allow, ElementsAre("/a"));
  EXPECT_THAT(Under(allow(R"("/a", "/b/c")"), allow(R"("/a/x", "/b", "/d")")).cwd_allow, ElementsAre("/a/x", "/b/c"));
  // No folder at all can't be said: an empty list is any folder.
  EXPECT_EQ(ErrorOf(File(allow(R"("/a")")), HostWithCeilings({allow(R"("/b")")})),
            "ceiling.json:1: /cwd/allow: has no folder that the policy allows too; let one of both name a folder of "
            "the other");
}

TEST(CeilingTest, EnvironmentIsWhatBothName) {
  const auto inherit = [](const std::string& list) { return absl::StrCat("\"env\": {\"inherit\": [", list, "]}"); };
  EXPECT_THAT(Under(inherit(R"("A", "LC_*")"), inherit(R"("A", "B", "LC_ALL", "L*")")).env.inherit,
              UnorderedElementsAre("A", "LC_ALL", "LC_*"));
  EXPECT_THAT(Under(inherit(R"("A*Z")"), inherit(R"("AB*")")).env.inherit, IsEmpty());  // the overlap can't be said
  EXPECT_THAT(Under(inherit(""), inherit(R"("A")")).env.inherit, IsEmpty());
}

TEST(CeilingTest, AValueOfItsOwnNeedsTheNameOrTheSameValue) {
  const auto under = [](const std::string& ceiling, const std::string& policy) {
    return Under(absl::StrCat("\"env\": {", ceiling, "}"), absl::StrCat("\"env\": {\"set\": {", policy, "}}")).env.set;
  };
  EXPECT_EQ(under(R"("inherit": ["A*"])", R"("AB": "1")").size(), 1u);
  EXPECT_EQ(under(R"("inherit": ["B"])", R"("AB": "1")").size(), 0u);
  EXPECT_EQ(under(R"("set": {"AB": "1"})", R"("AB": "1")").size(), 1u);
  EXPECT_EQ(under(R"("set": {"AB": "2"})", R"("AB": "1")").size(), 0u);
  // "*" lets no injection variable in, and so grants none.
  EXPECT_EQ(under(R"("inherit": ["*"])", R"("LD_PRELOAD": "/x.so")").size(), 0u);
  EXPECT_EQ(under(R"("set": {"LD_PRELOAD": "/x.so"})", R"("LD_PRELOAD": "/x.so")").size(), 1u);
  // Neither does a value that the ceiling gives come to a policy that does not.
  EXPECT_EQ(under(R"("set": {"AB": "1"})", "").size(), 0u);
}

TEST(CeilingTest, NamesReadByVariablesAreGranted) {
  const std::string reads =
      R"("env": {"inherit": [], "set": {"A": "${env:WORD}"}}, "filesystem": {"ro": ["${env:PLACE}/x"]})";
  const PolicyFields both = Under(R"("env": {"inherit": ["A", "WORD", "PLACE"]}, "filesystem": {"ro": ["/"]})", reads);
  EXPECT_EQ(both.env.set.count("A"), 1u);
  EXPECT_THAT(PathsOf(both.filesystem.ro), ElementsAre("/env/place/x"));
  const PolicyFields neither = Under(R"("env": {"inherit": ["A"]}, "filesystem": {"ro": ["/"]})", reads);
  EXPECT_EQ(neither.env.set.count("A"), 0u);
  EXPECT_THAT(neither.filesystem.ro, IsEmpty());
  EXPECT_THAT(absl::StrJoin(neither.warnings, "\n"), HasSubstr("does not grant what files.json:1 names"));
  // What is left of such a path is still made of it, for the next ceiling.
  const std::string first = R"("env": {"inherit": ["PLACE"]}, "filesystem": {"ro": ["/env/place/x/y"]})";
  EXPECT_THAT(PathsOf(Parsed(File(reads), HostWithCeilings({first})).filesystem.ro), ElementsAre("/env/place/x/y"));
  EXPECT_THAT(PathsOf(Parsed(File(reads), HostWithCeilings({first, R"("filesystem": {"ro": ["/"]})"})).filesystem.ro),
              IsEmpty());
}

TEST(CeilingTest, SecretsNeedTheNameAndTheSource) {
  const auto under = [](const std::string& ceiling, const std::string& policy) {
    return Under(ceiling, absl::StrCat("\"env\": {\"secret\": {", policy, "}}")).env.secret;
  };
  const std::string by_env = R"("S": {"env": "E"})", by_file = R"("S": {"file": "/run/s"})",
                    by_fd = R"("S": {"fd": 5})";
  EXPECT_EQ(under(R"("env": {"inherit": ["S", "E"]})", by_env).size(), 1u);
  EXPECT_EQ(under(R"("env": {"inherit": ["S"]})", by_env).size(), 0u);
  EXPECT_EQ(under(R"("env": {"inherit": ["E"]})", by_env).size(), 0u);
  EXPECT_EQ(under(R"("env": {"inherit": ["S"]}, "filesystem": {"ro": ["/run"]})", by_file).size(), 1u);
  EXPECT_EQ(under(R"("env": {"inherit": ["S"]})", by_file).size(), 0u);
  EXPECT_EQ(under(R"("env": {"inherit": ["*"]})", by_fd).size(), 0u);
  for (const std::string& same : {by_env, by_file, by_fd}) {
    EXPECT_EQ(under(absl::StrCat("\"env\": {\"secret\": {", same, "}}"), same).size(), 1u) << same;
  }
}

TEST(CeilingTest, StderrGoesWhereBothLetIt) {
  const std::string file = R"("stderr": {"file": "/log/x"})";
  EXPECT_EQ(Under(Files(R"("rw": ["/log"])"), file).stderr_rules.file, "/log/x");
  EXPECT_EQ(Under(file, file).stderr_rules.file, "/log/x");
  EXPECT_EQ(Under(Files(R"("ro": ["/log"])"), file).stderr_rules.mode, StderrMode::kInherit);
  EXPECT_EQ(Under(R"("stderr": {"file": "/log/y"})", file).stderr_rules.mode, StderrMode::kInherit);
  EXPECT_EQ(Under(R"("stderr": "discard")", file).stderr_rules.mode, StderrMode::kDiscard);
  EXPECT_EQ(Under(R"("stderr": "discard")", "").stderr_rules.mode, StderrMode::kDiscard);
  EXPECT_EQ(Under("", R"("stderr": "discard")").stderr_rules.mode, StderrMode::kDiscard);
}

TEST(CeilingTest, SystemCallsAreTheStricterOnes) {
  const PolicyFields fields =
      Under(R"("syscalls": {"profile": "strict", "allow": ["bpf", "ptrace"], "deny": ["mount"]})",
            R"("syscalls": {"allow": ["bpf", "keyctl"], "deny": ["getrandom"]})");
  EXPECT_EQ(fields.syscall_profile, SyscallProfile::kStrict);
  EXPECT_THAT(fields.syscalls_allow, ElementsAre("bpf"));
  EXPECT_THAT(fields.syscalls_deny, UnorderedElementsAre("mount", "getrandom"));
}

TEST(CeilingTest, NarrowsWhatWasAddedOnTheCommandLine) {
  ParseOptions options = HostWithCeilings({R"("filesystem": {"rw": ["/a"]}, "env": {"inherit": ["A"]})"});
  options.additions.ro = {"/b"};
  options.additions.rw = {"/a/x", "/b"};
  options.additions.network = NetworkMode::kHost;
  options.additions.env = {{"A", "1"}, {"B", "1"}};
  options.additions.inherit = {"A", "C"};
  options.additions.require = Tier::kC;
  options.additions.stderr_rules = StderrRules{StderrMode::kFile, "/b/log"};
  const PolicyFields fields = Parsed(File(""), options);
  EXPECT_THAT(fields.filesystem.ro, IsEmpty());
  EXPECT_THAT(PathsOf(fields.filesystem.rw), ElementsAre("/a/x"));
  EXPECT_EQ(fields.network, NetworkMode::kNone);
  EXPECT_EQ(fields.env.set.size(), 0u) << "A is to have the host's value, B is not granted";
  EXPECT_THAT(fields.env.inherit, ElementsAre("A"));
  EXPECT_EQ(fields.require, Tier::kA);
  EXPECT_EQ(fields.stderr_rules.mode, StderrMode::kInherit);
}

TEST(CeilingTest, WhatFallsAwayIsSaid) {
  const PolicyFields fields = Under(
      "",
      R"("require": "B", "user": "root", "network": {"mode": "host"}, "env": {"inherit": ["FOO"], "set": {"X": "canary"}},
             "filesystem": {"ro": ["/a"], "home": "rw", "tmp": "host"}, "stderr": {"file": "/b"},
             "syscalls": {"allow": ["keyctl", "ptrace"]})");
  EXPECT_THAT(fields.warnings,
              UnorderedElementsAre(
                  "ceiling.json: accepts no tier weaker than A where the policy accepts B",
                  "ceiling.json: does not grant the user \"root\"", "ceiling.json: does not grant the network",
                  "ceiling.json: does not grant in the environment: FOO, X",
                  "ceiling.json: does not grant what files.json:2 names",
                  "ceiling.json: does not grant the home folder", "ceiling.json: does not grant the host's /tmp",
                  "ceiling.json: does not allow the system calls keyctl, ptrace",
                  "ceiling.json: does not grant the file for stderr"));
  EXPECT_THAT(Under(R"("network": {"mode": "host"})", R"("network": {"mode": "host"})").warnings, IsEmpty());
}

TEST(CeilingTest, AMistakeInACeilingIsARefusal) {
  EXPECT_EQ(ErrorOf(File(""), HostWithCeilings({R"("netwrok": {})"})),
            "ceiling.json:1: /netwrok: is not known here; did you mean \"network\"?");
  EXPECT_EQ(ErrorOf(File(R"("user": 1)"), HostWithCeilings({R"("filesystem": {"ro": ["${var:X}"]})"})),
            "files.json:1: /user: must be text, not a number; write \"...\"\n"
            "ceiling.json:1: /filesystem/ro/0: ${var:X} is not set; start with --var X=VALUE");
  EXPECT_THAT(ErrorOf(File(""), HostWithCeilings({R"("network": {"mode": "allowlist"})"})),
              HasSubstr("is not enforced yet"));
}

TEST(CeilingTest, ACeilingMayExtend) {
  ParseOptions options = HostWithCeilings({R"("extends": ["preset:npx"])"});
  options.ceilings[0].name = "/etc/c.json";
  const PolicyFields fields = Parsed(File(R"("extends": ["preset:npx"])"), options);
  const PolicyFields alone = Parsed(File(R"("extends": ["preset:npx"])"));
  EXPECT_EQ(fields.filesystem.rx, alone.filesystem.rx);
  EXPECT_EQ(fields.filesystem.rw, alone.filesystem.rw);
  EXPECT_EQ(fields.env.set, alone.env.set);
  EXPECT_EQ(fields.network, NetworkMode::kHost);
}

// The property: what is left is never more than either, and doing it again changes nothing.

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  std::string Policy() {
    const std::vector<std::string> tiers = {"A", "B", "C"}, homes = {"private", "none", "ro", "rw"};
    std::string text = absl::StrCat(
        R"("require": ")", Pick(tiers), R"(", "user": ")", Pick({"auto", "root", "u"}), R"(", "network": {"mode": ")",
        Pick({"none", "allowlist", "host"}), R"(", "allow": [)", Some({"a.example:1", "b.example:1", "c.example:1"}),
        R"(]}, "filesystem": {"home": ")", Pick(homes), R"(", "tmp": ")", Pick({"private", "host"}), R"(", "rx": [)",
        Some(Paths(true)), "], \"ro\": [", Some(Paths(false)), "], \"rw\": [", Some(Paths(false)), "], \"protect\": [",
        Rarely(Paths(false)), "], \"hide\": [", Rarely(Paths(false)), "]}, \"env\": {\"inherit\": [",
        Some({"A", "AB", "A*", "B?", "*", "PLACE", "WORD"}), R"(], "set": {)", SomeSet(), "}, \"secret\": {",
        SomeSecret(), "}}");
    if (Coin()) absl::StrAppend(&text, ", \"command\": {", Command(), "}");
    if (Coin())
      absl::StrAppend(&text, ", \"cwd\": {\"allow\": [\"/a/b\", ", Pick({"\"/a\"", "\"/a/b/c\"", "\"/d\""}), "]}");
    if (Coin()) {
      absl::StrAppend(&text, ", \"syscalls\": {\"profile\": \"", Pick({"baseline", "strict"}), "\", \"allow\": [",
                      Some({"bpf", "mount", "ptrace"}), "], \"deny\": [", Some({"bpf", "kill", "unlink"}), "]}");
    }
    for (const auto& [object, names] : Quantities()) {
      std::string members;
      for (const auto& [name, unit] : names) {
        if (!Coin()) continue;
        const std::size_t number = 3 + Below(9);
        absl::StrAppend(&members, members.empty() ? "\"" : ", \"", name, "\": ", unit.empty() ? "" : "\"", number, unit,
                        unit.empty() ? "" : "\"");
      }
      absl::StrAppend(&text, ", \"", object, "\": {", members, "}");
    }
    if (Coin())
      absl::StrAppend(&text, ", \"stderr\": ", Pick({R"("discard")", R"("inherit")", R"({"file": "/a/b/log"})"}));
    return text;
  }

 private:
  using Names = std::vector<std::pair<std::string, std::string>>;  // with their units
  static std::vector<std::pair<std::string, Names>> Quantities() {
    return {
        {"limits", {{"memory", "MiB"}, {"processes", ""}, {"open_files", ""}, {"file_size", "B"}, {"cpu_time", "s"}}},
        {"messages", {{"max_message_bytes", "KiB"}, {"max_junk_lines", ""}, {"max_queued_bytes", "KiB"}}},
        {"timeouts", {{"probe", "s"}, {"start", "s"}, {"request", "s"}, {"stdin_grace", "s"}, {"term_grace", "s"}}},
        // A first wait is never longer than the longest one.
        {"restart", {{"max_in_a_row", ""}, {"backoff_initial", "ms"}, {"backoff_max", "s"}, {"healthy_after", "s"}}}};
  }
  std::string Command() {
    std::string members =
        absl::StrCat("\"batch_files\": \"", Pick({"refuse", "checked"}), "\", \"args\": {\"deny\": [",
                     Some({"-e", "--inspect*", "a"}), "], \"allow\": [", Some({"*", "a*", "?b", "--inspect"}), "]");
    if (Coin()) absl::StrAppend(&members, ", \"max\": ", Below(400));
    members += "}";
    if (Coin()) absl::StrAppend(&members, ", \"allow\": [", Some({"npx", "node", "/usr/bin/node"}), "]");
    // One digest for a file, since two that differ are a mistake.
    if (Coin())
      absl::StrAppend(&members, ", \"sha256\": {\"", Pick({"/a", "/b"}), "\": \"", std::string(64, 'a'), "\"}");
    return members;
  }
  static std::vector<std::string> Paths(bool runtime) {
    std::vector<std::string> paths = {"/",    "/a", "/a/b",         "/a/b/c",         "/ab",
                                      "/d/e", "/d", "${workspace}", "${env:PLACE}/x", "${workspace}/y"};
    if (runtime) paths.push_back(":runtime");
    return paths;
  }
  std::size_t Below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  bool Coin() { return Below(2) == 0; }
  std::string Pick(const std::vector<std::string>& of) { return of[Below(of.size())]; }
  std::string Some(const std::vector<std::string>& of) {
    std::string list;
    for (std::size_t i = Below(4); i > 0; --i) absl::StrAppend(&list, list.empty() ? "\"" : ", \"", Pick(of), "\"");
    return list;
  }
  std::string Rarely(const std::vector<std::string>& of) { return Below(4) == 0 ? Some(of) : ""; }
  std::string SomeSet() {
    std::string set;
    if (Coin()) absl::StrAppend(&set, "\"A\": \"", Pick({"1", "2", "${env:WORD}"}), "\"");
    if (Coin()) absl::StrAppend(&set, set.empty() ? "" : ", ", "\"LD_PRELOAD\": \"", Pick({"1", "2"}), "\"");
    return set;
  }

  std::string SomeSecret() {
    std::string secret;
    if (Coin()) {
      absl::StrAppend(&secret, "\"B\": ", Pick({R"({"env": "A"})", R"({"env": "C"})", R"({"fd": 3})", R"({"fd": 4})"}));
    }
    if (Coin()) {
      absl::StrAppend(&secret, secret.empty() ? "" : ", ", "\"AB\": ",
                      Pick({R"({"env": "C"})", R"({"file": "/a/b/key"})", R"({"file": "/d/key"})",
                            R"({"file": "${env:PLACE}/x/key"})"}));
    }
    return secret;
  }

  std::mt19937 random_;
};

enum { kRead = 1, kWrite = 2, kRun = 4 };

// What `files` lets be done at `path`. Grants add up; protect and hide take away, so they may only be looked at as
// such.
int RightsAt(const FilesystemRules& files, absl::string_view path, bool with_masks) {
  const auto holds = [path](const std::vector<PathGrant>& grants) {
    return std::any_of(grants.begin(), grants.end(), [path](const PathGrant& grant) {
      return path == grant.path || IsWithin(path, grant.path) || (path == ":runtime" && grant.path == "/");
    });
  };
  int rights = 0;
  if (holds(files.ro)) rights |= kRead;
  if (holds(files.rw)) rights |= kRead | kWrite;
  if (holds(files.rx)) rights |= kRead | kRun;
  if (with_masks && holds(files.protect)) rights &= ~kWrite;
  if (with_masks && holds(files.hide)) rights = 0;
  return rights;
}

const std::vector<std::string>& Probes() {
  static const auto* const kProbes =
      new std::vector<std::string>{":runtime",       "/",          "/x",           "/a",
                                   "/a/z",           "/a/b",       "/a/b/z",       "/a/b/c",
                                   "/a/b/c/d",       "/ab",        "/d",           "/d/e",
                                   "/d/e/f",         "/home/u",    "/home/u/ws",   "/home/u/ws/y",
                                   "/home/u/ws/y/z", "/env/place", "/env/place/x", "/env/place/x/y"};
  return *kProbes;
}

void ExpectNoMore(const PolicyFields& left, const PolicyFields& of, bool of_is_ceiling) {
  for (const std::string& path : Probes()) {
    EXPECT_EQ(RightsAt(left.filesystem, path, true) & ~RightsAt(of.filesystem, path, true), 0) << path;
  }
  EXPECT_EQ(NoMore(left, of, of_is_ceiling).What(), "");
}

void ExpectSame(const PolicyFields& a, const PolicyFields& b) {
  EXPECT_EQ(NoMore(a, b, false).What(), "");
  EXPECT_EQ(NoMore(b, a, false).What(), "");
  EXPECT_EQ(a.filesystem.rx, b.filesystem.rx);
  EXPECT_EQ(a.filesystem.ro, b.filesystem.ro);
  EXPECT_EQ(a.filesystem.rw, b.filesystem.rw);
  EXPECT_EQ(a.filesystem.protect, b.filesystem.protect);
  EXPECT_EQ(a.filesystem.hide, b.filesystem.hide);
  EXPECT_THAT(a.env.inherit, ::testing::UnorderedElementsAreArray(b.env.inherit));
  EXPECT_EQ(a.timeouts.term_grace_was_set, b.timeouts.term_grace_was_set);
}

// With its origins, which tell what it says from what it leaves out.
PolicyFields ByItself(const std::string& ceiling) {
  ParseOptions options = Host();
  options.record_origins = true;
  return ParsedUnenforced(File(ceiling), options);
}

TEST(CeilingPropertyTest, NeverMoreThanEitherAndDoneOnceIsDone) {
  int with_something = 0;
  for (unsigned seed = 0; seed < 600 && !::testing::Test::HasFailure(); ++seed) {
    Maker maker(seed);
    const std::string policy = maker.Policy(), ceiling = maker.Policy(), other = maker.Policy();
    SCOPED_TRACE(absl::StrCat("seed ", seed, "\npolicy ", policy, "\nceiling ", ceiling, "\nother ", other));
    const PolicyFields alone = ParsedUnenforced(File(policy)), alone_ceiling = ByItself(ceiling),
                       alone_other = ByItself(other);
    const PolicyFields once = Under(ceiling, policy);
    ExpectNoMore(once, alone, false);
    ExpectNoMore(once, alone_ceiling, true);
    ExpectSame(ParsedUnenforced(File(policy), HostWithCeilings({ceiling, ceiling})), once);
    const PolicyFields twice = ParsedUnenforced(File(policy), HostWithCeilings({ceiling, other}));
    ExpectNoMore(twice, once, false);
    ExpectNoMore(twice, alone_other, true);
    const PolicyFields swapped = ParsedUnenforced(File(policy), HostWithCeilings({other, ceiling}));
    ExpectNoMore(swapped, once, false);
    ExpectNoMore(swapped, alone_other, true);
    // What is made from a variable may be lost in one order and not in the other, since it is not looked for twice.
    if (!absl::StrContains(absl::StrCat(policy, ceiling, other), "${env:")) {
      for (const std::string& path : Probes()) {
        EXPECT_EQ(RightsAt(swapped.filesystem, path, true), RightsAt(twice.filesystem, path, true)) << path;
      }
    }
    EXPECT_EQ(swapped.network, twice.network);
    EXPECT_EQ(swapped.filesystem.home, twice.filesystem.home);
    EXPECT_EQ(swapped.require, twice.require);
    EXPECT_EQ(swapped.user, twice.user);
    EXPECT_EQ(swapped.env.set, twice.env.set);
    EXPECT_EQ(swapped.limits.processes, twice.limits.processes);
    with_something += once.filesystem.ro.empty() && once.filesystem.rw.empty() && once.filesystem.rx.empty() ? 0 : 1;
  }
  EXPECT_GT(with_something, 100);  // else it was shown of nothing
}

// Where all can be said, nothing of what both grant is lost.
TEST(CeilingPropertyTest, PathsThatBothGrantAreKept) {
  for (unsigned seed = 0; seed < 400 && !::testing::Test::HasFailure(); ++seed) {
    Maker maker(seed);
    const std::string policy = maker.Policy(), ceiling = maker.Policy();
    if (absl::StrContains(policy, "${env:") || absl::StrContains(policy, "runtime")) continue;
    SCOPED_TRACE(absl::StrCat("seed ", seed, "\npolicy ", policy, "\nceiling ", ceiling));
    const FilesystemRules a = ParsedUnenforced(File(policy)).filesystem, b = ParsedUnenforced(File(ceiling)).filesystem;
    const FilesystemRules both = Under(ceiling, policy).filesystem;
    if (!both.protect.empty() || !both.hide.empty()) continue;
    for (const std::string& path : Probes()) {
      if (path != ":runtime") {
        EXPECT_EQ(RightsAt(both, path, false), RightsAt(a, path, false) & RightsAt(b, path, false)) << path;
      }
    }
  }
}

}  // namespace
}  // namespace bulkhead::policy
