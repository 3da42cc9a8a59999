// A policy with as many values as one may have, in five of its lists.
#ifndef BULKHEAD_TESTS_POLICY_LARGE_POLICY_H_
#define BULKHEAD_TESTS_POLICY_LARGE_POLICY_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "bulkhead/policy/json.h"

namespace bulkhead::policy {

inline std::string LargePolicy() {
  constexpr std::size_t kEach = (kPolicyValuesMax - 10) / 5;
  std::string text = "{\n  \"version\": 1,\n  \"filesystem\": {";
  const char* separator = "";
  for (const char* list : {"rx", "ro", "rw"}) {
    absl::StrAppend(&text, separator, "\n    \"", list, "\": [");
    for (std::size_t i = 0; i < kEach; ++i) {
      absl::StrAppend(&text, i == 0 ? "" : ",", "\n      \"/srv/projects/number-", i, "/", list, "/data\"");
    }
    text += "\n    ]";
    separator = ",";
  }
  text += "\n  },\n  \"env\": {\n    \"inherit\": [";
  for (std::size_t i = 0; i < kEach; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", "\n      \"VARIABLE_NUMBER_", i, "\"");
  }
  text += "\n    ],\n    \"set\": {";
  for (std::size_t i = 0; i < kEach; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", "\n      \"VARIABLE_NUMBER_", i, "\": \"the value of number ", i, "\"");
  }
  return text + "\n    }\n  }\n}\n";
}

}  // namespace bulkhead::policy

#endif  // BULKHEAD_TESTS_POLICY_LARGE_POLICY_H_
