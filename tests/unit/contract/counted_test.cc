// Counts and lists in words.
#include "contract/counted.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace muster::contract {
namespace {

TEST(Counted, OneIsSingularAndAllElseIsNot) {
  EXPECT_EQ(Counted(1, "job"), "1 job");
  EXPECT_EQ(Counted(0, "job"), "0 jobs");
  EXPECT_EQ(Counted(uint64_t{3}, "active run"), "3 active runs");
  EXPECT_EQ(WordFor(1, "is", "are"), "is");
  EXPECT_EQ(WordFor(2, "is", "are"), "are");
}

TEST(Listed, SaysHowManyAreLeftOut) {
  EXPECT_EQ(Listed({"a", "b"}, 2), "a, b");
  EXPECT_EQ(Listed({"a", "b"}, 5), "a, b and 3 more");
  EXPECT_EQ(ListedUpTo(2, {"a", "b", "c"}), "a, b and 1 more");
  EXPECT_EQ(ListedUpTo(2, {"a"}), "a");
  EXPECT_EQ(ListedUpTo(1, {"a", "b", "c"}, "; "), "a and 2 more");
  EXPECT_EQ(ListedUpTo(3, {}), "");
}

}  // namespace
}  // namespace muster::contract
