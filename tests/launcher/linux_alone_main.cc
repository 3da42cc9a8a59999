// The main() of tests that run with both backends: leaves out with the portable one what linux_alone.h names.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/launcher/linux_alone.h"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  std::string filter = GTEST_FLAG_GET(filter);
  bool has_negative = filter.find('-') != std::string::npos;
  for (const bulkhead::launcher::LinuxAlone& alone : bulkhead::launcher::kLinuxAlone) {
    const std::string test = alone.test;
    if (test.find_first_of("/:") != std::string::npos)
      continue;  // a case or a parameter, which the test itself leaves out
    filter += (has_negative ? ":" : "-") + test + "/Portable*";
    has_negative = true;
  }
  GTEST_FLAG_SET(filter, filter);
  return RUN_ALL_TESTS();
}
