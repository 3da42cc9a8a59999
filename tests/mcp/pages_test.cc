// The pages of a list, and servers whose pages have no end.
#include "bulkhead/mcp/pages.h"

#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::mcp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Code = absl::StatusCode;

constexpr std::size_t kMessageBytes = 1 << 20;

Reply Page(const std::string& elements, const std::string& next) {
  return {absl::StrCat(R"({"tools":[)", elements, "]", next.empty() ? "" : absl::StrCat(",\"nextCursor\":", next), "}"),
          std::nullopt};
}

TEST(PagesTest, ArePutTogetherUntilThereIsNoCursor) {
  Pages pages("tools/list", "tools", kMessageBytes);
  EXPECT_EQ(pages.Params(), "");
  EXPECT_TRUE(*pages.Take(Page(R"({"name":"a"}, 1)", R"("p\u0032\"")")));
  EXPECT_EQ(pages.Params(), R"({"cursor":"p2\""})");
  EXPECT_TRUE(*pages.Take(Page("", R"("3")")));
  EXPECT_FALSE(*pages.Take(Page("null", "")));
  EXPECT_THAT(pages.TakeElements(), ElementsAre(R"({"name":"a"})", "1", "null"));
}

TEST(PagesTest, WhatIsNoCursorIsTheEnd) {
  for (const char* next : {"null", "\"\"", "7", "{}"}) {
    Pages pages("tools/list", "tools", kMessageBytes);
    const auto more = pages.Take(Page("1", next));
    ASSERT_TRUE(more.ok()) << next;
    EXPECT_FALSE(*more) << next;
  }
}

TEST(PagesTest, WithoutAListThereIsAnError) {
  for (const char* result : {"{}", R"({"tools":{}})", R"({"tools":null})", "[]", "null", R"({"prompts":[]})"}) {
    Pages pages("tools/list", "tools", kMessageBytes);
    EXPECT_EQ(pages.Take({result, std::nullopt}).status().code(), Code::kDataLoss) << result;
  }
}

TEST(PagesTest, TheServersErrorIsToldInItsWords) {
  Pages pages("tools/list", "tools", kMessageBytes);
  const absl::Status status = pages.Take({"", jsonrpc::ErrorObject{-5, "not today", ""}}).status();
  EXPECT_EQ(status.code(), Code::kUnknown);
  EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr("not today"), HasSubstr("-5")));
}

TEST(PagesTest, ACursorThatLeadsToItsOwnPageIsAnError) {
  Pages pages("tools/list", "tools", kMessageBytes);
  ASSERT_TRUE(pages.Take(Page("1", "\"a\"")).ok());
  EXPECT_EQ(pages.Take(Page("1", "\"a\"")).status().code(), Code::kDataLoss);
}

TEST(PagesTest, HaveALimitInNumber) {
  Pages pages("tools/list", "tools", kMessageBytes), endless = pages;
  for (int i = 1; i < kPagesMax; ++i) {
    const std::string next = i % 2 == 0 ? "\"a\"" : "\"b\"";  // they go round
    ASSERT_TRUE(pages.Take(Page("", next)).ok()) << i;
    ASSERT_TRUE(endless.Take(Page("", next)).ok()) << i;
  }
  EXPECT_EQ(endless.Take(Page("", "\"c\"")).status().code(), Code::kResourceExhausted);
  const auto last = pages.Take(Page("", ""));
  ASSERT_TRUE(last.ok());
  EXPECT_FALSE(*last);
}

// As many bytes as are left may be taken, and no more.
TEST(PagesTest, HaveALimitInWhatTheyTake) {
  constexpr std::size_t kSmall = 100, kAll = kPagesMessagesMax * kSmall;
  for (const int more : {-1, 0, 1}) {
    Pages pages("tools/list", "tools", kSmall);
    ASSERT_TRUE(pages.Take(Page("1", "\"a\"")).ok());
    const std::size_t left = kAll - 1 - 2 * sizeof(std::string) + static_cast<std::size_t>(more + 1) - 1;
    const auto taken = pages.Take(Page(std::string(left, '1'), ""));
    EXPECT_EQ(taken.status().code(), more > 0 ? Code::kResourceExhausted : Code::kOk) << more;
  }
}

TEST(PagesTest, MessagesOfAnySizeMakeNoLimitThatIsTooSmall) {
  Pages pages("tools/list", "tools", std::numeric_limits<std::size_t>::max() / 4);
  EXPECT_TRUE(pages.Take(Page(std::string(5000, '1'), "")).ok());
}

}  // namespace
}  // namespace bulkhead::mcp
