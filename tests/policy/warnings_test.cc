#include "bulkhead/policy/warnings.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/policy/testing.h"

namespace bulkhead::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

WarningContext Machine() {
  WarningContext context;
  context.home = "/home/u";
  context.path_list = "/usr/bin:/home/u/tools:bin:";
  context.policy_files = {"/srv/policies/files.json"};
  return context;
}

std::vector<std::string> WarningsOf(const PolicyText& text, const WarningContext& context = Machine()) {
  ParseOptions options = Host();
  options.record_origins = true;
  const absl::StatusOr<Policy> policy = ParsePolicy(text, options);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.ok() ? Warnings(*policy, context) : std::vector<std::string>();
}

std::vector<std::string> WarningsOf(const std::string& members) { return WarningsOf(File(members)); }

TEST(WarningsTest, APolicyThatNeedsNoneHasNone) {
  EXPECT_THAT(WarningsOf(R"("filesystem": {"rx": [":runtime", "/opt"], "ro": ["${workspace}", "/etc/hosts"],
      "rw": ["${workspace}/out", "/srv/data", "${home}/.cache/x"]}, "env": {"inherit": ["HOME", "API_TOKEN"]},
      "stderr": {"file": "/var/log/server.log"})"),
              IsEmpty());
}

TEST(WarningsTest, NoPresetHasAny) {
  for (const std::string& name : PresetNames()) {
    EXPECT_THAT(WarningsOf({absl::StrCat("preset:", name), *PresetText(name)}), IsEmpty()) << name;
  }
}

struct Case {
  const char* members;
  const char* warning;
};
class WarnedOfTest : public ::testing::TestWithParam<Case> {};

TEST_P(WarnedOfTest, InOneLine) {
  EXPECT_THAT(WarningsOf(GetParam().members), ElementsAre(HasSubstr(GetParam().warning)));
}

INSTANTIATE_TEST_SUITE_P(
    Grants, WarnedOfTest,
    ::testing::Values(
        Case{R"("require": "C")", "files.json: /require: in tier C files are not kept apart"},
        Case{R"("user": "root")", "/user: root has rights"},
        Case{R"("syscalls": {"allow": ["clone"]})", "/syscalls/allow/clone: with namespaces of its own"},
        Case{R"("syscalls": {"allow": ["bpf", "shmget"]})", "/syscalls/allow/bpf: is what attacks on the kernel use"},
        Case{R"("syscalls": {"allow": ["mount"]})", "/syscalls/allow/mount: is what attacks on the kernel use"},
        Case{R"("syscalls": {"allow": ["ptrace"]})", "/syscalls/allow/ptrace: reads and changes other processes"},
        Case{R"("command": {"args": {"deny": ["--x"]}})", "/command/args: patterns catch mistakes and are no boundary"},
        Case{R"("command": {"args": {"allow": ["a"]}})", "/command/args: patterns"},
        Case{R"("filesystem": {"ro": ["/"]})", "files.json:1: /filesystem/ro: \"/\" is the whole disk"},
        Case{R"("filesystem": {"rw": ["/"]})", "\"/\" is the whole disk"},
        Case{R"("filesystem": {"rw": ["/var/run/docker.sock"]})",
             "\"/var/run/docker.sock\" leads to \"/run/docker.sock\", by which programs"},
        // /var/run is a link to /run.
        Case{R"("filesystem": {"ro": ["/var/run/podman/podman.sock"]})", "leads to \"/run/podman/podman.sock\""},
        Case{R"("filesystem": {"ro": ["/var"]})", "leads to \"/run/docker.sock\""},
        // The session's bus starts programs, and so does an engine without root.
        Case{R"("filesystem": {"ro": ["/run/user/1000/bus"]})", "leads to \"/run/user\""},
        Case{R"("filesystem": {"rw": ["/run/user/1000"]})", "leads to \"/run/user\""},
        Case{R"("filesystem": {"ro": ["/tmp/.X11-unix/X0"]})", "leads to \"/tmp/.X11-unix\""},
        Case{R"("filesystem": {"rw": ["/tmp"]})", "leads to \"/tmp/.X11-unix\""},
        Case{R"("filesystem": {"ro": ["/run"]})", "\"/run\" leads to \"/run/docker.sock\""},
        Case{R"("filesystem": {"rw": ["/srv"]})", "lets the server rewrite \"/srv/policies/files.json\""},
        Case{R"("filesystem": {"rw": ["/srv/policies/files.json"]})", "lets the server rewrite"},
        Case{R"("filesystem": {"rw": ["/home/u/tools/x"]})", "into \"/home/u/tools\", which is on your PATH"},
        Case{R"("filesystem": {"rw": ["/usr"]})", "into \"/usr/bin\", which is on your PATH"},
        Case{R"("filesystem": {"rw": ["/etc/cron.d"]})", "\"/etc/cron.d\" is the system's own"},
        Case{R"("filesystem": {"ro": ["/proc/1"]})", "shows other processes or devices"},
        Case{R"("filesystem": {"ro": ["/home"]})", "holds the home folder, with its keys"},
        Case{R"("filesystem": {"ro": ["${home}"]})", "holds the home folder, with its keys"},
        Case{R"("filesystem": {"ro": ["${home}/.ssh/id_rsa"]})", "holds keys or tokens (\"~/.ssh\")"},
        Case{R"("filesystem": {"rw": ["${home}/.config/autostart"]})", "lets the server change \"~/.config\""},
        Case{R"("filesystem": {"rw": ["${home}/.npm/_npx"]})", "lets the server change \"~/.npm\""},
        Case{R"("filesystem": {"rw": ["${home}/.cache"]})", "lets the server change \"~/.cache/pip\""},
        Case{R"("filesystem": {"rw": ["${home}/.cursor"]})", "lets the server change \"~/.cursor\""},
        Case{R"("filesystem": {"rw": ["${home}/.bash_aliases"]})", "lets the server change \"~/.bash_aliases\""},
        Case{R"("filesystem": {"ro": ["${home}/.mozilla"]})", "holds keys or tokens (\"~/.mozilla\")"},
        // What the server writes to stderr is what is appended there.
        Case{R"("stderr": {"file": "${home}/.bashrc"})",
             "files.json:1: /stderr/file: \"/home/u/.bashrc\" lets the server change \"~/.bashrc\""},
        Case{R"("stderr": {"file": "/srv/policies/files.json"})", "/stderr/file: \"/srv/policies/files.json\" lets"},
        Case{R"("stderr": {"file": "/home/u/tools/x"})", "into \"/home/u/tools\", which is on your PATH"},
        Case{R"("stderr": {"file": "/etc/cron.d/x"})", "\"/etc/cron.d/x\" is the system's own"},
        Case{R"("filesystem": {"home": "rw"})", "/filesystem/home: \"rw\" lets the server change what runs"},
        Case{R"("filesystem": {"home": "ro"})", "/filesystem/home: \"ro\" shows the server your keys"},
        Case{R"("filesystem": {"tmp": "host"})", "/filesystem/tmp: the machine's /tmp"},
        Case{R"("network": {"mode": "host"}, "env": {"inherit": ["GITHUB_TOKEN", "DB_PASSWORD"]})",
             "/network/mode: with \"host\" the server can send \"GITHUB_TOKEN\" and 1 more anywhere"},
        Case{R"("network": {"mode": "host"}, "env": {"set": {"api_key": "canary"}})",
             "can send \"api_key\" anywhere"}));

TEST(WarningsTest, WhatIsNotKnownIsNotWarnedOf) {
  EXPECT_THAT(WarningsOf(File(R"("filesystem": {"rw": ["/srv", "/home/u/tools"], "ro": ["/home/u"]})"), {}), IsEmpty());
}

// Only a preset is spared, not a file that is called like one.
TEST(WarningsTest, AFileThatIsNamedLikeAPresetIsAFile) {
  ParseOptions options = HostWithFiles({{"/p/preset:browser", R"({"version": 1, "syscalls": {"allow": ["ptrace"]}})"}});
  options.record_origins = true;
  for (const char* name : {"./preset:browser", "x/../preset:browser", "/p/preset:browser"}) {
    const absl::StatusOr<Policy> policy = ParsePolicy(File(absl::StrCat("\"extends\": [\"", name, "\"]")), options);
    ASSERT_TRUE(policy.ok()) << policy.status();
    EXPECT_THAT(Warnings(*policy, Machine()), ElementsAre(HasSubstr("/syscalls/allow/ptrace"))) << name;
    EXPECT_THAT((*policy)->origins.at("/syscalls/allow/ptrace"), ::testing::Not(::testing::StartsWith("preset:")));
  }
}

TEST(WarningsTest, AValueIsNeverShown) {
  const auto warnings = WarningsOf(R"("network": {"mode": "host"}, "env": {"set": {"TOKEN": "canary"}})");
  ASSERT_THAT(warnings, ::testing::SizeIs(1));
  EXPECT_THAT(warnings[0], ::testing::Not(HasSubstr("canary")));
}

}  // namespace
}  // namespace bulkhead::policy
