// Every kind of mistake in a policy file, and what is said about it.
#include "bulkhead/policy/grammar.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bulkhead/policy/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/policy/testing.h"

namespace bulkhead::policy {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct Mistake {
  std::string members;  // of the policy
  std::string error;    // whole, but for the place
};

class MistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsNamed) {
  EXPECT_EQ(ErrorOf(File(GetParam().members)), absl::StrCat("files.json:1: ", GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    Keys, MistakeTest,
    ::testing::Values(
        Mistake{R"("requires": "A")", R"(/requires: is not known here; did you mean "require"?)"},
        Mistake{R"("limits": {"Open-Files": 9})",
                R"(/limits/Open-Files: is not known here; did you mean "open_files"?)"},
        Mistake{R"("rw": [])", "/rw: is not known here; it belongs in /filesystem/rw"},
        Mistake{R"("network": {"user": "x"})", "/network/user: is not known here; it belongs in /user"},
        Mistake{R"("network": {"colour": 1})", "/network/colour: is not known here; there are mode, allow"},
        Mistake{R"("a/b": 1)",
                "/a~1b: is not known here; there are version, extends, without, require, user, command, cwd, "
                "env, filesystem, network, syscalls, limits, messages, timeouts, restart, stderr"},
        Mistake{R"("user": "a", "user": "b")", "/user: is there twice, first in line 1; take one away"},
        Mistake{R"("without": {"version": 1})",
                "/without/version: is not known here; there are require, user, command, cwd, "
                "env, filesystem, network, syscalls, limits, messages, timeouts, restart, "
                "stderr"}));

INSTANTIATE_TEST_SUITE_P(
    Types, MistakeTest,
    ::testing::Values(
        Mistake{R"("user": null)", R"(/user: must be text, not null; write "...")"},
        Mistake{R"("env": [])", "/env: must be an object, not a list; write {...}"},
        Mistake{R"("env": {"set": []})", R"(/env/set: must be an object, not a list; write {"NAME": ...})"},
        Mistake{R"("env": {"set": {"A": 1}})", R"(/env/set/A: must be text, not a number; write "...")"},
        Mistake{R"("filesystem": {"ro": "/a"})",
                "/filesystem/ro: must be a list, not text; write [...], also around a single "
                "one"},
        Mistake{R"("filesystem": {"ro": [["/a"]]})", R"(/filesystem/ro/0: must be text, not a list; write "...")"},
        Mistake{R"("filesystem": {"ro": [{"path": "/a", "optional": "yes"}]})",
                "/filesystem/ro/0/optional: must be true or false, not text; write true or false"},
        Mistake{R"("filesystem": {"ro": [{"optional": true}]})",
                R"(/filesystem/ro/0: has no "path"; write {"path": ...})"},
        Mistake{R"("filesystem": {"ro": [{"path": "/a", "optonal": true}]})",
                R"(/filesystem/ro/0/optonal: is not known here; did you mean "optional"?)"},
        Mistake{R"("filesystem": {"ro": [":runtime"]})",
                R"(/filesystem/ro/0: ":runtime" is not a path; ":runtime" goes in /filesystem/rx)"},
        Mistake{R"("filesystem": {"hide": [{"path": "/a", "optional": true}]})",
                R"(/filesystem/hide/0: must be text, not an object; write "...")"},
        Mistake{R"("stderr": {"path": "/a"})", "/stderr/path: is not known here; there are file"},
        Mistake{R"("stderr": {})", R"(/stderr: has no "file"; write {"file": ...})"},
        Mistake{
            R"("limits": {"processes": "5"})",
            "/limits/processes: must be a number, not text; write a whole number from 1 to 4194304, without quotes"},
        Mistake{R"("limits": {"processes": 1e2})",
                "/limits/processes: is not a whole number; write a whole number from 1 to 4194304"},
        Mistake{R"("limits": {"processes": -1})",
                "/limits/processes: is not a whole number; write a whole number from 1 to 4194304"},
        Mistake{
            R"("limits": {"file_size": 5})",
            R"(/limits/file_size: must be text, not a number; write a whole number with B, KiB, MiB or GiB, such as "512MiB")"}));

INSTANTIATE_TEST_SUITE_P(
    Values, MistakeTest,
    ::testing::Values(
        Mistake{R"("require": "D")", R"(/require: "D" is not one of A, B, C; write one of these)"},
        Mistake{R"("require": "a")", R"(/require: "a" is not one of A, B, C; did you mean "A"?)"},
        Mistake{R"("network": {"mode": "hots"})",
                R"(/network/mode: "hots" is not one of none, allowlist, host; did you mean "host"?)"},
        Mistake{R"("stderr": "ignore")", R"(/stderr: "ignore" is not one of inherit, discard; write one of these)"},
        Mistake{R"("filesystem": {"ro": ["/a", "../data"]})",
                R"(/filesystem/ro/1: "../data" is not absolute; write the full path or start it with ${workspace})"},
        Mistake{R"("extends": ["preset:nod"])",
                R"(/extends/0: "preset:nod" is not a preset; did you mean "preset:node"?)"},
        Mistake{
            R"("limits": {"file_size": "1GB"})",
            R"(/limits/file_size: "1GB" is not a size; write a whole number with B, KiB, MiB or GiB, such as "512MiB")"},
        Mistake{R"("timeouts": {"start": "1min"})",
                R"(/timeouts/start: "1min" is not a duration; write a whole number with ms, s, m or h, such as "30s")"},
        Mistake{R"("env": {"secret": {"A": {}}})",
                R"(/env/secret/A: must say one of env, file and fd; write {"env": "NAME"})"},
        Mistake{R"("env": {"secret": {"A": {"env": "A", "fd": 5}}})",
                R"(/env/secret/A: must say one of env, file and fd; write {"env": "NAME"})"},
        Mistake{R"("env": {"secret": {"A": "a"}})",
                R"(/env/secret/A: must be an object, not text; write {"env": ...}, {"file": ...} or {"fd": ...})"},
        Mistake{R"("command": {"sha256": {"/a": "9f"}})",
                R"(/command/sha256/~1a: "9f" is not a SHA-256; write its 64 lower-case hex digits)"},
        Mistake{R"("cwd": {"allow": []})", "/cwd/allow: is empty; name a folder, or leave it out to allow any"},
        Mistake{R"("restart": {"backoff_initial": "1m"})",
                "/restart/backoff_initial: makes backoff_initial longer than backoff_max; let it be the shorter one"}));

TEST(GrammarTest, TheVersionIsAskedFor) {
  EXPECT_EQ(ErrorOf({"f.json", "{}"}), "f.json:1: /version: is missing; write \"version\": 1");
  EXPECT_EQ(ErrorOf({"f.json", "{\"version\": 2}"}),
            "f.json:1: /version: 2 is not known; this bulkhead reads version 1");
  EXPECT_EQ(ErrorOf({"f.json", "{\"version\": \"1\"}"}), "f.json:1: /version: must be a number, not text; write 1");
  EXPECT_EQ(ErrorOf({"f.json", "[1]"}), "f.json:1: /: must be an object, not a list; write {\"version\": 1, ...}");
}

TEST(GrammarTest, AllMistakesAreReportedInTheOrderOfTheFile) {
  const std::string error = ErrorOf({"f.json", R"({
    "version": 1,
    "user": 5,
    "network": {"mode": "hosts",
                "mod": 1},
    "filesystem": {"ro": ["a", "/ok", "b"]},
    "timeouts": {"start": "1 s"}
  })"});
  const std::vector<std::string> lines = absl::StrSplit(error, '\n');
  ASSERT_EQ(lines.size(), 6u) << error;
  EXPECT_THAT(lines[0], HasSubstr("f.json:3: /user: "));
  EXPECT_THAT(lines[1], HasSubstr("f.json:4: /network/mode: "));
  EXPECT_THAT(lines[2], HasSubstr("f.json:5: /network/mod: "));
  EXPECT_THAT(lines[3], HasSubstr("f.json:6: /filesystem/ro/0: "));
  EXPECT_THAT(lines[4], HasSubstr("f.json:6: /filesystem/ro/2: "));
  EXPECT_THAT(lines[5], HasSubstr("f.json:7: /timeouts/start: "));
  // FILE:LINE: /json/pointer: what is wrong; what would help
  for (const std::string& line : lines) EXPECT_THAT(line, ContainsRegex("^f\\.json:[0-9]+: /[a-z0-9/_]*: [^;]+; .+$"));
}

TEST(GrammarTest, AKeyFromTheFileCantReachTheTerminal) {
  EXPECT_THAT(ErrorOf(File("\"a\\u001b[31m\": 1")), HasSubstr("/a\\x1b[31m: is not known"));
}

struct Unbuilt {
  std::string members, pointer;
};
class NotEnforcedYetTest : public ::testing::TestWithParam<Unbuilt> {};

TEST_P(NotEnforcedYetTest, IsRefusedAndNeverIgnored) {
  EXPECT_THAT(ErrorOf(File(GetParam().members)), HasSubstr(absl::StrCat("files.json:1: ", GetParam().pointer, ": ")));
  EXPECT_THAT(ErrorOf(File(GetParam().members)), HasSubstr("is not enforced yet; "));
  // Its form is known all the same.
  EXPECT_TRUE(ParseFields(File(GetParam().members), Host(), Unenforced::kAccept).ok());
}

INSTANTIATE_TEST_SUITE_P(Fields, NotEnforcedYetTest,
                         ::testing::Values(Unbuilt{R"("network": {"mode": "allowlist"})", "/network/mode"},
                                           Unbuilt{R"("network": {"allow": ["a.example:443"]})", "/network/allow"}));

TEST(NotEnforcedYetTest, WhatAsksForNothingIsAccepted) {
  Parsed(File(R"("network": {"mode": "none", "allow": []},
                 "syscalls": {"profile": "baseline", "allow": [], "deny": []})"));
}

struct Bound {
  std::string member;  // with a $ for the value
  std::string below, lowest, highest, above;
};
class BoundTest : public ::testing::TestWithParam<Bound> {
 protected:
  std::string With(const std::string& value) {
    std::string text = GetParam().member;
    return text.replace(text.find('$'), 1, value);
  }
};

TEST_P(BoundTest, IsWhereItSaysItIs) {
  EXPECT_EQ(ErrorOf(File(With(GetParam().lowest))), "(no error)");
  EXPECT_EQ(ErrorOf(File(With(GetParam().highest))), "(no error)");
  if (!GetParam().below.empty()) {
    EXPECT_THAT(ErrorOf(File(With(GetParam().below))), HasSubstr("out of range"));
  }
  EXPECT_THAT(ErrorOf(File(With(GetParam().above))), HasSubstr("out of range"));
}

INSTANTIATE_TEST_SUITE_P(
    Numbers, BoundTest,
    ::testing::Values(Bound{R"("command": {"args": {"max": $}})", "", "0", "65536", "65537"},
                      Bound{R"("limits": {"processes": $})", "0", "1", "4194304", "4194305"},
                      Bound{R"("limits": {"open_files": $})", "2", "3", "1048576", "1048577"},
                      Bound{R"("limits": {"file_size": $})", R"("0B")", R"("1B")", R"("1048576GiB")",
                            R"("1048577GiB")"},
                      Bound{R"("limits": {"cpu_time": $})", R"("999ms")", R"("1s")", R"("8760h")", R"("8761h")"},
                      Bound{R"("messages": {"max_message_bytes": $})", R"("1023B")", R"("1KiB")", R"("1048576GiB")",
                            R"("1048577GiB")"},
                      Bound{R"("messages": {"max_junk_lines": $})", "", "0", "1000000", "1000001"},
                      Bound{R"("timeouts": {"request": $})", R"("0s")", R"("1ms")", R"("8760h")", R"("8761h")"},
                      Bound{R"("timeouts": {"term_grace": $})", "", R"("0s")", R"("1h")", R"("3601s")"},
                      Bound{R"("restart": {"max_in_a_row": $})", "", "0", "1000000", "1000001"}));

TEST(GrammarTest, TheNumberOfEntriesIsBounded) {
  const auto list = [](std::size_t entries) {
    std::string text = "\"filesystem\": {\"ro\": [\"/0\"";
    for (std::size_t i = 1; i < entries; ++i) absl::StrAppend(&text, ", \"/", i, "\"");
    return text + "]}";
  };
  EXPECT_EQ(Parsed(File(list(kEntriesMax - 1))).filesystem.ro.size(), kEntriesMax - 1);
  EXPECT_EQ(Parsed(File(list(kEntriesMax))).filesystem.ro.size(), kEntriesMax);
  EXPECT_THAT(ErrorOf(File(list(kEntriesMax + 1))), HasSubstr("/filesystem/ro: has more than 256 entries"));
  // Also of two policies together, each of which is below.
  const ParseOptions options = HostWithFiles({{"/p/base.json", File(list(kEntriesMax)).text}});
  EXPECT_EQ(ErrorOf(File(R"("extends": ["base.json"], "filesystem": {"ro": ["/0"]})"), options), "(no error)");
  EXPECT_THAT(ErrorOf(File(R"("extends": ["base.json"], "filesystem": {"ro": ["/new"]})"), options),
              HasSubstr("files.json:1: /filesystem/ro/0: is one entry too many; no more than 256 can come together"));
}

// Every line of the table is read: a policy that says everything, from INTERFACE's example, keeps every value.
TEST(GrammarTest, EverythingThatAPolicyCanSay) {
  const PolicyFields fields = ParsedUnenforced({"all.json", R"({
    "version": 1,
    "extends": ["preset:node"], // presets or files
    "without": { "env": { "inherit": ["SHELL"] } },
    "require": "B",
    "user": "nobody",
    "command": {
      "allow": ["npx", "/usr/bin/node"],
      "sha256": { "/opt/server": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" },
      "args": { "max": 10, "deny": ["--inspect*"], "allow": ["a*"] },
      "batch_files": "checked"
    },
    "cwd": { "default": "${workspace}", "allow": ["${workspace}", "/srv"] },
    "env": {
      "inherit": ["FOO"],
      "set": { "TZ": "UTC", "CACHE": "${cache}/x" },
      "secret": { "TOKEN": { "env": "TOKEN" }, "DB": { "file": "/run/db" }, "K": { "fd": 5 } }
    },
    "filesystem": {
      "rx": ["/opt/x"],
      "ro": ["/srv/ro"],
      "rw": ["${workspace}/out", { "path": "${home}/.cache/x", "optional": true }],
      "protect": ["${workspace}/out/.git"],
      "hide": ["${workspace}/.env"],
      "home": "ro",
      "tmp": "host"
    },
    "network": { "mode": "allowlist", "allow": ["api.github.com:443"] },
    "syscalls": { "profile": "strict", "allow": ["bpf"], "deny": ["ptrace"] },
    "limits": { "memory": "1GiB", "processes": 256, "open_files": 100, "file_size": "2GiB", "cpu_time": "1h" },
    "messages": { "max_message_bytes": "1MiB", "max_junk_lines": 1, "max_queued_bytes": "2MiB" },
    "timeouts": { "probe": "1s", "start": "2s", "request": "3s", "stdin_grace": "4s", "term_grace": "5s" },
    "restart": { "max_in_a_row": 1, "backoff_initial": "1ms", "backoff_max": "2ms", "healthy_after": "3ms" },
    "stderr": { "file": "/var/log/x" }
  })"});
  using ::testing::Contains;
  using ::testing::ElementsAre;
  using ::testing::IsSupersetOf;
  using ::testing::Not;
  EXPECT_EQ(fields.name, "all.json");
  EXPECT_EQ(fields.require, Tier::kB);
  EXPECT_EQ(fields.user, "nobody");
  EXPECT_THAT(*fields.command.allow, ElementsAre("npx", "/usr/bin/node"));
  EXPECT_EQ(fields.command.sha256.count("/opt/server"), 1u);
  EXPECT_EQ(fields.command.args_max, 10u);
  EXPECT_THAT(fields.command.args_deny, ElementsAre("--inspect*"));
  EXPECT_THAT(fields.command.args_allow, ElementsAre("a*"));
  EXPECT_EQ(fields.command.batch_files, BatchFiles::kChecked);
  EXPECT_EQ(fields.cwd_default, "/home/u/ws");
  EXPECT_THAT(fields.cwd_allow, ElementsAre("/home/u/ws", "/srv"));
  EXPECT_THAT(fields.env.inherit, IsSupersetOf({"HOME", "PATH", "NODE_ENV", "FOO"}));
  EXPECT_THAT(fields.env.inherit, Not(Contains("SHELL")));
  EXPECT_EQ(fields.env.set.at("TZ"), "UTC");
  EXPECT_EQ(fields.env.set.at("CACHE"), absl::StrCat("/home/u/.cache/bulkhead/", fields.cache_key, "/x"));
  EXPECT_EQ(fields.env.secret.at("TOKEN").env, "TOKEN");
  EXPECT_EQ(fields.env.secret.at("DB").file, "/run/db");
  EXPECT_EQ(fields.env.secret.at("K").fd, 5);
  EXPECT_THAT(PathsOf(fields.filesystem.rx), IsSupersetOf({":runtime", "/opt/x"}));
  EXPECT_THAT(PathsOf(fields.filesystem.ro), IsSupersetOf({"/srv/ro", "/home/u/ws"}));
  EXPECT_THAT(PathsOf(fields.filesystem.rw), ElementsAre("/home/u/ws/out", "/home/u/.cache/x"));
  EXPECT_THAT(PathsOf(fields.filesystem.protect), ElementsAre("/home/u/ws/out/.git"));
  EXPECT_THAT(PathsOf(fields.filesystem.hide), ElementsAre("/home/u/ws/.env"));
  EXPECT_EQ(fields.filesystem.home, HomeMode::kReadOnly);
  EXPECT_EQ(fields.filesystem.tmp, TmpMode::kHost);
  EXPECT_EQ(fields.network, NetworkMode::kAllowlist);
  EXPECT_THAT(fields.network_allow, ElementsAre("api.github.com:443"));
  EXPECT_EQ(fields.syscall_profile, SyscallProfile::kStrict);
  EXPECT_THAT(fields.syscalls_allow, ElementsAre("bpf"));
  EXPECT_THAT(fields.syscalls_deny, ElementsAre("ptrace"));
  EXPECT_EQ(fields.limits.memory_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(fields.limits.processes, 256u);
  EXPECT_EQ(fields.limits.open_files, 100u);
  EXPECT_EQ(fields.limits.file_size_bytes, std::uint64_t{2} << 30);
  EXPECT_EQ(fields.limits.cpu_time, absl::Hours(1));
  EXPECT_EQ(fields.messages.max_message_bytes, 1u << 20);
  EXPECT_EQ(fields.messages.max_junk_lines, 1u);
  EXPECT_EQ(fields.messages.max_queued_bytes, 2u << 20);
  EXPECT_EQ(fields.timeouts.probe, absl::Seconds(1));
  EXPECT_EQ(fields.timeouts.start, absl::Seconds(2));
  EXPECT_EQ(fields.timeouts.request, absl::Seconds(3));
  EXPECT_EQ(fields.timeouts.stdin_grace, absl::Seconds(4));
  EXPECT_EQ(fields.timeouts.term_grace, absl::Seconds(5));
  EXPECT_TRUE(fields.timeouts.term_grace_was_set);
  EXPECT_EQ(fields.restart.max_in_a_row, 1u);
  EXPECT_EQ(fields.restart.backoff_initial, absl::Milliseconds(1));
  EXPECT_EQ(fields.restart.backoff_max, absl::Milliseconds(2));
  EXPECT_EQ(fields.restart.healthy_after, absl::Milliseconds(3));
  EXPECT_EQ(fields.stderr_rules.mode, StderrMode::kFile);
  EXPECT_EQ(fields.stderr_rules.file, "/var/log/x");
}

}  // namespace
}  // namespace bulkhead::policy
