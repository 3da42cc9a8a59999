#include "bulkhead/policy/json.h"

#include <optional>
#include <random>
#include <regex>
#include <string>

#include "absl/strings/str_cat.h"
#include "bulkhead/policy/policy.h"
#include "bulkhead/policy/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/policy/testing.h"

namespace bulkhead::policy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Type = JsonValue::Type;

std::optional<JsonValue> Parse(const std::string& text, std::string* error = nullptr) {
  static const std::string* const kFile = new std::string("f.json");
  Mistakes mistakes;
  std::optional<JsonValue> root = ParseJson(*kFile, text, mistakes);
  if (error != nullptr) {
    *error = WithoutColumns(mistakes.ToStatus().message());
  } else {
    EXPECT_TRUE(mistakes.empty()) << mistakes.ToStatus();
  }
  return root;
}

std::string JsonError(const std::string& text) {
  std::string error;
  EXPECT_EQ(Parse(text, &error), std::nullopt) << text;
  return error;
}

TEST(JsonTest, ValuesOfEveryType) {
  const auto root =
      Parse(R"({"n": null, "t": true, "i": 18446744073709551615, "m": -1, "f": 1.5, "s": "é\u00e9", "a": [[]]})");
  ASSERT_TRUE(root.has_value());
  EXPECT_EQ(root->Member("n")->type, Type::kNull);
  EXPECT_TRUE(root->Member("t")->boolean);
  EXPECT_EQ(root->Member("i")->integer, UINT64_MAX);
  EXPECT_EQ(root->Member("m")->type, Type::kNumber);
  EXPECT_EQ(root->Member("f")->type, Type::kNumber);
  EXPECT_EQ(root->Member("s")->string, "éé");
  EXPECT_EQ(root->Member("a")->children[0].type, Type::kArray);
  EXPECT_EQ(root->Member("x"), nullptr);
}

TEST(JsonTest, EveryValueKnowsItsPlace) {
  const auto root = Parse("// one\n{ /* two\nthré */ \"a\":\n  1\n,\"b\": [\n\n2\n,\ntrue,\"x\"\n], \"c\":\n{\n}}");
  ASSERT_TRUE(root.has_value());
  const auto at = [](Place place) { return absl::StrCat(place.line, ":", place.column); };
  EXPECT_EQ(at(root->place), "2:1");
  EXPECT_EQ(at(root->Member("a")->key_place), "3:9");  // characters, not bytes
  EXPECT_EQ(at(root->Member("a")->place), "4:3");
  EXPECT_EQ(at(root->Member("b")->place), "5:7");
  EXPECT_EQ(at(root->Member("b")->children[0].place), "7:1");
  EXPECT_EQ(at(root->Member("b")->children[1].place), "9:1");
  EXPECT_EQ(at(root->Member("b")->children[2].place), "9:6");
  EXPECT_EQ(at(root->Member("c")->key_place), "10:4");
  EXPECT_EQ(at(root->Member("c")->place), "11:1");
}

TEST(JsonTest, StringsAndNumbersAreReadByRfc8259) {
  EXPECT_EQ(Parse(R"(["\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\uDE00"])")->children[0].string, "\"\\/\b\f\n\r\tAé€😀");
  for (const char* number : {"0", "10", "18446744073709551615"}) {
    EXPECT_EQ(Parse(absl::StrCat("[", number, "]"))->children[0].type, Type::kInteger) << number;
  }
  for (const char* number : {"-0", "-1", "0.5", "1e5", "1E+5", "1.5e-5", "18446744073709551616", "1e400"}) {
    EXPECT_EQ(Parse(absl::StrCat("[", number, "]"))->children[0].type, Type::kNumber) << number;
  }
  for (const char* wrong : {"01",
                            "-",
                            "1.",
                            ".5",
                            "+1",
                            "1e",
                            "1e+",
                            "0x1",
                            "1_0",
                            "--1",
                            "1.e5",
                            "NaN",
                            "Infinity",
                            "nul",
                            "True",
                            "truex",
                            "\"\\x\"",
                            "\"\\u12\"",
                            "\"\\u12g4\"",
                            "\"\\",
                            "\"",
                            "'a'",
                            "\"\\ud800\\n\"",
                            "\"\t\"",
                            "[,]",
                            "[1,]",
                            "{\"a\"}",
                            "{\"a\":}",
                            "{,}",
                            "{1:2}",
                            "{\"a\":1,}",
                            "]",
                            "}",
                            ":",
                            ",",
                            "1 2",
                            "/",
                            "/ 1",
                            "1 /",
                            "1 /*",
                            "//",
                            "/**/"}) {
    EXPECT_THAT(JsonError(absl::StrCat(wrong[0] == '/' ? "" : "[", wrong, wrong[0] == '/' ? "" : "]")),
                ::testing::ContainsRegex(": is (not JSON: |empty but for comments)"))
        << wrong;
  }
}

TEST(JsonTest, AByteOrderMarkIsSkipped) { EXPECT_TRUE(Parse("\xEF\xBB\xBF{}").has_value()); }

// What is JSON is what another parser takes for it, comments and all. Mutations of one text, by a generator with a
// fixed seed.
TEST(JsonTest, AnotherParserAgreesOnWhatIsJson) {
  const std::string seed =
      "{\"a\": [1, -2.5e+3, true, null, \"x\\u00e9\\ud83d\\ude00\\n\"], // c\n \"b\": {\"c\": {}, \"d\": []} /* e */}";
  std::mt19937 random(1);
  int good = 0, bad = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string text = seed;
    for (unsigned n = 1 + random() % 3; n > 0; --n) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = "{}[]\",:/*\\u0dn1-eE.+ \ntrueé"[random() % 26];
          break;
        case 1:
          text.erase(at, 1 + random() % 3);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 6));
      }
      if (text.empty()) text = " ";
    }
    if (FindInvalidUtf8(text) != absl::string_view::npos) continue;
    // 1e999 and the like: too large for a double, which no field is.
    const bool expected = nlohmann::json::accept(text, /*ignore_comments=*/true);
    Mistakes mistakes;
    const std::string file = "f.json";
    const std::optional<JsonValue> root = ParseJson(file, text, mistakes);
    const bool parsed = root.has_value();
    if (parsed && !expected && text.find_first_of("eE") != std::string::npos &&
        std::regex_search(text, std::regex("[eE][+]?[0-9]{3}")))
      continue;
    ASSERT_EQ(parsed, expected) << text << "\n" << mistakes.ToStatus();
    ++(parsed ? good : bad);
  }
  EXPECT_GT(good, 500);
  EXPECT_GT(bad, 2000);
}

TEST(JsonTest, SyntaxErrorsSayWhereAndWhatHelps) {
  Mistakes mistakes;
  const std::string file = "f.json";
  EXPECT_EQ(ParseJson(file, "{\n\"a\": {\"é\": 1,\n }}", mistakes), std::nullopt);
  EXPECT_EQ(
      mistakes.ToStatus().message(),
      "f.json:3:2: /a: is not JSON: something else stands where a name in quotes should be; no comma may stand before "
      "a closing bracket, and brackets close in pairs");
  EXPECT_EQ(
      JsonError("{'a': 1}"),
      "f.json:1: /: is not JSON: something else stands where a name in quotes should be; text goes in double quotes");
  EXPECT_EQ(JsonError("{\"a\": [1, 2"),
            "f.json:1: /a: is not JSON: the text ends where a comma or a \"]\" should be; a bracket or a quote is not "
            "closed");
  EXPECT_THAT(JsonError("{\"a\": 1 \"b\": 2}"), HasSubstr("; a comma may be missing before it"));
  EXPECT_THAT(JsonError("{} {}"), HasSubstr("; one object is all there may be"));
  EXPECT_THAT(JsonError("{ // a\r }"), HasSubstr("a comment with // holds a carriage return"));
  EXPECT_THAT(JsonError("{ // a\r\r\n}"), HasSubstr("a comment with // holds a carriage return"));
  Mistakes none;
  EXPECT_TRUE(ParseJson("f.json", "{ // a\r\n /* b\r */ }", none).has_value());
  EXPECT_THAT(JsonError("{/* open"), HasSubstr("this comment has no end"));
  EXPECT_THAT(JsonError("{\"a\": [1}"), HasSubstr("brackets close in pairs"));
}

TEST(JsonTest, WhatIsNotTextIsNamed) {
  EXPECT_EQ(JsonError(""), "f.json:1: /: is empty; the least that a policy says is {\"version\": 1}");
  EXPECT_EQ(JsonError(" \n\t"), "f.json:1: /: is empty; the least that a policy says is {\"version\": 1}");
  EXPECT_EQ(JsonError(std::string("{}\n\0 and more", 13)), "f.json:2: /: holds a NUL byte; save it as UTF-8 text");
  EXPECT_EQ(JsonError("{}\n// \xFF"), "f.json:2: /: is not UTF-8; save it as UTF-8 text");
  EXPECT_THAT(JsonError("{\"a\": \"\x01\"}"), HasSubstr("control character"));
}

TEST(JsonTest, WhatTextCantHoldIsAnError) {
  EXPECT_THAT(JsonError("[\"\\ud800\"]"), HasSubstr("surrogate"));
  EXPECT_THAT(JsonError("[\"\\udc00x\"]"), HasSubstr("surrogate"));
  std::string error;
  Parse("{\"a\": [1, \"x\\u0000y\"]}", &error);
  EXPECT_EQ(error, "f.json:1: /a/1: holds a NUL character; take it out");
  Parse("{\"a\\u0000\": 1}", &error);
  EXPECT_EQ(error, "f.json:1: /: a key holds a NUL character; take it out");
}

TEST(JsonTest, AValueIsNotRepeatedInAnError) {
  EXPECT_THAT(JsonError("{\"a\": \"canary\n\"}"), Not(HasSubstr("canary")));
  EXPECT_THAT(JsonError("{\"a\": canary}"), Not(HasSubstr("canary")));
  EXPECT_THAT(JsonError("{\"a\": 123456x}"), Not(HasSubstr("123456")));
}

TEST(JsonTest, DuplicateKeysAreMistakesAndTheRestIsRead) {
  std::string error;
  const auto root = Parse("{\"a\": {\"x\": 1,\n\"y\": 2,\n\"x\": 3}, \"b\": 1, \"b\": 1}", &error);
  EXPECT_EQ(error,
            "f.json:3: /a/x: is there twice, first in line 1; take one away\n"
            "f.json:3: /b: is there twice, first in line 3; take one away");
  EXPECT_TRUE(root.has_value());
}

TEST(JsonTest, NestingIsBounded) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(Parse(nested(kPolicyNestingMax - 1)).has_value());
  EXPECT_TRUE(Parse(nested(kPolicyNestingMax)).has_value());
  EXPECT_THAT(JsonError(nested(kPolicyNestingMax + 1)), HasSubstr("nests deeper than 32 levels"));
  EXPECT_THAT(JsonError(std::string(100000, '[')), HasSubstr("nests deeper than 32 levels"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_THAT(JsonError(objects), HasSubstr("nests deeper than 32 levels"));
}

TEST(JsonTest, SizeIsBounded) {
  const auto padded = [](std::size_t size) { return "{}" + std::string(size - 2, ' '); };
  EXPECT_TRUE(Parse(padded(kPolicyBytesMax - 1)).has_value());
  EXPECT_TRUE(Parse(padded(kPolicyBytesMax)).has_value());
  EXPECT_EQ(JsonError(padded(kPolicyBytesMax + 1)),
            "f.json:1: /: is longer than 1048576 bytes; is this the right file?");
  EXPECT_THAT(JsonError(padded(10 << 20)), HasSubstr("is longer than"));
}

TEST(JsonTest, TheNumberOfValuesIsBounded) {
  const auto list = [](std::size_t values) {  // the list is one itself
    std::string text = "[\"\"";
    for (std::size_t i = 2; i < values; ++i) text += ",\"\"";
    return text + "]";
  };
  EXPECT_TRUE(Parse(list(kPolicyValuesMax - 1)).has_value());
  EXPECT_TRUE(Parse(list(kPolicyValuesMax)).has_value());
  EXPECT_THAT(JsonError(list(kPolicyValuesMax + 1)), StartsWith("f.json:1: /: holds more than 400 values"));
  // Whatever they are.
  for (const char* value : {"1", "true", "null", "[]", "{}", "\"a\"", "[1]", "{\"a\": 1}"}) {
    std::string text = "{\"a\": [1";
    for (std::size_t i = 2; i < kPolicyValuesMax; ++i) absl::StrAppend(&text, ",", value);
    EXPECT_THAT(JsonError(text + "," + value + "]}"), HasSubstr(": holds more than 400 values"));
  }
}

TEST(JsonTest, ACharacterThatTurnsTheTextIsAMistakeAnywhere) {
  for (const char* turn : {"\u2028", "\u2029", "\u202a", "\u202e", "\u2066", "\u2069"}) {
    EXPECT_THAT(JsonError(absl::StrCat("{\n// ", turn, "\n}")), StartsWith("f.json:2: /: holds the character \\u20"));
    EXPECT_THAT(JsonError(absl::StrCat("{\"a\": \"", turn, "\"}")), HasSubstr("holds the character"));
  }
  // Their neighbours, and the same as an escape.
  for (const char* other : {"\u2027", "\u202f", "\u2065", "\u206a", "\u00e2", "\\u202e"}) {
    EXPECT_TRUE(Parse(absl::StrCat("{\"a\": \"", other, "\"}")).has_value()) << other;
  }
}

}  // namespace
}  // namespace bulkhead::policy
