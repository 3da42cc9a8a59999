// The real command on many kernels and in many containers, imitated by tests/programs/deny.cc: for each combination the
// tier that is reached, what the report says of it, and what a server gets that reads a key of the person's.
//
// ABIs of Landlock beyond this kernel's own are not here: a plan for them is tested in plan_test, but not run.
#include <stdlib.h>
#include <sys/wait.h>

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/launcher/jail_fixture.h"

namespace bulkhead::launcher {
namespace {

using testing::HasSubstr;

// What a kernel or a container lacks, and what is left then, where Landlock is there.
struct Lack {
  const char* name;
  const char* flags;
  enum class Leaves { kNamespaces, kNoNamespaces, kNothing } leaves;
};
constexpr Lack kLacks[] = {
    {"Nothing", "", Lack::Leaves::kNamespaces},
    {"UserNamespaces", "--userns", Lack::Leaves::kNoNamespaces},
    {"AllNamespaces", "--namespaces", Lack::Leaves::kNoNamespaces},
    {"Mount", "--call mount=EPERM", Lack::Leaves::kNoNamespaces},
    {"Fsmount", "--call fsmount=ENOSYS", Lack::Leaves::kNoNamespaces},
    {"PivotRoot", "--call pivot_root=EPERM", Lack::Leaves::kNoNamespaces},
    {"UidMaps", "--proc read-only", Lack::Leaves::kNoNamespaces},
    {"Proc", "--proc none", Lack::Leaves::kNothing},
    {"Clone3", "--call clone3=ENOSYS", Lack::Leaves::kNamespaces},
    {"CloseRange", "--call close_range=ENOSYS", Lack::Leaves::kNothing},
    {"PidfdOpen", "--call pidfd_open=ENOSYS", Lack::Leaves::kNothing},
    {"MemfdExec", "--call execveat=EACCES", Lack::Leaves::kNothing},
    {"Memfds", "--call memfd_create=ENOSYS", Lack::Leaves::kNothing},
};
constexpr int kAbiMax = 7;

using Kernel = std::tuple<int, Lack>;  // Landlock's ABI, 0: none

struct Result {
  int code = -1;
  std::string out, err;
  nlohmann::json report;
};

class KernelsTest : public testing::TestWithParam<Kernel> {
 protected:
  static int Abi() { return std::get<0>(GetParam()); }
  static Lack::Leaves Leaves() { return std::get<1>(GetParam()).leaves; }
  // deny ... bulkhead run --require C probe read FILE
  Result Read(const std::string& file) const {
    const std::string out = host_ / "out", err = host_ / "err", report = host_ / "report";
    const std::string landlock = Abi() == 0 ? "--landlock" : absl::StrCat("--landlock-abi ", Abi());
    const int status = system(absl::StrCat("cd / && HOME='", host_.home(), "' '", TestData("tests/programs/deny"), "' ",
                                           landlock, " ", std::get<1>(GetParam()).flags, " '", TestData("cli/bulkhead"),
                                           "' run --report '", report, "' --require C --ro '", host_ / "data", "' -- '",
                                           host_.probe(), "' read '", file, "' </dev/null >'", out, "' 2>'", err, "'")
                                  .c_str());
    return {WEXITSTATUS(status), ReadFile(out), ReadStderr(err),
            nlohmann::json::parse(ReadFile(report), nullptr, false)};
  }
  static std::string Layer(const Result& result, const std::string& name, const char* field) {
    for (const nlohmann::json& layer : result.report["layers"]) {
      if (layer.value("name", "") == name) return layer.value(field, "");
    }
    return "no such layer";
  }

  Host host_;
  const std::string granted_ = host_.File("data/file", "granted");
};

TEST_P(KernelsTest, WhatIsReachedIsReportedAndHolds) {
  if (Abi() > DetectKernelFeatures().landlock_abi) GTEST_SKIP() << "Landlock ABI " << Abi();
  const Result usual = Read(granted_);
  const Result attack = Read(host_.key());
  if (Leaves() == Lack::Leaves::kNothing) {
    for (const Result* result : {&usual, &attack}) {
      EXPECT_EQ(result->code, 125);
      EXPECT_EQ(result->out, "");
      EXPECT_THAT(result->err, testing::StartsWith("bulkhead: cannot "));
    }
    return;
  }
  EXPECT_EQ(usual.out, "ok granted\n") << usual.err;
  EXPECT_EQ(usual.err, "");
  const bool namespaces = Leaves() == Lack::Leaves::kNamespaces;
  ASSERT_TRUE(usual.report.is_object()) << usual.err;
  EXPECT_EQ(usual.report.value("tier", ""), Abi() == 0 ? "C" : namespaces ? "A" : "B");
  EXPECT_EQ(Layer(usual, "namespaces", "state") == "none", !namespaces);
  if (Abi() > 0) {
    EXPECT_THAT(Layer(usual, "landlock", "does"), HasSubstr(absl::StrCat("(ABI ", Abi(), ")")));
  } else {
    EXPECT_EQ(Layer(usual, "landlock", "state"), "none");
  }
  // In tier C without namespaces the key is read, and the report says that nothing keeps it.
  if (!namespaces && Abi() == 0) {
    EXPECT_EQ(attack.out, "ok the private key\n");
  } else {
    EXPECT_THAT(attack.out, testing::AnyOf(HasSubstr("ENOENT"), HasSubstr("EACCES")));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, KernelsTest, testing::Combine(testing::Range(0, kAbiMax + 1), testing::ValuesIn(kLacks)),
                         [](const testing::TestParamInfo<Kernel>& info) {
                           return absl::StrCat("Abi", std::get<0>(info.param), "Without", std::get<1>(info.param).name);
                         });

}  // namespace
}  // namespace bulkhead::launcher
