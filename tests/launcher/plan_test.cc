// What BuildLaunchPlan says before anything is started, and what is in the plans that it makes.
#include "bulkhead/launcher/plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/launcher/jail_fixture.h"

namespace bulkhead::launcher {
namespace {

using policy::Tier;
using testing::HasSubstr;
using testing::Not;

class PlanTest : public testing::Test {
 protected:
  absl::Status StatusOf(const Jail& jail, const Words& command) const {
    return MakePlan(host_, jail, command).status();
  }
  absl::Status StatusOf(const Words& command) const { return StatusOf(Jail(), command); }
  Words ProbeWords() const { return {host_.probe(), "exit", "0"}; }

  Host host_;
};

TEST_F(PlanTest, TierAIsRefusedWithoutLandlockAndSaysWhatHelps) {
  for (const Tier tier : {Tier::kA, Tier::kB}) {
    Jail jail;
    jail.tier = tier;
    jail.landlock_abi = 0;
    const absl::Status status = StatusOf(jail, ProbeWords());
    EXPECT_EQ(ExitCodeForStatus(status), 125);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("cannot enforce landlock"), HasSubstr("--require C")));
  }
}

TEST_F(PlanTest, ArgumentsThatNameHiddenFilesAreHinted) {
  const std::string file = host_.File("data/file", "");
  absl::StatusOr<LaunchPlan> plan = MakePlan(host_, Jail(), {host_.probe(), "read", file});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->hints(), testing::Contains(HasSubstr("add --ro " + file)));
  Jail jail;
  jail.ro = {host_ / "data"};
  plan = MakePlan(host_, jail, {host_.probe(), "read", file});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->hints(), Not(testing::Contains(HasSubstr(file))));
}

TEST_F(PlanTest, AProgramThatStandsAloneIsHinted) {
  const auto hints_of = [this](const Jail& jail, const std::string& program) {
    const absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail, {program});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? plan->hints() : std::vector<std::string>();
  };
  const auto names = [](const std::string& folder) {
    return testing::Contains(testing::StartsWith(absl::StrCat("of \"", folder, "\" the server sees")));
  };
  const std::string elf = ReadFile(host_.probe());
  host_.File("node/lib/npm/npx", elf, 0755);
  host_.Folder("node/bin");
  EXPECT_THAT(hints_of({}, host_.File("node/bin/node", elf, 0755)), names(host_ / "node"))
      << "what it is installed with";
  EXPECT_THAT(hints_of({}, host_.Link("../lib/npm/npx", "node/bin/npx")), names(host_ / "node/lib/npm"))
      << "not the link";
  const std::string of_home = host_.File("home/bin/tool", elf, 0755);
  EXPECT_THAT(hints_of({}, of_home), names(host_.home() + "/bin")) << "never the home folder";
  Jail jail;
  jail.rx = {host_ / "node"};
  EXPECT_THAT(hints_of(jail, host_ / "node/bin/node"), Not(testing::Contains(HasSubstr("the server sees"))));
  jail.rx = {host_ / "node/bin/node"};
  EXPECT_THAT(hints_of(jail, host_ / "node/bin/node"), Not(testing::Contains(HasSubstr("the server sees"))))
      << "meant so";
  EXPECT_THAT(hints_of({}, "/bin/true"), Not(testing::Contains(HasSubstr("the server sees"))));
}

// ---- The order of steps

std::vector<std::string> KindsOf(const PlanVariant& variant, const std::string& phase) {
  std::vector<std::string> kinds;
  for (const StepDescription& step : variant.steps) {
    if (step.phase == phase && (kinds.empty() || kinds.back() != step.kind)) kinds.push_back(step.kind);
  }
  return kinds;
}

TEST_F(PlanTest, TheServersStepsStandInTheOrderThatTheyNeed) {
  const absl::StatusOr<LaunchPlan> plan = MakePlan(host_, Jail(), ProbeWords());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(
      KindsOf(plan->variants()[0], "server"),
      testing::ElementsAre("session", "limit", "no_new_privs", "cwd", "descriptors", "landlock", "seccomp", "exec"));
}

TEST_F(PlanTest, TheInitSealsFirstAndDropsItsCapabilitiesLast) {
  const absl::StatusOr<LaunchPlan> plan = MakePlan(host_, Jail(), ProbeWords());
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<std::string> kinds = KindsOf(plan->variants()[0], "init");
  EXPECT_EQ(kinds.front(), "seal");
  EXPECT_EQ(kinds.back(), "capabilities");
  const auto pivot = std::find(kinds.begin(), kinds.end(), "pivot_root");
  EXPECT_EQ(std::count(pivot, kinds.end(), "bind") + std::count(pivot, kinds.end(), "tmpfs"), 0);
}

TEST_F(PlanTest, AFolderIsMountedBeforeWhatLiesInIt) {
  host_.Folder("a/b/c");
  host_.Folder("a-b");
  Jail jail;
  jail.rw = {host_ / "a/b/c"};
  jail.rx = {host_ / "a/b"};
  jail.ro = {host_ / "a-b", host_ / "a", host_.folder()};
  absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail, ProbeWords());
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> targets;
  PlanEditor editor(*plan);
  editor.ForEachStep([&](wire::Step& step) {
    if (step.kind == wire::StepKind::kBind) targets.push_back(editor.Text(step.bind.target));
    if (step.kind == wire::StepKind::kTmpfs) targets.push_back(editor.Text(step.path_text.path));
  });
  const auto at = [&](const std::string& path) {
    return std::find(targets.begin(), targets.end(), path) - targets.begin();
  };
  EXPECT_LT(at(host_.folder()), at(host_ / "a/b"));
  EXPECT_LT(at(host_ / "a/b"), at(host_ / "a/b/c"));
  EXPECT_LT(at(host_.folder()), at(host_.home())) << "the private home covers what is granted around it";
  // What adds nothing is not mounted.
  EXPECT_EQ(std::count(targets.begin(), targets.end(), host_ / "a"), 0);
  EXPECT_EQ(std::count(targets.begin(), targets.end(), host_ / "a-b"), 0);
}

// ---- Landlock. What is newer than this kernel's is planned here, and not run: kernels_test has what is.

TEST_F(PlanTest, EachAbiOfLandlockIsHandledAsAWhole) {
  struct Row {
    int abi;
    std::uint64_t fs, net, scoped;
    std::uint32_t bytes;
  };
  // linux/landlock.h: which rights came with which ABI. 8 has a flag for threads, 7 for the audit log.
  const Row rows[] = {{1, 0x1fff, 0, 0, 8},   {2, 0x3fff, 0, 0, 8},     {3, 0x7fff, 0, 0, 8},    {4, 0x7fff, 3, 0, 16},
                      {5, 0xffff, 3, 0, 16},  {6, 0xffff, 3, 3, 24},    {7, 0xffff, 3, 3, 24},   {8, 0xffff, 3, 3, 24},
                      {9, 0x1ffff, 3, 3, 24}, {10, 0x1ffff, 15, 3, 24}, {11, 0x1ffff, 15, 3, 24}};
  for (const Row& row : rows) {
    for (const policy::Tier tier : {policy::Tier::kA, policy::Tier::kB}) {
      SCOPED_TRACE(absl::StrCat("ABI ", row.abi, ", tier ", std::string(policy::TierName(tier))));
      Jail jail;
      jail.tier = tier;
      jail.pretended_abi = row.abi;
      absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail, ProbeWords());
      ASSERT_TRUE(plan.ok()) << plan.status();
      PlanEditor editor(*plan);
      int found = 0;
      editor.ForEachStep([&](wire::Step& step) {
        if (step.kind != wire::StepKind::kLandlock) return;
        ++found;
        EXPECT_EQ(step.landlock.handled_fs, row.fs);
        // The jail's own network is empty.
        EXPECT_EQ(step.landlock.handled_net, tier == policy::Tier::kA ? 0 : row.net);
        EXPECT_EQ(step.landlock.scoped, row.scoped);
        EXPECT_EQ(step.landlock.attribute_bytes, row.bytes);
        for (std::uint32_t i = 0; i < step.landlock.rule_count; ++i) {
          const auto* rule = editor.At<wire::LandlockRule>(step.landlock.rules) + i;
          EXPECT_EQ(rule->access & ~row.fs, 0u) << "landlock_add_rule gives EINVAL";
        }
      });
      EXPECT_EQ(found, 1);
    }
  }
}

// Either the filter or Landlock stands between the server and the sockets of agents.
TEST_F(PlanTest, SocketsOfThisMachineAreLeftToLandlockOnlyWhereItHandlesThem) {
  for (int abi = 1; abi <= 11; ++abi) {
    SCOPED_TRACE(abi);
    Jail jail;
    jail.tier = policy::Tier::kB;
    jail.network = "host";
    jail.pretended_abi = abi;
    absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail, ProbeWords());
    ASSERT_TRUE(plan.ok()) << plan.status();
    bool refused = false, handled = false;
    for (const StepDescription& step : plan->variants()[0].steps) {
      if (step.kind == "seccomp") refused = absl::StrContains(step.text, "sockets of this machine");
    }
    PlanEditor(*plan).ForEachStep([&](wire::Step& step) {
      if (step.kind == wire::StepKind::kLandlock) handled = (step.landlock.handled_fs & 1u << 16) != 0;
    });
    EXPECT_NE(refused, handled);
  }
}

// ---- Limits

TEST_F(PlanTest, ARootsServerHasAtMostAsManyGrantsAsTheKeeperHasSlots) {
  constexpr int kGrantsMax = wire::kTreeSlotsMax / 2;  // each may need a mount and a user namespace
  for (const int grants : {kGrantsMax - 1, kGrantsMax, kGrantsMax + 1}) {
    SCOPED_TRACE(grants);
    Jail jail;
    jail.is_root = true;
    for (int i = 1; i < grants; ++i) jail.ro.push_back(host_.File(absl::StrCat("data/", i), ""));  // and tools/
    const absl::Status status = StatusOf(jail, ProbeWords());
    EXPECT_EQ(status.ok(), grants <= kGrantsMax) << status;
    if (!status.ok()) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("at most 48 are possible"));
    }
    jail.is_root = false;
    EXPECT_TRUE(StatusOf(jail, ProbeWords()).ok());
  }
}

TEST_F(PlanTest, APlanIsNoLargerThanTheKeeperMaps) {
  // 256 arguments of up to 128 KiB pass the policy; texts that are alike are in a plan once.
  const auto command = [this](int arguments) {
    Words words = {host_.probe()};
    for (int i = 0; i < arguments; ++i) words.push_back(std::to_string(1000 + i) + std::string(100 * 1024, 'x'));
    return words;
  };
  EXPECT_TRUE(StatusOf(command(80)).ok()) << StatusOf(command(80));
  EXPECT_THAT(std::string(StatusOf(command(82)).message()), HasSubstr("at most 8388608 are possible"));
}

// ---- What is printed

TEST_F(PlanTest, NoTextForPeopleHoldsAValueOfTheEnvironment) {
  Jail jail;
  jail.ro = {host_.Folder("data")};
  jail.more = ",\"env\":{\"inherit\":[\"HOME\",\"PATH\",\"LANG\"],\"set\":{\"TOKEN\":\"s3cret-7f3a\"}}";
  jail.env["LANG"] = "l4nguage-7f3a";
  const absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail, {host_.probe(), "read", host_.key()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(plan->bytes(), AllOf(HasSubstr("TOKEN=s3cret-7f3a"), HasSubstr("LANG=l4nguage-7f3a")));
  std::string texts;
  for (const PlanVariant& variant : plan->variants()) {
    for (const StepDescription& step : variant.steps) absl::StrAppend(&texts, step.kind, step.text, step.origin, "\n");
    for (const LayerReport& layer : variant.report.layers) absl::StrAppend(&texts, layer.does, layer.does_not, "\n");
    for (const std::string& item : variant.report.weakened) absl::StrAppend(&texts, item, "\n");
  }
  for (const std::string& hint : plan->hints()) absl::StrAppend(&texts, hint, "\n");
  EXPECT_THAT(texts, HasSubstr("data"));
  EXPECT_THAT(texts, Not(HasSubstr("7f3a")));
}

}  // namespace
}  // namespace bulkhead::launcher
