// `protect` and `hide`: what is taken away inside a granted tree, also in a workspace that is hostile.
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/launcher/jail_test.h"

namespace bulkhead::launcher {
namespace {

using testing::HasSubstr;

class JailCoverTest : public testing::Test {
 protected:
  // What is granted to write, and as whom: as the person, so that no file mode stands in an attack's way.
  Jail Work() const {
    Jail jail;
    jail.rw = {host_ / "work"};
    if (IsRoot()) jail.user = "nobody";
    return jail;
  }
  Jail Protecting(Words paths) const {
    Jail jail = Work();
    jail.protect = std::move(paths);
    return jail;
  }
  Jail Hiding(Words paths) const {
    Jail jail = Work();
    jail.hide = std::move(paths);
    return jail;
  }
  Outcome Inside(const Jail& jail, Words words) const { return RunInJail(host_, jail, std::move(words)); }
  Outcome Shell(const Jail& jail, const std::string& script) const {
    return RunCommand(host_, jail, {"/bin/sh", "-c", absl::StrCat("cd ", host_ / "work", "; ", script)});
  }

  Host host_;
  const std::string config_ = host_.File("work/.git/config", "as it was");
  const std::string hooks_ = host_.Folder("work/.git/hooks");
  const std::string other_ = host_.File("work/other/file", "free");
};

// ---- protect

TEST_F(JailCoverTest, WhatIsProtectedCannotBeChanged) {
  const std::vector<Words> attacks = {
      {"write", config_, "x"},
      {"append", config_, "x"},
      {"mkdir", hooks_ + "/x"},
      {"unlink", config_},
      {"rename", config_, host_ / "work/stolen"},
      {"rename", other_, config_},
      {"symlink", "/", hooks_ + "/x"},
      {"link", other_, hooks_ + "/x"},
      {"link", config_, host_ / "work/again"},
      {"chmod", config_, "0600"},
      {"rename", host_ / "work/.git", host_ / "work/away"},
  };
  for (const Words& attack : attacks) {
    SCOPED_TRACE(testing::PrintToString(attack));
    Host host;
    Words same = attack;
    for (std::string& word : same) {
      if (word.rfind(host_.folder(), 0) == 0) word = host / word.substr(host_.folder().size() + 1);
    }
    const std::string config = host.File("work/.git/config", "as it was");
    host.Folder("work/.git/hooks");
    host.File("work/other/file", "free");
    Jail jail = Work();
    jail.rw = {host / "work"};
    jail.protect = {host / "work/.git"};
    EXPECT_THAT(RunInJail(host, jail, same), DeniedWithAnyOf({EROFS, EXDEV, EBUSY}));
    EXPECT_EQ(ReadFile(config), "as it was");
    jail.protect.clear();
    EXPECT_THAT(RunInJail(host, jail, same), Succeeded());  // the control, last since it changes things
  }
}

TEST_F(JailCoverTest, WhatIsProtectedCanStillBeReadAndTheRestWritten) {
  const Jail jail = Protecting({host_ / "work/.git"});
  EXPECT_THAT(Inside(jail, {"read", config_}), SaysOk(HasSubstr("as it was")));
  EXPECT_THAT(Inside(jail, {"write", other_, "new"}), Succeeded());
  EXPECT_EQ(ReadFile(other_), "new");
}

TEST_F(JailCoverTest, AProtectedFileIsAFileAndItsNeighboursAreFree) {
  const Jail jail = Protecting({config_});
  EXPECT_THAT(Inside(jail, {"write", config_, "x"}), DeniedWith(EROFS));
  EXPECT_THAT(Inside(jail, {"unlink", config_}), DeniedWith(EBUSY));
  EXPECT_THAT(Inside(jail, {"rename", other_, config_}), DeniedWithAnyOf({EBUSY, EXDEV}));
  EXPECT_THAT(Inside(jail, {"write", hooks_ + "/x", "x"}), Succeeded());
}

// Else: mv .git away; mkdir .git; and whoever runs git in the workspace next runs the server's hooks.
TEST_F(JailCoverTest, NoFolderAboveAProtectedOneCanBeRenamed) {
  const std::string deep = host_.File("work/a/b/c/.git/config", "as it was");
  const std::string attack =
      "mv a z 2>/dev/null && mkdir -p a/b/c/.git && echo evil >a/b/c/.git/config; "
      "cd a && mv b z 2>/dev/null && mkdir -p b/c/.git && echo evil >b/c/.git/config; "
      "cd b && mv c z 2>/dev/null && mkdir -p c/.git && echo evil >c/.git/config; echo done";
  EXPECT_THAT(Shell(Protecting({host_ / "work/a/b/c/.git"}), attack).out, HasSubstr("done"));
  EXPECT_EQ(ReadFile(deep), "as it was");
  EXPECT_THAT(Shell(Protecting({deep}), attack).out, HasSubstr("done"));
  EXPECT_EQ(ReadFile(deep), "as it was");
  EXPECT_THAT(Shell(Work(), attack).out, HasSubstr("done"));
  EXPECT_EQ(ReadFile(deep), "evil\n");
}

TEST_F(JailCoverTest, AGrantInsideAProtectedFolderIsReadOnly) {
  Jail jail = Protecting({host_ / "work/.git"});
  jail.rw.push_back(hooks_);
  EXPECT_THAT(Inside(jail, {"write", hooks_ + "/x", "x"}), DeniedWith(EROFS));
  jail = Protecting({host_ / "work"});  // the very grant
  EXPECT_THAT(Inside(jail, {"write", other_, "x"}), DeniedWith(EROFS));
  EXPECT_THAT(Inside(Work(), {"write", other_, "x"}), Succeeded());
}

TEST_F(JailCoverTest, ALinkThatTheServerMayReplaceIsNoProtection) {
  host_.Folder("work/real");
  const std::string link = host_.Link("real", "work/link");
  EXPECT_THAT(Inside(Protecting({link}), {"read", other_}),
              RefusedSaying("is a link, which the server could replace by another; protect the real path, \"" +
                            (host_ / "work/real")));
  // One that it may not replace is followed.
  const std::string outside = host_.Link("work", "outside");
  EXPECT_THAT(Inside(Protecting({outside + "/.git"}), {"write", config_, "x"}), DeniedWith(EROFS));
}

TEST_F(JailCoverTest, AFileWithASecondNameIsNotSaidToBeCovered) {
  ASSERT_EQ(link(config_.c_str(), (host_ / "work/second").c_str()), 0);
  EXPECT_THAT(Inside(Protecting({config_}), {"read", other_}), RefusedSaying("it has 2 names (hard links)"));
  EXPECT_THAT(Inside(Hiding({config_}), {"read", other_}), RefusedSaying("it has 2 names (hard links)"));
}

TEST_F(JailCoverTest, WhatIsMissingCannotBeTakenAway) {
  const std::string missing = host_ / "work/.svn";
  EXPECT_THAT(Inside(Protecting({missing}), {"read", other_}),
              RefusedSaying("does not exist; make it first: what isn't there can't be protected"));
  EXPECT_THAT(Inside(Hiding({missing}), {"read", other_}), RefusedSaying("does not exist; make it first"));
}

TEST_F(JailCoverTest, FifosAndSocketsWhereFilesAreExpected) {
  const std::string fifo = host_ / "work/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0666), 0);
  EXPECT_THAT(Inside(Protecting({fifo}), {"read", other_}), RefusedSaying("neither a file nor a folder"));
  EXPECT_THAT(Inside(Hiding({fifo}), {"read", other_}), RefusedSaying("neither a file nor a folder"));

  const std::string path = host_ / "work/s";
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(listener.get(), 1), 0);
  ASSERT_EQ(chmod(path.c_str(), 0777), 0);
  EXPECT_THAT(Inside(Protecting({path}), {"read", other_}), RefusedSaying("neither a file nor a folder"));
  EXPECT_THAT(Inside(Work(), {"connect-unix", path}), Succeeded());
  EXPECT_THAT(Inside(Hiding({path}), {"connect-unix", path}), DeniedWithAnyOf({EACCES, ECONNREFUSED}));
}

TEST_F(JailCoverTest, TheWorkspacesLinksLeadNowhereElse) {
  Jail jail = Work();
  jail.workspace = host_ / "work";
  host_.Link(host_.home() + "/.ssh", "work/.env");
  jail.hide = {"${workspace}/.env"};
  EXPECT_THAT(Inside(jail, {"read", other_}), RefusedSaying("leads out of"));
}

// ---- hide

TEST_F(JailCoverTest, AHiddenFileIsThereButEmptyAndUnreadable) {
  const std::string secret = host_.File("work/.env", "TOKEN=canary");
  EXPECT_THAT(Inside(Work(), {"read", secret}), SaysOk(HasSubstr("canary")));
  const Jail jail = Hiding({secret});
  EXPECT_THAT(Inside(jail, {"read", secret}), DeniedWith(EACCES));
  EXPECT_EQ(Shell(jail, "stat -c '%F, %s bytes, mode %a' .env").out, "regular empty file, 0 bytes, mode 0\n");
  for (const Words& attack : std::vector<Words>{{"write", secret, "x"},
                                                {"chmod", secret, "0644"},
                                                {"unlink", secret},
                                                {"rename", secret, host_ / "work/x"},
                                                {"link", secret, host_ / "work/x"}}) {
    SCOPED_TRACE(testing::PrintToString(attack));
    EXPECT_THAT(Inside(jail, attack), DeniedWithAnyOf({EACCES, EROFS, EBUSY, EXDEV}));
  }
  EXPECT_THAT(Inside(jail, {"write", other_, "x"}), Succeeded());
  EXPECT_EQ(ReadFile(secret), "TOKEN=canary");
}

TEST_F(JailCoverTest, AHiddenFolderIsThereButEmptyAndUnreadable) {
  const std::string secret = host_.File("work/secrets/key", "canary"), folder = host_ / "work/secrets";
  EXPECT_THAT(Inside(Work(), {"read", secret}), SaysOk(HasSubstr("canary")));
  const Jail jail = Hiding({folder});
  EXPECT_THAT(Inside(jail, {"read", secret}), DeniedWithAnyOf({EACCES, ENOENT}));
  EXPECT_EQ(Shell(jail, "stat -c '%F, mode %a' secrets").out, "directory, mode 0\n");
  for (const Words& attack : std::vector<Words>{{"list", folder},
                                                {"chmod", folder, "0755"},
                                                {"mkdir", folder + "/x"},
                                                {"rename", folder, host_ / "work/x"}}) {
    SCOPED_TRACE(testing::PrintToString(attack));
    EXPECT_THAT(Inside(jail, attack), DeniedWithAnyOf({EACCES, EROFS, EBUSY, EXDEV}));
  }
}

TEST_F(JailCoverTest, HidingHoldsForRootToo) {
  if (!IsRoot()) return;  // the same as above for everyone else
  const std::string secret = host_.File("work/.env", "canary");
  Jail jail;
  jail.ro = {host_ / "work"};
  jail.user = "root";
  EXPECT_THAT(Inside(jail, {"read", secret}), SaysOk(HasSubstr("canary")));
  jail.hide = {secret, host_ / "work/other"};
  EXPECT_THAT(Inside(jail, {"read", secret}), DeniedWith(EACCES));
  EXPECT_THAT(Inside(jail, {"chmod", secret, "0644"}), DeniedWith(EROFS));
  EXPECT_THAT(Inside(jail, {"list", host_ / "work/other"}), DeniedWith(EACCES));
}

TEST_F(JailCoverTest, WhatALinkLeadsToIsHiddenByAllItsNames) {
  const std::string secret = host_.File("work/config/env", "canary");
  const std::string link = host_.Link("config/env", "work/.env");
  EXPECT_THAT(Inside(Work(), {"read", link}), SaysOk(HasSubstr("canary")));
  EXPECT_THAT(Inside(Hiding({link}), {"read", link}), DeniedWith(EACCES));
  EXPECT_THAT(Inside(Hiding({link}), {"read", secret}), DeniedWith(EACCES));
}

TEST_F(JailCoverTest, AFolderAboveAHiddenFileCannotCarryItAway) {
  const std::string secret = host_.File("work/config/deep/env", "canary");
  const std::string attack = "mv config moved 2>/dev/null; cat moved/deep/env config/deep/env 2>/dev/null; echo done";
  EXPECT_EQ(Shell(Hiding({secret}), attack).out, "done\n");
  EXPECT_EQ(Shell(Work(), attack).out, "canarydone\n");
}

TEST_F(JailCoverTest, AGrantInsideAHiddenFolderIsGone) {
  const std::string secret = host_.File("work/secrets/key", "canary");
  Jail jail = Hiding({host_ / "work/secrets"});
  jail.ro = {secret};
  EXPECT_THAT(Inside(jail, {"read", secret}), DeniedWithAnyOf({EACCES, ENOENT}));
  jail = Hiding({host_ / "work"});  // the very grant
  jail.ro = {host_ / "work/other"};
  EXPECT_THAT(Inside(jail, {"read", other_}), DeniedWithAnyOf({EACCES, ENOENT}));
}

TEST_F(JailCoverTest, HiddenInProtectedAndProtectedInHidden) {
  const Jail jail = [this] {
    Jail both = Protecting({host_ / "work/.git", host_ / "work/other/file"});
    both.hide = {config_, host_ / "work/other"};
    return both;
  }();
  EXPECT_THAT(Inside(jail, {"read", config_}), DeniedWith(EACCES));
  EXPECT_THAT(Inside(jail, {"mkdir", hooks_ + "/x"}), DeniedWith(EROFS));
  EXPECT_THAT(Inside(jail, {"read", other_}), DeniedWithAnyOf({EACCES, ENOENT}));
}

TEST_F(JailCoverTest, WhereAllOfTheDiskIsGranted) {
  const std::string secret = host_.File("work/.env", "canary");
  Jail jail = Work();
  jail.rw = {};
  jail.ro = {"/"};
  EXPECT_THAT(Inside(jail, {"read", secret}), SaysOk(HasSubstr("canary")));
  jail.hide = {secret};
  EXPECT_THAT(Inside(jail, {"read", secret}), DeniedWith(EACCES));
  EXPECT_THAT(Inside(jail, {"read", config_}), SaysOk(HasSubstr("as it was")));
}

TEST_F(JailCoverTest, WhatThePrivateHomeCoversNeedsNoMore) {
  Jail jail = Work();
  jail.ro = {host_.folder()};
  jail.hide = {host_.key()};
  EXPECT_THAT(Inside(jail, {"read", host_.key()}), DeniedWith(ENOENT));
  EXPECT_THAT(Inside(jail, {"read", config_}), SaysOk(HasSubstr("as it was")));
}

// ---- The launch

TEST_F(JailCoverTest, IsAFailureWhereThePathWasReplacedSince) {
  const Jail jail = Protecting({host_ / "work/.git"});
  const auto outcome = RunInJail(host_, jail, {"read", other_}, [this](LaunchPlan&) {
    ASSERT_EQ(rename((host_ / "work/.git").c_str(), (host_ / "work/old").c_str()), 0);
    host_.Folder("work/.git");
  });
  EXPECT_THAT(outcome, RefusedSaying("cannot protect \"" + (host_ / "work/.git") + "\": it was replaced"));
}

TEST_F(JailCoverTest, IsAFailureWhereALinkTookItsPlace) {
  const Jail jail = Hiding({host_ / "work/other"});
  const auto outcome = RunInJail(host_, jail, {"read", config_}, [this](LaunchPlan&) {
    ASSERT_EQ(rename((host_ / "work/other").c_str(), (host_ / "work/old").c_str()), 0);
    host_.Link("old", "work/other");
  });
  EXPECT_THAT(outcome, RefusedSaying("cannot hide \"" + (host_ / "work/other") + "\": a link took its place"));
}

TEST_F(JailCoverTest, NoTierWithoutMountsIsTried) {
  Jail jail = Protecting({host_ / "work/.git"});
  jail.tier = policy::Tier::kC;
  jail.landlock_abi = 0;
  absl::StatusOr<LaunchPlan> plan = MakePlan(host_, jail, {"/bin/true"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->variants().size(), 1u);
  jail.protect.clear();
  plan = MakePlan(host_, jail, {"/bin/true"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_GT(plan->variants().size(), 1u);
}

TEST_F(JailCoverTest, TheServerGetsNoDescriptorOfIt) {
  const std::string secret = host_.File("work/.env", "canary");
  EXPECT_THAT(Inside(Hiding({secret}), {"fds"}).out, HasSubstr("\nok 3\n"));
}

// ---- Each is needed

class JailCoverNecessityTest : public JailCoverTest {
 protected:
  // As Shell, in a jail whose plan lacks the steps of this kind.
  Outcome Without(wire::CoverKind how, const Jail& jail, const std::string& script) const {
    return RunCommand(host_, jail, {"/bin/sh", "-c", absl::StrCat("cd ", host_ / "work", "; ", script)},
                      [how](LaunchPlan& plan) {
                        PlanEditor(plan).Drop(wire::StepKind::kCover,
                                              [how](const wire::Step& step) { return step.cover.how == how; });
                      });
  }
};

TEST_F(JailCoverNecessityTest, Pin) {
  const std::string deep = host_.File("work/a/.git/config", "as it was");
  const std::string attack = "mv a z && mkdir -p a/.git && echo evil >a/.git/config";
  EXPECT_NE(Shell(Protecting({host_ / "work/a/.git"}), attack).end.code, 0);
  EXPECT_EQ(Without(wire::CoverKind::kPin, Protecting({host_ / "work/a/.git"}), attack).end.code, 0);
  EXPECT_EQ(ReadFile(deep), "evil\n");
}

TEST_F(JailCoverNecessityTest, Protect) {
  const std::string attack = "echo evil >.git/config";
  EXPECT_NE(Shell(Protecting({host_ / "work/.git"}), attack).end.code, 0);
  EXPECT_EQ(Without(wire::CoverKind::kProtect, Protecting({host_ / "work/.git"}), attack).end.code, 0);
  EXPECT_EQ(ReadFile(config_), "evil\n");
}

TEST_F(JailCoverNecessityTest, Hide) {
  const std::string attack = "cat other/file";
  EXPECT_EQ(Shell(Hiding({other_}), attack).out, "");
  EXPECT_EQ(Without(wire::CoverKind::kHide, Hiding({other_}), attack).out, "free");
}

}  // namespace
}  // namespace bulkhead::launcher
