// How much memory reading a policy takes, counted at every allocation.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bulkhead/policy/json.h"
#include "gtest/gtest.h"
#include "tests/policy/dense_policies.h"
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

// Whichever is more, of each text that is read. The floor is for small texts of nothing but short entries.
constexpr std::size_t kTimesItsInputMax = 10;
constexpr std::size_t kFloor = 256u << 10;

std::size_t Bound(std::size_t text_bytes) { return std::max(kFloor, kTimesItsInputMax * text_bytes); }

struct Measured {
  std::size_t bytes = 0;  // the most that was held at a time, the policy or the mistakes included
  bool is_policy = false;
};

Measured Measure(const std::string& text, const ParseOptions& options) {
  const PolicyText file{"files.json", text};
  const std::size_t before = now;
  peak = before;
  const bool is_policy = ParsePolicy(file, options).ok();
  return {peak - before, is_policy};
}

class MemoryTest : public ::testing::Test {
 protected:
  // `text` by itself, and with what `explain` asks for.
  void ExpectLittle(const std::string& what, const std::string& text, bool is_policy) {
    for (const bool record_origins : {false, true}) {
      options_.record_origins = record_origins;
      const Measured measured = Measure(text, options_);
      EXPECT_EQ(measured.is_policy, is_policy) << what << ", " << text.size() << " bytes";
      EXPECT_LE(measured.bytes, Bound(text.size())) << what << ", " << text.size() << " bytes";
      const double part = static_cast<double>(measured.bytes) / static_cast<double>(Bound(text.size()));
      if (part > worst_) {
        worst_ = part;
        worst_what_ = absl::StrCat(what.substr(0, 60), ": ", measured.bytes, " bytes for a text of ", text.size());
      }
    }
  }
  ~MemoryTest() override { std::printf("the worst is %s\n", worst_what_.c_str()); }

  ParseOptions options_ = Host();
  double worst_ = 0;
  std::string worst_what_;
};

TEST_F(MemoryTest, TheCountingCounts) {
  const Measured measured = Measure(R"({"version": 1})", options_);
  EXPECT_GT(measured.bytes, 200u);
  EXPECT_LT(measured.bytes, 10000u);
}

TEST_F(MemoryTest, EveryListAndMapOfShortEntries) {
  for (const Dense& dense : DensePolicies()) {
    const std::string longest = dense.Text(dense.entries_max);
    ExpectLittle(dense.name, longest, dense.is_policy);
    ExpectLittle(dense.name, dense.Text(dense.entries_max + 1), false);
    for (const std::size_t bytes : {std::size_t{1000}, std::size_t{40000}, kPolicyBytesMax - 1000}) {
      ExpectLittle(dense.name, dense.TextOf(bytes), dense.is_policy && bytes < longest.size());
      // Only its comments make it large.
      if (bytes > longest.size()) {
        ExpectLittle(dense.name, longest + "//" + std::string(bytes - longest.size(), '-'), dense.is_policy);
      }
    }
  }
}

TEST_F(MemoryTest, TwoListsThatAreAsLongAsTheyCanBeTogether) {
  const std::vector<Dense> all = DensePolicies();
  for (const Dense& dense : all) {
    if (!dense.is_policy || dense.values_of_entry > 1) continue;
    for (const char* other : {"ro", "hide"}) {
      if (absl::StrContains(dense.before, "\"filesystem\"")) continue;
      std::string text = dense.Text(dense.entries_max);
      text.pop_back();
      absl::StrAppend(&text, ",\"filesystem\":{\"", other, "\":[\"/\"");
      for (std::size_t i = 0; i + dense.entries_max + 8 < kPolicyValuesMax; ++i) {
        absl::StrAppend(&text, ",\"/", ShortName(i), "\"");
      }
      ExpectLittle(absl::StrCat(dense.name, " and ", other), text + "]}}", true);
    }
  }
}

TEST_F(MemoryTest, EveryKindOfMistake) {
  for (const Dense& dense : DenseMistakes()) {
    for (const std::size_t bytes : {std::size_t{1000}, std::size_t{4000}, std::size_t{40000}, kPolicyBytesMax - 10}) {
      ExpectLittle(dense.name, dense.TextOf(bytes), false);
    }
  }
}

TEST_F(MemoryTest, LongValues) {
  options_.variables.env["BIG"] = std::string(100000, 'x');
  for (const char* unit : {"x", "\\n", "\\u0001", "\\ud83d\\ude00", "é", "${env:WORD}", "${env:EMPTY}"}) {
    for (const std::size_t bytes : {std::size_t{1000}, std::size_t{40000}, kPolicyBytesMax - 1000}) {
      std::string value;
      while (value.size() < bytes) value += unit;
      ExpectLittle(absl::StrCat("one value of ", unit), File("\"env\": {\"set\": {\"A\": \"" + value + "\"}}").text,
                   !absl::StrContains(unit, "WORD") || bytes < 200000);
      for (const char* field :
           {"\"user\": ", "\"cwd\": {\"default\": ", "\"env\": {\"inherit\": ", "\"command\": {\"allow\": ["}) {
        ExpectLittle(absl::StrCat(field, unit), File(absl::StrCat(field, "\"", value, "\"")).text, false);
      }
      ExpectLittle(absl::StrCat("a key of ", unit), File(absl::StrCat("\"", value, "\": 1")).text, false);
      ExpectLittle(absl::StrCat("a quote of ", unit), File("\"" + value).text, false);
    }
  }
  // What a variable stands for is no part of the text, and can't be made many times as long by it.
  std::string many = "\"A\": \"\"";
  for (int i = 0; i < 200; ++i) absl::StrAppend(&many, ", \"", ShortName(i + 1), "\": \"${env:BIG}\"");
  EXPECT_LT(Measure(File("\"env\": {\"set\": {" + many + "}}").text, options_).bytes, 2u << 20);
}

// The texts are counted together.
TEST_F(MemoryTest, CeilingsAndWhatIsExtended) {
  for (const Dense& dense : DensePolicies()) {
    const std::string text = dense.Text(dense.entries_max);
    ParseOptions narrowed = options_;
    narrowed.ceilings = {{"a.json", text}, {"b.json", text}};
    EXPECT_LE(Measure(text, narrowed).bytes, 3 * Bound(text.size())) << dense.name;
    narrowed.ceilings = {{"root.json", R"({"version": 1, "filesystem": {"rx": ["/"], "ro": ["/"], "rw": ["/"]}})"}};
    EXPECT_LE(Measure(text, narrowed).bytes, 2 * Bound(text.size())) << dense.name;
    ParseOptions extended = HostWithFiles({{"/p/base.json", text}});
    const std::string over = absl::StrCat("{\"extends\":[\"base.json\"],", text.substr(1));
    EXPECT_LE(Measure(over, extended).bytes, 2 * Bound(text.size())) << dense.name;
  }
}

TEST_F(MemoryTest, ALargePolicyOfLongEntries) { ExpectLittle("large", LargePolicy(), true); }

TEST_F(MemoryTest, CommentsTakeNone) {
  std::string text = "{\"version\": 1}";
  while (text.size() < 1000000) text += "// and more words\n";
  EXPECT_LT(Measure(text, options_).bytes, text.size() / 10);
}

}  // namespace
}  // namespace bulkhead::policy
