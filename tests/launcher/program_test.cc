#include "bulkhead/launcher/program.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "bulkhead/launcher/elf_program.h"
#include "bulkhead/launcher/plan.h"
#include "tests/launcher/jail_fixture.h"

namespace bulkhead::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;

bool Nowhere(const std::string&) { return false; }

absl::StatusOr<Program> Find(const std::string& name, const std::string& path_list = "") {
  return FindProgram(name, false, path_list, Nowhere, LookAtElfProgram);
}

class ProgramTest : public testing::Test {
 protected:
  std::string Script(const std::string& text, mode_t mode = 0755) const { return host_.File("bin/tool", text, mode); }
  static std::string Refusal(const std::string& path, const std::string& path_list = "/usr/bin:/bin") {
    const absl::StatusOr<Program> program = Find(path, path_list);
    EXPECT_TRUE(absl::IsPermissionDenied(program.status())) << program.status();
    return std::string(program.status().message());
  }
  Host host_;
};

TEST_F(ProgramTest, ANameIsLookedUpInOrder) {
  const std::string first = host_.File("one/tool", "#!/bin/sh\n", 0755), second = host_.File("two/tool", "x", 0755);
  const std::string one = host_ / "one", two = host_ / "two";
  EXPECT_EQ(*FindOnPath("tool", absl::StrCat(one, ":", two), Nowhere), first);
  EXPECT_EQ(*FindOnPath("tool", absl::StrCat(two, ":", one), Nowhere), second);
  EXPECT_EQ(*FindOnPath("tool", absl::StrCat("/no/such:", one, "/"), Nowhere), first);
}

TEST_F(ProgramTest, WhatCannotBeRunIsPassedOver) {
  host_.File("one/tool", "", 0644);
  host_.Folder("two/tool");
  const std::string third = host_.File("three/tool", "x", 0755);
  EXPECT_EQ(*FindOnPath("tool", absl::StrCat(host_ / "one", ":", host_ / "two", ":", host_ / "three"), Nowhere), third);
}

TEST_F(ProgramTest, WhatTheServerMayWriteIsPassedOver) {
  const std::string first = host_.File("one/tool", "x", 0755), second = host_.File("two/tool", "x", 0755);
  host_.Folder("three");
  host_.Link("../one/tool", "three/tool");
  const std::string list = absl::StrCat(host_ / "three", ":", host_ / "one", ":", host_ / "two");
  const auto in_one = [&](const std::string& real) { return IsWithin(real, host_ / "one"); };
  EXPECT_EQ(*FindOnPath("tool", list, Nowhere), host_ / "three/tool");
  EXPECT_EQ(*FindOnPath("tool", list, in_one), second);
  const auto everywhere = [](const std::string&) { return true; };
  EXPECT_THAT(
      std::string(FindOnPath("tool", list, everywhere).status().message()),
      AllOf(HasSubstr("found only as \"" + (host_ / "three/tool")), HasSubstr("the policy lets the server write")));
}

TEST_F(ProgramTest, TheCurrentFolderIsNeverSearched) {
  Script("#!/bin/sh\n");
  ASSERT_EQ(chdir((host_ / "bin").c_str()), 0);
  for (const char* list : {"", ":", ".", "../bin", "::."}) {
    EXPECT_TRUE(absl::IsNotFound(FindOnPath("tool", list, Nowhere).status())) << list;
  }
  ASSERT_EQ(chdir("/"), 0);
}

TEST_F(ProgramTest, AMissingNameIsToldTheListThatWasSearched) {
  EXPECT_THAT(std::string(FindOnPath("tool", "/no/such:/nor/this", Nowhere).status().message()),
              HasSubstr("(/no/such:/nor/this)"));
  EXPECT_THAT(std::string(FindOnPath("tool", "", Nowhere).status().message()), HasSubstr("(which is empty)"));
}

TEST_F(ProgramTest, AProgramIsFoundThroughLinks) {
  const std::string script = Script("#!/bin/sh\n"), link = host_.Link("bin/tool", "link");
  const absl::StatusOr<Program> program = Find(link);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->path, link);
  EXPECT_EQ(program->file.real, script);
  EXPECT_TRUE(program->is_script);
  EXPECT_EQ(program->interpreter, "/bin/sh");
}

TEST_F(ProgramTest, TheFirstLineMayHaveSpacesAndOptions) {
  EXPECT_EQ(Find(Script("#!  /bin/sh  -e \nexit\n"))->interpreter, "/bin/sh");
  EXPECT_EQ(Find(Script("#!/bin/sh"))->interpreter, "/bin/sh");
  EXPECT_THAT(Refusal(Script("#!\n")), HasSubstr("names no interpreter"));
  EXPECT_THAT(Refusal(Script("#!/usr/bin/env -S A=b nope --flag\n")), HasSubstr("a script for \"nope\""));
  EXPECT_TRUE(Find(Script("#!/usr/bin/env sh\n"), "/usr/bin:/bin").ok());
  EXPECT_THAT(Refusal(Script("#!/usr/bin/env sh\n"), "/no/such"), HasSubstr("PATH: /no/such"));
}

TEST_F(ProgramTest, WhatIsNoProgramIsSaid) {
  EXPECT_THAT(Refusal(Script("")), HasSubstr("it is empty"));
  EXPECT_THAT(Refusal(Script(std::string(ELFMAG) + "cut")), HasSubstr("cut off"));
  std::string other = std::string(ELFMAG) + std::string(sizeof(Elf64_Ehdr), '\2');
  other[EI_CLASS] = ELFCLASS64;
  EXPECT_THAT(Refusal(Script(other)), HasSubstr("another kind of machine"));
  const std::string fifo = host_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0755), 0);
  EXPECT_THAT(Refusal(fifo), HasSubstr("not a regular file"));
}

TEST_F(ProgramTest, WhatMayBeRunButNotReadIsLeftToTheKernel) {
  const absl::StatusOr<Program> program = Find(Script("#!/no/such\n", 0111));
  EXPECT_EQ(program.ok(), !IsRoot()) << program.status();  // root can read it
}

TEST_F(ProgramTest, OtherFormatsAreLeftToTheKernel) { EXPECT_TRUE(Find(Script("MZ")).ok()); }

}  // namespace
}  // namespace bulkhead::launcher
