// Why each protective step of a plan is there: the same attack fails with the whole plan and succeeds when just that
// step is taken out of its bytes.
//
// Layers overlap, so that many steps are needed only where another layer can't be had. Such attacks are shown in tier C
// on a kernel without Landlock, with or without its namespaces. Where root starts the server, the kernel refuses some
// attacks because nothing of ours has the server's uid; that is then what is shown.
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/seccomp/filters.h"
#include "tests/launcher/jail_fixture.h"
#include "tests/launcher/seccomp/filter_parts.h"

namespace bulkhead::launcher {
namespace {

using policy::Tier;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using wire::StepKind;
using Change = std::function<void(PlanEditor&)>;

class NecessityTest : public testing::Test {
 protected:
  static Jail InTier(Tier tier) {
    Jail jail;
    jail.tier = tier;
    return jail;
  }
  static Jail WithoutLandlock() {
    Jail jail = InTier(Tier::kC);
    jail.landlock_abi = 0;
    return jail;
  }
  // Where file owners shall not decide.
  static Jail AsPerson(Jail jail) {
    if (IsRoot()) jail.user = "nobody";
    return jail;
  }
  static void KeepNamespaces(PlanEditor& plan) { plan.KeepVariant(0); }
  static void NoNamespaces(PlanEditor& plan) { plan.KeepVariant(1); }

  Outcome Run(const Jail& jail, const Words& command, const std::vector<Change>& changes) const {
    return RunCommand(host_, jail, command, [&changes](LaunchPlan& plan) {
      PlanEditor editor(plan);
      for (const Change& change : changes) change(editor);
    });
  }
  Words Probe(Words words) const {
    words.insert(words.begin(), host_.probe());
    return words;
  }
  static Words Shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

  static Change Drop(StepKind kind) {
    return [kind](PlanEditor& plan) { plan.Drop(kind); };
  }
  static Change DropLimit(std::uint32_t resource) {
    return [resource](PlanEditor& plan) {
      plan.Drop(StepKind::kLimit, [resource](const wire::Step& step) { return step.limit.resource == resource; });
    };
  }
  // The filters are one program; with a part less it is another.
  static Change DropFilter(FilterName part) {
    return [part](PlanEditor& plan) {
      std::vector<std::optional<FilterSet>> sets;
      plan.ForEachStep([&](wire::Step& step) {
        if (step.kind != StepKind::kSeccomp) return;
        sets.push_back(SetOfFilter({plan.At<BpfInstruction>(step.seccomp.filter), step.seccomp.count}));
      });
      ASSERT_EQ(sets.size(), 1u) << "one variant, one filter";
      ASSERT_TRUE(sets[0].has_value()) << "not a filter of ours";
      ASSERT_NE(*sets[0] & SetOf(part), 0u) << "the plan's filter has no such part";
      const std::vector<BpfInstruction> rest = FilterWithout(*sets[0], part);
      const wire::Offset at = plan.Append(rest.data(), rest.size() * sizeof(BpfInstruction));
      plan.ForEachStep([&](wire::Step& step) {
        if (step.kind == StepKind::kSeccomp) step.seccomp = {at, static_cast<std::uint32_t>(rest.size())};
      });
    };
  }
  std::vector<BpfInstruction> FilterOf(const Jail& jail) const {
    std::vector<BpfInstruction> filter;
    absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail, Probe({"cwd"}));
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return filter;
    PlanEditor editor(*plan);
    editor.ForEachStep([&](const wire::Step& step) {
      if (step.kind != StepKind::kSeccomp) return;
      const auto* first = editor.At<BpfInstruction>(step.seccomp.filter);
      filter.assign(first, first + step.seccomp.count);
    });
    EXPECT_FALSE(filter.empty());
    return filter;
  }
  static Change UseFilter(const std::vector<BpfInstruction>& filter) {
    return [filter](PlanEditor& plan) {
      const wire::Offset at = plan.Append(filter.data(), filter.size() * sizeof(BpfInstruction));
      plan.ForEachStep([&](wire::Step& step) {
        if (step.kind == StepKind::kSeccomp) step.seccomp = {at, static_cast<std::uint32_t>(filter.size())};
      });
    };
  }
  static Change DropNamespace(std::uint32_t flag) {
    return [flag](PlanEditor& plan) { plan.DropNamespace(flag); };
  }
  static Change DropAttribute(const std::string& path, std::uint64_t attribute) {
    return [path, attribute](PlanEditor& plan) { plan.DropMountAttribute(path, attribute); };
  }

  Host host_;
};

// ---- The jail's tree

TEST_F(NecessityTest, PivotLeavesTheHostsFilesBehind) {
  const Words attack = Probe({"read", host_.key()});
  EXPECT_THAT(Run(InTier(Tier::kA), attack, {}), DeniedWith(ENOENT));
  EXPECT_THAT(Run(InTier(Tier::kA), attack, {Drop(StepKind::kPivot)}), SaysOk(HasSubstr("private key")));
}

TEST_F(NecessityTest, TheRootIsReadOnlySoThatTheServerCannotWriteAccounts) {
  const Words attack = Probe({"write", "/etc/passwd", "root::0:0"});
  EXPECT_THAT(Run(WithoutLandlock(), attack, {KeepNamespaces}), DeniedWith(EROFS));
  EXPECT_THAT(Run(WithoutLandlock(), attack, {KeepNamespaces, Drop(StepKind::kReadOnlyRoot)}), Succeeded());
}

TEST_F(NecessityTest, ThePrivateHomeCoversWhatIsGrantedAroundIt) {
  Jail jail = InTier(Tier::kA);
  jail.ro = {host_.folder()};
  const Words attack = Probe({"read", host_.key()});
  EXPECT_THAT(Run(jail, attack, {}), DeniedWith(ENOENT));
  const Change drop = [this](PlanEditor& plan) {
    plan.Drop(StepKind::kTmpfs, [&](const wire::Step& step) { return plan.Text(step.path_text.path) == host_.home(); });
  };
  EXPECT_THAT(Run(jail, attack, {drop}), SaysOk(HasSubstr("private key")));
}

TEST_F(NecessityTest, ReadOnlyMountsKeepFilesAsTheyAre) {
  const std::string file = host_.File("data/file", "as it was");
  Jail jail = AsPerson(WithoutLandlock());
  jail.ro = {host_ / "data"};
  const Words attack = Probe({"write", file, "changed"});
  EXPECT_THAT(Run(jail, attack, {KeepNamespaces}), DeniedWith(EROFS));
  EXPECT_EQ(ReadFile(file), "as it was");
  EXPECT_THAT(Run(jail, attack, {KeepNamespaces, DropAttribute(host_ / "data", MOUNT_ATTR_RDONLY)}), Succeeded());
  EXPECT_EQ(ReadFile(file), "changed");
}

TEST_F(NecessityTest, NoexecMountsRunNothing) {
  const std::string program = host_.Folder("data") + "/probe";
  ASSERT_EQ(RunOutside(host_, {"exec", "/bin/cp", host_.probe(), program}).end.code, 0);
  Jail jail = WithoutLandlock();
  jail.ro = {host_ / "data"};
  const Words attack = Probe({"exec", program, "exit", "7"});
  EXPECT_THAT(Run(jail, attack, {KeepNamespaces}), DeniedWith(EACCES));
  EXPECT_EQ(Run(jail, attack, {KeepNamespaces, DropAttribute(host_ / "data", MOUNT_ATTR_NOEXEC)}).end.code, 7);
}

TEST_F(NecessityTest, PrivateFoldersRunNothingAlsoWithoutLandlock) {
  const auto script = [this](const std::string& folder) {
    return absl::StrCat("cp ", host_.probe(), " ", folder, "/probe && ", folder, "/probe exit 7 2>/dev/null");
  };
  ASSERT_EQ(RunOutside(host_, {"exec", "/bin/sh", "-c", script(host_.Folder("data"))}).end.code, 7);
  for (const std::string& folder : {host_.home(), std::string("/tmp"), std::string("/dev/shm")}) {
    EXPECT_EQ(Run(WithoutLandlock(), Shell(script(folder)), {KeepNamespaces}).end.code, 126) << folder;
  }
}

TEST_F(NecessityTest, NodevMountsOpenNoDevice) {
  Jail jail = InTier(Tier::kA);
  std::string folder = "/dev", device = "/dev/tty";
  if (IsRoot()) {
    folder = host_.Folder("data");
    device = folder + "/full";
    ASSERT_EQ(mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 7)), 0);
    ASSERT_EQ(chmod(device.c_str(), 0666), 0);
  }
  jail.ro = {folder};
  const Words attack = Probe({"read", device});
  EXPECT_THAT(Run(jail, attack, {}), DeniedWith(EACCES));
  const Outcome outcome = Run(jail, attack, {DropAttribute(folder, MOUNT_ATTR_NODEV)});
  // The driver itself answers: the server has no terminal.
  EXPECT_THAT(outcome, IsRoot() ? Succeeded() : DeniedWith(ENXIO));
}

// ---- Namespaces

TEST_F(NecessityTest, NothingStartsWithoutTheUserOrTheMountNamespace) {
  const Words attack = Probe({"read", host_.key()});
  for (const std::uint32_t flag : {CLONE_NEWUSER, CLONE_NEWNS}) {
    EXPECT_FALSE(Run(InTier(Tier::kA), attack, {DropNamespace(flag)}).launched.ok());
  }
}

TEST_F(NecessityTest, ThePidNamespaceHidesOtherProcesses) {
  const HostProcess victim(host_, {"wait", NewToken()});
  const Jail jail = AsPerson(WithoutLandlock());
  const Words attack = Probe({"kill", std::to_string(victim.pid()), "0"});
  EXPECT_THAT(Run(jail, attack, {KeepNamespaces}), DeniedWith(ESRCH));
  // Nor would /proc be mounted, which is why it is out in both of these.
  EXPECT_THAT(Run(jail, attack, {KeepNamespaces, Drop(StepKind::kProc)}), DeniedWith(ESRCH));
  EXPECT_THAT(Run(jail, attack, {KeepNamespaces, Drop(StepKind::kProc), DropNamespace(CLONE_NEWPID)}), Succeeded());
  EXPECT_FALSE(Run(jail, attack, {KeepNamespaces, DropNamespace(CLONE_NEWPID)}).launched.ok());
}

TEST_F(NecessityTest, TheIpcNamespaceHidesSharedMemory) {
  const key_t key = 0x62756c00 + getpid() % 0xff;
  const int id = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);
  ASSERT_GE(id, 0);
  const Words attack = {"syscall", std::to_string(SYS_shmget), std::to_string(key), "0", "0"};
  EXPECT_THAT(RunOutside(host_, attack), Succeeded());
  EXPECT_THAT(Run(InTier(Tier::kA), Probe(attack), {}), DeniedWith(ENOENT));
  EXPECT_THAT(Run(InTier(Tier::kA), Probe(attack), {DropNamespace(CLONE_NEWIPC)}), Succeeded());
  shmctl(id, IPC_RMID, nullptr);
}

TEST_F(NecessityTest, TheHostsNameIsNotShown) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  ASSERT_STRNE(name, "bulkhead");
  const Words attack = Probe({"read", "/proc/sys/kernel/hostname"});
  EXPECT_THAT(Run(InTier(Tier::kA), attack, {}), SaysOk(HasSubstr("ok bulkhead")));
  EXPECT_THAT(Run(InTier(Tier::kA), attack, {Drop(StepKind::kHostname)}), SaysOk(HasSubstr(name)));
  // The step can't do it to the host.
  EXPECT_FALSE(Run(InTier(Tier::kA), attack, {DropNamespace(CLONE_NEWUTS)}).launched.ok());
}

TEST_F(NecessityTest, TheCgroupNamespaceHidesWhereTheServerRuns) {
  const std::string groups = ReadFile("/proc/self/cgroup");
  std::string path;
  for (std::size_t at = 0; (at = groups.find(":/", at)) != std::string::npos; ++at) {
    const std::string found = groups.substr(at + 1, groups.find('\n', at) - at - 1);
    if (found != "/") path = found;
  }
  if (path.empty()) GTEST_SKIP() << "this runs in the root of every control group";
  const Words attack = Probe({"read", "/proc/self/cgroup"});
  EXPECT_THAT(Run(InTier(Tier::kA), attack, {}), SaysOk(Not(HasSubstr(path))));
  EXPECT_THAT(Run(InTier(Tier::kA), attack, {DropNamespace(CLONE_NEWCGROUP)}), SaysOk(HasSubstr(path)));
}

TEST_F(NecessityTest, TheNetworkNamespaceHidesTheHostsServices) {
  const HostProcess service(host_, {"listen-tcp", NewToken(), "0"});
  const Words attack = Probe({"connect-tcp", "127.0.0.1", service.port()});
  EXPECT_THAT(Run(InTier(Tier::kA), attack, {}), DeniedWith(ECONNREFUSED));
  // The jail can't bring up the host's loopback, which is why that step is out in both of these.
  EXPECT_THAT(Run(InTier(Tier::kA), attack, {Drop(StepKind::kLoopback)}), DeniedWith(ENETUNREACH));
  EXPECT_THAT(Run(InTier(Tier::kA), attack, {Drop(StepKind::kLoopback), DropNamespace(CLONE_NEWNET)}), Succeeded());
}

// ---- The jail init

TEST_F(NecessityTest, TheSealKeepsTheServerFromTheMemoryOfOurs) {
  // Keeper and init share their memory, so that who could write it would be out of the jail.
  const Words attack = Shell(absl::StrCat("exec ", host_.probe(), " readmem $PPID"));
  for (const Change& kind : std::vector<Change>{KeepNamespaces, NoNamespaces}) {
    EXPECT_THAT(Run(WithoutLandlock(), attack, {kind}), DeniedWithAnyOf({EACCES, EPERM}));
    const Outcome outcome = Run(WithoutLandlock(), attack, {kind, Drop(StepKind::kSeal)});
    EXPECT_THAT(outcome, IsRoot() ? DeniedWithAnyOf({EACCES, EPERM}) : SaysOk(StartsWith("ok 16")));
  }
}

TEST_F(NecessityTest, RootInTheJailHasNoCapability) {
  if (!IsRoot()) {
    EXPECT_THAT(Run(InTier(Tier::kA), Probe({"ids"}), {Drop(StepKind::kDropCapabilities)}),
                SaysOk(HasSubstr("CapEff=0000000000000000")));  // exec takes them from other uids
    return;
  }
  const std::string file = host_.File("data/closed", "not for reading", 0);
  host_.GiveTo(file, 0);
  Jail jail = InTier(Tier::kA);
  jail.user = "root";
  jail.ro = {host_ / "data"};
  const Words attack = Probe({"read", file});
  EXPECT_THAT(Run(jail, attack, {}), DeniedWith(EACCES));
  EXPECT_THAT(Run(jail, attack, {Drop(StepKind::kDropCapabilities)}), SaysOk(HasSubstr("not for reading")));
}

// ---- The server's process

TEST_F(NecessityTest, TheSessionKeepsTheInitOutOfTheServersProcessGroup) {
  // "My own group" is allowed by every filter: its priority, and kill(0, SIGSTOP).
  const Words attack = Shell(
      absl::StrCat(host_.probe(), " syscall ", SYS_setpriority, " ", PRIO_PGRP, " 0 19 >/dev/null\n",
                   "read -r a b c d e f g h i j k l m n o p q r priority rest </proc/$PPID/stat\n", "echo $priority"));
  const std::string ours = absl::StrCat(getpriority(PRIO_PROCESS, 0), "\n");
  EXPECT_EQ(Run(InTier(Tier::kB), attack, {}).out, ours);
  EXPECT_EQ(Run(InTier(Tier::kB), attack, {Drop(StepKind::kSession)}).out, IsRoot() ? ours : "19\n");
}

TEST_F(NecessityTest, TheIdsKeepAServerOfRootFromRootsFiles) {
  if (!IsRoot()) return;  // the plan has no such step
  const std::string file = host_.File("data/roots", "of root", 0600);
  host_.GiveTo(file, 0);
  Jail jail = InTier(Tier::kB);
  jail.ro = {host_ / "data"};
  jail.cwd = host_ / "data";
  const Words attack = Probe({"read", file});
  EXPECT_THAT(Run(jail, attack, {}), DeniedWith(EACCES));
  EXPECT_THAT(Run(jail, attack, {Drop(StepKind::kIds)}), SaysOk(HasSubstr("of root")));
}

TEST_F(NecessityTest, NoNewPrivsTakesThePowerFromSetuidPrograms) {
  const Jail jail = AsPerson(InTier(Tier::kB));
  if (!IsRoot()) {
    // Without it the kernel takes no filter from an ordinary user: nothing starts.
    EXPECT_FALSE(Run(jail, Probe({"ids"}), {Drop(StepKind::kNoNewPrivs)}).launched.ok());
    return;
  }
  const std::string program = host_ / "tools/setuid";
  ASSERT_EQ(RunOutside(host_, {"exec", "/bin/cp", host_.probe(), program}).end.code, 0);
  host_.GiveTo(program, 0);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  const Words attack = Probe({"exec", program, "ids"});
  ASSERT_THAT(RunOutside(host_, {"exec", program, "ids"}), SaysOk(HasSubstr("Uid=65534,0,0,0")));
  const std::vector<Change> filters = {Drop(StepKind::kLandlock), Drop(StepKind::kSeccomp)};
  EXPECT_THAT(Run(jail, attack, filters), SaysOk(HasSubstr("Uid=65534,65534,65534,65534")));
  EXPECT_THAT(Run(jail, attack, {filters[0], filters[1], Drop(StepKind::kNoNewPrivs)}),
              SaysOk(HasSubstr("Uid=65534,0,0,0")));
}

// The one step that is not needed alone: the keeper closes what the host leaked before anything else, and opens its own
// with CLOEXEC (process_host_test shows that it must). The step stays for what the keeper may come to hold.
TEST_F(NecessityTest, DescriptorsOfTheHostAreClosedByTheKeeperToo) {
  for (const Tier tier : {Tier::kA, Tier::kB}) {
    for (const bool dropped : {false, true}) {
      const int key = open(host_.key().c_str(), O_RDONLY | O_CLOEXEC);
      ASSERT_EQ(dup2(key, 9), 9);  // no CLOEXEC
      const Outcome outcome =
          Run(InTier(tier), Shell("exec 2>/dev/null; cat <&9"),
              dropped ? std::vector<Change>{Drop(StepKind::kCloseDescriptors)} : std::vector<Change>{});
      EXPECT_TRUE(outcome.launched.ok()) << outcome.launched;
      EXPECT_EQ(outcome.out, "");
      close(key);
      close(9);
    }
  }
}

TEST_F(NecessityTest, LandlockKeepsFilesOfThePersonClosedInTierB) {
  const Words attack = Probe({"read", host_.key()});
  EXPECT_THAT(Run(InTier(Tier::kB), attack, {}), DeniedWith(EACCES));
  EXPECT_THAT(Run(InTier(Tier::kB), attack, {Drop(StepKind::kLandlock)}), SaysOk(HasSubstr("private key")));
}

// The private folder of tier B lies where others may write, too.
TEST_F(NecessityTest, ThePrivateFolderIsNoLinkAndNobodyElseCanReplaceIt) {
  const Jail jail = InTier(Tier::kB);
  const Words attack = Probe({"read", host_.key()});
  const std::string link = host_ / "link";
  ASSERT_EQ(symlink(host_.home().c_str(), link.c_str()), 0);
  // As if it had been replaced between its making and the rule that opens it to the server.
  const auto replaced = [&link](PlanEditor& plan, bool follow) {
    const wire::Offset at = plan.Append(link.c_str(), link.size() + 1);
    plan.ForEachStep([&plan, at, follow](wire::Step& step) {
      if (step.kind != StepKind::kLandlock) return;
      for (std::uint32_t i = 0; i < step.landlock.rule_count; ++i) {
        wire::LandlockRule& rule = plan.At<wire::LandlockRule>(step.landlock.rules)[i];
        if (rule.is_grant == 0 && rule.where.is_folder) rule.where = {at, 0, 0, follow ? 0u : 1u, 0};
      }
    });
  };
  const auto followed = [&replaced](PlanEditor& plan) { replaced(plan, true); };
  const auto not_followed = [&replaced](PlanEditor& plan) { replaced(plan, false); };
  EXPECT_THAT(Run(jail, attack, {followed}), SaysOk(HasSubstr("private key")));
  const Outcome refused = Run(jail, attack, {not_followed});
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(std::string(refused.launched.message()), HasSubstr("cannot enforce landlock: Not a directory"));

  // Such a replacing is what the sticky bit forbids: without it, whoever may write there may do it.
  const std::string parent = host_.Folder("parent"), folder = parent + "/folder";
  const auto in_parent = [&folder](PlanEditor& plan) {
    const wire::Offset at = plan.Append(folder.c_str(), folder.size() + 1);
    plan.Drop(StepKind::kPrivateFolder,
              [&plan](const wire::Step& step) { return absl::EndsWith(plan.Text(step.path_mode.path), "/tmp"); });
    plan.ForEachStep([&plan, at](wire::Step& step) {
      if (step.kind == StepKind::kPrivateFolder) step.path_mode.path = at;
      if (step.kind == StepKind::kWorkingFolder) step.path_text.path = at;
      if (step.kind != StepKind::kLandlock) return;
      for (std::uint32_t i = 0; i < step.landlock.rule_count; ++i) {
        wire::LandlockRule& rule = plan.At<wire::LandlockRule>(step.landlock.rules)[i];
        if (rule.is_grant == 0 && rule.where.is_folder) rule.where.path = at;
      }
    });
    plan.ForEachVariant([at](wire::Variant& variant) { variant.private_folder = at; });
  };
  for (const auto& [mode, is_refused] : std::vector<std::pair<mode_t, bool>>{
           {0755, false}, {0775, true}, {0757, true}, {0777, true}, {01777, false}, {01775, false}}) {
    SCOPED_TRACE(mode);
    ASSERT_EQ(chmod(parent.c_str(), mode), 0);
    const Outcome outcome = Run(jail, Probe({"list", folder}), {in_parent});
    if (is_refused) {
      EXPECT_THAT(std::string(outcome.launched.message()), HasSubstr("has no sticky bit; set it (chmod +t /tmp)"));
      EXPECT_NE(access(folder.c_str(), F_OK), 0) << "it was made";
    } else {
      EXPECT_THAT(outcome, Succeeded());
    }
    rmdir(folder.c_str());  // the keeper can't in a folder of root's
  }
}

TEST_F(NecessityTest, LandlockKeepsAbstractSocketsClosedInTierAWithTheHostsNetwork) {
  const std::string name = NewToken();
  const HostProcess bus(host_, {"listen-abstract", NewToken(), name});
  Jail jail = InTier(Tier::kA);
  jail.network = "host";
  const Words attack = Probe({"connect-abstract", name});
  EXPECT_THAT(Run(jail, attack, {}), DeniedWith(EPERM));
  EXPECT_THAT(Run(jail, attack, {Drop(StepKind::kLandlock)}), Succeeded());
}

// ---- System call filters

TEST_F(NecessityTest, TheBaselineFilterKeepsTheServerFromNamespacesOfItsOwn) {
  const Words attack = Probe({"syscall", std::to_string(SYS_unshare), std::to_string(CLONE_NEWUSER)});
  for (const Tier tier : {Tier::kA, Tier::kB}) {
    EXPECT_THAT(Run(InTier(tier), attack, {}), DeniedWith(EPERM));
    EXPECT_THAT(Run(InTier(tier), attack, {DropFilter(FilterName::kBaseline)}), Succeeded());
  }
}

TEST_F(NecessityTest, TheStrictFilterKeepsTheServerFromWhatFewProgramsNeed) {
  const Words attack = Probe({"syscall", std::to_string(SYS_setfsuid), "-1"});
  Jail jail = InTier(Tier::kA);
  jail.more = R"(,"syscalls": {"profile": "strict"})";
  EXPECT_THAT(Run(jail, attack, {}), DeniedWith(ENOSYS));
  EXPECT_THAT(Run(jail, attack, {DropFilter(FilterName::kStrict)}), Succeeded());
}

// What a policy names is compiled into the one filter, so that what is exchanged here is that filter for the one of the
// same plan without the entry.
TEST_F(NecessityTest, TheCallsThatThePolicyDeniesAreRefusedByItsEntry) {
  const Words call = Probe({"syscall", std::to_string(SYS_umask), "18"});
  for (const char* profile : {"baseline", "strict"}) {
    for (const Tier tier : {Tier::kA, Tier::kB}) {
      Jail jail = InTier(tier), other = InTier(tier);
      jail.more = absl::StrCat(R"(,"syscalls": {"deny": ["umask"], "profile": ")", profile, "\"}");
      other.more = absl::StrCat(R"(,"syscalls": {"profile": ")", profile, "\"}");
      EXPECT_THAT(Run(jail, call, {UseFilter(FilterOf(other))}), Succeeded());
      EXPECT_THAT(Run(jail, call, {}), DeniedWith(EPERM));
      EXPECT_THAT(Run(jail, call, {UseFilter(FilterOf(jail))}), DeniedWith(EPERM))
          << "the exchange itself does nothing";
    }
  }
}

TEST_F(NecessityTest, TheCallsThatThePolicyAllowsAreRefusedWithoutItsEntry) {
  const Words call = Probe({"syscall", std::to_string(SYS_keyctl), "0", "-3", "0"});
  for (const char* profile : {"baseline", "strict"}) {
    for (const Tier tier : {Tier::kA, Tier::kB}) {
      Jail jail = InTier(tier), other = InTier(tier);
      jail.more = absl::StrCat(R"(,"syscalls": {"allow": ["keyctl"], "profile": ")", profile, "\"}");
      other.more = absl::StrCat(R"(,"syscalls": {"profile": ")", profile, "\"}");
      EXPECT_THAT(Run(jail, call, {UseFilter(FilterOf(other))}), DeniedWith(ENOSYS));
      EXPECT_THAT(Run(jail, call, {}), Succeeded());
    }
  }
}

TEST_F(NecessityTest, TheSetidGuardKeepsSetuidRootFilesFromTheDisk) {
  if (!IsRoot()) return;  // a user's server makes files of that user only
  const std::string file = host_.File("work/file", "");
  host_.GiveTo(host_ / "work", 0);
  host_.GiveTo(file, 0);
  Jail jail = InTier(Tier::kA);
  jail.rw = {host_ / "work"};
  const Words attack = Probe({"chmod", file, "04755"});
  struct stat info;
  EXPECT_THAT(Run(jail, attack, {}), DeniedWith(EPERM));
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0644u);
  EXPECT_THAT(Run(jail, attack, {DropFilter(FilterName::kSetidGuard)}), Succeeded());
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 04755u);
  EXPECT_EQ(info.st_uid, 0u);
}

TEST_F(NecessityTest, TheSocketFiltersKeepAgentsOutOfReachInTierB) {
  const std::string path = host_.Folder("run") + "/agent";
  const HostProcess agent(host_, {"listen-unix", NewToken(), path});
  const Words attack = Probe({"connect-unix", path});
  Jail jail = AsPerson(InTier(Tier::kB));
  EXPECT_THAT(Run(jail, attack, {}), DeniedWith(EACCES));
  EXPECT_THAT(Run(jail, attack, {DropFilter(FilterName::kSocketsNone)}), Succeeded());
  jail.network = "host";
  jail.landlock_abi = 8;  // the next one covers it
  EXPECT_THAT(Run(jail, attack, {}), DeniedWith(EACCES));
  EXPECT_THAT(Run(jail, attack, {DropFilter(FilterName::kSocketsNoUnix)}), Succeeded());
}

TEST_F(NecessityTest, TheKernelsSettingsAreReadOnlyAlsoWhereIdMapsAreWritten) {
  // Each process sees the settings of its own IPC namespace, and may write them where it made that. With <>, since
  // Landlock takes > for a change of the file's size.
  const Words attack = Shell(
      "unshare --user --map-root-user --ipc /bin/sh -c 'echo mapped; echo 7 1<>/proc/sys/kernel/shmmni && echo ok' "
      "2>/dev/null");
  Jail jail = InTier(Tier::kA);
  EXPECT_EQ(Run(jail, attack, {}).out, "");
  jail.more = R"(,"syscalls":{"allow":["clone","unshare"]})";
  EXPECT_EQ(Run(jail, attack, {}).out, "mapped\n");
  EXPECT_EQ(Run(jail, attack, {Drop(StepKind::kReadOnlyProcSys)}).out, "mapped\nok\n");
  // To the kernel's root, more than /proc/sys would be open, so that the whole stays read-only.
  if (!IsRoot()) return;
  jail.user = "root";
  EXPECT_EQ(Run(jail, attack, {}).out, "");
}

TEST_F(NecessityTest, TheSupervisorGuardKeepsTheLimitsOfOurs) {
  // A limit that changes nothing for ours: with --nofile=1 its next ppoll could fail, and the tree end first.
  const Words attack = Shell("prlimit --pid $PPID --core=0:0 2>/dev/null && echo ok");
  EXPECT_EQ(Run(InTier(Tier::kB), attack, {}).out, "");
  EXPECT_EQ(Run(InTier(Tier::kB), attack, {DropFilter(FilterName::kSupervisorGuard)}).out, IsRoot() ? "" : "ok\n");
}

TEST_F(NecessityTest, TheSignalGuardKeepsOursRunningBeforeLandlockDoes) {
  Jail jail = InTier(Tier::kB);
  jail.landlock_abi = 5;
  const Words attack = Shell("exec 2>/dev/null; kill -STOP $PPID && kill -CONT $PPID && echo ok");
  EXPECT_EQ(Run(jail, attack, {}).out, "");
  EXPECT_EQ(Run(jail, attack, {DropFilter(FilterName::kSignalGuard)}).out, IsRoot() ? "" : "ok\n");
}

// ---- Limits

TEST_F(NecessityTest, EachLimitStopsWhatIsBeyondIt) {
  const std::string file = host_.Folder("work") + "/file";
  Jail jail = AsPerson(InTier(Tier::kB));
  jail.rw = {host_ / "work"};
  jail.limits = "\"open_files\": 20, \"processes\": 1, \"file_size\": \"1KiB\", \"memory\": \"64MiB\"";
  struct Case {
    std::uint32_t resource;
    Words attack;
    int error;
  };
  for (const Case& limit : std::vector<Case>{{RLIMIT_NOFILE, {"openfiles", "18"}, EMFILE},
                                             {RLIMIT_NPROC, {"forkbomb", "1"}, EAGAIN},
                                             {RLIMIT_FSIZE, {"filesize", file, "1025"}, EFBIG},
                                             {RLIMIT_DATA, {"memory", std::to_string(64 << 20)}, ENOMEM}}) {
    SCOPED_TRACE(limit.attack[0]);
    EXPECT_THAT(Run(jail, Probe(limit.attack), {}), DeniedWith(limit.error));
    EXPECT_THAT(Run(jail, Probe(limit.attack), {DropLimit(limit.resource)}), Succeeded());
  }
}

// Each empty file takes memory of the kernel's, which a tmpfs does not count as its size. The folder is an inode, too.
TEST_F(NecessityTest, PrivateFoldersHoldNoMoreFilesThanTheirSizeHasPages) {
  constexpr long kInodes = (512 << 20) / 4096;
  const Jail jail = InTier(Tier::kA);
  EXPECT_EQ(Run(jail, Shell("stat -f -c %c \"$HOME\" /tmp /dev/shm"), {}).out,
            absl::StrCat(kInodes, "\n", kInodes, "\n", kInodes, "\n"));
  const auto without_limit = [](PlanEditor& plan) {
    const wire::Offset at = plan.Append("mode=1777,size=512m", sizeof "mode=1777,size=512m");
    plan.ForEachStep([&plan, at](wire::Step& step) {
      if (step.kind == StepKind::kTmpfs && plan.Text(step.path_text.path) == "/tmp") step.path_text.text = at;
    });
  };
  EXPECT_THAT(Run(jail, Probe({"files", "/tmp", std::to_string(kInodes)}), {without_limit}), Succeeded());
  EXPECT_EQ(Run(jail, Probe({"files", "/tmp", std::to_string(kInodes)}), {}).out,
            absl::StrCat("error ENOSPC after ", kInodes - 1, "\n"));
}

// They count with those of the user who started it, in tier A as well: what a server has queued others can't queue.
TEST_F(NecessityTest, QueuedSignalsAreLimited) {
  rlimit ours;
  ASSERT_EQ(getrlimit(RLIMIT_SIGPENDING, &ours), 0);
  if (ours.rlim_cur < 5000)
    GTEST_SKIP() << "missing here: the right to queue 5,000 signals, more than the limit that is tested (ulimit -i)";
  for (const Tier tier : {Tier::kA, Tier::kB}) {
    SCOPED_TRACE(policy::TierName(tier));
    const Jail jail = AsPerson(InTier(tier));
    const Words attack = Probe({"queue", "4097"});
    EXPECT_THAT(Run(jail, attack, {DropLimit(RLIMIT_SIGPENDING)}), Succeeded());
    EXPECT_THAT(Run(jail, attack, {}), DeniedWith(EAGAIN));
    if (tier == Tier::kB) continue;  // where others of the user count, too
    EXPECT_EQ(Run(jail, attack, {}).out, "error EAGAIN after 4096\n");
    EXPECT_THAT(Run(jail, Probe({"queue", "4096"}), {}), Succeeded());
  }
}

TEST_F(NecessityTest, TheLimitOfCoreDumpsCannotBeRaised) {
  rlimit ours;
  ASSERT_EQ(getrlimit(RLIMIT_CORE, &ours), 0);
  if (ours.rlim_max == 0) GTEST_SKIP() << "core dumps are forbidden to the tests themselves (ulimit -Hc is 0)";
  const Words attack = Shell("ulimit -c 1 2>/dev/null && echo ok");
  EXPECT_EQ(Run(InTier(Tier::kA), attack, {}).out, "");
  EXPECT_EQ(Run(InTier(Tier::kA), attack, {DropLimit(RLIMIT_CORE)}).out, "ok\n");
}

TEST_F(NecessityTest, TheLimitOfCpuTimeEndsABusyServer) {
  Jail jail = InTier(Tier::kA);
  jail.limits = "\"cpu_time\": \"1s\"";
  const Words attack = Probe({"spin", "2"});
  EXPECT_EQ(Run(jail, attack, {}).end.kind, ExitStatus::Kind::kSignaled);
  EXPECT_THAT(Run(jail, attack, {DropLimit(RLIMIT_CPU)}), Succeeded());
}

}  // namespace
}  // namespace bulkhead::launcher
