// Each broken/NN-name.json is a policy with a mistake that people make, and NN-name.expected what they are told. For a
// new one, write the policy, run this test, read what it would say, and write that down if it helps.
#include <dirent.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/policy/testing.h"

namespace bulkhead::policy {
namespace {

constexpr char kFolder[] = "tests/policy/broken/";
constexpr std::size_t kPoliciesMin = 60;

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::vector<std::string> BrokenPolicies() {
  std::set<std::string> names;
  DIR* folder = opendir(kFolder);
  while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
    absl::string_view name = entry->d_name;
    if (absl::ConsumeSuffix(&name, ".json")) names.emplace(name);
  }
  if (folder != nullptr) closedir(folder);
  return {names.begin(), names.end()};
}

TEST(BrokenPoliciesTest, AreMany) { EXPECT_GE(BrokenPolicies().size(), kPoliciesMin); }

class BrokenPolicyTest : public ::testing::TestWithParam<std::string> {};

TEST_P(BrokenPolicyTest, IsAnsweredAsWrittenDown) {
  ParseOptions options = Host();
  options.folder = "/broken";
  options.read_file = [](const std::string& path) -> absl::StatusOr<std::string> {
    const std::string here = absl::StrCat(kFolder, absl::StripPrefix(path, "/broken/"));
    if (!std::ifstream(here).good()) return absl::NotFoundError("there is no such file; check the path");
    return Read(here);
  };
  const std::string name = GetParam() + ".json";
  const absl::StatusOr<Policy> policy = ParsePolicy({name, Read(kFolder + name)}, options);
  ASSERT_FALSE(policy.ok()) << "this policy is not broken";
  EXPECT_EQ(absl::StrCat(policy.status().message(), "\n"), Read(absl::StrCat(kFolder, GetParam(), ".expected")));
}

INSTANTIATE_TEST_SUITE_P(Files, BrokenPolicyTest, ::testing::ValuesIn(BrokenPolicies()),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace bulkhead::policy
