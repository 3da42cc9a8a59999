// Any text is a policy that keeps its rules, or an error with a place in each line. What is JSON is what nlohmann takes
// for it.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "bulkhead/policy/json.h"
#include "bulkhead/policy/paths.h"
#include "bulkhead/policy/text.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/policy/fuzz.h"

using namespace bulkhead::policy;  // NOLINT(google-build-using-namespace): a program of one function

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size), file = "f.json";
  Mistakes mistakes;
  const std::optional<JsonValue> tree = ParseJson(file, text, mistakes);
  Demand(tree.has_value() || !mistakes.empty(), "no tree without a mistake");
  if (tree.has_value()) {
    // It takes numbers that fit no double for an error.
    Demand(nlohmann::json::accept(text, true) || absl::StrContains(text, 'e') || absl::StrContains(text, 'E') ||
               size > 300,
           "what is read is JSON");
  }
  const absl::StatusOr<Policy> policy = ParsePolicy({file, text}, FuzzHost());
  if (policy.ok()) {
    Demand(tree.has_value() && mistakes.empty(), "a policy is JSON without mistakes");
    for (const auto* list : {&(*policy)->filesystem.ro, &(*policy)->filesystem.rw}) {
      for (const PathGrant& grant : *list) {
        std::string normal;
        Demand(NormalisePath(grant.path, &normal) == PathProblem::kNone && normal == grant.path, "paths are normal");
        Demand(grant.beneath.empty() || IsWithin(grant.path, grant.beneath), "a path lies beneath its folder");
      }
    }
    return 0;
  }
  for (const absl::string_view line : absl::StrSplit(policy.status().message(), '\n')) {
    Demand(absl::StartsWith(line, "f.json:") || absl::StartsWith(line, "(") || absl::StartsWith(line, "preset:"),
           "each mistake has its place");
    Demand(line == Visible(line), "a mistake can be printed");
  }
  return 0;
}
