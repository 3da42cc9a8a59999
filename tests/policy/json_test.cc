#include "bulkhead/policy/json.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "bulkhead/policy/policy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
    *error = std::string(mistakes.ToStatus().message());
  } else {
    EXPECT_TRUE(mistakes.empty()) << mistakes.ToStatus();
  }
  return root;
}

std::string ErrorOf(const std::string& text) {
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

TEST(JsonTest, EveryValueKnowsItsLine) {
  const auto root = Parse("// one\n{ /* two\nthree */ \"a\":\n  1\n,\"b\": [\n\n2\n,\ntrue,\"x\"\n], \"c\":\n{\n}}");
  ASSERT_TRUE(root.has_value());
  EXPECT_EQ(root->line, 2);
  EXPECT_EQ(root->Member("a")->key_line, 3);
  EXPECT_EQ(root->Member("a")->line, 4);  // a number, known to end only by the newline after it
  EXPECT_EQ(root->Member("b")->line, 5);
  EXPECT_EQ(root->Member("b")->children[0].line, 7);
  EXPECT_EQ(root->Member("b")->children[1].line, 9);
  EXPECT_EQ(root->Member("b")->children[2].line, 9);
  EXPECT_EQ(root->Member("c")->key_line, 10);
  EXPECT_EQ(root->Member("c")->line, 11);
}

TEST(JsonTest, AByteOrderMarkIsSkipped) { EXPECT_TRUE(Parse("\xEF\xBB\xBF{}").has_value()); }

TEST(JsonTest, SyntaxErrorsSayWhereAndWhatHelps) {
  EXPECT_EQ(
      ErrorOf("{\n\"a\": {\"b\": 1,\n}}"),
      "f.json:3: /a: is not JSON: in object key - unexpected '}'; expected string literal; no comma may stand before a "
      "closing bracket");
  EXPECT_EQ(
      ErrorOf("{'a': 1}"),
      "f.json:1: /: is not JSON: in object key - invalid literal; expected string literal; text goes in double quotes");
  EXPECT_THAT(ErrorOf("{\"a\": [1, 2"), HasSubstr("/a: is not JSON: in array - unexpected end of input"));
  EXPECT_THAT(ErrorOf("{\"a\": [1, 2"), HasSubstr("; a bracket or a quote is not closed"));
  EXPECT_THAT(ErrorOf("{\"a\": 1 \"b\": 2}"), HasSubstr("; a comma may be missing before it"));
  EXPECT_THAT(ErrorOf("{} {}"), HasSubstr("; one object is all there may be"));
  EXPECT_THAT(ErrorOf("{/* open"), HasSubstr("invalid comment"));
}

TEST(JsonTest, WhatIsNotTextIsNamed) {
  EXPECT_EQ(ErrorOf(""), "f.json:1: /: is empty; the least that a policy says is {\"version\": 1}");
  EXPECT_EQ(ErrorOf(" \n\t"), "f.json:1: /: is empty; the least that a policy says is {\"version\": 1}");
  // nlohmann takes a NUL for the end of its input.
  EXPECT_EQ(ErrorOf(std::string("{}\n\0 and more", 14)), "f.json:2: /: holds a NUL byte; save it as UTF-8 text");
  EXPECT_EQ(ErrorOf("{}\n// \xFF"), "f.json:2: /: is not UTF-8; save it as UTF-8 text");
  EXPECT_THAT(ErrorOf("{\"a\": \"\x01\"}"), HasSubstr("control character"));
}

TEST(JsonTest, WhatTextCantHoldIsAnError) {
  EXPECT_THAT(ErrorOf("[\"\\ud800\"]"), HasSubstr("surrogate"));
  EXPECT_THAT(ErrorOf("[\"\\udc00x\"]"), HasSubstr("surrogate"));
  EXPECT_THAT(ErrorOf("[1e400]"), HasSubstr("the number is out of range"));
  std::string error;
  Parse("{\"a\": [1, \"x\\u0000y\"]}", &error);
  EXPECT_EQ(error, "f.json:1: /a/1: holds a NUL character; take it out");
  Parse("{\"a\\u0000\": 1}", &error);
  EXPECT_EQ(error, "f.json:1: /: a key holds a NUL character; take it out");
}

TEST(JsonTest, AValueIsNotRepeatedInAnError) {
  EXPECT_THAT(ErrorOf("{\"a\": \"canary\n\"}"), Not(HasSubstr("canary")));
  EXPECT_THAT(ErrorOf("{\"a\": canary}"), Not(HasSubstr("canary")));
  EXPECT_THAT(ErrorOf("{\"a\": 123456e999}"), Not(HasSubstr("123456")));
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
  EXPECT_THAT(ErrorOf(nested(kPolicyNestingMax + 1)), HasSubstr("nests deeper than 32 levels"));
  EXPECT_THAT(ErrorOf(std::string(100000, '[')), HasSubstr("nests deeper than 32 levels"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_THAT(ErrorOf(objects), HasSubstr("nests deeper than 32 levels"));
}

TEST(JsonTest, SizeIsBounded) {
  const auto padded = [](std::size_t size) { return "{}" + std::string(size - 2, ' '); };
  EXPECT_TRUE(Parse(padded(kPolicyBytesMax - 1)).has_value());
  EXPECT_TRUE(Parse(padded(kPolicyBytesMax)).has_value());
  EXPECT_EQ(ErrorOf(padded(kPolicyBytesMax + 1)), "f.json:1: /: is longer than 1048576 bytes; is this the right file?");
  EXPECT_THAT(ErrorOf(padded(10 << 20)), HasSubstr("is longer than"));
}

TEST(JsonTest, TheNumberOfValuesIsBounded) {
  const auto list = [](std::size_t values) {  // the list is one itself
    std::string text = "[1";
    for (std::size_t i = 2; i < values; ++i) text += ",1";
    return text + "]";
  };
  EXPECT_TRUE(Parse(list(kPolicyValuesMax - 1)).has_value());
  EXPECT_TRUE(Parse(list(kPolicyValuesMax)).has_value());
  EXPECT_THAT(ErrorOf(list(kPolicyValuesMax + 1)), StartsWith("f.json:1: /: holds more than 65536 values"));
}

TEST(JsonTest, ManyKeysTakeNoQuadraticTime) {
  std::string text = "{";
  for (int i = 0; i < 60000; ++i) absl::StrAppend(&text, i == 0 ? "" : ",", "\"k", i, "\":1");
  EXPECT_EQ(Parse(text + "}")->children.size(), 60000u);
}

}  // namespace
}  // namespace bulkhead::policy
