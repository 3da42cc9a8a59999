// What is wrong with a command or a grant is said before anything is started, each thing in its own words: with the
// Linux backend and with the portable one.
#include <elf.h>
#include <string.h>
#include <sys/stat.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/launcher/jail_fixture.h"
#include "tests/launcher/linux_alone.h"

namespace bulkhead::launcher {
namespace {

using testing::HasSubstr;

// A program whose ELF loader is `loader`.
std::string ElfWithLoader(const std::string& loader) {
  Elf64_Ehdr head = {};
  memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_type = ET_EXEC;
#if defined(__aarch64__)
  head.e_machine = EM_AARCH64;
#else
  head.e_machine = EM_X86_64;
#endif
  head.e_phoff = sizeof head;
  head.e_phentsize = sizeof(Elf64_Phdr);
  head.e_phnum = 1;
  Elf64_Phdr interpreter = {};
  interpreter.p_type = PT_INTERP;
  interpreter.p_offset = sizeof head + sizeof interpreter;
  interpreter.p_filesz = loader.size() + 1;
  return std::string(reinterpret_cast<const char*>(&head), sizeof head) +
         std::string(reinterpret_cast<const char*>(&interpreter), sizeof interpreter) + loader + '\0';
}

class MistakeTest : public testing::TestWithParam<Way> {
 protected:
  static bool Portable() { return GetParam() == Way::kPortable; }
  absl::Status StatusOf(const Jail& jail, const Words& command) const {
    return RunCommand(host_, jail, command).launched;
  }
  Words ProbeWords() const { return {host_.probe(), "exit", "0"}; }

  Host host_;
};
INSTANTIATE_TEST_SUITE_P(, MistakeTest, testing::Values(Way::kTierA, Way::kPortable),
                         [](const auto& info) { return NameOf(info.param); });

// Some of them the portable backend leaves to the kernel, which says them when the program is to be started.
TEST_P(MistakeTest, HasItsOwnMessageAndCode) {
  const auto file = [this](const std::string& name, const std::string& text, mode_t mode = 0755) -> Words {
    return {host_.File("programs/" + name, text, mode)};
  };
  host_.Folder("data");
  host_.Folder("elsewhere");
  ASSERT_EQ(mkfifo((host_ / "fifo").c_str(), 0644), 0);
  host_.Link("/", "data/out");

  const Jail plain = JailFor(GetParam());
  Jail missing_cwd = plain, refused_cwd = plain, foreign_cwd = plain, file_cwd = plain, arguments = plain,
       missing_grant = plain, leading_out = plain, device = plain, fifo = plain;
  missing_cwd.cwd = host_ / "none";
  file_cwd.cwd = host_.File("plain", "");
  refused_cwd.cwd = host_ / "data";
  foreign_cwd.cwd = host_ / "elsewhere";
  foreign_cwd.more = absl::StrCat(",\"cwd\":{\"allow\":[\"", host_ / "data", "\"]}");
  arguments.more = ",\"command\":{\"args\":{\"deny\":[\"--inspect*\"]}}";
  missing_grant.ro = {host_ / "none"};
  leading_out.workspace = host_ / "data";
  leading_out.ro = {"${workspace}/out"};
  device.ro = {"/dev/null"};
  fifo.ro = {host_ / "fifo"};

  struct Case {
    const char* what;
    Jail jail;
    Words command;
    int code;
    std::string says;
  };
  const std::vector<Case> cases = {
      {"bare name not found", plain, {"no-such-command"}, 127, "was not found on the server's PATH (/usr/local/bin:"},
      {"path not found", plain, {host_ / "none"}, 127, "command not found: \""},
      {"not executable", plain, file("plain", "#!/bin/sh\n", 0644), 126, "it is not executable; chmod +x"},
      {"a folder", plain, {host_ / "data"}, 126, "it is a folder, not a program"},
      {"interpreter", plain, file("script", "#!/no/such -x\n"), 126, "its interpreter \"/no/such\" (first line)"},
      {"interpreter through env", plain, file("env", "#!/usr/bin/env nope\n"), 126, "it is a script for \"nope\""},
      {"ELF loader", plain, file("elf", ElfWithLoader("/no/such/ld.so")), 126,
       Portable() ? "its loader" : "its ELF loader \"/no/such/ld.so\""},
      {"no program", plain, file("empty", ""), 126, "it is empty"},
      {"no format", plain, file("junk", "\1\2"), 126, "Exec format error"},
      {"cwd missing", missing_cwd, ProbeWords(), 126, "cannot use the working folder: \""},
      {"cwd a file", file_cwd, ProbeWords(), 126, "is not a folder"},
      {"cwd not granted", refused_cwd, ProbeWords(), 126, "the policy doesn't grant it"},
      {"cwd not allowed", foreign_cwd, ProbeWords(), 126, "/cwd/allow"},
      {"argument refused", arguments, {host_.probe(), "--inspect=1"}, 126, "--inspect"},
      {"missing grant", missing_grant, ProbeWords(), 126, "mark the grant \"optional\""},
      {"leads out", leading_out, ProbeWords(), 126, "leads out of \""},
      {"device", device, ProbeWords(), 126, "is a device or a FIFO"},
  };
  std::set<std::string> messages;
  std::size_t left_out = 0;
  for (const Case& wrong : cases) {
    SCOPED_TRACE(wrong.what);
    if (Portable() && !AlsoPortable(wrong.what)) {
      ++left_out;
      continue;
    }
    const absl::Status status = StatusOf(wrong.jail, wrong.command);
    EXPECT_EQ(ExitCodeForStatus(status), wrong.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(wrong.says));
    messages.insert(std::string(status.message()));
  }
  EXPECT_EQ(messages.size() + left_out, cases.size());
  EXPECT_THAT(std::string(StatusOf(fifo, ProbeWords()).message()), HasSubstr("is a device or a FIFO"));
}

TEST_P(MistakeTest, AGrantThatIsWrongIsNamedWithItsPlace) {
  Jail jail = JailFor(GetParam());
  jail.ro = {host_ / "none"};
  EXPECT_THAT(std::string(StatusOf(jail, ProbeWords()).message()),
              AllOf(testing::StartsWith("test.json:1"), HasSubstr(absl::StrCat("\"", host_ / "none", "\""))));
}

TEST_P(MistakeTest, TheLoaderOfAProgramMustBeGrantedToo) {
  const std::string loader = host_.File("libs/ld.so", "", 0755);
  const Words command = {host_.File("programs/elf", ElfWithLoader(loader), 0755)};
  EXPECT_THAT(std::string(MakePlan(host_, JailFor(GetParam()), command).status().message()),
              HasSubstr("is not granted; add its folder to \"rx\""));
  Jail jail = JailFor(GetParam());
  jail.rx = {host_ / "libs"};
  EXPECT_TRUE(MakePlan(host_, jail, command).ok());
}

}  // namespace
}  // namespace bulkhead::launcher
