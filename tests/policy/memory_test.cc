// How much memory reading a policy takes, counted at every allocation.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/policy/large_policy.h"
#include "tests/policy/testing.h"

namespace {

std::atomic<std::size_t> now{0}, peak{0};

void* Allocate(std::size_t size) {
  void* block = std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) std::abort();
  peak = std::max<std::size_t>(peak, now += malloc_usable_size(block));
  return block;
}

void Release(void* block) {
  now -= malloc_usable_size(block);
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* block) noexcept { Release(block); }
void operator delete[](void* block) noexcept { Release(block); }
void operator delete(void* block, std::size_t) noexcept { Release(block); }
void operator delete[](void* block, std::size_t) noexcept { Release(block); }

namespace bulkhead::policy {
namespace {

constexpr double kTimesItsInputMax = 10;

// The most that parsing `text` holds at a time, as a multiple of it.
double Times(const std::string& text, bool is_policy) {
  const PolicyText file{"large.json", text};
  const ParseOptions options = Host();
  const std::size_t before = now;
  peak = before;
  EXPECT_EQ(ParsePolicy(file, options).ok(), is_policy);
  return static_cast<double>(peak - before) / static_cast<double>(text.size());
}

TEST(MemoryTest, ALargePolicyTakesNoMoreThanTenTimesItsText) {
  ASSERT_GT(Times(R"({"version": 1})", true), kTimesItsInputMax);  // the counting counts; so small a one may
  EXPECT_LT(Times(LargePolicy(), true), kTimesItsInputMax);
}

// `entry` over and over in lists of a thousand each, 40 KB or more.
std::string Lists(const std::string& entry) {
  std::string text = "{\"version\": 1";
  for (int list = 0; text.size() < 40000; ++list) {
    absl::StrAppend(&text, ", \"list", list, "\": [", entry);
    for (int i = 1; i < 1000; ++i) absl::StrAppend(&text, ",", entry);
    text += "]";
  }
  return text + "}";
}

TEST(MemoryTest, ATextThatIsNoPolicyTakesNoMoreEither) {
  for (const char* entry : {"1", "true", "null", "[]", "[[1]]", "{}"}) {
    const double times = Times(Lists(entry), false);
    EXPECT_LT(times, kTimesItsInputMax) << entry;
    std::printf("%-6s %.2f times its text\n", entry, times);
  }
}

TEST(MemoryTest, CommentsTakeNone) {
  std::string text = "{\"version\": 1}";
  while (text.size() < 1000000) text += "// and more words\n";
  EXPECT_LT(Times(text, true), 0.1);
}

}  // namespace
}  // namespace bulkhead::policy
