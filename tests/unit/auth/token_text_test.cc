#include "digest/token_text.h"

#include <gtest/gtest.h>

#include <set>

namespace muster {
namespace {

TEST(TokenText, HasThePrefixAndTheLengthAndIsNeverTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string text = NewTokenText();
    EXPECT_TRUE(text.starts_with("mst_")) << text;
    EXPECT_EQ(text.size(), 40u);
    EXPECT_TRUE(IsTokenText(text)) << text;
    EXPECT_TRUE(seen.insert(text).second);
  }
}

TEST(TokenText, UsesEveryCharacterOfTheAlphabet) {
  std::set<char> seen;
  for (int i = 0; i < 200; ++i) {
    const std::string text = NewTokenText();
    seen.insert(text.begin() + 4, text.end());
  }
  EXPECT_EQ(seen.size(), 62u);
}

TEST(TokenText, EachCharacterThatIsWrongIsSeen) {
  const std::string text = NewTokenText();
  for (size_t at = 0; at < text.size(); ++at) {
    std::string wrong = text;
    wrong[at] = wrong[at] == 'a' ? 'b' : 'a';
    EXPECT_FALSE(IsTokenText(wrong)) << wrong;
  }
}

TEST(TokenText, OtherTextsAreNone) {
  const std::string text = NewTokenText();
  std::string swapped = text;
  std::swap(swapped[10], swapped[11]);
  if (swapped != text) {
    EXPECT_FALSE(IsTokenText(swapped));
  }
  for (const std::string& wrong :
       {std::string(), std::string("mst_"), text.substr(0, 39), text + "x", " " + text, text + "\n",
        "MST_" + text.substr(4), std::string(40, '\0'), std::string(1 << 20, 'a')}) {
    EXPECT_FALSE(IsTokenText(wrong));
  }
}

}  // namespace
}  // namespace muster
