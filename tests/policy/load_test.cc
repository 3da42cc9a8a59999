// Reading policies from the disk.
#include "bulkhead/policy/load.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/policy/paths.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/policy/testing.h"

namespace bulkhead::policy {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LoadTest : public ::testing::Test {
 protected:
  LoadTest() {
    std::string pattern = JoinPath(::testing::TempDir(), "load_test.XXXXXX");
    folder_ = mkdtemp(pattern.data());
  }
  ~LoadTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name), std::ios::binary) << text;
    return Path(name);
  }
  static std::string ReadError(const std::string& path) {
    const absl::StatusOr<std::string> text = ReadPolicyFile(path);
    EXPECT_EQ(text.status().code(), absl::StatusCode::kFailedPrecondition);
    return std::string(text.status().message());
  }

  std::string folder_;
};

TEST_F(LoadTest, AFileIsRead) {
  const std::string path = Write("a.json", "text");
  EXPECT_EQ(*ReadPolicyFile(path), "text");
  std::filesystem::create_symlink(path, Path("link"));
  EXPECT_EQ(*ReadPolicyFile(Path("link")), "text");
  EXPECT_EQ(*ReadPolicyFile(Write("empty", "")), "");
}

TEST_F(LoadTest, WhatIsNoFileSaysWhatItIs) {
  EXPECT_EQ(ReadError(folder_),
            absl::StrCat("can't read \"", folder_, "\": it is a folder; name the policy file in it"));
  EXPECT_EQ(ReadError(Path("none")),
            absl::StrCat("can't read \"", Path("none"), "\": there is no such file; check the path"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(ReadError(Path("fifo")), HasSubstr("it is a pipe; write the policy to a file"));  // and does not wait
  EXPECT_THAT(ReadError("/dev/zero"), HasSubstr("it is a device"));
  EXPECT_THAT(ReadError(Write("a.json", "") + "/b"), HasSubstr("a part of the path is not a folder"));
  EXPECT_THAT(ReadError(std::string("a\0b", 3)), HasSubstr("the path has a NUL in it"));
  std::filesystem::create_symlink("loop", Path("loop"));
  EXPECT_THAT(ReadError(Path("loop")), HasSubstr(strerror(ELOOP)));
}

TEST_F(LoadTest, ASocketIsNoFile) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strcpy(address.sun_path, "s");  // a full path may be too long for it
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  std::filesystem::current_path(before);
  EXPECT_THAT(ReadError(Path("s")), HasSubstr("it is a socket"));
  close(fd);
}

TEST_F(LoadTest, WithoutPermissionSaysSo) {
  const std::string path = Write("a.json", "{}");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  // Root may read everything: asked by a child without capabilities.
  const pid_t child = fork();
  if (child == 0) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct none[2] = {};
    if (syscall(SYS_capset, &header, none) != 0) _exit(2);
    const absl::Status status = ReadPolicyFile(path).status();
    _exit(absl::StrContains(status.message(), "permission denied; let the user who starts the server read it") ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(LoadTest, SizeIsBounded) {
  EXPECT_EQ(ReadPolicyFile(Write("a", std::string(kPolicyBytesMax - 1, ' ')))->size(), kPolicyBytesMax - 1);
  EXPECT_EQ(ReadPolicyFile(Write("a", std::string(kPolicyBytesMax, ' ')))->size(), kPolicyBytesMax);
  EXPECT_THAT(ReadError(Write("a", std::string(kPolicyBytesMax + 1, ' '))),
              HasSubstr("it is longer than 1048576 bytes; is it the right file?"));
  EXPECT_THAT(ReadError(Write("a", std::string(10 << 20, ' '))), HasSubstr("it is longer than"));
}

TEST_F(LoadTest, AFileThatSaysItIsEmptyIsReadAllTheSame) {
  EXPECT_THAT(*ReadPolicyFile("/proc/self/status"), HasSubstr("Pid:"));
}

TEST_F(LoadTest, APolicyExtendsFilesFromItsOwnFolder) {
  Write("sub/base.json", File(R"("extends": ["../root.json"], "filesystem": {"ro": ["/a"]})").text);
  Write("root.json", File(R"("user": "u")").text);
  const std::string path = Write("a.json", File(R"("extends": ["sub/base.json"])").text);
  const absl::StatusOr<Policy> policy = LoadPolicy(path, Host(), "");
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ((*policy)->user, "u");
  EXPECT_EQ((*policy)->name, path);
  EXPECT_EQ((*policy)->filesystem.ro[0].origin, Path("sub/base.json") + ":1");
}

TEST_F(LoadTest, ARelativePathStartsFromTheCurrentFolder) {
  Write("base.json", File(R"("user": "u")").text);
  const std::string path = Write("a.json", File(R"("extends": ["base.json"])").text);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const absl::StatusOr<Policy> relative = LoadPolicy("a.json", Host(), "");
  std::filesystem::current_path(before);
  ASSERT_TRUE(relative.ok()) << relative.status();
  EXPECT_EQ((*relative)->name, "a.json");
  EXPECT_EQ((*relative)->cache_key, (*LoadPolicy(std::filesystem::canonical(path).string(), Host(), ""))->cache_key);
}

TEST_F(LoadTest, MistakesNameTheFile) {
  const std::string path = Write("a.json", "{\"version\": 1,\n\"x\": 1}");
  const absl::Status status = LoadPolicy(path, Host(), "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path + ":2:1: /x: is not known here"));
  EXPECT_EQ(LoadPolicy(Path("none"), Host(), "").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(LoadTest, TheSystemsCeilingIsAppliedWhereItIs) {
  const std::string policy = Write("a.json", File(R"("network": {"mode": "host"})").text);
  EXPECT_EQ((*LoadPolicy(policy, Host(), Path("ceiling.json")))->network, NetworkMode::kHost);  // there is none
  EXPECT_EQ((*LoadPolicy(policy, Host(), Path("no/ceiling.json")))->network, NetworkMode::kHost);
  EXPECT_EQ((*LoadPreset("npx", Host(), Path("ceiling.json")))->network, NetworkMode::kHost);
  const std::string ceiling = Write("ceiling.json", File("").text);
  EXPECT_EQ((*LoadPolicy(policy, Host(), ceiling))->network, NetworkMode::kNone);
  EXPECT_EQ((*LoadPreset("npx", Host(), ceiling))->network, NetworkMode::kNone);
}

TEST_F(LoadTest, ASystemCeilingThatCantBeReadIsARefusal) {
  const std::string policy = Write("a.json", File("").text);
  const auto error = [&policy](const std::string& ceiling) {
    return std::string(LoadPolicy(policy, Host(), ceiling).status().message());
  };
  EXPECT_EQ(error(folder_), absl::StrCat("nothing is started without its ceiling: can't read \"", folder_,
                                         "\": it is a folder; name the policy file in it"));
  // A link that leads nowhere is there.
  std::filesystem::create_symlink("nowhere", Path("link"));
  EXPECT_THAT(error(Path("link")), HasSubstr("nothing is started without its ceiling: "));
  EXPECT_THAT(error(Path("link/ceiling.json")), HasSubstr("nothing is started without its ceiling: "));
  EXPECT_THAT(error(Write("ceiling.json", "{")), HasSubstr("ceiling.json:1:2: /: is not JSON"));
  EXPECT_THAT(error(Write("ceiling.json", "")), HasSubstr("ceiling.json:1:1: /: is empty"));
}

TEST_F(LoadTest, CeilingsNamedMustBeThere) {
  const std::string a = Write("a.json", "a"), b = Write("b.json", "b");
  const auto ceilings = LoadCeilings({a}, b);
  ASSERT_TRUE(ceilings.ok());
  ASSERT_EQ(ceilings->size(), 2u);
  EXPECT_EQ((*ceilings)[0].name, b);  // the system's comes first
  EXPECT_EQ((*ceilings)[1].text, "a");
  EXPECT_THAT(*LoadCeilings({}, ""), IsEmpty());
  EXPECT_THAT(std::string(LoadCeilings({Path("none")}, "").status().message()), HasSubstr("there is no such file"));
}

TEST_F(LoadTest, ACeilingsOwnExtendsAreFoundFromItsFolder) {
  Write("c/base.json", File(R"("network": {"mode": "host"})").text);
  const std::string ceiling = Write("c/ceiling.json", File(R"("extends": ["base.json"])").text);
  const std::string policy = Write("a.json", File(R"("network": {"mode": "host"})").text);
  EXPECT_EQ((*LoadPolicy(policy, Host(), ceiling))->network, NetworkMode::kHost);
}

// What is loaded as a file is a file, or nothing: never the preset.
TEST_F(LoadTest, AFileThatIsNamedLikeAPresetIsAFile) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const std::string text = File(R"("user": "of-the-file", "syscalls": {"allow": ["ptrace"]})").text;
  for (const char* name : {"preset:browser", "preset:mine"}) {  // there is a preset of the first name only
    Write(name, text);
    const absl::StatusOr<Policy> policy = LoadPolicy(name, Host(), "");
    EXPECT_TRUE(policy.ok()) << policy.status();
    if (!policy.ok()) continue;
    EXPECT_EQ((*policy)->user, "of-the-file");
    EXPECT_EQ((*policy)->name, absl::StrCat("./", name));  // a preset's warnings are left out, and its cache is shared
    EXPECT_NE((*policy)->cache_key, (*LoadPreset("browser", Host(), ""))->cache_key);
    EXPECT_EQ((*LoadCeilings({name}, ""))[0].name, absl::StrCat("./", name));
    std::filesystem::remove(Path(name));
  }
  for (const char* name : {"preset:browser", "preset:mine"}) {
    EXPECT_EQ(ReadError(name), absl::StrCat("can't read \"", name,
                                            "\": there is no such file; name a built-in policy by --preset, or under "
                                            "\"extends\""));
    EXPECT_EQ(LoadPolicy(name, Host(), "").status().message(), ReadError(name));
  }
  // Where both could be meant, the one who asks for a preset gets it.
  Write("preset:browser", text);
  EXPECT_EQ((*LoadPreset("browser", Host(), ""))->name, "preset:browser");
  EXPECT_EQ((*LoadPreset("browser", Host(), ""))->user, "auto");
  std::filesystem::current_path(before);
}

TEST_F(LoadTest, APresetThatIsNotThereIsNamed) {
  EXPECT_EQ(LoadPreset("nod", Host(), "").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace bulkhead::policy
