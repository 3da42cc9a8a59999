// What a server can't do in its jail, each shown to work outside first, and what it still can. Real plans from policy
// text, real launches, in tiers A and B. Started as root, the person is "nobody" and the server has a uid of its own.
// Files and folders that are granted: jail_grants_test.cc. What root makes different: jail_root_test.cc.
#include "tests/launcher/jail_test.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace bulkhead::launcher {
namespace {

using policy::Tier;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

INSTANTIATE_TEST_SUITE_P(Tier, JailTest, testing::Values(Tier::kA, Tier::kB), TierOf);

TEST_P(JailTest, TheTierThatWasAskedForIsReached) {
  const Outcome outcome = Inside(Closed(), {"exit", "7"});
  EXPECT_TRUE(outcome.launched.ok()) << outcome.launched;
  EXPECT_EQ(outcome.report.tier, GetParam());
  EXPECT_EQ(outcome.end.code, 7);
}

// ---- What is the person's

TEST_P(JailTest, AKeyInTheHomeFolderCannotBeRead) {
  const std::string granted = host_.File("data/notes", "granted");
  ASSERT_THAT(Outside({"read", host_.key()}), SaysOk(HasSubstr("private key")));
  EXPECT_THAT(Inside(AsPerson(Closed()), {"read", host_.key()}), DeniedWith(Hidden()));
  EXPECT_THAT(Inside(Closed(), {"read", host_.key()}), DeniedWith(Hidden()));
  EXPECT_THAT(Inside(Reading({host_ / "data"}), {"read", granted}), SaysOk(HasSubstr("granted")));
}

TEST_P(JailTest, NamesOfHiddenFilesAreHiddenInTierAAndReportedInTierB) {
  ASSERT_THAT(Outside({"stat", host_.key()}), Succeeded());
  const Outcome outcome = Inside(Closed(), {"stat", host_.key()});
  if (InA()) {
    EXPECT_THAT(outcome, DeniedWith(ENOENT));
  } else {
    EXPECT_THAT(LayerGap(outcome, "landlock"), HasSubstr("can be looked up"));
    EXPECT_THAT(LayerGap(outcome, "namespaces"), HasSubstr("all files' names"));
  }
  EXPECT_THAT(Inside(Closed(), {"list", host_.home() + "/.ssh"}), DeniedWith(Hidden()));
}

TEST_P(JailTest, TheHostsEnvironmentDoesNotPass) {
  Jail jail = Closed();
  jail.env["CANARY"] = "canary-7f3a";
  EXPECT_THAT(Inside(jail, {"env", "CANARY"}), DeniedWith(ENOENT));
  EXPECT_THAT(Inside(jail, {"env", "PATH"}), SaysOk(HasSubstr("/usr/bin")));
  EXPECT_THAT(Inside(jail, {"environ"}),
              SaysOk(AnyOf("ok HOME PATH\n", "ok PATH HOME TMPDIR\n", "ok HOME PATH TMPDIR\n")));
}

TEST_P(JailTest, AnotherProcessOfThePersonIsOutOfReach) {
  const HostProcess victim(host_, {"wait", NewToken()}, {{"CANARY", "canary-7f3a"}});
  const std::string pid = std::to_string(victim.pid()), environ = absl::StrCat("/proc/", pid, "/environ");
  ASSERT_THAT(Outside({"read", environ}), SaysOk(HasSubstr("canary-7f3a")));
  ASSERT_THAT(Outside({"readmem", pid}), Succeeded());
  ASSERT_THAT(Outside({"vmread", pid}), Succeeded());
  ASSERT_THAT(Outside({"kill", pid, "0"}), Succeeded());
  ASSERT_THAT(Outside({"ptrace", pid}), Succeeded());
  const Jail jail = AsPerson(Closed());
  EXPECT_THAT(Inside(jail, {"read", environ}), DeniedWithAnyOf({InA() ? ENOENT : EACCES, InA() ? ENOENT : EPERM}));
  EXPECT_THAT(Inside(jail, {"readmem", pid}), DeniedWithAnyOf({InA() ? ENOENT : EACCES, InA() ? ENOENT : EPERM}));
  EXPECT_THAT(Inside(jail, {"vmread", pid}), DeniedWith(EPERM));
  EXPECT_THAT(Inside(jail, {"kill", pid, "0"}), DeniedWith(InA() ? ESRCH : EPERM));
  EXPECT_THAT(Inside(jail, {"ptrace", pid}), DeniedWith(EPERM));
  // Its own processes are in reach.
  EXPECT_THAT(Shell(jail, absl::StrCat(host_.probe(), " readmem $$; true")), Succeeded());
}

TEST_P(JailTest, KeeperAndJailInitCannotBeReadOrKilled) {
  for (const Jail& jail : {Closed(), AsPerson(Closed())}) {
    ASSERT_THAT(Shell(jail, absl::StrCat(host_.probe(), " readmem $$; true")), Succeeded());
    const std::vector<int> errors = {EACCES, EPERM};
    const std::string init = absl::StrCat("exec ", host_.probe());
    EXPECT_THAT(Shell(jail, init + " readmem $PPID"), DeniedWithAnyOf(errors));
    EXPECT_THAT(Shell(jail, init + " read /proc/$PPID/environ"), DeniedWithAnyOf(errors));
    EXPECT_THAT(Shell(jail, init + " vmread $PPID"), DeniedWith(EPERM));
    EXPECT_THAT(Shell(jail, init + " ptrace $PPID"), DeniedWith(EPERM));
    EXPECT_THAT(Shell(jail, init + " kill $PPID 9"), DeniedWith(EPERM));
    if (InA()) continue;  // the keeper has no number in the jail
    const std::string keeper = absl::StrCat("read -r a b c d e </proc/$PPID/stat; ", init);
    EXPECT_THAT(Shell(jail, keeper + " readmem $d"), DeniedWithAnyOf(errors));
    EXPECT_THAT(Shell(jail, keeper + " read /proc/$d/environ"), DeniedWithAnyOf(errors));
    EXPECT_THAT(Shell(jail, keeper + " kill $d 9"), DeniedWith(EPERM));
  }
}

TEST_P(JailTest, AnInheritedDescriptorIsClosed) {
  const int fd = open(host_.key().c_str(), O_RDONLY);  // no CLOEXEC
  ASSERT_GE(fd, 0);
  ASSERT_THAT(Outside({"fds"}).out, HasSubstr("id_test"));
  EXPECT_THAT(Inside(Closed(), {"fds"}).out, AllOf(EndsWith("ok 3\n"), Not(HasSubstr("id_test"))));
  close(fd);
}

// ---- Network and sockets

TEST_P(JailTest, TheHostsLoopbackIsNotTheJails) {
  const HostProcess service(host_, {"listen-tcp", NewToken(), "0"});
  ASSERT_THAT(Outside({"connect-tcp", "127.0.0.1", service.port()}), Succeeded());
  EXPECT_THAT(Inside(Closed(), {"connect-tcp", "127.0.0.1", service.port()}),
              DeniedWith(InA() ? ECONNREFUSED : EACCES));
  EXPECT_THAT(
      Inside(Closed(), {"connect-tcp", "::1", service.port()}),
      DeniedWithAnyOf({InA() ? ECONNREFUSED : EACCES, InA() ? EADDRNOTAVAIL : EACCES, InA() ? EAFNOSUPPORT : EACCES}));
  Jail with_network = Closed();
  with_network.network = "host";
  const Outcome outcome = Inside(with_network, {"connect-tcp", "127.0.0.1", service.port()});
  EXPECT_THAT(outcome, Succeeded());
  EXPECT_EQ(outcome.report.network, "host");
  EXPECT_THAT(outcome.report.weakened, testing::Contains("the host's network is granted"));
}

TEST_P(JailTest, NoPacketLeavesTheJail) {
  EXPECT_THAT(Inside(Closed(), {"connect-tcp", "192.0.2.1", "80"}), DeniedWith(InA() ? ENETUNREACH : EACCES));
}

TEST_P(JailTest, UnixSocketsOfThePersonAreOutOfReach) {
  const std::string path = host_.Folder("run") + "/agent", token = NewToken();
  const HostProcess agent(host_, {"listen-unix", NewToken(), path}), bus(host_, {"listen-abstract", NewToken(), token});
  ASSERT_THAT(Outside({"connect-unix", path}), Succeeded());
  ASSERT_THAT(Outside({"connect-abstract", token}), Succeeded());
  for (const char* network : {"none", "host"}) {
    SCOPED_TRACE(network);
    Jail jail = AsPerson(Closed());
    jail.network = network;
    EXPECT_THAT(Inside(jail, {"connect-unix", path}), DeniedWith(Hidden()));
    EXPECT_THAT(Inside(jail, {"connect-abstract", token}),
                DeniedWithAnyOf({jail.network == "none" && InA() ? ECONNREFUSED : EPERM, EACCES}));
  }
}

TEST_P(JailTest, AGrantedSocketCanBeUsedInTierA) {
  const std::string path = host_.Folder("run") + "/agent";
  const HostProcess agent(host_, {"listen-unix", NewToken(), path});
  const Outcome outcome = Inside(AsPerson(Reading({path})), {"connect-unix", path});
  if (InA()) {
    EXPECT_THAT(outcome, Succeeded());
  } else {
    EXPECT_THAT(outcome, DeniedWith(EACCES));
  }
}

// ---- Limits

TEST_P(JailTest, OpenFilesAreLimited) {
  Jail jail = Closed();
  jail.limits = "\"open_files\": 20";  // 0, 1 and 2 are open
  EXPECT_THAT(Inside(jail, {"openfiles", "16"}), Succeeded());
  EXPECT_THAT(Inside(jail, {"openfiles", "17"}), Succeeded());
  EXPECT_THAT(Inside(jail, {"openfiles", "18"}), DeniedWith(EMFILE));
}

// ---- System calls that the policy names

TEST_P(JailTest, APolicyDeniesAndAllowsSystemCalls) {
  const std::vector<std::string> keyctl = {"syscall", std::to_string(SYS_keyctl), "0", "-3", "0"};
  const std::vector<std::string> fsuid = {"syscall", std::to_string(SYS_setfsuid), "-1"};
  const std::vector<std::string> umask = {"syscall", std::to_string(SYS_umask), "18"};
  ASSERT_THAT(Outside(fsuid), Succeeded());
  ASSERT_THAT(Outside(keyctl), Succeeded());
  Jail jail = Closed();
  EXPECT_THAT(Inside(jail, keyctl), DeniedWith(ENOSYS));
  EXPECT_THAT(Inside(jail, fsuid), Succeeded());
  EXPECT_THAT(Inside(jail, umask), Succeeded());

  jail.more = R"(,"syscalls": {"allow": ["keyctl"], "deny": ["umask"]})";
  Outcome outcome = Inside(jail, keyctl);
  EXPECT_THAT(outcome, Succeeded());
  EXPECT_THAT(outcome.report.layers[2].does, HasSubstr("and umask"));
  EXPECT_THAT(outcome.report.layers[2].does_not, HasSubstr("allows keyctl"));
  EXPECT_EQ(outcome.report.layers[2].state, LayerState::kPartial);
  EXPECT_THAT(Inside(jail, umask), DeniedWith(EPERM));
  EXPECT_THAT(Inside(jail, fsuid), Succeeded());

  jail.more = R"(,"syscalls": {"profile": "strict"})";
  EXPECT_THAT(Inside(jail, fsuid), DeniedWith(ENOSYS));
  EXPECT_THAT(Inside(jail, umask), Succeeded());
  jail.more = R"(,"syscalls": {"profile": "strict", "allow": ["setfsuid"]})";
  EXPECT_THAT(Inside(jail, fsuid), Succeeded());
}

TEST_P(JailTest, MemoryIsLimited) {
  Jail jail = Closed();
  jail.limits = "\"memory\": \"64MiB\"";
  // The process has some before it asks for any.
  const std::string limit = std::to_string(64 << 20), below = std::to_string(62 << 20);
  ASSERT_THAT(Outside({"memory", limit}), Succeeded());
  EXPECT_THAT(Inside(jail, {"limit", "DATA"}), SaysOk(HasSubstr("soft=67108864 hard=67108864")));
  EXPECT_THAT(Inside(jail, {"memory", below}), Succeeded());
  const Outcome outcome = Inside(jail, {"memory", limit});
  EXPECT_THAT(outcome, DeniedWith(ENOMEM));
  EXPECT_THAT(outcome.report.layers[3].does, HasSubstr("67108864 bytes of memory a process"));
  EXPECT_THAT(outcome.report.layers[3].does_not, HasSubstr("memory that processes share is not counted"));
}

// Not promised: the kernel lets who may read a file lock it, and its owner take a lease.
TEST_P(JailTest, AFileThatMayOnlyBeReadCanBeLocked) {
  const std::string file = host_.File("data/file", "text");
  Jail jail = Closed();
  jail.ro = {host_ / "data"};
  EXPECT_THAT(Inside(jail, {"write", file, "x"}), Not(Succeeded()));
  UniqueFd ours(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(flock(ours.get(), LOCK_EX), 0);
  EXPECT_THAT(Inside(jail, {"lock", file}), DeniedWith(EAGAIN));  // one lock for both
  ASSERT_EQ(flock(ours.get(), LOCK_UN), 0);
  EXPECT_THAT(Inside(jail, {"lock", file}), Succeeded());
  const bool is_owner = InA() || !IsRoot();
  EXPECT_THAT(Inside(jail, {"lease", file}), DeniedWith(is_owner ? EAGAIN : EACCES));  // we have it open
  ours.reset();
  EXPECT_THAT(Inside(jail, {"lease", file}),
              is_owner ? testing::Matcher<const Outcome&>(Succeeded()) : DeniedWith(EACCES));
}

TEST_P(JailTest, FileSizesAreLimited) {
  const std::string file = host_.Folder("work") + "/file";
  Jail jail = Writing({host_ / "work"});
  jail.limits = "\"file_size\": \"1KiB\"";
  EXPECT_THAT(Inside(jail, {"filesize", file, "1023"}), Succeeded());
  EXPECT_THAT(Inside(jail, {"filesize", file, "1024"}), Succeeded());
  EXPECT_THAT(Inside(jail, {"filesize", file, "1025"}), DeniedWith(EFBIG));
}

TEST_P(JailTest, AForkBombIsLimited) {
  Jail jail = Closed();
  jail.limits = "\"processes\": 20";
  if (InA() || IsRoot()) {
    // What counts is the server's uid in the jail: in tier A its init too.
    const int children = InA() ? 18 : 19;
    ASSERT_THAT(Outside({"forkbomb", "30"}), Succeeded());
    EXPECT_THAT(Inside(jail, {"forkbomb", std::to_string(children - 1)}), Succeeded());
    EXPECT_THAT(Inside(jail, {"forkbomb", std::to_string(children)}), Succeeded());
    EXPECT_THAT(Inside(jail, {"forkbomb", std::to_string(children + 1)}), DeniedWith(EAGAIN));
    return;
  }
  // Others of the user count too, and how many there are is not ours to say; the server itself is one.
  jail.limits = "\"processes\": 1";
  const Outcome outcome = Inside(jail, {"forkbomb", "1"});
  EXPECT_THAT(outcome, DeniedWith(EAGAIN));
  EXPECT_THAT(outcome.report.layers[3].does, HasSubstr("of this user, others of his counted"));
}

TEST_P(JailTest, NoCapabilityIsLeft) {
  const Outcome outcome = Inside(Closed(), {"ids"});
  EXPECT_THAT(outcome, SaysOk(AllOf(HasSubstr("CapPrm=0000000000000000"), HasSubstr("CapEff=0000000000000000"),
                                    HasSubstr("CapInh=0000000000000000"), HasSubstr("CapAmb=0000000000000000"),
                                    HasSubstr("NoNewPrivs=1"), HasSubstr("Seccomp=2"))));
  EXPECT_THAT(outcome.out, Not(HasSubstr("Uid=0,")));
}

TEST_P(JailTest, TheKernelsSettingsCannotBeChanged) {
  EXPECT_THAT(Inside(Closed(), {"write", "/proc/self/comm", "x"}), DeniedWithAnyOf({InA() ? EROFS : EACCES, EACCES}));
  EXPECT_THAT(Inside(Closed(), {"write", "/proc/sys/kernel/core_pattern", "core"}),
              DeniedWithAnyOf({InA() ? EROFS : EACCES, EACCES}));
}

}  // namespace
}  // namespace bulkhead::launcher
