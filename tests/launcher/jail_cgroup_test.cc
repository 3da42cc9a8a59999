// The cgroup of a server, in a real mount of cgroup v2 that need not have the controllers: who is in it, what the plan
// says of it, and that it is gone at the end. What the controllers do is tried in a machine that has them
// (tests/kernels). Root's, since nothing is delegated to an ordinary user here.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/process.h"
#include "tests/launcher/jail_test.h"
#include "tests/launcher/tree_check.h"

namespace bulkhead::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;

// Where cgroup v2 is mounted, with or without controllers.
std::string Mount() {
  for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    if (Exists(absl::StrCat(mount, "/cgroup.controllers"))) return mount;
  }
  return "";
}

class JailCgroupTest : public JailTest {
 protected:
  void SetUp() override {
    place_.mount = Mount();
    std::string folder = absl::StrCat(place_.mount, "/test-of-bulkhead.XXXXXX");
    if (place_.mount.empty() || mkdtemp(folder.data()) == nullptr) {
      // Without one no group can be made, and nothing here has anything to look at.
      GTEST_SKIP() << "missing: a mount of cgroup v2 in which this user may make groups";
    }
    place_.folder = folder;
    place_.why_not = "it has no controllers";
  }
  void TearDown() override {
    if (place_.folder.empty()) return;
    EXPECT_EQ(rmdir(place_.folder.c_str()), 0) << "a group is left";
  }
  Jail Limited() const {
    Jail jail = Closed();
    jail.limits = "\"processes\": 100";
    jail.cgroup = place_;
    return jail;
  }
  // The name of the group in the text of /proc/PID/cgroup; empty: in none of ours.
  static std::string NameIn(const std::string& text) {
    const std::size_t line = text.find("0::"), at = text.find("bulkhead-", line == std::string::npos ? 0 : line);
    if (line == std::string::npos || at == std::string::npos) return "";
    return text.substr(at, text.find_first_not_of("bulkhead-0123456789abcdef.init", at) - at);
  }
  std::vector<std::string> Groups() const {
    std::vector<std::string> names;
    for (const std::string& name : NamesIn(place_.folder)) {
      if (absl::StartsWith(name, "bulkhead-")) names.push_back(name);
    }
    return names;
  }
  bool IsThere(const std::string& name) const { return Exists(absl::StrCat(place_.folder, "/", name)); }

  CgroupPlace place_;
};

TEST_P(JailCgroupTest, TheServerIsInItAndItIsGoneAtTheEnd) {
  Jail without = Limited();
  without.cgroup = CgroupPlace();
  const Outcome usual = Inside(without, {"read", "/proc/self/cgroup"});
  ASSERT_THAT(usual, Succeeded());
  EXPECT_EQ(NameIn(usual.out), "");
  const Outcome outcome = Inside(Limited(), {"read", "/proc/self/cgroup"});
  ASSERT_THAT(outcome, Succeeded());
  const std::string name = NameIn(outcome.out);
  ASSERT_EQ(name.size(), std::string("bulkhead-").size() + 16) << outcome.out;
  EXPECT_FALSE(IsThere(name));
  EXPECT_FALSE(IsThere(name + ".init"));
}

TEST_P(JailCgroupTest, WithoutTheStepTheServerIsElsewhere) {
  const Outcome outcome = RunInJail(host_, Limited(), {"read", "/proc/self/cgroup"},
                                    [](LaunchPlan& plan) { PlanEditor(plan).Drop(wire::StepKind::kEnterCgroup); });
  ASSERT_THAT(outcome, Succeeded());
  EXPECT_EQ(NameIn(outcome.out), "");
}

TEST_P(JailCgroupTest, WhatTheServerStartsIsInItButNotTheInit) {
  const Outcome outcome = Shell(Limited(), "sh -c 'cat /proc/self/cgroup'; cat /proc/$PPID/cgroup; true");
  const std::size_t second = outcome.out.rfind("0::");
  ASSERT_NE(second, std::string::npos) << outcome;
  const std::string server = NameIn(outcome.out.substr(0, second)), init = NameIn(outcome.out.substr(second));
  EXPECT_EQ(server.size(), std::string("bulkhead-").size() + 16) << outcome;
  EXPECT_EQ(init, InA() ? "" : server + ".init") << outcome;
}

TEST_P(JailCgroupTest, AServerThatCannotBeStartedLeavesNone) {
  const std::vector<std::string> before = Groups();
  const Outcome outcome = RunInJail(host_, Limited(), {"read", "x"}, [](LaunchPlan& plan) {
    PlanEditor editor(plan);
    editor.ForEachStep([](wire::Step& step) {
      if (step.kind == wire::StepKind::kWorkingFolder) step.kind = static_cast<wire::StepKind>(1000);
    });
  });
  EXPECT_FALSE(outcome.launched.ok());
  EXPECT_EQ(Groups(), before);
}

TEST_P(JailCgroupTest, AGroupThatCannotBeMadeIsARefusal) {
  Jail jail = Limited();
  jail.cgroup.folder += "/none";
  EXPECT_THAT(Inside(jail, {"getpid"}), RefusedSaying("cannot make a cgroup in \"" + jail.cgroup.folder + "\""));
}

TEST_P(JailCgroupTest, AKeeperThatIsKilledLeavesNone) {
  AdoptOrphans();
  absl::StatusOr<LaunchPlan> plan = MakePlan(host_, Limited(), {host_.probe(), "wait", NewToken()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  absl::StatusOr<Process> process = Launch(*plan);
  ASSERT_TRUE(process.ok()) << process.status();
  ReadLine(process->stdout_fd().get());
  const std::vector<int> children = ChildrenOf(getpid());
  ASSERT_EQ(children.size(), 1u);
  const std::string keeper = absl::StrCat(absl::Hex(children[0], absl::kZeroPad8));
  const auto left = [&] {
    const std::vector<std::string> groups = Groups();
    return std::count_if(groups.begin(), groups.end(),
                         [&](const std::string& name) { return absl::StrContains(name, keeper); });
  };
  EXPECT_EQ(left(), InA() ? 1 : 2);
  ASSERT_EQ(kill(children[0], SIGKILL), 0);
  EXPECT_EQ(process->Wait().kind, ExitStatus::Kind::kKeeperLost);
  EXPECT_TRUE(OnlyZombiesWereLeft());
  EXPECT_EQ(left(), 0);
}

TEST_P(JailCgroupTest, TheReportNamesWhatBindsTheTree) {
  Jail jail = Limited();
  jail.limits = "\"processes\": 100, \"memory\": \"64MiB\"";
  jail.cgroup.memory = jail.cgroup.pids = jail.cgroup.swap = true;
  jail.cgroup.why_not.clear();
  jail.cgroup.pids_max = 60;  // the host's own, tighter
  const absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail, {host_.probe(), "getpid"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const PlanVariant& variant = plan->variants()[0];
  std::string does, rlimits, steps;
  for (const LayerReport& layer : variant.report.layers) {
    if (layer.name == "cgroup") does = layer.does;
    if (layer.name == "rlimits") rlimits = layer.does + "|" + layer.does_not;
  }
  for (const StepDescription& step : variant.steps) absl::StrAppend(&steps, step.phase, " ", step.text, "\n");
  EXPECT_THAT(does, HasSubstr("67108864 bytes of memory, none of it swapped out, 60 processes"));
  EXPECT_THAT(steps, HasSubstr("memory.max 67108864, memory.swap.max 0, memory.oom.group 1, pids.max 60\n"));
  EXPECT_THAT(rlimits, Not(HasSubstr("memory that processes share")));
  // A limit of the user would count what is not the server's.
  EXPECT_THAT(steps, Not(HasSubstr("limit processes")));
  EXPECT_THAT(rlimits, Not(HasSubstr("processes ")));
}

TEST_P(JailCgroupTest, NoneWhereNothingIsLimitedOrTheServerCouldChangeIt) {
  const auto layer = [this](const Jail& jail) -> std::string {
    const absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail, {host_.probe(), "getpid"});
    if (!plan.ok()) return std::string(plan.status().message());
    for (const LayerReport& report : plan->variants()[0].report.layers) {
      if (report.name == "cgroup") return report.state == LayerState::kNone ? report.does_not : "used";
    }
    return "no layer";
  };
  Jail jail = Limited();
  EXPECT_EQ(layer(jail), "used");
  jail.limits = "\"open_files\": 100";
  EXPECT_EQ(layer(jail), "no layer");
  jail = Limited();
  if (InA()) {
    jail.rw = {place_.folder};
    EXPECT_THAT(layer(jail), HasSubstr("its own group's files"));
  }
  jail = Limited();
  jail.cgroup = CgroupPlace();
  jail.cgroup.why_not = "there is none";
  EXPECT_EQ(layer(jail), "there is none");
}

INSTANTIATE_TEST_SUITE_P(Tier, JailCgroupTest, testing::Values(policy::Tier::kA, policy::Tier::kB), TierOf);

}  // namespace
}  // namespace bulkhead::launcher
