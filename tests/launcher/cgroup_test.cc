// Where a launch may make its cgroup, on made-up trees: what cgroup v2, v1, systemd, a container and an ordinary user's
// session look like. The files are ordinary ones, owned by who runs the test.
#include "bulkhead/launcher/cgroup.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::launcher {
namespace {

using testing::HasSubstr;

constexpr char kV1Only[] = "4:memory:/\n3:pids:/\n";
constexpr char kAll[] = "cpu io memory pids\n";

class CgroupTest : public testing::Test {
 protected:
  CgroupTest() {
    std::string name = testing::TempDir() + "/cgroup.XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~CgroupTest() override { std::filesystem::remove_all(root_); }

  void File(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  // A group: the root ("") has no type.
  void Group(const std::string& path, const std::string& subtree, const std::string& type = "domain\n") {
    File(path + "/cgroup.controllers", kAll);
    File(path + "/cgroup.subtree_control", subtree);
    File(path + "/cgroup.procs", "");
    if (!path.empty() && path != "/unified") File(path + "/cgroup.type", type);
  }
  void Limits(const std::string& path, const std::string& memory, const std::string& pids) {
    File(path + "/memory.max", memory);
    File(path + "/memory.swap.max", "max\n");
    File(path + "/pids.max", pids);
  }
  // /user.slice/user-1000.slice/user@1000.service/app.slice/host.scope, as systemd delegates it.
  void Session() {
    Group("", kAll);
    Group("/user", kAll);
    Group("/user/app.slice", "memory pids\n");
    Group("/user/app.slice/host.scope", "");
    Limits("/user/app.slice/host.scope", "max\n", "max\n");
  }
  CgroupPlace Choose(const std::string& own) const { return ChooseCgroup(root_, own, geteuid()); }
  void ExpectNowhere(const std::string& own, const std::string& why) const {
    const CgroupPlace place = Choose(own);
    EXPECT_EQ(place.folder, "");
    EXPECT_FALSE(place.memory || place.pids);
    EXPECT_THAT(place.why_not, HasSubstr(why));
    EXPECT_NE(place.remedy, "");
  }

  std::string root_;
};

constexpr char kOwn[] = "0::/user/app.slice/host.scope\n";

TEST_F(CgroupTest, WhatIsDelegatedToAUserTakesItBesideTheHost) {
  Session();
  const CgroupPlace place = Choose(kOwn);
  EXPECT_EQ(place.folder, root_ + "/user/app.slice");
  EXPECT_EQ(place.mount, root_);
  EXPECT_TRUE(place.memory && place.pids && place.swap);
  EXPECT_EQ(place.memory_max, UINT64_MAX);
  EXPECT_EQ(place.pids_max, UINT64_MAX);
  EXPECT_EQ(place.why_not, "");
}

TEST_F(CgroupTest, TheHostsOwnLimitsAreKnown) {
  Session();
  Limits("/user/app.slice/host.scope", "1073741824\n", "4194\n");
  const CgroupPlace place = Choose(kOwn);
  EXPECT_EQ(place.memory_max, 1u << 30);
  EXPECT_EQ(place.pids_max, 4194u);
}

TEST_F(CgroupTest, WithoutSwapAccounting) {
  Session();
  std::filesystem::remove(root_ + "/user/app.slice/host.scope/memory.swap.max");
  EXPECT_FALSE(Choose(kOwn).swap);
}

TEST_F(CgroupTest, BesideTheRootThereIsNone) {
  Group("", kAll);
  ExpectNowhere("0::/\n", "in the root group of");
}

TEST_F(CgroupTest, OneControllerIsBetterThanNone) {
  Session();
  Group("/user/app.slice", "pids\n");
  const CgroupPlace place = Choose(kOwn);
  EXPECT_EQ(place.folder, root_ + "/user/app.slice");
  EXPECT_TRUE(place.pids);
  EXPECT_FALSE(place.memory);
  EXPECT_THAT(place.why_not, HasSubstr("/user/app.slice/cgroup.subtree_control has no memory"));
}

TEST_F(CgroupTest, WithoutCgroups) { ExpectNowhere("", "no cgroup v2 is mounted at"); }

TEST_F(CgroupTest, WithV1Alone) {
  File("/memory/cgroup.procs", "");
  File("/pids/cgroup.procs", "");
  ExpectNowhere(kV1Only, "no cgroup v2 is mounted at");
}

TEST_F(CgroupTest, HybridHasTheControllersInV1) {
  File("/memory/cgroup.procs", "");
  Group("/unified", "");
  File("/unified/cgroup.controllers", "hugetlb\n");
  ExpectNowhere(absl::StrCat(kV1Only, "0::/\n"), "has no controllers for memory and processes");
}

TEST_F(CgroupTest, HybridWithAControllerInV2) {
  Group("/unified", "memory\n");
  const CgroupPlace place = Choose(absl::StrCat(kV1Only, "0::/host\n"));
  EXPECT_EQ(place.folder, root_ + "/unified");
  EXPECT_TRUE(place.memory);
  EXPECT_FALSE(place.pids);
}

TEST_F(CgroupTest, TheControllersHaveToBeEnabled) {
  Session();
  Group("/user/app.slice", "cpu\n");
  ExpectNowhere(kOwn, "/user/app.slice/cgroup.subtree_control has neither memory nor pids");
}

TEST_F(CgroupTest, ALoginSessionLiesInAFolderOfRoots) {
  Session();
  ASSERT_EQ(chmod((root_ + "/user/app.slice").c_str(), 0555), 0);
  ExpectNowhere(kOwn, "may not make a cgroup in");
  const CgroupPlace place = ChooseCgroup(root_, kOwn, geteuid() + 1);
  EXPECT_EQ(place.folder, "");
  EXPECT_THAT(place.remedy, HasSubstr("systemd-run --user --scope"));
  chmod((root_ + "/user/app.slice").c_str(), 0755);  // to be removed
}

TEST_F(CgroupTest, ProcessesCanOnlyBeMovedWhereTheirListIsWritable) {
  Session();
  ASSERT_EQ(chmod((root_ + "/user/app.slice/cgroup.procs").c_str(), 0444), 0);
  ExpectNowhere(kOwn, "may not make a cgroup in");
}

TEST_F(CgroupTest, AContainersRootHoldsProcesses) {
  Group("", "");
  File("/cgroup.type", "domain\n");
  ExpectNowhere("0::/\n", "in the root group of");
}

TEST_F(CgroupTest, BelowAContainersRoot) {
  Group("", kAll);
  File("/cgroup.type", "domain\n");
  Group("/host", "");
  EXPECT_EQ(Choose("0::/host\n").folder, root_);
}

TEST_F(CgroupTest, OutsideOfTheNamespace) {
  Group("", kAll);
  ExpectNowhere("0::/../other\n", "outside of its cgroup namespace");
}

TEST_F(CgroupTest, NamesMayHoldTwoDots) {
  Session();
  Group("/user/app.slice/a..b", "");
  EXPECT_EQ(Choose("0::/user/app.slice/a..b\n").folder, root_ + "/user/app.slice");
}

TEST_F(CgroupTest, GroupsOfThreadsHoldNoProcesses) {
  for (const char* type : {"threaded\n", "domain threaded\n", "domain invalid\n"}) {
    Session();
    Group("/user/app.slice", kAll, type);
    ExpectNowhere(kOwn, "hold threads");
  }
}

TEST_F(CgroupTest, WithoutProc) {
  Session();
  ExpectNowhere("", "/proc/self/cgroup names no group");
  ExpectNowhere("0::user\n", "outside of its cgroup namespace");
}

// ---- Sweeping

class SweepTest : public CgroupTest {
 protected:
  std::string Name(ino_t space, pid_t pid) const {
    return absl::StrCat(root_, "/bulkhead-", absl::Hex(static_cast<std::uint32_t>(space), absl::kZeroPad8),
                        absl::Hex(pid, absl::kZeroPad8));
  }
  static ino_t Space() {
    struct stat info;
    return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
  }
  static pid_t DeadPid() {
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    waitpid(pid, nullptr, 0);
    return pid;
  }
};

TEST_F(SweepTest, GroupsOfDeadKeepersGo) {
  const pid_t dead = DeadPid();
  const std::string stale = Name(Space(), dead);
  const std::string kept[] = {Name(Space(), getpid()),     Name(Space() + 1, dead),
                              root_ + "/bulkhead-of-mine", absl::StrCat(Name(Space(), dead), "0"),
                              root_ + "/other.scope",      Name(Space(), 0)};
  std::filesystem::create_directory(stale);
  std::filesystem::create_directory(stale + ".init");
  for (const std::string& path : kept) std::filesystem::create_directory(path);
  SweepCgroups(root_);
  EXPECT_FALSE(std::filesystem::exists(stale));
  EXPECT_FALSE(std::filesystem::exists(stale + ".init"));
  for (const std::string& path : kept) EXPECT_TRUE(std::filesystem::exists(path)) << path;
}

TEST_F(SweepTest, WhatIsNotEmptyStays) {
  const std::string stale = Name(Space(), DeadPid());
  std::filesystem::create_directories(stale + "/group");
  SweepCgroups(root_);
  EXPECT_TRUE(std::filesystem::exists(stale + "/group"));
}

TEST_F(SweepTest, AFolderThatIsNotThere) { SweepCgroups(root_ + "/none"); }

}  // namespace
}  // namespace bulkhead::launcher
