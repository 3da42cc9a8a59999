// What must not compile is tested by asking whether it would; that no block of memory is given back with a secret in
// it, by looking into each one.
#include "bulkhead/policy/secret.h"

#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <ostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bulkhead/policy/command.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

constexpr char kCanary[] = "canary-7f3a9c-long-enough-to-be-on-the-heap-of-every-library";
int leaked_blocks = 0;

void Release(void* block) {
  if (block == nullptr) return;
  if (memmem(block, malloc_usable_size(block), kCanary, 16) != nullptr) ++leaked_blocks;
  std::free(block);
}

}  // namespace

void* operator new(std::size_t size) { return std::calloc(size == 0 ? 1 : size, 1); }
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* block) noexcept { Release(block); }
void operator delete[](void* block) noexcept { Release(block); }
void operator delete(void* block, std::size_t) noexcept { Release(block); }
void operator delete[](void* block, std::size_t) noexcept { Release(block); }

namespace bulkhead::policy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

template <typename T, typename = void>
struct IsPrintable : std::false_type {};
template <typename T>
struct IsPrintable<T, std::void_t<decltype(std::declval<std::ostream&>() << std::declval<const T&>())>>
    : std::true_type {};

template <typename T, typename = void>
struct IsComparable : std::false_type {};
template <typename T>
struct IsComparable<T, std::void_t<decltype(std::declval<const T&>() == std::declval<const T&>())>> : std::true_type {};

template <typename T, typename = void>
struct GoesIntoMessages : std::false_type {};
template <typename T>
struct GoesIntoMessages<T, std::void_t<decltype(absl::StrCat("", std::declval<const T&>()))>> : std::true_type {};

TEST(SecretTest, CanNotBePrintedComparedCopiedOrConverted) {
  ASSERT_TRUE(IsPrintable<std::string>::value && IsComparable<std::string>::value &&
              GoesIntoMessages<std::string>::value);
  EXPECT_FALSE(IsPrintable<Secret>::value);
  EXPECT_FALSE(IsComparable<Secret>::value);
  EXPECT_FALSE(GoesIntoMessages<Secret>::value);
  EXPECT_FALSE(std::is_copy_constructible<Secret>::value || std::is_copy_assignable<Secret>::value);
  EXPECT_FALSE(
      (std::is_convertible<Secret, std::string>::value || std::is_convertible<Secret, absl::string_view>::value));
  EXPECT_FALSE((std::is_convertible<std::string, Secret>::value));
  EXPECT_FALSE((std::is_constructible<Secret, const std::string&>::value));
  EXPECT_TRUE(std::is_nothrow_move_constructible<Secret>::value && std::is_nothrow_move_assignable<Secret>::value);
}

TEST(SecretTest, WhatATestPrintsOfItHoldsNoneOfIt) {
  const Secret secret{std::string(kCanary)};
  EXPECT_THAT(::testing::PrintToString(secret), Not(HasSubstr("canary")));
}

class WipedTest : public ::testing::Test {
 protected:
  void SetUp() override { leaked_blocks = 0; }
};

TEST_F(WipedTest, TheTestSeesAStringThatIsNot) {
  { const std::string careless(kCanary); }
  EXPECT_EQ(leaked_blocks, 1);
}

TEST_F(WipedTest, WhenItEnds) {
  {
    std::string bytes(kCanary);
    const Secret secret(std::move(bytes));
    EXPECT_EQ(secret.Reveal(), kCanary);
    EXPECT_TRUE(bytes.empty());  // NOLINT(bugprone-use-after-move): promised by the constructor
  }
  EXPECT_EQ(leaked_blocks, 0);
}

TEST_F(WipedTest, AlsoWhatItsStringHeldBeforeItGotShorter) {
  {
    std::string bytes = absl::StrCat("xx", kCanary);
    bytes.resize(2);
    const Secret secret(std::move(bytes));
    EXPECT_EQ(secret.Reveal(), "xx");
  }
  EXPECT_EQ(leaked_blocks, 0);
}

TEST_F(WipedTest, WhenItIsMovedAndAssignedTo) {
  {
    Secret first{std::string(kCanary)};
    Secret second(std::move(first));
    EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): promised
    EXPECT_EQ(second.Reveal(), kCanary);
    second = Secret(std::string("other"));
    EXPECT_EQ(second.Reveal(), "other");
    EXPECT_EQ(leaked_blocks, 0);
    Secret& same = second;
    second = std::move(same);
    EXPECT_EQ(second.Reveal(), "other");
    std::vector<Secret> many;
    for (int i = 0; i < 10; ++i) many.emplace_back(std::string(kCanary));
    EXPECT_EQ(many[9].Reveal(), kCanary);
  }
  EXPECT_EQ(leaked_blocks, 0);
}

TEST_F(WipedTest, WhenItIsCut) {
  {
    Secret secret = Secret::OfSize(sizeof kCanary - 1 + 3);
    std::memcpy(secret.Fill().data() + 3, kCanary, sizeof kCanary - 1);
    secret.Resize(3);
    EXPECT_EQ(secret.Reveal(), absl::string_view("\0\0\0", 3));
    secret.Resize(4);
    EXPECT_EQ(secret.size(), 3u);
  }
  EXPECT_EQ(leaked_blocks, 0);
}

TEST(SecretTest, OneLineEndIsNoPartOfIt) {
  const auto stripped = [](std::string bytes) {
    Secret secret(std::move(bytes));
    secret.StripNewline();
    return std::string(secret.Reveal());
  };
  EXPECT_EQ(stripped("a"), "a");
  EXPECT_EQ(stripped("a\n"), "a");
  EXPECT_EQ(stripped("a\r\n"), "a");
  EXPECT_EQ(stripped("a\n\n"), "a\n");
  EXPECT_EQ(stripped("a\r"), "a\r");
  EXPECT_EQ(stripped("\n"), "");
  EXPECT_EQ(stripped("\r\n"), "");
  EXPECT_EQ(stripped(""), "");
}

TEST(SecretTest, WhatIsNoValueSaysSoWithoutShowingIt) {
  const auto why = [](std::string bytes) { return WhyNoEnvValue("TOKEN", Secret(std::move(bytes))); };
  EXPECT_EQ(why("x"), "");
  EXPECT_EQ(why("\xFF\n="), "");
  EXPECT_THAT(why(""), HasSubstr("is empty"));
  EXPECT_THAT(why(std::string("canary\0", 7)), HasSubstr("holds a NUL character"));
  EXPECT_THAT(why("() { canary; }"), HasSubstr("like a shell function"));
  const std::size_t room = kArgumentBytesMax - 6;  // "TOKEN="
  EXPECT_EQ(why(std::string(room - 1, 'x')), "");
  EXPECT_EQ(why(std::string(room, 'x')), "");
  EXPECT_EQ(why(std::string(room + 1, 'x')),
            "is longer than the 131065 bytes that its variable may have; is it the right one?");
}

}  // namespace
}  // namespace bulkhead::policy
