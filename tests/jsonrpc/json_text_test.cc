// What is JSON by RFC 8259 and what is not; members, strings and numbers as text.
#include "bulkhead/jsonrpc/json_text.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::jsonrpc {

std::ostream& operator<<(std::ostream& out, JsonError error) {
  constexpr const char* kNames[] = {"valid", "not JSON", "not UTF-8", "too deep", "duplicate key"};
  return out << kNames[static_cast<int>(error)];
}

namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::Pair;

std::string Repeat(absl::string_view text, int count) {
  std::string repeated;
  for (int i = 0; i != count; ++i) repeated.append(text.data(), text.size());
  return repeated;
}

TEST(ValidateJson, AcceptsWhatRfc8259Allows) {
  for (const absl::string_view text : {
           // Values of each kind, alone.
           "null",
           "true",
           "false",
           "0",
           "\"\"",
           "[]",
           "{}",
           // White space: four characters, anywhere between tokens.
           " null",
           "null ",
           "\t\r\n null\n\r\t ",
           "[ ]",
           "{ }",
           " [ 1 , 2 ] ",
           " { \"a\" : 1 , \"b\" : 2 } ",
           // Numbers, however long or large.
           "-0",
           "-1",
           "10",
           "1234567890123456789012345678901234567890",
           "0.0",
           "-0.10",
           "1e5",
           "1E5",
           "1e+5",
           "1e-5",
           "1e05",
           "0e0",
           "0E+00",
           "1.5e300",
           "1e400",
           "-1e400",
           "1e-400",
           "1e99999999999999999999",
           // Strings: any Unicode, each escape, lone surrogates as escapes.
           "\"abc\"",
           "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
           "\"\\u0000\"",
           "\"\\uABCD\\uabcd\"",
           "\"\\ud83d\\ude00\"",
           "\"\\ud800\"",
           "\"\\udc00\"",
           "\"\\udc00\\ud800\"",
           "\"\\ud800\\ud800\"",
           "\"\x7F\"",
           "\"\xC2\x80\"",
           "\"\xDF\xBF\"",
           "\"\xE0\xA0\x80\"",
           "\"\xED\x9F\xBF\"",
           "\"\xEE\x80\x80\"",
           "\"\xEF\xBF\xBF\"",
           "\"\xEF\xBB\xBF\"",
           "\"\xF0\x90\x80\x80\"",
           "\"\xF4\x8F\xBF\xBF\"",
           "\"\xE2\x80\xA8\xE2\x80\xA9\xC2\x85\"",
           // Structure. The RFC leaves duplicate keys to the reader.
           "[1]",
           "[[]]",
           "[{}]",
           "[null,true,false]",
           "{\"a\":{}}",
           "{\"\":0}",
           "{\"a\":1,\"a\":2}",
           "{\"a\":[{\"b\":[]}]}",
       }) {
    EXPECT_EQ(ValidateJson(text), JsonError::kNone) << absl::CHexEscape(text);
  }
  EXPECT_EQ(ValidateJson("{\"\xC3\xA9\":1}"), JsonError::kNone);
}

TEST(ValidateJson, RejectsWhatItDoesNotAllow) {
  for (const absl::string_view text : std::initializer_list<absl::string_view>{
           "",
           " ",
           "\n",
           // Literals.
           "nul",
           "nulll",
           "Null",
           "TRUE",
           "tru",
           "truefalse",
           "undefined",
           "NaN",
           "Infinity",
           "-Infinity",
           "'a'",
           "a",
           // White space that is none.
           "\xC2\xA0null",
           "\xEF\xBB\xBFnull",
           "\fnull",
           "\vnull",
           "null\f",
           "[\xE2\x80\xA8]",
           absl::string_view("null\0", 5),
           absl::string_view("\0", 1),
           // Numbers.
           "-",
           "+1",
           "01",
           "-01",
           "00",
           "1.",
           ".5",
           "-.5",
           "1.e5",
           "1e",
           "1e+",
           "1e-",
           "1e5.5",
           "0x10",
           "1_000",
           "1 2",
           "--1",
           "1,",
           "\xEF\xBC\x91",
           // Strings.
           "\"",
           "\"a",
           "\"\\\"",
           "\"\\",
           "\"\\x41\"",
           "\"\\'\"",
           "\"\\u\"",
           "\"\\u12\"",
           "\"\\u123\"",
           "\"\\u123g\"",
           "\"\\U0041\"",
           "\"\\a\"",
           "\"\\0\"",
           "\"\n\"",
           "\"\t\"",
           "\"\x1F\"",
           absl::string_view("\"\0\"", 3),
           "\"\\\n\"",
           "\"a\"b",
           "\"a\" \"b\"",
           // Structure.
           "[",
           "]",
           "[1",
           "[1,",
           "[1,]",
           "[,1]",
           "[,]",
           "[1,,2]",
           "[1 2]",
           "[1]]",
           "[[1]",
           "[1}",
           "{",
           "}",
           "{\"a\"",
           "{\"a\":",
           "{\"a\":1",
           "{\"a\":1,",
           "{\"a\":1,}",
           "{\"a\"}",
           "{\"a\",1}",
           "{a:1}",
           "{1:1}",
           "{null:1}",
           "{,}",
           "{\"a\":1 \"b\":2}",
           "{\"a\":1]",
           "{\"a\"::1}",
           "{:1}",
           "{[]:1}",
           "{}{}",
           "[][]",
           "{} 1",
           "[1]//",
           "/*1*/1",
           "[1:2]",
           "{\"a\":,}",
       }) {
    EXPECT_EQ(ValidateJson(text), JsonError::kSyntax) << absl::CHexEscape(text);
  }
}

TEST(ValidateJson, RejectsStringsThatAreNotUtf8) {
  for (const absl::string_view bytes : {
           "\x80",         "\xBF",          "\xC0\x80",         "\xC1\xBF",         "\xC2",
           "\xC2 ",        "\xC2\xC2",      "\xE0\x80\x80",     "\xE0\x9F\xBF",     "\xE1\x80",
           "\xE1\x80 ",    "\xED\xA0\x80",  "\xED\xBF\xBF",     "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF",
           "\xF1\x80\x80", "\xF1\x80\x80 ", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFE",
           "\xFF",         "\xC3\xA9\x80",
       }) {
    EXPECT_EQ(ValidateJson(absl::StrCat("\"", bytes, "\"")), JsonError::kUtf8) << absl::CHexEscape(bytes);
    EXPECT_EQ(ValidateJson(absl::StrCat("{\"", bytes, "\":1}")), JsonError::kUtf8) << absl::CHexEscape(bytes);
    // Wherever it stands, for blocks of sixteen bytes are looked at together.
    for (int before = 0; before != 40; ++before) {
      const std::string padding(static_cast<std::size_t>(before), 'x');
      EXPECT_EQ(ValidateJson(absl::StrCat("\"", padding, "\xC3\xA9", padding, "\"")), JsonError::kNone);
      EXPECT_EQ(ValidateJson(absl::StrCat("\"", padding, bytes, padding, "\"")), JsonError::kUtf8) << before;
    }
  }
}

TEST(ValidateJson, SeesEachSpecialByteAtEachPlaceOfABlock) {
  for (int before = 0; before != 40; ++before) {
    const std::string padding(static_cast<std::size_t>(before), 'x');
    ASSERT_EQ(ValidateJson(absl::StrCat("\"", padding, "x", padding, "\"")), JsonError::kNone);
    EXPECT_EQ(ValidateJson(absl::StrCat("\"", padding, "\x1F", padding, "\"")), JsonError::kSyntax);
    EXPECT_EQ(ValidateJson(absl::StrCat("\"", padding, "\"", padding, "\"")), JsonError::kSyntax);
    EXPECT_EQ(ValidateJson(absl::StrCat("\"", padding, "\\", padding, "\"")), JsonError::kSyntax);
    EXPECT_EQ(ValidateJson(absl::StrCat("\"", padding, "\\n", padding, "\"")), JsonError::kNone);
  }
}

TEST(ValidateJson, NeverReadsPastTheEnd) {
  const std::string text = R"({"a":[1.5e+3,"x\u00e9\n)"
                           "\xF0\x9F\x98\x80"
                           R"(",true,null,false],"long enough for blocks":{}})";
  ASSERT_EQ(ValidateJson(text), JsonError::kNone);
  for (std::size_t size = 0; size != text.size(); ++size) {
    const std::vector<char> exact(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));  // for ASan
    EXPECT_NE(ValidateJson(absl::string_view(exact.data(), size)), JsonError::kNone) << size;
  }
}

TEST(ValidateJson, NestsToALimitWithoutRecursion) {
  for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}")}) {
    const auto nested = [&, open = open, close = close](int depth) {
      return absl::StrCat(Repeat(open, depth - 1), open[0] == '[' ? "[]" : "{}", Repeat(close, depth - 1));
    };
    EXPECT_EQ(ValidateJson(nested(kNestingMax - 1)), JsonError::kNone);
    EXPECT_EQ(ValidateJson(nested(kNestingMax)), JsonError::kNone);
    EXPECT_EQ(ValidateJson(nested(kNestingMax + 1)), JsonError::kTooDeep);
    EXPECT_EQ(ValidateJson(nested(100'000)), JsonError::kTooDeep);
    EXPECT_EQ(ValidateJson(Repeat(open, 100'000)), JsonError::kTooDeep);
  }
  // Which of them are objects is remembered for each level.
  EXPECT_EQ(ValidateJson(Repeat("[{\"a\":", 512) + "1" + Repeat("}]", 512)), JsonError::kNone);
  EXPECT_EQ(ValidateJson(Repeat("[{\"a\":", 512) + "1" + Repeat("}]", 511) + "]}"), JsonError::kSyntax);
  // Side by side is not deep.
  EXPECT_EQ(ValidateJson("[" + Repeat("[[]],", 10'000) + "1]"), JsonError::kNone);
}

std::vector<std::pair<std::string, std::string>> Members(absl::string_view text) {
  std::vector<std::pair<std::string, std::string>> members;
  const bool read = ForEachMember(text, [&](const JsonMember& member) {
    members.emplace_back(std::string(member.key), std::string(member.value));
    return true;
  });
  if (!read) members.emplace_back("not", "read");
  return members;
}

TEST(ForEachMember, GivesMembersAndElementsAsWritten) {
  EXPECT_THAT(Members(" { \"a\" : [ 1 ] , \"\\u0062\":\" x \" } "),
              ElementsAre(Pair("a", "[ 1 ]"), Pair("\\u0062", "\" x \"")));
  EXPECT_THAT(Members("[1, {} ,\"\"]"), ElementsAre(Pair("", "1"), Pair("", "{}"), Pair("", "\"\"")));
  EXPECT_THAT(Members("{}"), ElementsAre());
  EXPECT_THAT(Members("[ ]"), ElementsAre());
}

TEST(ForEachMember, IsFalseForWhatIsNeither) {
  for (const absl::string_view text : {"", "1", "\"{}\"", "{", "[1", "{\"a\":1}}", "[] x", "{\"a\"}"}) {
    EXPECT_FALSE(ForEachMember(text, [](const JsonMember&) { return true; })) << text;
  }
}

TEST(ForEachMember, StopsWhenToldTo) {
  int visited = 0;
  EXPECT_TRUE(ForEachMember("[1,2,3]", [&](const JsonMember&) { return ++visited != 2; }));
  EXPECT_EQ(visited, 2);
}

TEST(FindMember, FindsByMeaningAndTakesTheLast) {
  const absl::string_view text = R"({"a":1,"b":{"c":2},"\u0061":3})";
  EXPECT_EQ(FindMember(text, "a"), "3");
  EXPECT_EQ(FindMember(text, "b"), "{\"c\":2}");
  EXPECT_EQ(FindMember(text, "c"), std::nullopt);
  EXPECT_EQ(FindMember("[1]", ""), std::nullopt);
  EXPECT_EQ(FindMember("", ""), std::nullopt);
  EXPECT_EQ(FindMember("{\"\":1}", ""), "1");
}

TEST(JsonStringIs, ComparesWhatIsMeant) {
  EXPECT_TRUE(JsonStringIs("id", "id"));
  EXPECT_TRUE(JsonStringIs("\\u0069d", "id"));
  EXPECT_TRUE(JsonStringIs("a\\/b", "a/b"));
  EXPECT_TRUE(JsonStringIs("\\ud83d\\ude00", "\xF0\x9F\x98\x80"));
  EXPECT_TRUE(JsonStringIs("", ""));
  EXPECT_FALSE(JsonStringIs("id", "i"));
  EXPECT_FALSE(JsonStringIs("i", "id"));
  EXPECT_FALSE(JsonStringIs("\\u0069", "id"));
  EXPECT_FALSE(JsonStringIs("\\u0069d", "i"));
  EXPECT_FALSE(JsonStringIs("\\\\", "\\\\"));
  EXPECT_FALSE(JsonStringIs("\\ud800", "\xEF\xBF\xBD"));
}

TEST(JsonStringsEqual, ComparesTwoAsWritten) {
  EXPECT_TRUE(JsonStringsEqual("x", "x"));
  EXPECT_TRUE(JsonStringsEqual("\\u0078", "x"));
  EXPECT_TRUE(JsonStringsEqual("x", "\\u0078"));
  EXPECT_TRUE(JsonStringsEqual("\\u0078y", "x\\u0079"));
  EXPECT_TRUE(JsonStringsEqual("\\ud800", "\\uD800"));
  EXPECT_FALSE(JsonStringsEqual("\\u0078", "\\u0078x"));
  EXPECT_FALSE(JsonStringsEqual("\\u0078x", "\\u0078"));
  EXPECT_FALSE(JsonStringsEqual("\\ud800", "\\ud801"));
}

TEST(StringValue, DecodesToUtf8) {
  EXPECT_EQ(StringValue("\"\""), "");
  EXPECT_EQ(StringValue("\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\""), "a\"\\/\b\f\n\r\tz");
  EXPECT_EQ(StringValue("\"\\u0000\""), std::string(1, '\0'));
  EXPECT_EQ(StringValue("\"\\u00e9\\u20AC\\ud83d\\ude00\xC3\xA9\""), "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xC3\xA9");
  // A lone surrogate has no UTF-8.
  EXPECT_EQ(StringValue("\"\\ud800\""), "\xEF\xBF\xBD");
  EXPECT_EQ(StringValue("\"\\ud800x\\udc00\""), "\xEF\xBF\xBDx\xEF\xBF\xBD");
  EXPECT_EQ(StringValue("\"\\ud800\\ud83d\\ude00\""), "\xEF\xBF\xBD\xF0\x9F\x98\x80");
}

TEST(StringValue, IsAbsentForOtherValuesAndForWhatIsNone) {
  for (const absl::string_view text : {"", "1", "null", "[\"a\"]", "\"", "\"a", "\"a\"b", "\"\\u12\"", "\"\xFF\""}) {
    EXPECT_EQ(StringValue(text), std::nullopt) << text;
  }
}

TEST(IntegerValue, IsExact) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min(),
                         kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::pair<std::string, std::optional<std::int64_t>>> cases = {
      {"7", 7},
      {"7.0", 7},
      {"70e-1", 7},
      {"0.7e1", 7},
      {"0.00007e5", 7},
      {"-7", -7},
      {"0", 0},
      {"-0", 0},
      {"0.000", 0},
      {"0e999999999999999999999", 0},
      {"1e3", 1000},
      {"1.5", std::nullopt},
      {"15e-1", std::nullopt},
      {"1e-1", std::nullopt},
      {"9007199254740993", 9007199254740993},
      {"9223372036854775806", kMax - 1},
      {"9223372036854775807", kMax},
      {"9223372036854775808", std::nullopt},
      {"922337203685477580.7e1", kMax},
      {"-9223372036854775807", kMin + 1},
      {"-9223372036854775808", kMin},
      {"-9223372036854775809", std::nullopt},
      {"1e18", 1'000'000'000'000'000'000},
      {"1e19", std::nullopt},
      {"1e400", std::nullopt},
      {"1e-99999999999999999999", std::nullopt},
      {"1e99999999999999999999", std::nullopt},
      {"1" + std::string(1000, '0') + "e-1000", 1},
      {"0." + std::string(999, '0') + "1e1000", 1},
      {"", std::nullopt},
      {"-", std::nullopt},
      {"01", std::nullopt},
      {"1x", std::nullopt},
      {"\"1\"", std::nullopt},
      {" 1", std::nullopt},
      {"null", std::nullopt},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(IntegerValue(text), expected) << text;
}

TEST(IsIntegral, HasNoLimit) {
  for (const absl::string_view text :
       {"0", "-7", "7.0", "70e-1", "1e400", "1234567890123456789012345678901234567890", "0e-9"}) {
    EXPECT_TRUE(IsIntegral(text)) << text;
  }
  for (const absl::string_view text : {"", "7.5", "1e-1", "null", "\"7\"", "[7]", "7 "})
    EXPECT_FALSE(IsIntegral(text)) << text;
}

TEST(NumberValue, IsTheNearestDouble) {
  EXPECT_THAT(NumberValue("0.1"), Eq(0.1));
  EXPECT_THAT(NumberValue("-2"), Eq(-2.0));
  EXPECT_THAT(NumberValue("1.7976931348623157e308"), Eq(std::numeric_limits<double>::max()));
  EXPECT_THAT(NumberValue("1234567890123456789012345678901234567890"), Eq(1234567890123456789012345678901234567890.0));
  EXPECT_THAT(NumberValue("1e-400"), Eq(0.0));
  EXPECT_EQ(NumberValue("1e400"), std::nullopt);
  EXPECT_EQ(NumberValue("-1e400"), std::nullopt);
  for (const absl::string_view text : {"", "\"1\"", "1x", "0x10", "inf", "nan", "+1", " 1"})
    EXPECT_EQ(NumberValue(text), std::nullopt) << text;
}

TEST(QuoteJson, EscapesWhatMustBeAndNothingElse) {
  EXPECT_EQ(QuoteJson(""), "\"\"");
  EXPECT_EQ(QuoteJson("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"");
  EXPECT_EQ(QuoteJson(absl::string_view("\0\n\x1F\x7F", 4)), "\"\\u0000\\u000a\\u001f\x7F\"");
  EXPECT_EQ(QuoteJson("\xC3\xA9\xF0\x9F\x98\x80\xE2\x80\xA8"), "\"\xC3\xA9\xF0\x9F\x98\x80\xE2\x80\xA8\"");
  EXPECT_EQ(QuoteJson("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(QuoteJson("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(QuoteJson, IsWhatStringValueReads) {
  std::string all;
  for (int byte = 0; byte != 128; ++byte) all += static_cast<char>(byte);
  all += "\xC2\x80\xED\x9F\xBF\xEF\xBF\xBF\xF4\x8F\xBF\xBF";
  EXPECT_EQ(ValidateJson(QuoteJson(all)), JsonError::kNone);
  EXPECT_EQ(StringValue(QuoteJson(all)), all);
}

}  // namespace
}  // namespace bulkhead::jsonrpc
