#include "clients/cpp/slurm/sbatch_values.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::client::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(ParseSbatchTimeTest, IsReadAsSbatchReadsIt) {
  const std::pair<const char*, uint64_t> good[] = {
      {"90", 5400},       {"1:30", 90},     {"1:0:0", 3600},    {"2-3", 183600}, {"1-0:30", 88200},
      {"1-0:0:1", 86401}, {"UNLIMITED", 0}, {"infinite", 0},    {"0", 0},        {"-1", 0},
      {"1-", 86400},      {"0-2:3", 7380},  {"400-0", 34560000}};
  for (const auto& [text, seconds] : good) EXPECT_EQ(ParseSbatchTime(text), seconds) << text;
  for (const char* text : {"", "1h", ":", "1:", ":1", "1:2:3:4", "-", "-5", "1-2:3:4:5", "1-:2",
                           "1-2:", "40000-0", "1:-2", "5:-3", "1.5", "99999999999"}) {
    EXPECT_FALSE(ParseSbatchTime(text).has_value()) << text;
  }
}

TEST(ParseSbatchMemoryTest, LettersBehindTheUnitHaveNoMeaning) {
  const std::pair<const char*, uint64_t> good[] = {{"100", 100 << 20}, {"1G", 1 << 30},
                                                   {"1g", 1 << 30},    {"1GB", 1 << 30},
                                                   {"1024K", 1 << 20}, {"0", 0}};
  for (const auto& [text, bytes] : good) EXPECT_EQ(ParseSbatchMemory(text), bytes) << text;
  for (const char* text : {"", "G", "1.5G", "-1", "lots", "1X", "1 G", "99999999T"})
    EXPECT_FALSE(ParseSbatchMemory(text).has_value()) << text;
}

TEST(ParseNodeRangeTest, CountsMayBeOfThousands) {
  const auto range = ParseNodeRange("2k-4K");
  ASSERT_TRUE(range.has_value());
  EXPECT_EQ(range->min, 2048u);
  EXPECT_EQ(range->max, 4096u);
  EXPECT_EQ(ParseNodeRange("1m")->min, 1u << 20);
  EXPECT_EQ(ParseNodeRange("0-2")->min, 1u);
  EXPECT_EQ(ParseNodeRange("-2")->max, 2u);
  EXPECT_EQ(ParseNodeRange("2-")->max, 2u);
  EXPECT_EQ(ParseNodeRange("2-0")->max, 2u);
  for (const char* text : {"", "k", "0", "3-2", "2x", "many", "1,2", "1-2-3", "99999999k"})
    EXPECT_FALSE(ParseNodeRange(text).has_value()) << text;
}

TEST(CountHostsTest, EachNodeOfAListCountsOnce) {
  const std::pair<const char*, uint32_t> good[] = {{"n1", 1},
                                                   {"n1,n2", 2},
                                                   {"n1,n1", 1},
                                                   {"n[1-3,7]", 4},
                                                   {"n[1-2],m[1-2]-a", 4},
                                                   {"n[1-3],n2,login", 4},
                                                   {"", 0},
                                                   {"n1,", 1}};
  for (const auto& [list, count] : good) EXPECT_EQ(CountHosts(list), count) << list;
  for (const char* list : {"n[1-", "n[3-1]", "n[a-b]", "n[1-99999999]", "n[]"})
    EXPECT_FALSE(CountHosts(list).has_value()) << list;
}

TEST(ParseMailTypesTest, WordsThatSbatchDoesNotKnowHaveNoMeaningBesideOthers) {
  EXPECT_THAT(ParseMailTypes("end,Time_Limit_50"), Optional(ElementsAre("END", "TIME_LIMIT_50")));
  EXPECT_THAT(ParseMailTypes("END,soon,"), Optional(ElementsAre("END")));
  EXPECT_THAT(ParseMailTypes("END,none,FAIL"), Optional(IsEmpty()));
  EXPECT_FALSE(ParseMailTypes("soon").has_value());
  EXPECT_FALSE(ParseMailTypes("").has_value());
}

}  // namespace
}  // namespace muster::client::slurm
