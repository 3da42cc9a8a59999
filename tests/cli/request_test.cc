#include "bulkhead/cli/request.h"

#include <errno.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Host HostInProject() {
  Host host;
  host.cwd = "/home/ann/project";
  host.home = host.home_on_disk = "/home/ann";
  host.env = {{"PATH", "/bin"}};
  return host;
}

Flags FlagsFor(const std::string& command) {
  Flags flags;
  flags.rest = {command};
  return flags;
}

Request Made(const Flags& flags, const Host& host = HostInProject()) {
  absl::StatusOr<Request> request = MakeRequest(flags, host);
  EXPECT_TRUE(request.ok()) << request.status();
  return request.ok() ? *std::move(request) : Request();
}

std::string ErrorOf(const Flags& flags, const Host& host = HostInProject()) {
  return std::string(MakeRequest(flags, host).status().message());
}

TEST(AbsolutePathTest, RelativePathsAreTakenFromTheCurrentFolder) {
  const Host host = HostInProject();
  EXPECT_EQ(*AbsolutePath("--rw", "data", host), "/home/ann/project/data");
  EXPECT_EQ(*AbsolutePath("--rw", ".", host), "/home/ann/project");
  EXPECT_EQ(*AbsolutePath("--rw", "./a//b/", host), "/home/ann/project/a/b");
  EXPECT_EQ(*AbsolutePath("--rw", "../x", host), "/home/ann/x");
  EXPECT_EQ(*AbsolutePath("--rw", "../../../../..", host), "/");
}

TEST(AbsolutePathTest, AbsolutePathsAreMadeNormal) {
  const Host host = HostInProject();
  EXPECT_EQ(*AbsolutePath("--rw", "/srv/data", host), "/srv/data");
  EXPECT_EQ(*AbsolutePath("--rw", "//srv/./data/../x/", host), "/srv/x");
  EXPECT_EQ(*AbsolutePath("--rw", "/", host), "/");
}

TEST(AbsolutePathTest, ATildeIsNotExpandedSilently) {
  EXPECT_THAT(std::string(AbsolutePath("--rw", "~/data", HostInProject()).status().message()),
              HasSubstr("write the full path, such as /home/ann/data"));
  EXPECT_FALSE(AbsolutePath("--rw", "~", HostInProject()).ok());
  EXPECT_EQ(*AbsolutePath("--rw", "./~", HostInProject()), "/home/ann/project/~");
}

TEST(AbsolutePathTest, WithoutACurrentFolderOnlyAbsolutePathsWork) {
  Host host;
  host.cwd_errno = ENOENT;
  EXPECT_EQ(*AbsolutePath("--rw", "/a", host), "/a");
  EXPECT_EQ(AbsolutePath("--rw", "a", host).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(VariablesTest, TheCurrentFolderIsTheWorkspaceUnlessItCannotBe) {
  Host host = HostInProject();
  EXPECT_EQ(MakeVariables(Flags(), host).workspace, "/home/ann/project");
  host.cwd = "/home/ann";
  EXPECT_EQ(MakeVariables(Flags(), host).workspace, std::nullopt);
  Flags named;
  named.workspace = "/home/ann";
  EXPECT_EQ(MakeVariables(named, host).workspace, "/home/ann");
}

TEST(VariablesTest, TheCacheFollowsXdgWhenThatIsAbsolute) {
  Host host = HostInProject();
  EXPECT_EQ(MakeVariables(Flags(), host).cache_root, "/home/ann/.cache/bulkhead");
  host.env["XDG_CACHE_HOME"] = "/var/cache/ann";
  EXPECT_EQ(MakeVariables(Flags(), host).cache_root, "/var/cache/ann/bulkhead");
  host.env["XDG_CACHE_HOME"] = "relative";
  EXPECT_EQ(MakeVariables(Flags(), host).cache_root, "/home/ann/.cache/bulkhead");
  host.home.clear();
  EXPECT_EQ(MakeVariables(Flags(), host).cache_root, std::nullopt);
}

TEST(VariablesTest, TheCacheOfRootIsWhereItsServersCanReachIt) {
  Host host = HostInProject();
  ASSERT_EQ(MakeVariables(Flags(), host).cache_root, "/home/ann/.cache/bulkhead");
  host.is_root = true;
  EXPECT_EQ(MakeVariables(Flags(), host).cache_root, "/var/cache/bulkhead");
  host.env["XDG_CACHE_HOME"] = "/srv/cache";
  EXPECT_EQ(MakeVariables(Flags(), host).cache_root, "/srv/cache/bulkhead");
}

TEST(VariablesTest, TmpdirCountsWhenAbsolute) {
  Host host = HostInProject();
  EXPECT_EQ(MakeVariables(Flags(), host).tmp, "/tmp");
  host.env["TMPDIR"] = "/var/tmp/ann";
  EXPECT_EQ(MakeVariables(Flags(), host).tmp, "/var/tmp/ann");
  host.env["TMPDIR"] = "tmp";
  EXPECT_EQ(MakeVariables(Flags(), host).tmp, "/tmp");
}

TEST(VariablesTest, AnUnknownHomeIsUnset) {
  EXPECT_EQ(MakeVariables(Flags(), HostInProject()).home, "/home/ann");
  EXPECT_EQ(MakeVariables(Flags(), Host()).home, std::nullopt);
}

TEST(RequestTest, ThePresetFitsTheCommandUnlessOneIsNamed) {
  EXPECT_EQ(Made(FlagsFor("/usr/bin/npx")).preset, "npx");
  EXPECT_EQ(Made(FlagsFor("/opt/server")).preset, "default");
  Flags flags = FlagsFor("npx");
  flags.preset = "node";
  EXPECT_EQ(Made(flags).preset, "node");
  flags.preset = "preset:node";
  EXPECT_EQ(Made(flags).preset, "node");
}

TEST(RequestTest, APolicyFileTakesThePlaceOfThePreset) {
  Flags flags = FlagsFor("npx");
  flags.policy = "files.json";
  const Request request = Made(flags);
  EXPECT_EQ(request.policy_path, "/home/ann/project/files.json");
  EXPECT_EQ(request.preset, "");
  flags.preset = "node";
  EXPECT_THAT(ErrorOf(flags), HasSubstr("\"extends\": [\"preset:node\"]"));
}

TEST(RequestTest, AnUnknownPresetIsAUsageError) {
  Flags flags = FlagsFor("npx");
  flags.preset = "nod";
  EXPECT_THAT(ErrorOf(flags),
              StartsWith("there is no preset nod; did you mean \"node\"? (there are: browser, default, docker, node"));
  EXPECT_EQ(ExitCodeForRequestError(MakeRequest(flags, HostInProject()).status()), 64);
}

TEST(RequestTest, EveryPathIsMadeAbsolute) {
  Flags flags = FlagsFor("server");
  flags.ro = {"a"};
  flags.rw = {"/b/", "../c"};
  flags.cwd = "d";
  flags.workspace = "w";
  flags.ceilings = {"e.json"};
  flags.report = "r.json";
  flags.stderr_to = "log";
  const Request request = Made(flags);
  EXPECT_THAT(request.options.additions.ro, ElementsAre("/home/ann/project/a"));
  EXPECT_THAT(request.options.additions.rw, ElementsAre("/b", "/home/ann/c"));
  EXPECT_EQ(request.command.cwd, "/home/ann/project/d");
  EXPECT_EQ(request.options.variables.workspace, "/home/ann/project/w");
  EXPECT_THAT(request.ceiling_paths, ElementsAre("/home/ann/project/e.json"));
  EXPECT_EQ(request.report_path, "/home/ann/project/r.json");
  ASSERT_TRUE(request.options.additions.stderr_rules.has_value());
  EXPECT_EQ(request.options.additions.stderr_rules->file, "/home/ann/project/log");
  EXPECT_EQ(request.options.additions.stderr_rules->mode, policy::StderrMode::kFile);
}

TEST(RequestTest, AVariableWithoutAValueIsOneOfTheHosts) {
  Host host = HostInProject();
  host.env["TOKEN"] = "of the host";
  Flags flags = FlagsFor("server");
  flags.env = {{"A", "1"}};
  flags.env_names = {"TOKEN"};
  const absl::StatusOr<Request> request = MakeRequest(flags, host);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->options.additions.env, ElementsAre(testing::Pair("A", "1")));
  EXPECT_THAT(request->options.additions.inherit, ElementsAre("TOKEN"));
  flags.env_names = {"A"};
  host.env["A"] = "2";
  EXPECT_EQ(MakeRequest(flags, host).status().message(), "--env sets A twice");
  flags.env_names = {"a-token-without-its-name"};
  const absl::Status status = MakeRequest(flags, host).status();
  EXPECT_EQ(ExitCodeForRequestError(status), 64);
  EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr("a-token")));
}

TEST(RequestTest, StderrWordsAreNoFiles) {
  Flags flags = FlagsFor("server");
  EXPECT_FALSE(Made(flags).options.additions.stderr_rules.has_value());
  flags.stderr_to = "inherit";
  EXPECT_EQ(Made(flags).options.additions.stderr_rules->mode, policy::StderrMode::kInherit);
  flags.stderr_to = "discard";
  EXPECT_EQ(Made(flags).options.additions.stderr_rules->mode, policy::StderrMode::kDiscard);
  flags.stderr_to = "./discard";
  EXPECT_EQ(Made(flags).options.additions.stderr_rules->mode, policy::StderrMode::kFile);
}

TEST(RequestTest, TheCommandAndTheHostAreHandedOnUntouched) {
  Flags flags = FlagsFor("./server");
  flags.rest = {"./server", "", "--rw", "a b"};
  const Request request = Made(flags);
  EXPECT_EQ(request.command.argv, flags.rest);
  EXPECT_EQ(request.command.host_cwd, "/home/ann/project");
  EXPECT_EQ(request.command.host_env, HostInProject().env);
  EXPECT_EQ(request.command.cwd, "");
}

TEST(RequestTest, ACurrentFolderThatIsGoneIsOurFailure) {
  Host host = HostInProject();
  host.cwd.clear();
  host.cwd_errno = ENOENT;
  EXPECT_THAT(ErrorOf(FlagsFor("server"), host), HasSubstr("the current folder can't be determined"));
  EXPECT_EQ(ExitCodeForRequestError(MakeRequest(FlagsFor("server"), host).status()), 125);
}

}  // namespace
}  // namespace bulkhead::cli
