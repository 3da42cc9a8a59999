#include "bulkhead/cli/suggest.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace bulkhead::cli {
namespace {

const std::vector<std::string> kWords = {"run", "explain", "check", "doctor", "presets"};

TEST(SuggestTest, OneSlipIsFound) {
  EXPECT_EQ(Suggest("rnu", kWords), "run");      // swapped
  EXPECT_EQ(Suggest("runn", kWords), "run");     // added
  EXPECT_EQ(Suggest("rn", kWords), "run");       // left out
  EXPECT_EQ(Suggest("chack", kWords), "check");  // changed
  EXPECT_EQ(Suggest("preset", kWords), "presets");
}

TEST(SuggestTest, OneEditForEveryThreeLettersIsTheLimit) {
  EXPECT_EQ(Suggest("exp1a1n", kWords), "explain");  // two of seven
  EXPECT_EQ(Suggest("3xp1a1n", kWords), "");         // three of seven
}

TEST(SuggestTest, TheOnlyWordWithThatBeginningIsFound) {
  EXPECT_EQ(Suggest("doc", kWords), "doctor");
  EXPECT_EQ(Suggest("re", {"report", "require"}), "");
  EXPECT_EQ(Suggest("runner", kWords), "run");
  EXPECT_EQ(Suggest("abstract", {"ab"}), "");
}

TEST(SuggestTest, WhatIsFarFromAllIsNotGuessed) {
  EXPECT_EQ(Suggest("uvx", kWords), "");
  EXPECT_EQ(Suggest("", kWords), "");
  EXPECT_EQ(Suggest(std::string(65, 'r'), kWords), "");
  EXPECT_EQ(DidYouMean("uvx", kWords), "");
  EXPECT_EQ(DidYouMean("rnu", kWords), "; did you mean \"run\"?");
}

}  // namespace
}  // namespace bulkhead::cli
