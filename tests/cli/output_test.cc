#include "bulkhead/cli/output.h"

#include <string>

#include "bulkhead/cli/words.h"
#include "gtest/gtest.h"

namespace bulkhead::cli {
namespace {

TEST(QuoteTest, PlainWordsStayAsTheyAre) {
  EXPECT_EQ(Quote("/srv/data"), "/srv/data");
  EXPECT_EQ(Quote("--flag=1"), "--flag=1");
  EXPECT_EQ(Quote("@scope/name"), "@scope/name");
}

TEST(QuoteTest, TheRestIsQuoted) {
  EXPECT_EQ(Quote(""), "\"\"");
  EXPECT_EQ(Quote("a b"), "\"a b\"");
  EXPECT_EQ(Quote("a\"b"), "\"a\\\"b\"");
  EXPECT_EQ(Quote("gr\xc3\xbcn x"), "\"gr\xc3\xbcn x\"");
}

TEST(QuoteTest, NothingReachesATerminalAsAControlCharacter) {
  EXPECT_EQ(Quote("\x1b[2J"), "\"\\x1b[2J\"");
  EXPECT_EQ(Quote("a\nb"), "\"a\\nb\"");
  EXPECT_EQ(Quote("\u009bK\u202e"), "\"\\u009bK\\u202e\"");
}

TEST(AppendWrappedTest, LinesEndBeforeTheLimitAndBeginBelowTheText) {
  std::string out;
  AppendWrapped(&out, "ab  ", 4, std::string(50, 'x') + " " + std::string(55, 'y') + " z");  // 4 + 50 + 1 + 55 = 110
  EXPECT_EQ(out, "ab  " + std::string(50, 'x') + " " + std::string(55, 'y') + "\n    z\n");
  out.clear();
  AppendWrapped(&out, "ab  ", 4, std::string(50, 'x') + " " + std::string(56, 'y') + " z");
  EXPECT_EQ(out, "ab  " + std::string(50, 'x') + "\n    " + std::string(56, 'y') + " z\n");
}

TEST(AppendWrappedTest, AWordThatIsTooLongStaysWhole) {
  std::string out;
  AppendWrapped(&out, "", 0, std::string(200, 'x'));
  EXPECT_EQ(out, std::string(200, 'x') + "\n");
  out.clear();
  AppendWrapped(&out, "ab  ", 4, "");
  EXPECT_EQ(out, "ab\n");
}

TEST(StyleTest, WithoutColoursTextIsUntouched) { EXPECT_EQ(Style::None().Bold("x"), "x"); }

TEST(SizeWordsTest, TheLargestUnitThatFitsIsUsed) {
  EXPECT_EQ(SizeWords(0), "0B");
  EXPECT_EQ(SizeWords(1023), "1023B");
  EXPECT_EQ(SizeWords(1024), "1KiB");
  EXPECT_EQ(SizeWords(1025), "1025B");
  EXPECT_EQ(SizeWords(1536 * 1024), "1536KiB");
  EXPECT_EQ(SizeWords(8u << 20), "8MiB");
  EXPECT_EQ(SizeWords(2048ull << 30), "2048GiB");
}

}  // namespace
}  // namespace bulkhead::cli
