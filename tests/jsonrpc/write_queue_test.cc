// What waits to be written: in order, bounded, joined.
#include "bulkhead/jsonrpc/write_queue.h"

#include <array>
#include <memory>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::jsonrpc {
namespace {

std::string AllOf(const WriteQueue& queue) {
  std::array<absl::string_view, 1000> views;
  std::string all;
  const std::size_t count = queue.Front(absl::MakeSpan(views));
  for (std::size_t i = 0; i != count; ++i) all.append(views[i].data(), views[i].size());
  return all;
}

TEST(WriteQueue, HoldsAtMostBytesMax) {
  for (const int more : {-1, 0, 1}) {
    WriteQueue queue(100);
    ASSERT_TRUE(queue.Push(std::string(40, 'a')));
    const std::string line(static_cast<std::size_t>(60 + more), 'b');
    EXPECT_EQ(queue.Push(line), more <= 0) << more;
    EXPECT_EQ(AllOf(queue), std::string(40, 'a') + (more <= 0 ? line : ""));
    EXPECT_EQ(queue.bytes(), AllOf(queue).size());
  }
}

TEST(WriteQueue, TakesOneLineThatIsLongerWhenNothingWaits) {
  WriteQueue queue(10);
  EXPECT_TRUE(queue.Push(std::string(1000, 'a')));
  EXPECT_FALSE(queue.Push("b"));
  queue.Consume(995);
  EXPECT_EQ(queue.bytes(), 5u);
  EXPECT_TRUE(queue.Push("bbbbb"));
  EXPECT_FALSE(queue.Push("c"));
  EXPECT_EQ(AllOf(queue), "aaaaabbbbb");
}

TEST(WriteQueue, JoinsShortLinesAndLeavesLongOnesAlone) {
  WriteQueue queue(1 << 20);
  for (int i = 0; i != 100; ++i) ASSERT_TRUE(queue.Push("0123456789"));
  std::array<absl::string_view, 8> views;
  EXPECT_EQ(queue.Front(absl::MakeSpan(views)), 1u);
  std::string line(100'000, 'x');
  const char* const bytes = line.data();
  ASSERT_TRUE(queue.Push(std::move(line)));
  ASSERT_EQ(queue.Front(absl::MakeSpan(views)), 2u);
  EXPECT_EQ(views[1].data(), bytes) << "not copied";
}

TEST(WriteQueue, TakesALineInThreePartsOrNotAtAll) {
  for (const int more : {-1, 0, 1}) {
    WriteQueue queue(100);
    ASSERT_TRUE(queue.Push("0123456789"));
    const auto body = std::make_shared<const std::string>(std::string(static_cast<std::size_t>(80 + more), 'b'));
    EXPECT_EQ(queue.Push("head=", body, "=tail"), more <= 0) << more;
    EXPECT_EQ(AllOf(queue), more <= 0 ? "0123456789head=" + *body + "=tail" : "0123456789");
    EXPECT_EQ(queue.bytes(), AllOf(queue).size());
  }
}

TEST(WriteQueue, CopiesNoBodyAndLetsItGoWhenItIsWritten) {
  WriteQueue queue(1 << 20);
  auto body = std::make_shared<const std::string>("body");
  const std::weak_ptr<const std::string> weak = body;
  const char* const bytes = body->data();
  ASSERT_TRUE(queue.Push("head ", std::move(body), " tail"));
  ASSERT_TRUE(queue.Push("next"));
  std::array<absl::string_view, 8> views;
  ASSERT_EQ(queue.Front(absl::MakeSpan(views)), 3u);
  EXPECT_EQ(views[1].data(), bytes);
  EXPECT_EQ(views[2], " tailnext");
  queue.Consume(8);
  EXPECT_FALSE(weak.expired());
  EXPECT_EQ(AllOf(queue), "y tailnext");
  queue.Consume(1);
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(AllOf(queue), " tailnext");
}

TEST(WriteQueue, ClearsAll) {
  WriteQueue queue(10);
  ASSERT_TRUE(queue.Push("abc"));
  queue.Consume(1);
  queue.Clear();
  EXPECT_EQ(queue.bytes(), 0u);
  ASSERT_TRUE(queue.Push("def"));
  EXPECT_EQ(AllOf(queue), "def");
}

// Whatever is pushed and however it is consumed, the bytes come out in order.
TEST(WriteQueue, KeepsTheOrder) {
  std::mt19937 random(1);
  for (int round = 0; round != 30; ++round) {
    WriteQueue queue(1 << 20);
    std::string pushed, written;
    while (pushed.size() < 300'000) {
      for (unsigned i = random() % 20; i != 0; --i) {
        std::string line(random() % (random() % 10 == 0 ? 40'000 : 200), static_cast<char>('a' + random() % 26));
        pushed += line;
        if (random() % 8 == 0) {
          const std::size_t cut = line.size() / 3;
          auto body = std::make_shared<const std::string>(line, cut, cut);
          if (!queue.Push(line.substr(0, cut), std::move(body), line.substr(2 * cut))) FAIL();
        } else if (!queue.Push(std::move(line))) {
          FAIL();
        }
      }
      std::array<absl::string_view, 3> views;
      const std::size_t count = queue.Front(absl::MakeSpan(views));
      std::string front;
      for (std::size_t i = 0; i != count; ++i) front.append(views[i].data(), views[i].size());
      if (front.empty()) continue;
      const std::size_t consumed = random() % 4 == 0 ? front.size() : random() % front.size();
      queue.Consume(consumed);
      written.append(front, 0, consumed);
      ASSERT_EQ(queue.bytes(), pushed.size() - written.size());
    }
    ASSERT_TRUE(pushed == written + AllOf(queue));
  }
}

}  // namespace
}  // namespace bulkhead::jsonrpc
