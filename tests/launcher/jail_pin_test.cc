// command.sha256, and bare names that lead to where the server may write.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/content.h"
#include "tests/launcher/jail_test.h"

namespace bulkhead::launcher {
namespace {

// ---- Contents (FIPS 180-4's examples)

TEST(ReadContentTest, GivesTheDigest) {
  const Host host;
  EXPECT_EQ(ReadContent(host.File("abc", "abc"))->sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ReadContent(host.File("empty", ""))->sha256,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(ReadContent(host.File("million", std::string(1000000, 'a')))->sha256,
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(ReadContentTest, RefusesWhatIsNoFile) {
  const Host host;
  ASSERT_EQ(mkfifo((host / "fifo").c_str(), 0600), 0);
  for (const std::string& path : {host / "no such", host / "fifo", host.folder(), std::string("/dev/zero")}) {
    EXPECT_TRUE(absl::IsPermissionDenied(ReadContent(path).status())) << path;
  }
}

// ---- Pins

class JailPinTest : public JailTest {
 protected:
  std::string Digest(const std::string& path) const { return ReadContent(path)->sha256; }
  Jail Pinning(const std::string& path, const std::string& digest) const {
    Jail jail = AsPerson(Closed());
    jail.rx = {host_ / "bin"};
    jail.more = absl::StrCat(R"(,"command":{"sha256":{")", path, R"(":")", digest, R"("}})");
    return jail;
  }
  Outcome Run(const Jail& jail, const Words& command, const Edit& edit = nullptr) const {
    return RunCommand(host_, jail, command, edit);
  }

  const std::string script_ = host_.File("bin/script", "#!/bin/sh\necho trusted\n", 0755);
};

TEST_P(JailPinTest, ThePinnedContentRunsAndNoOther) {
  const Jail jail = Pinning(script_, Digest(script_));
  EXPECT_EQ(Run(jail, {script_}).out, "trusted\n");
  host_.File("bin/script", "#!/bin/sh\necho evil\n", 0755);
  EXPECT_THAT(Run(jail, {script_}), RefusedSaying("is not what /command/sha256 has for \"" + script_ +
                                                  "\"; its SHA-256 is " + Digest(script_)));
  EXPECT_EQ(Run(AsPerson([this] {
                  Jail j = Closed();
                  j.rx = {host_ / "bin"};
                  return j;
                }()),
                {script_})
                .out,
            "evil\n");
}

TEST_P(JailPinTest, ByAnyNameOfTheFile) {
  const std::string link = host_.Link("script", "bin/link");
  const std::string wrong(64, '0');
  EXPECT_THAT(Run(Pinning(script_, wrong), {link}), RefusedSaying("is not what /command/sha256 has"));
  EXPECT_THAT(Run(Pinning(link, wrong), {script_}), RefusedSaying("is not what /command/sha256 has"));
  EXPECT_EQ(Run(Pinning(link, Digest(script_)), {script_}).out, "trusted\n");
}

TEST_P(JailPinTest, HoldsForTheInterpreterAndForArgumentsToo) {
  const std::string wrong(64, '0');
  EXPECT_THAT(Run(Pinning("/bin/sh", wrong), {script_}),
              RefusedSaying("is not what /command/sha256 has for \"/bin/sh\""));
  EXPECT_THAT(Run(Pinning(script_, wrong), {"/bin/sh", script_}), RefusedSaying("is not what /command/sha256 has"));
  EXPECT_EQ(Run(Pinning(script_, Digest(script_)), {"/bin/sh", script_}).out, "trusted\n");
  EXPECT_EQ(Run(Pinning(host_.key(), wrong), {script_}).out, "trusted\n");  // not of this start
}

// Between the plan and the exec: rewritten, replaced, a link in the way.
TEST_P(JailPinTest, AFileThatChangesAfterItsContentWasReadDoesNotRun) {
  const Jail jail = Pinning(script_, Digest(script_));
  const std::string old = ReadFile(script_);
  EXPECT_THAT(Run(jail, {script_}, [&](LaunchPlan&) { host_.File("bin/script", old, 0755); }),
              RefusedSaying("\"" + script_ + "\" has changed since its content was checked"));
  EXPECT_THAT(Run(jail, {script_},
                  [&](LaunchPlan&) {
                    const std::string other = host_.File("bin/other", old, 0755);
                    ASSERT_EQ(rename(other.c_str(), script_.c_str()), 0);
                  }),
              RefusedSaying("has changed since its content was checked"));
  const std::string link = host_.Link("script", "bin/link");
  EXPECT_THAT(Run(Pinning(script_, Digest(script_)), {link},
                  [&](LaunchPlan&) {
                    host_.File("bin/evil", "#!/bin/sh\necho evil\n", 0755);
                    ASSERT_EQ(unlink(link.c_str()), 0);
                    host_.Link("evil", "bin/link");
                  }),
              RefusedSaying("has changed since its content was checked"));
  EXPECT_EQ(Run(jail, {script_}).out, "trusted\n");
}

TEST_P(JailPinTest, TheSecondCheckIsNeeded) {
  const Jail jail = Pinning(script_, Digest(script_));
  const Outcome outcome = Run(jail, {script_}, [&](LaunchPlan& plan) {
    host_.File("bin/script", "#!/bin/sh\necho evil\n", 0755);
    PlanEditor(plan).Drop(wire::StepKind::kCheckFile);
  });
  EXPECT_EQ(outcome.out, "evil\n");
}

// A writer that is still there when the program starts: the kernel refuses the exec.
TEST_P(JailPinTest, AProgramThatIsOpenForWritingDoesNotRun) {
  const std::string program = host_ / "bin/probe";
  ASSERT_EQ(RunOutside(host_, {"exec", "/bin/cp", host_.probe(), program}).end.code, 0);
  const Jail jail = Pinning(program, Digest(program));
  EXPECT_EQ(Run(jail, {program, "exit", "7"}).end.code, 7);
  const UniqueFd writer(open(program.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_FALSE(Run(jail, {program, "exit", "7"}).launched.ok());
}

// ---- PATH

TEST_P(JailPinTest, ABareNameNeverLeadsToWhereTheServerMayWrite) {
  host_.File("work/bin/tool", "#!/bin/sh\necho planted\n", 0755);
  host_.File("bin/tool", "#!/bin/sh\necho installed\n", 0755);
  host_.Link("work/bin", "elsewhere");
  const auto with_path = [this](const std::string& folders, Words rw) {
    Jail jail = AsPerson(Writing(std::move(rw)));
    jail.rx = {host_ / "bin", host_ / "work/bin"};
    jail.more = absl::StrCat(R"(,"env":{"set":{"PATH":")", folders, R"(:/usr/bin:/bin"}})");
    return jail;
  };
  const std::string work = host_ / "work/bin", bin = host_ / "bin", link = host_ / "elsewhere";
  EXPECT_EQ(Run(with_path(work + ":" + bin, {}), {"tool"}).out, "planted\n");
  for (const std::string& first : {work, link}) {
    EXPECT_EQ(Run(with_path(first + ":" + bin, {host_ / "work"}), {"tool"}).out, "installed\n");
    EXPECT_THAT(Run(with_path(first, {host_ / "work"}), {"tool"}),
                RefusedSaying("was found only as \"" + first + "/tool\", where the policy lets the server write"));
  }
  // Whoever names the file means it.
  EXPECT_EQ(Run(with_path(bin, {host_ / "work"}), {work + "/tool"}).out, "planted\n");
  if (!InA()) return;
  Jail jail = with_path(work, {host_ / "work"});
  jail.protect = {work};
  EXPECT_EQ(Run(jail, {"tool"}).out, "planted\n");
}

INSTANTIATE_TEST_SUITE_P(Tier, JailPinTest, testing::Values(policy::Tier::kA, policy::Tier::kB), TierOf);

}  // namespace
}  // namespace bulkhead::launcher
