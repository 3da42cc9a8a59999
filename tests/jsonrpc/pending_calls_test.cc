// Ids, and the calls that answers belong to.
#include "bulkhead/jsonrpc/pending_calls.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::jsonrpc {
namespace {

TEST(PendingCalls, GivesEachCallAnIdOfItsOwn) {
  PendingCalls<std::string> calls;
  EXPECT_EQ(calls.Register("a"), 1);
  EXPECT_EQ(calls.Register("b"), 2);
  EXPECT_EQ(calls.Take(1), "a");
  EXPECT_EQ(calls.Register("c"), 3) << "an id is never used again";
  EXPECT_EQ(calls.size(), 2u);
}

TEST(PendingCalls, TakesACallOnce) {
  PendingCalls<std::string> calls;
  const std::int64_t id = calls.Register("a");
  ASSERT_NE(calls.Find(id), nullptr);
  *calls.Find(id) = "changed";
  EXPECT_EQ(calls.Take(id), "changed");
  EXPECT_EQ(calls.Take(id), std::nullopt);
  EXPECT_EQ(calls.Find(id), nullptr);
  EXPECT_FALSE(calls.WasAbandoned(id));
  EXPECT_EQ(calls.Take(99), std::nullopt);
}

TEST(PendingCalls, RemembersTheLastAbandonedOnes) {
  PendingCalls<int> calls;
  const std::int64_t first = calls.Register(0);
  EXPECT_EQ(calls.Abandon(first), 0);
  EXPECT_EQ(calls.Abandon(first), std::nullopt);
  EXPECT_EQ(calls.Take(first), std::nullopt);
  EXPECT_TRUE(calls.WasAbandoned(first));
  for (std::size_t i = 1; i != kAbandonedMax; ++i) calls.Abandon(calls.Register(0));
  EXPECT_TRUE(calls.WasAbandoned(first));
  const std::int64_t last = calls.Register(0);
  calls.Abandon(last);
  EXPECT_FALSE(calls.WasAbandoned(first));
  EXPECT_TRUE(calls.WasAbandoned(first + 1));
  EXPECT_TRUE(calls.WasAbandoned(last));
  EXPECT_EQ(calls.size(), 0u);
}

TEST(PendingCalls, KnowsTheOnlyOne) {
  PendingCalls<int> calls;
  EXPECT_EQ(calls.OnlyId(), std::nullopt);
  const std::int64_t id = calls.Register(0);
  EXPECT_EQ(calls.OnlyId(), id);
  calls.Register(0);
  EXPECT_EQ(calls.OnlyId(), std::nullopt);
}

TEST(PendingCalls, TakesAllInOrder) {
  PendingCalls<std::unique_ptr<int>> calls;
  for (int i = 0; i != 100; ++i) calls.Register(std::make_unique<int>(i));
  calls.Take(50);
  std::vector<std::unique_ptr<int>> all = calls.TakeAll();
  ASSERT_EQ(all.size(), 99u);
  for (std::size_t i = 1; i != all.size(); ++i) EXPECT_LT(*all[i - 1], *all[i]);
  EXPECT_EQ(calls.size(), 0u);
  EXPECT_EQ(calls.Register(nullptr), 101);
}

}  // namespace
}  // namespace bulkhead::jsonrpc
