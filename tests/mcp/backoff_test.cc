// Delays between starts, and when to give up.
#include "bulkhead/mcp/backoff.h"

#include <cmath>
#include <optional>

#include "gtest/gtest.h"

namespace bulkhead::mcp {
namespace {

using absl::Milliseconds;
using absl::Seconds;
using absl::ZeroDuration;

const double kAlmostOne = std::nextafter(1.0, 0.0);

policy::RestartRules Rules(std::uint32_t max_in_a_row) {
  policy::RestartRules rules;
  rules.max_in_a_row = max_in_a_row;
  rules.backoff_initial = Milliseconds(500);
  rules.backoff_max = Seconds(30);
  rules.healthy_after = Seconds(60);
  return rules;
}

int StartsBeforeGivingUp(Backoff backoff) {
  int starts = 1;
  while (starts < 1000 && backoff.Next(ZeroDuration(), 0)) ++starts;
  return starts;
}

TEST(Backoff, GivesUpAtTheLastFailureThatIsAllowed) {
  EXPECT_EQ(StartsBeforeGivingUp(Backoff(Rules(0))), 1);
  EXPECT_EQ(StartsBeforeGivingUp(Backoff(Rules(1))), 1);
  EXPECT_EQ(StartsBeforeGivingUp(Backoff(Rules(2))), 2);
  EXPECT_EQ(StartsBeforeGivingUp(Backoff(Rules(5))), 5);
  EXPECT_EQ(StartsBeforeGivingUp(Backoff(Rules(6))), 6);
}

TEST(Backoff, StaysGivenUp) {
  Backoff backoff(Rules(1));
  EXPECT_EQ(backoff.Next(ZeroDuration(), 0), std::nullopt);
  EXPECT_EQ(backoff.Next(ZeroDuration(), 0), std::nullopt);
  EXPECT_EQ(backoff.failures_in_a_row(), 2u);
}

TEST(Backoff, GrowsTwofoldUpToItsMaximum) {
  Backoff backoff(Rules(100));
  for (const double seconds : {0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0}) {
    EXPECT_EQ(backoff.Next(ZeroDuration(), 0), Seconds(seconds / 2));
  }
}

TEST(Backoff, AMaximumAtOneOfTheSteps) {
  for (const auto& [maximum, third] :
       {std::pair(Milliseconds(1999), Milliseconds(1999)), std::pair(Milliseconds(2000), Milliseconds(2000)),
        std::pair(Milliseconds(2001), Milliseconds(2000))}) {
    policy::RestartRules rules = Rules(100);
    rules.backoff_max = maximum;
    Backoff backoff(rules);
    backoff.Next(ZeroDuration(), 0);
    backoff.Next(ZeroDuration(), 0);
    EXPECT_EQ(backoff.Next(ZeroDuration(), 0), third / 2);
    EXPECT_EQ(backoff.Next(ZeroDuration(), 0), maximum / 2);
  }
}

TEST(Backoff, AMaximumBelowTheFirstDelayIsTheFirstDelay) {
  policy::RestartRules rules = Rules(100);
  rules.backoff_max = Milliseconds(100);
  EXPECT_EQ(Backoff(rules).Next(ZeroDuration(), 0), Milliseconds(50));
}

TEST(Backoff, ChanceTakesItBetweenItsHalfAndItsWhole) {
  EXPECT_EQ(Backoff(Rules(5)).Next(ZeroDuration(), 0), Milliseconds(250));
  EXPECT_EQ(Backoff(Rules(5)).Next(ZeroDuration(), 0.5), Milliseconds(375));
  const std::optional<absl::Duration> most = Backoff(Rules(5)).Next(ZeroDuration(), kAlmostOne);
  ASSERT_TRUE(most);
  EXPECT_GT(*most, Milliseconds(499.99));
  EXPECT_LE(*most, Milliseconds(500));
}

TEST(Backoff, OnlyHealthyUptimeForgetsFailures) {
  for (const auto& [uptime, failures] : {std::pair(Seconds(60) - absl::Nanoseconds(1), 3u), std::pair(Seconds(60), 1u),
                                         std::pair(Seconds(60) + absl::Nanoseconds(1), 1u)}) {
    Backoff backoff(Rules(100));
    backoff.Next(ZeroDuration(), 0);
    backoff.Next(ZeroDuration(), 0);
    const auto delay = backoff.Next(uptime, 0);
    EXPECT_EQ(backoff.failures_in_a_row(), failures);
    EXPECT_EQ(delay, failures == 1 ? Milliseconds(250) : Milliseconds(1000));
  }
}

TEST(Backoff, AServerThatNeverWasReadyIsNotHealthy) {
  policy::RestartRules rules = Rules(2);
  rules.healthy_after = ZeroDuration();
  Backoff backoff(rules);
  EXPECT_NE(backoff.Next(ZeroDuration(), 0), std::nullopt);
  EXPECT_EQ(backoff.Next(ZeroDuration(), 0), std::nullopt);
  // Control: one that was ready, however shortly, is.
  EXPECT_NE(backoff.Next(absl::Nanoseconds(1), 0), std::nullopt);
}

TEST(Backoff, ManyFailuresDoNotOverflow) {
  policy::RestartRules rules = Rules(5000);
  rules.backoff_max = absl::Hours(24 * 365);
  Backoff backoff(rules);
  std::optional<absl::Duration> delay;
  for (int i = 0; i < 4000; ++i) delay = backoff.Next(ZeroDuration(), 0);
  EXPECT_EQ(delay, rules.backoff_max / 2);
}

}  // namespace
}  // namespace bulkhead::mcp
