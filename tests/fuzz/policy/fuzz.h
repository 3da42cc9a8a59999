// What the fuzz targets of policy/ share.
#ifndef BULKHEAD_TESTS_FUZZ_POLICY_FUZZ_H_
#define BULKHEAD_TESTS_FUZZ_POLICY_FUZZ_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

// Ends the program if `holds` is false: what the fuzzer then keeps breaks the rule that `what` says.
inline void Demand(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// The input's lines; a line may be empty.
inline std::vector<std::string> Lines(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == '\n') {
      lines.emplace_back();
    } else {
      lines.back().push_back(static_cast<char>(data[i]));
    }
  }
  return lines;
}

inline ParseOptions FuzzHost() {
  ParseOptions options;
  options.variables.workspace = "/home/u/ws";
  options.variables.home = "/home/u";
  options.variables.tmp = "/tmp";
  options.variables.cache_root = "/c";
  options.variables.env = {{"PLACE", "/env/place"}, {"WORD", "word"}};
  options.folder = "/p";
  return options;
}

}  // namespace bulkhead::policy

#endif  // BULKHEAD_TESTS_FUZZ_POLICY_FUZZ_H_
