#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "bulkhead/policy/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/policy/testing.h"

namespace bulkhead::policy {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

PolicyFields Preset(const std::string& name, const ParseOptions& options = Host()) {
  const absl::StatusOr<std::string> text = PresetText(name);
  EXPECT_TRUE(text.ok());
  return Parsed({"preset:" + name, *text}, options);
}

TEST(PresetsTest, AreListedInOrder) {
  EXPECT_THAT(PresetNames(), ElementsAre("browser", "default", "docker", "node", "npx", "python", "strict", "uvx"));
  EXPECT_EQ(PresetText("nod").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(PresetText("nod").status().message(),
            "there is no preset \"nod\"; there are browser, default, docker, node, npx, python, strict, uvx");
}

TEST(PresetsTest, EachIsAPolicyAndAsksForTheStrongestTier) {
  for (const std::string& name : PresetNames()) {
    SCOPED_TRACE(name);
    const PolicyFields fields = Preset(name);
    EXPECT_EQ(fields.require, Tier::kA);
    EXPECT_EQ(fields.command.allow.has_value(), name == "docker");
    EXPECT_THAT(PathsOf(fields.filesystem.rx), Contains(":runtime"));
    EXPECT_THAT(PathsOf(fields.filesystem.ro), Contains("/home/u/ws"));
    EXPECT_EQ(fields.filesystem.home, HomeMode::kPrivate);
    EXPECT_EQ(fields.filesystem.tmp, TmpMode::kPrivate);
    EXPECT_EQ(fields.limits.processes, name == "browser" ? 2048u : 512u);
    EXPECT_EQ(fields.limits.open_files, 4096u);
    EXPECT_THAT(fields.env.inherit, IsSupersetOf({"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}));
    EXPECT_THAT(fields.warnings, IsEmpty());
    // The whole home folder is never in it, nor what holds keys.
    for (const auto* list : {&fields.filesystem.rx, &fields.filesystem.ro, &fields.filesystem.rw}) {
      for (const PathGrant& grant : *list) {
        EXPECT_NE(grant.path, "/home/u");
        EXPECT_NE(grant.path, "/");
        EXPECT_THAT(grant.path, AllOf(Not(HasSubstr(".npmrc")), Not(HasSubstr(".ssh")), Not(HasSubstr(".config"))));
        EXPECT_TRUE(absl::StartsWith(grant.origin, "preset:")) << grant.origin;
      }
    }
  }
}

TEST(PresetsTest, StrictIsStrictAlsoUnderAnother) {
  EXPECT_EQ(Preset("default").syscall_profile, SyscallProfile::kBaseline);
  EXPECT_EQ(Preset("strict").syscall_profile, SyscallProfile::kStrict);
  const PolicyFields both = Parsed(File(R"("extends": ["preset:strict", "preset:npx"])"));
  EXPECT_EQ(both.syscall_profile, SyscallProfile::kStrict);
  EXPECT_EQ(both.network, NetworkMode::kHost);
}

TEST(PresetsTest, OnlyTheBrowserMayMakeNamespaces) {
  for (const std::string& name : PresetNames()) {
    const PolicyFields fields = Preset(name);
    if (name == "browser") {
      EXPECT_THAT(fields.syscalls_allow, ElementsAre("chroot", "clone", "unshare"));
    } else {
      EXPECT_THAT(fields.syscalls_allow, IsEmpty()) << name;
    }
  }
}

TEST(PresetsTest, OnlyTheRunnersHaveTheNetworkAndACache) {
  for (const char* name : {"default", "docker", "node", "python", "strict"}) {
    EXPECT_EQ(Preset(name).network, NetworkMode::kNone) << name;
    EXPECT_THAT(Preset(name).filesystem.rw, IsEmpty()) << name;
  }
  for (const char* name : {"npx", "uvx"}) {
    const PolicyFields fields = Preset(name);
    const std::string cache = "/home/u/.cache/bulkhead/" + fields.cache_key;
    EXPECT_EQ(fields.network, NetworkMode::kHost) << name;
    EXPECT_THAT(PathsOf(fields.filesystem.rw), ElementsAre(cache));
    EXPECT_THAT(PathsOf(fields.filesystem.rx), Contains(cache));  // programs are run from there
    EXPECT_THAT(std::string(*PresetText(name)), HasSubstr("It has the network"));
  }
  EXPECT_EQ(Preset("browser").network, NetworkMode::kHost);
  EXPECT_EQ(Preset("npx").env.set.at("npm_config_cache"), Preset("npx").filesystem.rw[0].path + "/npm");
  for (const char* folder : {"UV_CACHE_DIR", "UV_TOOL_DIR", "UV_PYTHON_INSTALL_DIR", "UV_TOOL_BIN_DIR"}) {
    EXPECT_TRUE(absl::StartsWith(Preset("uvx").env.set.at(folder), Preset("uvx").filesystem.rw[0].path + "/"))
        << folder;
  }
}

TEST(PresetsTest, TokensAndInjectionVariablesAreNotInherited) {
  for (const std::string& name : PresetNames()) {
    for (const std::string& variable : Preset(name).env.inherit) {
      EXPECT_THAT(variable, AllOf(Not(HasSubstr("TOKEN")), Not(HasSubstr("auth")), Not(HasSubstr("OPTIONS"))));
      EXPECT_TRUE(variable.find('*') == std::string::npos || variable == "LC_*") << variable;
    }
  }
}

TEST(PresetsTest, CertificatesThatTheHostNamesAreGranted) {
  ParseOptions options = Host();
  options.variables.env["NODE_EXTRA_CA_CERTS"] = "/corp/ca.pem";
  options.variables.env["SSL_CERT_FILE"] = "relative.pem";
  const PolicyFields fields = Preset("node", options);
  EXPECT_THAT(PathsOf(fields.filesystem.ro), Contains("/corp/ca.pem"));
  EXPECT_THAT(fields.env.inherit, Contains("NODE_EXTRA_CA_CERTS"));
  // One that can't be granted does not keep a server from starting.
  EXPECT_THAT(fields.warnings, ElementsAre(HasSubstr("left out \"${env:SSL_CERT_FILE}\"")));
}

TEST(PresetsTest, WithoutAWorkspaceTheRestIsThere) {
  ParseOptions options = Host();
  options.variables.workspace.reset();
  const PolicyFields fields = Preset("node", options);
  EXPECT_THAT(PathsOf(fields.filesystem.rx), Contains(":runtime"));
  EXPECT_THAT(fields.filesystem.ro, IsEmpty());
  EXPECT_THAT(fields.warnings, Contains(HasSubstr("left out \"${workspace}\": ${workspace} is not set")));
}

// Written for people who know no kernel words.
TEST(PresetsTest, EveryPartIsExplainedInPlainWords) {
  for (const std::string& name : PresetNames()) {
    const std::string text = *PresetText(name);
    EXPECT_TRUE(absl::StartsWith(text, "// ")) << name;
    int comments = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      EXPECT_LE(line.size(), 100u) << line;
      line = absl::StripLeadingAsciiWhitespace(line);
      if (absl::StartsWith(line, "//")) {
        ++comments;
        for (const char* word : {"namespace", "seccomp", "Landlock", "mount", "syscall", "bind"}) {
          EXPECT_FALSE(absl::StrContains(line, word)) << line;
        }
      }
    }
    EXPECT_GE(comments, 8) << name;
  }
}

TEST(PresetsTest, DockerIsRefusedWithTheReason) {
  EXPECT_THAT(WhyPresetIsRefused("docker"), HasSubstr("outside of this jail"));
  EXPECT_THAT(
      ErrorOf({"files.json", R"({"version": 1, "extends": ["preset:docker"]})"}),
      HasSubstr("files.json:1: /extends/0: \"preset:docker\" can't be extended: preset:docker: docker, podman"));
  for (const std::string& name : PresetNames()) EXPECT_EQ(WhyPresetIsRefused(name).empty(), name != "docker");
  ASSERT_TRUE(Preset("docker").command.allow.has_value());
  EXPECT_THAT(*Preset("docker").command.allow, IsEmpty());
}

TEST(PresetForCommandTest, IsFoundByTheLastComponent) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"node", "node"},
      {"/usr/bin/node", "node"},
      {"nodejs", "node"},
      {"docker", "docker"},
      {"/usr/bin/podman", "docker"},
      {"nerdctl", "docker"},
      {"docker-mcp", "default"},
      {"npx", "npx"},
      {"/usr/bin/npx", "npx"},
      {"./npx", "npx"},
      {"python", "python"},
      {"python3", "python"},
      {"python3.11", "python"},
      {"/opt/pypy3", "python"},
      {"uvx", "uvx"},
      {"uv", "uvx"},
      {"npm", "default"},
      {"bash", "default"},
      {"python3-config", "default"},
      {"", "default"},
      {"/usr/bin/", "default"},
      {"node/server", "default"},
      {"uvxx", "default"},
  };
  for (const auto& [command, preset] : cases) EXPECT_EQ(PresetForCommand(command), preset) << command;
}

}  // namespace
}  // namespace bulkhead::policy
