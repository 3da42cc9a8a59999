// A test for each architecture of what the built-in filters do, by the evaluator.
#ifndef BULKHEAD_TESTS_LAUNCHER_SECCOMP_FILTERS_FIXTURE_H_
#define BULKHEAD_TESTS_LAUNCHER_SECCOMP_FILTERS_FIXTURE_H_

#include <cstdint>
#include <optional>
#include <ostream>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/launcher/seccomp/filter_calls.h"

namespace bulkhead::launcher {

inline void PrintTo(Arch arch, std::ostream* out) { *out << (arch == Arch::kX86_64 ? "x86_64" : "aarch64"); }

class FiltersTest : public ::testing::TestWithParam<Arch> {
 protected:
  // "absent" where the architecture has no such call.
  std::string Of(FilterName filter, const std::string& call, const Arguments& arguments = {}) {
    std::optional<std::uint32_t> number = NumberOf(call, GetParam());
    return number ? Fate(filter, GetParam(), *number, arguments) : "absent";
  }

  // What happens to a call with arguments that resemble nothing in particular.
  std::set<std::string> OfMany(FilterName filter, std::uint32_t number) {
    std::set<std::string> fates;
    for (std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x7f0012345678}, ~std::uint64_t{0}}) {
      fates.insert(Fate(filter, GetParam(), number, {value, value, value, value, value, value}));
    }
    return fates;
  }
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_TESTS_LAUNCHER_SECCOMP_FILTERS_FIXTURE_H_
