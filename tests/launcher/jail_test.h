// The fixture of the tests in which each fact is shown in tiers A and B.
#ifndef BULKHEAD_TESTS_LAUNCHER_JAIL_TEST_H_
#define BULKHEAD_TESTS_LAUNCHER_JAIL_TEST_H_

#include <errno.h>

#include <string>
#include <utility>

#include "tests/launcher/jail_fixture.h"

namespace bulkhead::launcher {

inline std::string TierOf(const testing::TestParamInfo<policy::Tier>& info) {
  return info.param == policy::Tier::kA ? "A" : "B";
}

class JailTest : public testing::TestWithParam<policy::Tier> {
 protected:
  static bool InA() { return GetParam() == policy::Tier::kA; }
  // The errno where tier A has nothing at that place and tier B has something that may not be opened.
  static int Hidden() { return InA() ? ENOENT : EACCES; }

  static Jail Closed() {
    Jail jail;
    jail.tier = GetParam();
    return jail;
  }
  Jail Reading(Words ro) const {
    Jail jail = Closed();
    jail.ro = std::move(ro);
    return jail;
  }
  Jail Writing(Words rw) const {
    Jail jail = Closed();
    jail.rw = std::move(rw);
    if (IsRoot() && !InA()) jail.user = "nobody";  // nothing can be mapped in tier B
    return jail;
  }
  // As the person, also where root starts it: file modes and uids then refuse nothing.
  static Jail AsPerson(Jail jail) {
    if (IsRoot()) jail.user = "nobody";
    return jail;
  }

  Outcome Outside(Words words) const { return RunOutside(host_, std::move(words)); }
  Outcome Inside(const Jail& jail, Words words) const { return RunInJail(host_, jail, std::move(words)); }
  Outcome Shell(const Jail& jail, const std::string& script) const {
    return RunCommand(host_, jail, {"/bin/sh", "-c", script});
  }
  static std::string LayerGap(const Outcome& outcome, const std::string& layer) {
    for (const LayerReport& report : outcome.report.layers) {
      if (report.name == layer) return report.does_not;
    }
    return "no such layer";
  }

  Host host_;
};

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_TESTS_LAUNCHER_JAIL_TEST_H_
