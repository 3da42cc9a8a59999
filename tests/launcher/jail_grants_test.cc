// Rights on what is granted, grants that change before the launch, and the private folders, in tiers A and B.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/launcher/jail_test.h"

namespace bulkhead::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// ---- Rights on what is granted

TEST_P(JailTest, ReadOnlyFilesCannotBeChanged) {
  const std::string file = host_.File("data/file", "as it was"), free_file = host_.File("free/file", "");
  for (const Words& attack : std::vector<Words>{{"write", file, "x"},
                                                {"append", file, "x"},
                                                {"write", host_ / "data/new", "x"},
                                                {"mkdir", host_ / "data/new"},
                                                {"symlink", "/", host_ / "data/new"},
                                                {"unlink", file},
                                                {"link", file, host_ / "data/new"},
                                                {"rename", file, host_ / "data/new"}}) {
    SCOPED_TRACE(testing::PrintToString(attack));
    ASSERT_THAT(Outside(attack), Succeeded());
    for (const char* name : {"data/new", "data/file"}) {
      unlink((host_ / name).c_str());
      rmdir((host_ / name).c_str());
    }
    host_.File("data/file", "as it was");
    Jail jail = AsPerson(Writing({host_ / "free"}));
    jail.ro = {host_ / "data"};
    EXPECT_THAT(Inside(jail, attack), DeniedWithAnyOf({InA() ? EROFS : EACCES, EACCES}));
    EXPECT_EQ(ReadFile(file), "as it was");
    EXPECT_FALSE(Exists(host_ / "data/new"));
  }
}

TEST_P(JailTest, ReadOnlyFilesCannotBeMovedIntoWritableOnes) {
  const std::string file = host_.File("data/file", "as it was"), target = host_.Folder("free") + "/file";
  ASSERT_THAT(Outside({"rename", file, target}), Succeeded());
  ASSERT_THAT(Outside({"rename", target, file}), Succeeded());
  Jail jail = AsPerson(Writing({host_ / "free"}));
  jail.ro = {host_ / "data"};
  for (const char* how : {"rename", "link"}) {
    EXPECT_THAT(Inside(jail, {how, file, target}), DeniedWithAnyOf({EXDEV, EACCES, InA() ? EROFS : EACCES}));
    EXPECT_FALSE(Exists(target));
  }
  EXPECT_THAT(Inside(jail, {"write", target, "x"}), Succeeded());
  EXPECT_THAT(Inside(jail, {"rename", target, target + "2"}), Succeeded());
}

TEST_P(JailTest, ModesOfReadOnlyFilesStayInTierAAndAreReportedInTierB) {
  const std::string file = host_.File("data/file", "");
  ASSERT_THAT(Outside({"chmod", file, "0600"}), Succeeded());
  const Outcome outcome = Inside(AsPerson(Reading({host_ / "data"})), {"chmod", file, "0644"});
  if (InA()) {
    EXPECT_THAT(outcome, DeniedWith(EROFS));
  } else {
    EXPECT_THAT(LayerGap(outcome, "landlock"), HasSubstr("chmod"));
  }
}

TEST_P(JailTest, OnlyWhatIsGrantedForThatCanBeExecuted) {
  const std::string program = host_.Folder("data") + "/probe";
  ASSERT_EQ(RunOutside(host_, {"exec", "/bin/cp", host_.probe(), program}).end.code, 0);
  ASSERT_EQ(Outside({"exec", program, "exit", "7"}).end.code, 7);
  EXPECT_THAT(Inside(Reading({host_ / "data"}), {"exec", program, "exit", "7"}), DeniedWith(EACCES));
  EXPECT_THAT(Inside(Writing({host_ / "data"}), {"exec", program, "exit", "7"}), DeniedWith(EACCES));
  Jail jail = Closed();
  jail.rx = {host_ / "data"};
  EXPECT_EQ(Inside(jail, {"exec", program, "exit", "7"}).end.code, 7);
  // Nor what the server writes itself.
  EXPECT_THAT(Shell(Closed(), absl::StrCat("D=${TMPDIR:-/tmp}; cp ", host_.probe(), " $D/p && exec ", host_.probe(),
                                           " exec $D/p exit 7")),
              DeniedWith(EACCES));
}

TEST_P(JailTest, NewFilesBelongToThePersonOnDisk) {
  const std::string file = host_.Folder("work") + "/new";
  EXPECT_THAT(Inside(Writing({host_ / "work"}), {"write", file, "made inside"}), Succeeded());
  struct stat info;
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, host_.person());
  EXPECT_EQ(ReadFile(file), "made inside");
}

TEST_P(JailTest, AWritableFolderInAReadOnlyOne) {
  host_.Folder("work/out");
  Jail jail = Writing({host_ / "work/out"});
  jail.ro = {host_ / "work"};
  EXPECT_THAT(Inside(jail, {"write", host_ / "work/out/file", "x"}), Succeeded());
  EXPECT_THAT(Inside(jail, {"write", host_ / "work/file", "x"}), DeniedWithAnyOf({InA() ? EROFS : EACCES, EACCES}));
}

TEST_P(JailTest, AReadOnlyFolderInAWritableOneStaysWritable) {
  host_.Folder("work/sub");
  Jail jail = Writing({host_ / "work"});
  jail.ro = {host_ / "work/sub"};
  EXPECT_THAT(Inside(jail, {"write", host_ / "work/sub/file", "x"}), Succeeded());
}

TEST_P(JailTest, AGrantInThePrivateHomeIsThereAlone) {
  const std::string file = host_.File("home/project/file", "granted");
  EXPECT_THAT(Inside(Reading({host_.home() + "/project"}), {"read", file}), SaysOk(HasSubstr("granted")));
  EXPECT_THAT(Inside(Reading({host_.home() + "/project"}), {"read", host_.key()}), DeniedWith(Hidden()));
}

TEST_P(JailTest, ThePrivateHomeCoversAGrantAroundItInTierA) {
  const std::string file = host_.File("file", "granted");
  const Jail jail = Reading({host_.folder()});
  EXPECT_THAT(Inside(jail, {"read", file}), SaysOk(HasSubstr("granted")));
  const Outcome outcome = Inside(jail, {"read", host_.key()});
  if (InA()) {
    EXPECT_THAT(outcome, DeniedWith(ENOENT));
  } else {
    EXPECT_THAT(LayerGap(outcome, "namespaces"), HasSubstr("$HOME"));
  }
}

TEST_P(JailTest, AGrantThroughALinkHasBothItsNames) {
  const std::string file = host_.File("data/file", "granted");
  host_.Link("data", "current");
  const Jail jail = Reading({host_ / "current"});
  EXPECT_THAT(Inside(jail, {"read", host_ / "current/file"}), SaysOk(HasSubstr("granted")));
  EXPECT_THAT(Inside(jail, {"read", file}), SaysOk(HasSubstr("granted")));
}

TEST_P(JailTest, AGrantMayHaveSpacesAndQuotes) {
  const std::string file = host_.File("my \"old\" files/a b", "granted");
  EXPECT_THAT(Inside(Reading({host_ / "my \"old\" files"}), {"read", file}), SaysOk(HasSubstr("granted")));
}

TEST_P(JailTest, AFileCanBeGrantedWithoutItsFolder) {
  const std::string file = host_.File("data/file", "granted"), other = host_.File("data/other", "");
  EXPECT_THAT(Inside(Reading({file}), {"read", file}), SaysOk(HasSubstr("granted")));
  EXPECT_THAT(Inside(Reading({file}), {"read", other}), DeniedWith(Hidden()));
}

TEST_P(JailTest, AllOfTheHostCanBeGranted) {
  const std::string file = host_.File("data/file", "granted");
  const Outcome outcome = Inside(Reading({"/"}), {"read", file});
  EXPECT_THAT(outcome, SaysOk(HasSubstr("granted")));
  EXPECT_THAT(outcome.report.weakened, testing::Contains("all of / is granted"));
}

// ---- Grants that change between the plan and the launch

TEST_P(JailTest, AGrantThatWasReplacedIsNotGranted) {
  host_.File("data/file", "");
  absl::StatusOr<LaunchPlan> plan = MakePlan(host_, Reading({host_ / "data"}), {host_.probe(), "exit", "0"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(RunPlan(*plan).end.code, 0);
  ASSERT_EQ(rename((host_ / "data").c_str(), (host_ / "old").c_str()), 0);
  host_.Folder("data");
  EXPECT_THAT(RunPlan(*plan), RefusedSaying("was replaced since it was checked"));
}

TEST_P(JailTest, AGrantThatBecameALinkIsNotGranted) {
  host_.Folder("data");
  absl::StatusOr<LaunchPlan> plan = MakePlan(host_, Reading({host_ / "data"}), {host_.probe(), "read", host_.key()});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_THAT(RunPlan(*plan), DeniedWith(Hidden()));
  ASSERT_EQ(rmdir((host_ / "data").c_str()), 0);
  host_.Link(host_.home() + "/.ssh", "data");
  EXPECT_THAT(RunPlan(*plan), RefusedSaying("a link took "));
}

TEST_P(JailTest, AGrantThatWasRemovedIsSaid) {
  host_.Folder("data");
  absl::StatusOr<LaunchPlan> plan = MakePlan(host_, Reading({host_ / "data"}), {host_.probe(), "exit", "0"});
  ASSERT_EQ(rmdir((host_ / "data").c_str()), 0);
  EXPECT_THAT(RunPlan(plan), RefusedSaying("was removed since it was checked"));
}

TEST_P(JailTest, AGrantThatLeadsOutOfItsFolderIsRefused) {
  Jail jail = Reading({"${workspace}/notes"});
  jail.workspace = host_.Folder("work");
  host_.File("work/notes/file", "granted");
  ASSERT_THAT(Inside(jail, {"read", host_ / "work/notes/file"}), SaysOk(HasSubstr("granted")));
  ASSERT_EQ(rename((host_ / "work/notes").c_str(), (host_ / "work/other").c_str()), 0);
  host_.Link("other", "work/notes");
  EXPECT_THAT(Inside(jail, {"read", host_ / "work/notes/file"}), SaysOk(HasSubstr("granted")));
  ASSERT_EQ(unlink((host_ / "work/notes").c_str()), 0);
  host_.Link("../home/.ssh", "work/notes");
  EXPECT_THAT(Inside(jail, {"read", host_.key()}), RefusedSaying("leads out of"));
}

// ---- Private folders

TEST_P(JailTest, HomeAndTmpAreEmptyAndGoneAfterwards) {
  const std::string name = NewToken();
  const Outcome outcome =
      Shell(Closed(),
            absl::StrCat("set -e; T=${TMPDIR:-/tmp}; ls -A \"$HOME\" \"$T\"; echo 1 >\"$HOME/", name,
                         "\"; echo 2 >\"$T/", name, "\"; cat \"$HOME/", name, "\" \"$T/", name, "\"; echo \"$HOME\""));
  ASSERT_THAT(outcome.out, HasSubstr("1\n2\n")) << outcome;
  EXPECT_THAT(outcome.out, Not(HasSubstr(".ssh")));
  EXPECT_FALSE(Exists(absl::StrCat("/tmp/", name)));
  EXPECT_FALSE(Exists(absl::StrCat(host_.home(), "/", name)));
  const std::string home = outcome.out.substr(outcome.out.rfind('\n', outcome.out.size() - 2) + 1);
  if (InA()) {
    EXPECT_EQ(home, host_.home() + "\n");
  } else {
    EXPECT_THAT(home, StartsWith("/tmp/bulkhead-"));
    EXPECT_FALSE(Exists(home.substr(0, home.size() - 1)));
  }
}

TEST_P(JailTest, FoldersThatTheServerMadeUnreadableGoToo) {
  const Outcome outcome = Shell(Closed(), "cd \"$HOME\" && mkdir -p a/b/c && touch a/b/c/f && chmod 0 a/b a; pwd");
  ASSERT_EQ(outcome.end.code, 0) << outcome;
  const std::string home = outcome.out.substr(0, outcome.out.size() - 1);
  EXPECT_TRUE(Exists(home) == InA()) << home;  // in tier A that is the host's own, which it never saw
  EXPECT_FALSE(Exists(host_.home() + "/a"));
}

TEST_P(JailTest, AFileInTheHostsTmpIsNotSeen) {
  const std::string path = absl::StrCat("/tmp/", NewToken());
  close(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_THAT(Outside({"read", path}), Succeeded());
  EXPECT_THAT(Inside(Closed(), {"read", path}), DeniedWith(Hidden()));
  EXPECT_THAT(Inside(Closed(), {"list", "/tmp"}), InA() ? SaysOk("ok\n") : DeniedWith(EACCES));
  unlink(path.c_str());
}

TEST_P(JailTest, TheWorkingFolderIsTheOneAskedFor) {
  Jail jail = Reading({host_ / "data"});
  jail.cwd = host_.Folder("data/sub");
  EXPECT_THAT(Inside(jail, {"cwd"}), SaysOk("ok " + jail.cwd + "\n"));
}

TEST_P(JailTest, AFolderThatNobodyAskedForIsReplacedByThePrivateHome) {
  EXPECT_THAT(Inside(Closed(), {"cwd"}), SaysOk(InA() ? HasSubstr(host_.home()) : HasSubstr("/tmp/bulkhead-")));
}

TEST_P(JailTest, AWorkingFolderThatIsNotGrantedIsRefused) {
  Jail jail = Closed();
  jail.cwd = host_.Folder("data");
  EXPECT_THAT(Inside(jail, {"cwd"}), RefusedSaying("the policy doesn't grant it"));
}

}  // namespace
}  // namespace bulkhead::launcher
