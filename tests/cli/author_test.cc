// What the author of a policy may try when somebody else starts it under a ceiling: each attack works in a real run
// without the ceiling, and does not with it, and the run says what fell away.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/bulkhead_process.h"
#include "tests/cli/policy_fixture.h"

namespace bulkhead::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Attack {
  std::string name;
  Json policy;  // merged into the least one (RFC 7396)
  Words words;
  std::string effect;  // in what the server prints and in ~/.profile
  std::string said;    // under the ceiling
};

class AuthorTest : public PolicyFixture {
 protected:
  AuthorTest() {
    key_ = Write("keys/id", "the private key");
    Json ceiling = LeastPolicy();
    ceiling["filesystem"]["rw"] = List({project_});
    ceiling["filesystem"]["protect"] = List({note_});
    ceiling_ = Write("ceiling.json", ceiling.dump());
  }

  std::string Run(const Attack& attack, const Words& flags) {
    profile_ = Write(".profile", "");
    Write("project/note", "the note");
    Json policy = LeastPolicy();
    policy.merge_patch(attack.policy);
    Invocation invocation;
    invocation.words = {"run", "-v", "--workspace", project_, "--policy", Write("policy.json", policy.dump())};
    invocation.words.insert(invocation.words.end(), flags.begin(), flags.end());
    invocation.words.insert(invocation.words.end(), attack.words.begin(), attack.words.end());
    invocation.env = {
        {"HOME", home_.path()}, {"PATH", "/usr/bin:/bin"}, {"TOKEN", "the token"}, {"DOOR", home_.path()}};
    const Result result = RunBulkhead(invocation);
    return "says: " + result.out + result.err + "profile: " + ReadText(profile_);
  }

  std::vector<Attack> Attacks() const;

  std::string key_, ceiling_, profile_;
};

std::vector<Attack> AuthorTest::Attacks() const {
  const std::string profile = home_.path() + "/.profile", link = project_ + "/link";
  EXPECT_EQ(symlink(home_.path().c_str(), link.c_str()), 0);
  const std::string wide =
      Write("wide.json", R"({"version": 1, "filesystem": {"ro": [")" + home_.path() + R"(/keys"]}})");
  const Words read_key = {probe_, "read", key_}, write_profile = {probe_, "write", profile, "evil"};
  const Words keyctl = {probe_, "syscall", std::to_string(SYS_keyctl), "0", "-3", "1"};
  std::vector<Attack> attacks = {
      {"what the server says goes into a file that a shell runs",
       {{"stderr", {{"file", profile}}}},
       {"/bin/sh", "-c", "echo an evil line >&2"},
       "profile: an evil line",
       "does not grant the file for stderr"},
      {"a file as a secret",
       {{"env", {{"secret", {{"KEY", {{"file", key_}}}}}}}},
       {probe_, "env", "KEY"},
       "ok the private key",
       "does not grant in the environment: KEY"},
      {"a variable as a secret",
       {{"env", {{"secret", {{"KEY", {{"env", "TOKEN"}}}}}}}},
       {probe_, "env", "KEY"},
       "ok the token",
       "does not grant in the environment: KEY"},
      {"a variable by its name",
       {{"env", {{"inherit", List({"TOKEN"})}}}},
       {probe_, "env", "TOKEN"},
       "ok the token",
       "does not grant in the environment: TOKEN"},
      {"a variable inside a value",
       {{"env", {{"set", {{"TERM", "${env:TOKEN}"}}}}}},
       {probe_, "env", "TERM"},
       "ok the token",
       "does not grant in the environment: TERM"},
      {"a folder that a variable names",
       {{"filesystem", {{"ro", List({"${env:DOOR}/keys"})}}}},
       read_key,
       "the private key",
       "does not grant what"},
      {"a wider policy to extend",
       {{"extends", List({wide})}},
       read_key,
       "the private key",
       "does not grant what " + wide + ":1 names"},
      {"the network",
       {{"network", {{"mode", "host"}}}},
       {probe_, "connect-tcp", "127.0.0.1", listener_.port()},
       "says: ok",
       "does not grant the network"},
      {"a system call",
       {{"syscalls", {{"allow", List({"keyctl"})}}}},
       keyctl,
       "says: ok",
       "does not allow the system calls keyctl"},
      {"the home folder", {{"filesystem", {{"home", "rw"}}}}, write_profile, "evil", "does not grant the home folder"},
      {"a link that leads out of what is granted",
       {{"filesystem", {{"rw", List({link})}}}},
       write_profile,
       "profile: evil",
       "leads out of"},
      {"a protected file inside what is granted",
       {{"filesystem", {{"rw", List({project_})}}}},
       {"/bin/sh", "-c", "echo evil > " + note_ + "; cat " + note_},
       "evil\n",
       "Read-only file system"},
  };
  if (geteuid() == 0) {
    attacks.push_back({"root", {{"user", "root"}}, {probe_, "ids"}, "Uid=0,", "does not grant the user \"root\""});
  }
  return attacks;
}

TEST_F(AuthorTest, NoAttackWorksUnderACeiling) {
  for (const Attack& attack : Attacks()) {
    SCOPED_TRACE(attack.name);
    EXPECT_THAT(Run(attack, {}), HasSubstr(attack.effect));
    EXPECT_THAT(Run(attack, {"--ceiling", ceiling_}), AllOf(Not(HasSubstr(attack.effect)), HasSubstr(attack.said)));
  }
}

}  // namespace
}  // namespace bulkhead::cli
