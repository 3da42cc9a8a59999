// The real command on systems that lack something, imitated by tests/programs/deny.cc: it reaches the tier that it may,
// or refuses with the reason and what helps; and then nothing is started.
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/launcher/jail_fixture.h"

namespace bulkhead::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Result {
  int code = -1;
  std::string out, err, report;
};

class FallbackTest : public testing::Test {
 protected:
  // Before deny, words that change what it starts in; they end in a space.
  std::string before_;
  bool waits_ = false;  // the server, without end, instead of reading the file

  // deny FLAGS... bulkhead run --require TIER probe read FILE, where FILE is granted.
  Result Run(const std::string& deny_flags, const std::string& tier) const {
    const std::string file = host_.File("data/file", "it runs"), out = host_ / "out", err = host_ / "err",
                      report = host_ / "report";
    const std::string command = absl::StrCat(
        "cd / && HOME='", host_.home(), "' ", before_, "'", TestData("tests/programs/deny"), "' ", deny_flags, " '",
        TestData("cli/bulkhead"), "' run --report '", report, "' --require ", tier, " --ro '", host_ / "data", "' -- '",
        host_.probe(), waits_ ? "' wait '" : "' read '", file, "' </dev/null >'", out, "' 2>'", err, "'");
    const int status = system(command.c_str());
    return {WEXITSTATUS(status), ReadFile(out), ReadStderr(err), ReadFile(report)};
  }

  void ExpectTier(const std::string& deny_flags, const std::string& asked, const std::string& reached) const {
    SCOPED_TRACE(absl::StrCat(deny_flags, " --require ", asked));
    const Result result = Run(deny_flags, asked);
    EXPECT_EQ(result.code, 0);
    EXPECT_EQ(result.out, "ok it runs\n");
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.report, HasSubstr(absl::StrCat("\"tier\":\"", reached, "\"")));
  }

  void ExpectRefusal(const std::string& deny_flags, const std::string& asked, const std::string& reason,
                     const std::string& remedy) const {
    SCOPED_TRACE(absl::StrCat(deny_flags, " --require ", asked));
    const Result result = Run(deny_flags, asked);
    EXPECT_EQ(result.code, 125);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(testing::StartsWith("bulkhead: "), HasSubstr(reason), HasSubstr(remedy)));
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << "one line: " << result.err;
  }

  Host host_;
};

constexpr char kNoNamespaces[] = "which tier A needs (EPERM): user namespaces are forbidden";

TEST_F(FallbackTest, WithEverythingTheStrongestTierIsReached) {
  for (const char* tier : {"A", "B", "C"}) ExpectTier("", tier, "A");
}

TEST_F(FallbackTest, WithoutUserNamespaces) {
  ExpectRefusal("--userns", "A", kNoNamespaces, "--require B");
  ExpectTier("--userns", "B", "B");
  ExpectTier("--userns", "C", "B");
}

TEST_F(FallbackTest, WithoutAnyNamespaceOrMount) {
  ExpectRefusal("--namespaces", "A", kNoNamespaces, "--require B");
  ExpectTier("--namespaces", "B", "B");
}

TEST_F(FallbackTest, WhereNamespacesCanBeMadeButNothingMounted) {
  for (const char* call : {"mount", "fsmount", "pivot_root", "umount2"}) {
    const std::string flags = absl::StrCat("--call ", call, "=EPERM");
    ExpectRefusal(flags, "A", "EPERM", "--require B");
    ExpectTier(flags, "B", "B");
  }
}

TEST_F(FallbackTest, WhereNoIdMapCanBeWritten) {
  // As root the first to notice is the step that shows the person's files as the server's own.
  ExpectRefusal("--proc read-only", "A", IsRoot() ? "EROFS" : "(EROFS): /proc is read-only here", "--require B");
  ExpectTier("--proc read-only", "B", "B");
}

// The ladder of the lower tiers ends what /proc lists.
TEST_F(FallbackTest, WithoutProcNothingIsStarted) {
  ExpectRefusal("--proc none", "A", IsRoot() ? "ENOENT" : "(ENOENT): /proc is not mounted here", "--require B");
  for (const char* tier : {"B", "C"})
    ExpectRefusal("--proc none", tier, "cannot end what a server leaves behind", "mount it");
}

// As in a server that root started: a grant is then known by its device and inode alone.
TEST_F(FallbackTest, WithoutOpenat2) {
  for (const char* tier : {"A", "B", "C"}) ExpectTier("--call openat2=ENOSYS", tier, "A");
  ExpectTier("--userns --call openat2=ENOSYS", "B", "B");
  for (const char* tier : {"A", "B", "C"}) ExpectTier("--call openat2=EPERM", tier, "A");
  ExpectTier("--userns --call openat2=EPERM", "B", "B");
}

// Root's folders are mostly closed to others, and tier B can't show them as the server's own.
TEST_F(FallbackTest, WhatRootsServerCannotReachIsLeftOutIfItMayBe) {
  if (!IsRoot()) return;  // the server of an ordinary user is that user
  const std::string closed = host_.Folder("closed"), work = host_.Folder("closed/files");
  const std::string file = host_.File("closed/files/file", "it is seen\n"), tool = host_ / "closed/tools/cat";
  host_.Folder("closed/tools");
  ASSERT_EQ(system(absl::StrCat("cp /bin/cat '", tool, "'").c_str()), 0);
  ASSERT_EQ(chmod(closed.c_str(), 0700), 0);
  const std::string policy =
      host_.File("policy.json", absl::StrCat(R"({"version":1,"require":"B","filesystem":{"rx":[":runtime",{"path":")",
                                             host_ / "closed/tools", R"(","optional":true}],"ro":[{"path":")", work,
                                             R"(","optional":true}]}})"));
  const auto run = [&](const std::string& deny, const std::string& words) -> Result {
    const std::string out = host_ / "out", err = host_ / "err";
    const int status =
        system(absl::StrCat("cd '", work, "' && HOME='", host_.home(), "' ", deny, " '", TestData("cli/bulkhead"),
                            "' run --policy '", policy, "' ", words, " </dev/null >'", out, "' 2>'", err, "'")
                   .c_str());
    return {WEXITSTATUS(status), ReadFile(out), ReadStderr(err), ""};
  };
  const std::string without = absl::StrCat("'", TestData("tests/programs/deny"), "' --userns");
  const std::string why = absl::StrCat("because \"", closed, "\" is closed to it");
  EXPECT_EQ(run("", "cat file").out, "it is seen\n") << "in tier A";

  const Result pwd = run(without, "pwd");
  EXPECT_THAT(pwd.out, testing::StartsWith("/tmp/bulkhead-")) << pwd.err;
  EXPECT_EQ(pwd.err, "");
  const Result cat = run(without, absl::StrCat("cat '", file, "'"));
  EXPECT_EQ(cat.code, 1) << "of cat itself";
  EXPECT_THAT(cat.err, AllOf(HasSubstr("Permission denied"), HasSubstr("starts in its private home"),
                             HasSubstr("is left out, since it is optional"), HasSubstr(why)));

  const struct {
    const char* what;
    std::string words, says;
  } kAskedFor[] = {
      {"a grant", absl::StrCat("--ro '", file, "' pwd"), absl::StrCat("can't reach \"", work)},
      {"a folder", absl::StrCat("--cwd '", work, "' pwd"), "cannot enter the working folder: the server's"},
      {"a program", absl::StrCat("'", tool, "' /etc/hosts"), absl::StrCat("can't reach \"", host_ / "closed/tools")}};
  for (const auto& asked_for : kAskedFor) {
    SCOPED_TRACE(asked_for.what);
    const Result result = run(without, asked_for.words);
    EXPECT_EQ(result.code, 126);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(HasSubstr(asked_for.says), HasSubstr(why), HasSubstr("chmod o+x")));
  }
}

// One jail in another: an agent's, and in it the one of a server that it starts.
TEST_F(FallbackTest, InAnotherJailTierBIsReached) {
  const std::string data = host_.Folder("data"), file = host_.File("data/file", "outside\n");
  const auto nested = [&](const std::string& flags) {
    const std::string run = absl::StrCat("'", TestData("cli/bulkhead"), "' run "), out = host_ / "out",
                      err = host_ / "err";
    const int status =
        system(absl::StrCat("cd / && HOME='", host_.home(), "' ", run, "--ro '", data, "' --cwd /tmp -- ", run, flags,
                            " /bin/cat '", file, "' </dev/null >'", out, "' 2>'", err, "'")
                   .c_str());
    return Result{WEXITSTATUS(status), ReadFile(out), ReadStderr(err), ""};
  };
  const std::string grant = absl::StrCat("--ro '", data, "'");
  const Result in_a = nested(grant), in_b = nested("--require B " + grant), without = nested("--require B");
  EXPECT_EQ(in_a.code, 125);
  EXPECT_THAT(in_a.err, AllOf(HasSubstr(kNoNamespaces), HasSubstr("--require B")));
  EXPECT_EQ(in_b.out, "outside\n") << in_b.err;
  EXPECT_EQ(without.out, "");
  EXPECT_THAT(without.err, HasSubstr("Permission denied"));
}

TEST_F(FallbackTest, WithoutLandlock) {
  ExpectRefusal("--landlock", "A", "cannot enforce landlock: this kernel has none", "--require C");
  ExpectRefusal("--landlock", "B", "cannot enforce landlock: this kernel has none", "--require C");
  ExpectTier("--landlock", "C", "C");
}

TEST_F(FallbackTest, WithNeither) {
  ExpectRefusal("--landlock --userns", "A", "cannot enforce landlock", "--require C");
  ExpectRefusal("--landlock --userns", "B", "cannot enforce landlock", "--require C");
  ExpectTier("--landlock --userns", "C", "C");
}

TEST_F(FallbackTest, WithoutProcessesNothingIsStarted) {
  for (const char* tier : {"A", "B", "C"}) {
    const Result result = Run("--call clone=EPERM", tier);
    EXPECT_EQ(result.code, 125);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(testing::StartsWith("bulkhead: "), HasSubstr("EPERM")));
  }
}

TEST_F(FallbackTest, WhereNoProgramMayBeRunFromMemory) {
  for (const char* tier : {"A", "B"}) {
    ExpectRefusal("--call execveat=EACCES", tier, "cannot start the keeper", "vm.memfd_noexec");
    ExpectRefusal("--call execveat=EPERM", tier, "exec of a memfd", "install this build's keeper");
  }
}

TEST_F(FallbackTest, WithoutMemfds) {
  ExpectRefusal("--call memfd_create=ENOSYS", "A", "memfd_create", "system call filter has to let");
  ExpectRefusal("--call memfd_create=EPERM", "B", "memfd_create", "");
}

TEST_F(FallbackTest, WithoutStatxTheReasonIsNotThatThereIsNoLandlock) {
  ExpectRefusal("--userns --call statx=ENOSYS", "B", "private folder", "system call filter");
}

TEST_F(FallbackTest, WithoutPpollNothingWaitsWithoutEnd) {
  waits_ = true;
  for (const char* flags : {"--call ppoll=ENOSYS", "--userns --call ppoll=EPERM"}) {
    const Result result = Run(flags, "B");
    EXPECT_TRUE(result.code == 125 || result.code == 137) << result.code;
  }
}

TEST_F(FallbackTest, WhereNoMoreProcessesMayBeStarted) {
  ExpectRefusal("--call clone=EAGAIN", "A", "too many processes", "ulimit -u");
  ExpectRefusal("--userns --call clone=EAGAIN", "B", "jail init", "ulimit -u");
}

// ---- Odd places to start from

// Our numbers are other processes' there: whose lists of children the ladder would read, and whose id map be written.
TEST_F(FallbackTest, WithTheProcOfAnotherPidNamespaceNothingIsStarted) {
  before_ = IsRoot() ? "unshare --pid --fork sh -c '\"$@\"; exit $?' sh "
                     : "unshare --user --map-current-user --pid --fork sh -c '\"$@\"; exit $?' sh ";
  ExpectRefusal("--userns", "B", "process id namespace", "--mount-proc");
  if (IsRoot()) ExpectRefusal("", "A", "process id namespace", "--mount-proc");
  before_ = IsRoot() ? "unshare --pid --mount-proc --fork " : "unshare --map-current-user --pid --mount-proc --fork ";
  ExpectTier("--userns", "B", "B");
}

TEST_F(FallbackTest, RootOfAUserNamespaceWithoutOtherIds) {
  before_ = "unshare --map-root-user ";
  for (const char* tier : {"A", "B"}) ExpectRefusal("", tier, "/proc/self/uid_map has no ids", "ordinary user");
}

TEST_F(FallbackTest, RootWithoutTheCapabilityToBecomeAnother) {
  if (!IsRoot()) return;
  before_ = "setpriv --bounding-set=-setuid --inh-caps=-setuid ";
  for (const char* tier : {"A", "B"}) ExpectRefusal("", tier, "CAP_SETUID", "ordinary user");
}

TEST_F(FallbackTest, WithAnyUmask) {
  before_ = "sh -c 'umask 0777; exec \"$@\"' sh ";
  const Result result = Run("--userns", "B");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "ok it runs\n");
}

}  // namespace
}  // namespace bulkhead::launcher
