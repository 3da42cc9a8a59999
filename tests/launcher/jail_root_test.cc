// Started as root: nothing that root could do is left to the server. Registers no test for an ordinary user.
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/launcher/jail_test.h"

namespace bulkhead::launcher {
namespace {

using policy::Tier;
using testing::HasSubstr;
using testing::Not;

class RootJailTest : public JailTest {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RootJailTest);

std::vector<Tier> TiersOfRoot() { return IsRoot() ? std::vector<Tier>{Tier::kA, Tier::kB} : std::vector<Tier>{}; }
INSTANTIATE_TEST_SUITE_P(Tier, RootJailTest, testing::ValuesIn(TiersOfRoot()), TierOf);

TEST_P(RootJailTest, CorePatternCannotBeWrittenEvenByKernelRoot) {
  const std::string path = "/proc/sys/kernel/core_pattern", as_it_is = ReadFile(path);
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0) << "the host's root itself may not write it";
  close(fd);
  Jail jail = Closed();
  EXPECT_THAT(Inside(jail, {"write", path, as_it_is}), DeniedWithAnyOf({EACCES, InA() ? EROFS : EACCES}));
  jail.user = "root";
  const Outcome outcome = Inside(jail, {"write", path, as_it_is});
  if (InA()) {
    EXPECT_THAT(outcome, DeniedWith(EROFS));
    EXPECT_THAT(Inside(jail, {"append", "/proc/sysrq-trigger", "h"}), DeniedWithAnyOf({EROFS, ENOENT}));
    EXPECT_THAT(outcome.report.weakened, testing::Contains(HasSubstr("kernel uid 0")));
  } else {
    EXPECT_FALSE(outcome.launched.ok()) << "kernel uid 0 is for tier A only";
  }
}

TEST_P(RootJailTest, TheServersUidIsItsOwn) {
  EXPECT_THAT(Inside(Closed(), {"ids"}),
              SaysOk(testing::ContainsRegex(InA() ? "Uid=1000,1000,1000,1000" : "Uid=(18|19|20)[0-9]{8},")));
  const absl::StatusOr<LaunchPlan> plan = MakePlan(host_, Closed(), {host_.probe(), "wait", NewToken()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  absl::StatusOr<Process> one = Launch(*plan), two = Launch(*plan);
  ASSERT_TRUE(one.ok() && two.ok());
  const auto uid_of = [](const Process& process) {
    const std::string info = ReadFile(absl::StrCat("/proc/self/fdinfo/", process.pidfd()));
    const std::string keeper = std::to_string(atoi(info.c_str() + info.find("Pid:") + 4));
    int pid = atoi(ReadFile(absl::StrCat("/proc/", keeper, "/task/", keeper, "/children")).c_str());
    pid = atoi(ReadFile(absl::StrCat("/proc/", pid, "/task/", pid, "/children")).c_str());
    struct stat folder = {};
    EXPECT_EQ(stat(absl::StrCat("/proc/", pid).c_str(), &folder), 0);
    return folder.st_uid;
  };
  EXPECT_GE(uid_of(*one), wire::kPerLaunchUidBase);
  EXPECT_NE(uid_of(*one), uid_of(*two));
}

TEST_P(RootJailTest, NoGroupOfTheHostPasses) {
  std::vector<gid_t> before(static_cast<std::size_t>(getgroups(0, nullptr)));
  ASSERT_EQ(getgroups(static_cast<int>(before.size()), before.data()), static_cast<int>(before.size()));
  const gid_t group = 4242;
  ASSERT_EQ(setgroups(1, &group), 0);
  EXPECT_EQ(system("grep -q '^Groups:.*4242' /proc/self/status"), 0) << "outside";
  const Outcome ids = Inside(Closed(), {"ids"});
  ASSERT_EQ(setgroups(before.size(), before.data()), 0);
  EXPECT_THAT(ids, SaysOk(HasSubstr("Groups= CapInh=")));
}

TEST_P(RootJailTest, NoSetuidFileCanBePlanted) {
  const std::string file = host_.File("work/file", ""), made = host_ / "work/made";
  Jail jail = Writing({host_ / "work"});
  if (InA()) {
    host_.GiveTo(host_ / "work", 0);  // then it would be setuid root on disk
    host_.GiveTo(file, 0);
  }
  ASSERT_EQ(chmod(file.c_str(), 04755), 0);
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  EXPECT_THAT(Inside(jail, {"chmod", file, "0755"}), Succeeded());
  for (const char* mode : {"04755", "02755", "06755"}) {
    EXPECT_THAT(Inside(jail, {"chmod", file, mode}), DeniedWith(EPERM));
    EXPECT_THAT(Inside(jail, {"mknod", made, absl::StrCat("010", mode + 1)}), DeniedWith(EPERM));
    const Outcome opened = RunCommand(
        host_, jail,
        {"/usr/bin/perl", "-e", absl::StrCat("print sysopen(F, '", made, "', 0101, ", mode, ") ? 'ok' : $!{EPERM}")});
    EXPECT_TRUE(opened.launched.ok()) << opened;
    EXPECT_THAT(opened.out, Not(HasSubstr("ok")));
    EXPECT_FALSE(Exists(made));
  }
  EXPECT_EQ(RunCommand(host_, jail,
                       {"/usr/bin/perl", "-e", absl::StrCat("print sysopen(F, '", made, "', 0101, 0755) ? 'ok' : 1")})
                .out,
            "ok");
  struct stat info;
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0755u);
}

TEST_P(RootJailTest, FilesOfOthersInAGrantKeepTheirOwners) {
  host_.Folder("work");
  host_.File("work/persons", "of the person", 0600);
  host_.GiveTo(host_.File("work/roots", "of root", 0600), 0);
  const Jail jail = Writing({host_ / "work"});
  EXPECT_THAT(Inside(jail, {"read", host_ / "work/persons"}), SaysOk(HasSubstr("of the person")));
  EXPECT_THAT(Inside(jail, {"read", host_ / "work/roots"}), DeniedWith(EACCES));
  EXPECT_THAT(Inside(jail, {"chmod", host_ / "work/roots", "0644"}), DeniedWith(EPERM));
}

// ---- Mounts

// Runs `test` in a child with mounts of its own that are shared, as systemd makes them at boot.
template <typename F>
void WithSharedMounts(F test) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) != 0) _exit(2);
    test();
    fflush(stdout);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_P(RootJailTest, NoMountOfTheJailShowsOnTheHost) {
  const Jail jail = Reading({host_.folder()});  // the private home is mounted in there, and the folder for executing
  WithSharedMounts([&] {
    const std::string before = ReadFile("/proc/self/mountinfo");
    EXPECT_THAT(Inside(jail, {"list", host_.folder()}), Succeeded());
    EXPECT_EQ(ReadFile("/proc/self/mountinfo"), before);
    EXPECT_THAT(Outside({"read", host_.key()}), Succeeded());
  });
}

TEST_P(RootJailTest, WhatTheHostMountsLaterIsNotInTheJail) {
  if (!InA()) return;  // there the host's tree is what is seen
  host_.File("data/file", "");
  WithSharedMounts([&] {
    const absl::StatusOr<LaunchPlan> plan =
        MakePlan(host_, Reading({host_ / "data"}), {"/bin/sh", "-c", absl::StrCat("read go; ls ", host_ / "data")});
    ASSERT_TRUE(plan.ok()) << plan.status();
    absl::StatusOr<Process> process = Launch(*plan);
    ASSERT_TRUE(process.ok()) << process.status();
    ASSERT_EQ(mount("tmpfs", (host_ / "data").c_str(), "tmpfs", 0, nullptr), 0);
    ASSERT_EQ(write(process->stdin_fd().get(), "\n", 1), 1);
    char text[16] = "";
    EXPECT_GT(read(process->stdout_fd().get(), text, sizeof text - 1), 0);
    EXPECT_STREQ(text, "file\n");
  });
}

// ---- Owners

TEST_P(RootJailTest, AGrantThatRootOwnsIsWritableInTierAAndRefusedInTierB) {
  const std::string folder = host_.Folder("work"), file = folder + "/new";
  host_.GiveTo(folder, 0);
  Jail jail = Closed();
  jail.rw = {folder};
  const Outcome outcome = Inside(jail, {"write", file, "x"});
  if (InA()) {
    EXPECT_THAT(outcome, Succeeded());
    struct stat info;
    ASSERT_EQ(stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, 0u);
  } else {
    EXPECT_THAT(outcome, RefusedSaying("tier B can't give a server started by root write access to"));
  }
}

// cap_net_raw, permitted and effective; see capabilities(7) and linux/capability.h.
void GiveCapabilities(const std::string& file) {
  const std::uint32_t words[5] = {VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE, 1u << CAP_NET_RAW, 0, 0, 0};
  ASSERT_EQ(setxattr(file.c_str(), "security.capability", words, sizeof words, 0), 0);
}

// The attack itself, without the search: what a refused grant would let happen.
TEST_P(RootJailTest, AServerCanRewriteAFileAndLeaveItsPrivileges) {
  if (!InA()) return;  // there the file stays root's
  const std::string folder = host_.Folder("work", 0700), file = host_.File("work/tool", "as it was");
  host_.GiveTo(folder, 0);
  host_.GiveTo(file, 0);
  Jail jail = Writing({folder});
  jail.ro = {"/usr"};
  const std::vector<std::string> rewrite = {
      "/usr/bin/python3", "-c",
      absl::StrCat("import mmap, os; os.chmod('", folder, "', 0o755); m = mmap.mmap(os.open('", file,
                   "', os.O_RDWR), 0); m[0:4] = b'evil'; print('ok')")};
  EXPECT_EQ(RunCommand(host_, jail, rewrite).out, "ok\n");  // control: it is what a grant to write is
  EXPECT_EQ(ReadFile(file), "evilt was");
  for (const bool setuid : {true, false}) {
    ASSERT_EQ(chmod(folder.c_str(), 0700), 0);  // no protection: the server can open it
    ASSERT_EQ(chmod(file.c_str(), setuid ? 04755 : 0755), 0);
    if (!setuid) GiveCapabilities(file);
    EXPECT_FALSE(RunCommand(host_, jail, rewrite).launched.ok());
    struct stat info;
    ASSERT_EQ(stat(folder.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700u);
  }
}

// Its owner on disk is root, as whom the server may open it for writing through the mapping; what it stores through a
// shared mapping leaves the bit alone.
TEST_P(RootJailTest, ASetuidFileInAWriteGrantIsARefusal) {
  const std::string folder = host_.Folder("work"), file = host_.File("work/tool", "#!/bin/sh\n");
  Jail jail = Closed();
  jail.rw = {folder};
  jail.user = "nobody";
  host_.GiveTo(folder, kNobody);
  EXPECT_THAT(Inside(jail, {"list", folder}), Succeeded());  // control
  ASSERT_EQ(chmod(file.c_str(), 04755), 0);
  EXPECT_THAT(Inside(jail, {"list", folder}), RefusedSaying(absl::StrCat("holds a setuid or setgid file, \"", file)));
  ASSERT_EQ(chmod(file.c_str(), 0755), 0);
  GiveCapabilities(file);
  EXPECT_THAT(Inside(jail, {"list", folder}), RefusedSaying(absl::StrCat("holds a file with capabilities, \"", file)));
  jail.rw.clear();
  jail.ro = {folder};
  EXPECT_THAT(Inside(jail, {"list", folder}), Succeeded());
}

TEST_P(RootJailTest, WhatOnlyRootCanRunIsNotSearchedForSetuidFiles) {
  const std::string closed = host_.Folder("closed"), folder = host_.Folder("closed/data");
  const std::string file = host_.File("closed/data/tool", "#!/bin/sh\n");
  ASSERT_EQ(chmod(file.c_str(), 04755), 0);
  Jail jail = Closed();
  jail.rw = {folder};
  const auto outcome_with = [&](const std::string& path, mode_t mode, uid_t owner) {
    chmod(path.c_str(), mode);
    host_.GiveTo(path, owner);
    return MakePlan(host_, jail, {host_.probe(), "list", folder}).status();
  };
  const auto is_refused = [](const absl::Status& status) {
    return absl::StrContains(status.message(), "holds a setuid or setgid file");
  };
  EXPECT_TRUE(is_refused(outcome_with(closed, 0755, 0)));  // control
  EXPECT_FALSE(is_refused(outcome_with(closed, 0700, 0)));
  EXPECT_TRUE(is_refused(outcome_with(closed, 0710, 0))) << "a group may enter";
  EXPECT_TRUE(is_refused(outcome_with(closed, 0701, 0))) << "others may enter";
  EXPECT_TRUE(is_refused(outcome_with(closed, 0700, kNobody))) << "another user's";
  EXPECT_TRUE(is_refused(outcome_with(closed, 0755, 0)));
  EXPECT_TRUE(is_refused(outcome_with(folder, 0700, 0))) << "what is granted the server can open itself";
}

TEST_P(RootJailTest, AWriteGrantThatWouldGrantNothingIsRefused) {
  const std::string folder = host_.Folder("work");
  Jail jail = Closed();
  jail.rw = {folder};
  WithSharedMounts([&] {
    ASSERT_EQ(mount("ramfs", folder.c_str(), "ramfs", 0, "mode=0755"), 0);
    EXPECT_THAT(Inside(jail, {"write", folder + "/new", "x"}),
                RefusedSaying("on a file system that can't be mounted for another user"));
    host_.GiveTo(folder, kNobody);
    jail.user = "nobody";
    EXPECT_THAT(Inside(jail, {"write", folder + "/new", "x"}), Succeeded());
  });
}

TEST_P(RootJailTest, AFolderThatIsClosedToTheNamedUserIsNamed) {
  const std::string closed = host_.Folder("closed", 0700), folder = host_.Folder("closed/data");
  host_.GiveTo(closed, 0);
  Jail jail = Reading({folder});
  jail.user = "nobody";
  const Outcome outcome = Inside(jail, {"list", folder});
  if (InA()) {
    EXPECT_THAT(outcome, Succeeded());
  } else {
    EXPECT_THAT(outcome, RefusedSaying(absl::StrCat("because \"", closed, "\" is closed to it")));
  }
}

// ---- ${cache}

Jail WithCache(Jail jail) {
  jail.rw = {"${cache}"};
  jail.more = R"(,"env":{"set":{"CACHE":"${cache}"}})";
  return jail;
}
constexpr char kWriteToCache[] = "echo $$ > $CACHE/new && echo ok";

TEST_P(RootJailTest, TheCacheIsMadeForTheNamedUser) {
  Jail jail = WithCache(Closed());
  jail.user = "nobody";
  const mode_t before = umask(077);
  for (int again = 0; again < 2; ++again) EXPECT_THAT(Shell(jail, kWriteToCache), Succeeded());
  umask(before);
  const absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail, {"/bin/true"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->folders_to_make().size(), 1u);
  struct stat cache, above;
  ASSERT_EQ(stat(plan->folders_to_make()[0].path.c_str(), &cache), 0);
  EXPECT_EQ(cache.st_uid, kNobody);
  EXPECT_EQ(cache.st_mode & 07777, 0700u);
  ASSERT_EQ(stat((host_ / "cache").c_str(), &above), 0);
  EXPECT_EQ(above.st_uid, 0u);
  EXPECT_EQ(above.st_mode & 07777, 0755u);
}

TEST_P(RootJailTest, ACacheForAUidThatChangesWithEveryLaunchNeedsMounts) {
  const Jail jail = WithCache(Closed());
  for (int again = 0; again < 2; ++again) {
    const Outcome outcome = Shell(jail, kWriteToCache);
    if (InA()) {
      EXPECT_THAT(outcome, Succeeded());
    } else {
      EXPECT_THAT(outcome, RefusedSaying("name an account as \"user\" in the policy, and it is made for that account"));
      EXPECT_FALSE(Exists(host_ / "cache"));
    }
  }
}

}  // namespace
}  // namespace bulkhead::launcher
