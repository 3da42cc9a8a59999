// env.secret: reaches the server's environment and nothing else.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/launcher/jail_test.h"

namespace bulkhead::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kVariable[] = "BULKHEAD_TEST_SECRET";
constexpr int kNamesBytes = sizeof("TOKEN=");  // and the zero byte

class SecretTest : public JailTest {
 protected:
  SecretTest() { unsetenv(kVariable); }
  ~SecretTest() override { unsetenv(kVariable); }

  // `secrets`: the members of env.secret.
  Jail With(const std::string& secrets) const {
    Jail jail = AsPerson(Closed());
    jail.more = absl::StrCat(R"(,"env":{"inherit":["HOME"],"set":{"FIRST":"1","ZLAST":"2"},"secret":{)", secrets, "}}");
    return jail;
  }
  Jail FromFile(const std::string& path) const { return With(absl::StrCat(R"("TOKEN":{"file":")", path, R"("})")); }
  Jail FromDescriptor(int fd) const { return With(absl::StrCat(R"("TOKEN":{"fd":)", fd, "}")); }
  static constexpr char kFromVariable[] = R"("TOKEN":{"env":"BULKHEAD_TEST_SECRET"})";
  Outcome Print(const Jail& jail) const { return Shell(jail, "printf '<%s>' \"$TOKEN\""); }
};

TEST_P(SecretTest, ComesFromAVariableAFileOrADescriptor) {
  setenv(kVariable, "canary 1", 1);
  EXPECT_EQ(Print(With(kFromVariable)).out, "<canary 1>");
  EXPECT_EQ(Print(FromFile(host_.File("token", "canary 2\n"))).out, "<canary 2>");
  EXPECT_EQ(Print(FromFile(host_.File("token", "canary\n\n"))).out, "<canary\n>");
  const UniqueFd file(open(host_.File("token", "canary 3").c_str(), O_RDONLY | O_CLOEXEC));
  for (int start = 0; start < 2; ++start) EXPECT_EQ(Print(FromDescriptor(file.get())).out, "<canary 3>");
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  ASSERT_EQ(write(ends[1], "canary 4\n", 9), 9);
  close(ends[1]);
  EXPECT_EQ(Print(FromDescriptor(reader.get())).out, "<canary 4>");
  // A pipe is read once: the next start says so instead of going on without.
  EXPECT_THAT(Print(FromDescriptor(reader.get())),
              RefusedSaying(absl::StrCat("descriptor ", reader.get(), " is empty")));
}

TEST_P(SecretTest, StandsAmongTheOtherVariables) {
  setenv(kVariable, "canary", 1);
  const Outcome outcome = Shell(
      With(absl::StrCat(kFromVariable, R"(,"ANOTHER":{"file":")", host_.File("other", "second"), R"("})")), "env");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("TOKEN=canary\n"), HasSubstr("ANOTHER=second\n"), HasSubstr("FIRST=1\n"),
                                 HasSubstr("ZLAST=2\n")));
  EXPECT_THAT(outcome.out, Not(HasSubstr(kVariable)));
}

TEST_P(SecretTest, IsReadAnewAtEachStart) {
  const absl::StatusOr<LaunchPlan> plan =
      MakePlan(host_, FromFile(host_.File("token", "old")), {"/bin/sh", "-c", "printf '<%s>' \"$TOKEN\""});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(RunPlan(*plan).out, "<old>");
  host_.File("token", "new");
  EXPECT_EQ(RunPlan(*plan).out, "<new>");
}

// ---- Nowhere else

// All memory of a process that can be read. Root only.
bool MemoryHas(const std::string& process, const std::string& canary) {
  std::ifstream maps(process + "/maps");
  std::ifstream memory(process + "/mem", std::ios::binary);
  std::string line;
  while (std::getline(maps, line)) {
    unsigned long begin, end;
    char readable;
    if (sscanf(line.c_str(), "%lx-%lx %c", &begin, &end, &readable) != 3 || readable != 'r') continue;
    std::string bytes(end - begin, '\0');
    memory.clear();
    memory.seekg(static_cast<std::streamoff>(begin));
    memory.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (absl::StrContains(bytes, canary)) return true;
  }
  return false;
}

TEST_P(SecretTest, IsInNoOtherProcessNorInThePlan) {
  const std::string canary = NewToken();
  const absl::StatusOr<LaunchPlan> plan =
      MakePlan(host_, FromFile(host_.File("token", canary)), {"/bin/sh", "-c", "echo started; read line"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->bytes(), Not(HasSubstr(canary)));
  absl::StatusOr<Process> process = Launch(*plan);
  ASSERT_TRUE(process.ok()) << process.status();
  char line[8];
  ASSERT_EQ(read(process->stdout_fd().get(), line, sizeof line), 8);  // "started\n"

  std::set<std::string> in_environment, in_memory;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string path = entry.path().string();
    if (!isdigit(entry.path().filename().string()[0]) || path == absl::StrCat("/proc/", getpid())) continue;
    EXPECT_THAT(ReadFile(path + "/cmdline"), Not(HasSubstr(canary)));
    std::string name = ReadFile(path + "/comm");
    if (absl::StrContains(ReadFile(path + "/environ"), canary)) in_environment.insert(name);
    const bool interesting = absl::StartsWith(name, "bulkhead") || name == "sh\n" || name == "dash\n";
    if (IsRoot() && interesting && MemoryHas(path, canary)) in_memory.insert(name);
  }
  EXPECT_THAT(in_environment, testing::ElementsAre("sh\n"));  // the control: it is found where it is
  if (IsRoot()) {
    EXPECT_THAT(in_memory, testing::ElementsAre("sh\n"));
  }
  process->Stop();
}

// ---- What can't be had

TEST_P(SecretTest, IsAnErrorThatNamesTheSourceAndNotTheValue) {
  EXPECT_THAT(
      Print(With(kFromVariable)),
      RefusedSaying("cannot give the server its secret TOKEN: the variable \"BULKHEAD_TEST_SECRET\" is not set"));
  setenv(kVariable, "", 1);
  EXPECT_THAT(Print(With(kFromVariable)), RefusedSaying("\"BULKHEAD_TEST_SECRET\" is empty"));
  setenv(kVariable, "() { canary; }", 1);
  Outcome outcome = Print(With(kFromVariable));
  EXPECT_THAT(outcome, RefusedSaying("TOKEN"));
  EXPECT_THAT(std::string(outcome.launched.message()), Not(HasSubstr("canary")));

  EXPECT_THAT(Print(FromFile(host_ / "missing")), RefusedSaying("missing\" can't be read: No such file"));
  EXPECT_THAT(Print(FromFile(host_.folder())), RefusedSaying("is not a regular file"));
  EXPECT_THAT(Print(FromFile("/dev/zero")), RefusedSaying("is not a regular file"));
  ASSERT_EQ(mkfifo((host_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(Print(FromFile(host_ / "fifo")), RefusedSaying("is not a regular file"));
  EXPECT_THAT(Print(FromFile(host_.File("empty", "\n"))), RefusedSaying("is empty"));
  outcome = Print(FromFile(host_.File("nul", std::string("canary\0x", 8))));
  EXPECT_THAT(outcome, RefusedSaying("NUL"));
  EXPECT_THAT(std::string(outcome.launched.message()), Not(HasSubstr("canary")));
  EXPECT_THAT(Print(FromDescriptor(1000)), RefusedSaying("descriptor 1000 is not open"));
}

TEST_P(SecretTest, AllTogetherHaveALimit) {
  const auto of_size = [this](int bytes) {
    return Shell(FromFile(host_.File("token", std::string(static_cast<std::size_t>(bytes), 'x'))),
                 "printf %s \"${#TOKEN}\"");
  };
  const int limit = wire::kSecretsBytesMax - kNamesBytes;
  EXPECT_EQ(of_size(limit - 1).out, absl::StrCat(limit - 1));
  EXPECT_EQ(of_size(limit).out, absl::StrCat(limit));
  EXPECT_THAT(of_size(limit + 1), RefusedSaying("all secrets together may have 65536 bytes"));
  EXPECT_THAT(of_size(1 << 20), RefusedSaying("all secrets together may have 65536 bytes"));
  const std::string half(static_cast<std::size_t>(limit / 2), 'x');
  EXPECT_THAT(Print(With(absl::StrCat(R"("TOKEN":{"file":")", host_.File("a", half), R"("},"SECOND":{"file":")",
                                      host_.File("b", half), R"("})"))),
              RefusedSaying("all secrets together"));
}

// Who can put a link into the workspace must not choose what is read.
TEST_P(SecretTest, LinksAreFollowedOnlyWhereThePolicyAloneNamesThePath) {
  host_.File("elsewhere/key", "canary");
  host_.Folder("work");
  host_.Link("../elsewhere/key", "work/token");
  EXPECT_EQ(Print(FromFile(host_ / "work/token")).out, "<canary>");
  Jail jail = FromFile("${workspace}/token");
  jail.workspace = host_ / "work";
  EXPECT_THAT(Print(jail), RefusedSaying("has a symbolic link in its path"));
  host_.File("work/own", "own");
  jail = FromFile("${workspace}/own");
  jail.workspace = host_ / "work";
  EXPECT_EQ(Print(jail).out, "<own>");
}

INSTANTIATE_TEST_SUITE_P(Tier, SecretTest, testing::Values(policy::Tier::kA, policy::Tier::kB), TierOf);

}  // namespace
}  // namespace bulkhead::launcher
