// What the tests of policy/ share: a host with everything set, and a policy's text in, its fields or its mistakes out.
#ifndef BULKHEAD_TESTS_POLICY_TESTING_H_
#define BULKHEAD_TESTS_POLICY_TESTING_H_

#include <map>
#include <ostream>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bulkhead/policy/parse.h"
#include "bulkhead/policy/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::policy {

inline void PrintTo(const PathGrant& grant, std::ostream* out) {
  *out << grant.path << (grant.optional ? "?" : "") << " beneath " << grant.beneath << ":"
       << absl::StrJoin(grant.also_beneath, ":");
}

inline ParseOptions Host() {
  ParseOptions options;
  options.variables.workspace = "/home/u/ws";
  options.variables.home = "/home/u";
  options.variables.tmp = "/tmp";
  options.variables.cache_root = "/home/u/.cache/bulkhead";
  options.variables.env = {{"PLACE", "/env/place"}, {"EMPTY", ""}, {"WORD", "word"}};
  options.variables.var = {{"DATA", "/var/data"}};
  return options;
}

// Files that policies extend, by their absolute paths.
inline ParseOptions HostWithFiles(std::map<std::string, std::string> files) {
  ParseOptions options = Host();
  options.folder = "/p";
  options.read_file = [files = std::move(files)](const std::string& path) -> absl::StatusOr<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return absl::NotFoundError("no such file");
    return found->second;
  };
  return options;
}

// `members` of a policy's object, without the version.
inline PolicyText File(const std::string& members, const std::string& name = "files.json") {
  return {name, absl::StrCat("{\"version\": 1", members.empty() ? "" : ", ", members, "}")};
}

// What most tests compare: `message` as it is, but with places as FILE:LINE. Columns are looked at by json_test and the
// files in broken/.
inline std::string WithoutColumns(absl::string_view message) {
  return std::regex_replace(std::string(message), std::regex("(^|\n)([^ :]+:[0-9]+):[0-9]+: "), "$1$2: ");
}

inline std::string ErrorOf(const PolicyText& text, const ParseOptions& options = Host()) {
  const absl::StatusOr<Policy> policy = ParsePolicy(text, options);
  if (policy.ok()) return "(no error)";
  EXPECT_EQ(policy.status().code(), absl::StatusCode::kInvalidArgument);
  return WithoutColumns(policy.status().message());
}

inline PolicyFields Parsed(const PolicyText& text, const ParseOptions& options = Host()) {
  const absl::StatusOr<Policy> policy = ParsePolicy(text, options);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return policy.ok() ? **policy : PolicyFields();
}

// Also with what is not enforced yet.
inline PolicyFields ParsedUnenforced(const PolicyText& text, const ParseOptions& options = Host()) {
  const absl::StatusOr<PolicyFields> fields = ParseFields(text, options, Unenforced::kAccept);
  EXPECT_TRUE(fields.ok()) << fields.status();
  return fields.ok() ? *fields : PolicyFields();
}

inline std::vector<std::string> PathsOf(const std::vector<PathGrant>& grants) {
  std::vector<std::string> paths;
  for (const PathGrant& grant : grants) paths.push_back(grant.path);
  return paths;
}

}  // namespace bulkhead::policy

#endif  // BULKHEAD_TESTS_POLICY_TESTING_H_
