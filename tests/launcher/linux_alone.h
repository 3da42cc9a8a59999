// What of the tests that run with the Linux backend and with the portable one is left out with the latter, and why.
// Everything else runs with both: what is added does, too, unless it is named here. docs/platforms.md shows the same
// table, which linux_alone_test.py compares.
#ifndef BULKHEAD_TESTS_LAUNCHER_LINUX_ALONE_H_
#define BULKHEAD_TESTS_LAUNCHER_LINUX_ALONE_H_

#include <string>

#include "gtest/gtest.h"

namespace bulkhead::launcher {

struct LinuxAlone {
  // "Suite.Test", which linux_alone_main.cc leaves out; "Suite.Test/Parameter" or "Suite.Test: case in it"; a * stands
  // for anything.
  const char* test;
  const char* why;
};

inline constexpr LinuxAlone kLinuxAlone[] = {
    {"TreeTest.NothingIsLeft/KeeperKilled*", "a library's server has no keeper beside it"},
    {"TreeTest.NothingIsLeft/InitKilled*", "a library's server has no jail init above it"},
    {"TreeTest.NothingIsLeft/HostKilledIgnoresAll", "the server sees the end of its stdin, and nobody kills it"},
    {"TreeTest.NothingIsLeft/HostKilledStopped", "the server is stopped, and nobody kills it"},
    {"TreeTest.NothingIsLeft/*SetsidHelper", "it leaves the process group, and lives on"},
    {"TreeTest.NothingIsLeft/*Daemon", "it leaves the process group, and lives on"},
    {"AttackTest.NeitherKeeperNorInitCanBeSignalledOrBlinded", "there is neither"},
    {"ProcessTest.DestroyingItEndsEveryShapeOfTree: setsid-helper", "it leaves the process group, and lives on"},
    {"ProcessTest.DestroyingItEndsEveryShapeOfTree: daemon", "it leaves the process group, and lives on"},
    {"ProcessTest.DestroyingItEndsEveryShapeOfTree: tree-forever", "it leaves the process group, and lives on"},
    {"ProcessTest.DestroyingItEndsEveryShapeOfTree: runner", "it leaves the process group, and lives on"},
    {"ProcessTest.StopIsBoundedWhenTheKeeperItselfIsStopped", "there is no keeper"},
    {"ProcessTest.DestroyingItEndsTheTreeOfAStoppedKeeper", "there is no keeper"},
    {"ProcessTest.KillingTheKeeperEndsTheTree", "there is no keeper"},
    {"ProcessTest.AsyncStopIsBoundedWhenTheKeeperItselfIsStopped", "there is no keeper"},
    {"ProcessTest.AKilledKeeperIsToldAfterItsTreeIsGone", "there is no keeper"},
    {"ProcessTest.APlanThatTheKeeperRefusesIsAnError", "there is no keeper"},
    {"ProcessTest.KillingTheJailInitEndsTheTree", "there is no jail init"},
    {"ProcessTest.AMissingProgramIsNotFoundInThePlansWords", "the plan has no words for it; MistakeTest shows its own"},
    {"ProcessTest.AnUnusableProgramIsPermissionDeniedWithTheKernelsWord",
     "the plan has no words for it; MistakeTest shows its own"},
    {"ProcessTest.AnyOtherFailureIsInternal", "the plan has no words for it; MistakeTest shows its own"},
    {"RunTest.AKilledHostsTreeEnds: tree-forever", "it leaves the process group, and lives on"},
    {"RunTest.AKilledHostIsMissedAlsoWhenTheServerHoldsItsPipes: wrappers", "only the parent is watched"},
    {"RunTest.NothingOfTheCommandIsSeenInKeeperAndInit", "there is neither; bulkhead itself stays"},
    {"MistakeTest.TheLoaderOfAProgramMustBeGrantedToo", "every file of the user's is open to the server"},
    {"MistakeTest.HasItsOwnMessageAndCode: cwd not granted",
     "every folder of the user's is open to the server, its working folder too"},
};

// Why a test, or a case in it, is left out with the portable backend; or null.
inline const char* WhyLinuxAlone(const std::string& test) {
  for (const LinuxAlone& alone : kLinuxAlone) {
    const std::string name = alone.test;
    const std::size_t star = name.find('*');
    const std::string before = name.substr(0, star), after = star == name.npos ? "" : name.substr(star + 1);
    const bool same = star == name.npos ? test == name
                                        : test.size() >= before.size() + after.size() &&
                                              test.compare(0, before.size(), before) == 0 &&
                                              test.compare(test.size() - after.size(), after.size(), after) == 0;
    if (same) return alone.why;
  }
  return nullptr;
}

// "Suite.Test" of the test that runs, without its parameter.
inline std::string ThisTest() {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  const std::string suite = test.test_suite_name(), name = test.name();
  return suite.substr(suite.find('/') + 1) + "." + name.substr(0, name.find('/'));
}

// Whether this case of the running test is run with the portable backend, too.
inline bool AlsoPortable(const std::string& part) { return WhyLinuxAlone(ThisTest() + ": " + part) == nullptr; }

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_TESTS_LAUNCHER_LINUX_ALONE_H_
