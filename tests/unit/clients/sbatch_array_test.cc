#include "clients/cpp/slurm/sbatch_array.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::client::slurm {
namespace {

using ::testing::HasSubstr;

// Returns the ids of the tasks, and the step.
std::pair<std::vector<uint32_t>, uint32_t> Read(const std::string& text) {
  std::vector<uint32_t> ids;
  const auto tasks = ParseArray(text);
  EXPECT_TRUE(tasks.ok()) << text << ": " << tasks.status();
  for (const auto& task : tasks.value_or(std::vector<contract::ArrayTask>())) {
    EXPECT_EQ(task.place, ids.size());
    EXPECT_EQ(task.count, tasks->size());
    EXPECT_EQ(task.min_id, tasks->front().id);
    EXPECT_EQ(task.max_id, tasks->back().id);
    ids.push_back(task.id);
  }
  return {ids, tasks.ok() ? tasks->front().step : 0};
}
using Ids = std::vector<uint32_t>;

TEST(ParseArrayTest, IsReadAsSbatchReadsIt) {
  EXPECT_EQ(Read("1,3,7-9"), std::pair(Ids({1, 3, 7, 8, 9}), 1u));
  EXPECT_EQ(Read("0-6:3"), std::pair(Ids({0, 3, 6}), 3u));
  EXPECT_EQ(Read("1-4:2,7"), std::pair(Ids({1, 3, 7}), 2u));
  EXPECT_EQ(Read("[1-2]"), std::pair(Ids({1, 2}), 1u));
  EXPECT_EQ(Read("1-2,2"), std::pair(Ids({1, 2}), 1u));
  EXPECT_EQ(Read("01-03"), std::pair(Ids({1, 2, 3}), 1u));
  EXPECT_EQ(Read("1-10:20"), std::pair(Ids({1}), 20u));
  EXPECT_EQ(Read("5"), std::pair(Ids({5}), 1u));
  EXPECT_EQ(Read("1-1000").first.size(), 1000u);
  EXPECT_EQ(Read("0-4000000:4000000").first.size(), 2u);
}

TEST(ParseArrayTest, WhatCannotBeReadIsRefusedWithTheForm) {
  for (const char* text :
       {"x", "3-1", "1-", "-1", "1-3:0", "1-3:x", "1:2", "0x10", "1-2-3", "1-3 %2", "1;2",
        "1-3:2:2", "4000001", "99999999999", "1 2", "1-3:-1", "1-x"}) {
    EXPECT_THAT(std::string(ParseArray(text).status().message()), HasSubstr("as in 0-15")) << text;
  }
}

TEST(ParseArrayTest, EachTaskKnowsTheLimitOfSimultaneousOnes) {
  const auto limit = [](std::string_view text) { return ParseArray(text)->back().limit; };
  EXPECT_EQ(limit("0-15%4"), 4u);
  EXPECT_EQ(limit("[1-7:2%1]"), 1u);
  EXPECT_EQ(limit("1-3%0"), 0u) << "no limit, as with sbatch";
  EXPECT_EQ(limit("1-3"), 0u);
}

// As sbatch and slurmctld of 22.05 and 24.11 take them.
TEST(ParseArrayTest, WhatIsNoLimitIsNoneAndSlipsAreReadAsSlurmReadsThem) {
  const auto limit = [](std::string_view text) { return ParseArray(text)->back().limit; };
  for (const char* text :
       {"1-3%", "1-3%x", "1-3%-1", "1-3%4000001", "1-3%%2", "1-3%0x2", "1-3%99999999999999999999"})
    EXPECT_EQ(limit(text), 0u) << text;
  for (const char* text : {"1-3%2x", "1-3%2%3", "1-3% 2", "1-3%+2", "1-3%2,", "[1-3]%2"}) {
    EXPECT_EQ(limit(text), 2u) << text;
    EXPECT_EQ(Read(text).first, Ids({1, 2, 3})) << text;
  }
  EXPECT_EQ(Read("1,2%1,3").first, Ids({1, 2, 3}));
  EXPECT_EQ(limit("1,2%1,3"), 1u);
  EXPECT_EQ(Read("%2").first, Ids({0}));
  for (const char* text : {"1,,3", ",1,3", "1,3,", "1,[3]", "[1,3", "+1,3", " 1,3"})
    EXPECT_EQ(Read(text).first, Ids({1, 3})) << text;
  EXPECT_TRUE(ParseArray(",")->empty()) << "no array";
  EXPECT_EQ(Read("1- 3:+1").first, Ids({1, 2, 3}));
}

TEST(ParseArrayTest, TooManyTasksAreRefusedWithTheRemedy) {
  EXPECT_EQ(ParseArray("1-10000")->size(), 10000u);
  for (const char* text : {"0-10000", "1-4000000", "0-9999,10001-10003"}) {
    EXPECT_THAT(std::string(ParseArray(text).status().message()), HasSubstr("at most 10000 tasks"));
  }
}

}  // namespace
}  // namespace muster::client::slurm
