#include "agents/slurm/job_id.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(JobIdTest, IsReadAndPrintedAsSlurmDoes) {
  EXPECT_EQ(ParseJobId("123"), JobId{123});
  EXPECT_EQ(ParseJobId("123_0"), (JobId{123, 0}));
  EXPECT_EQ(JobId{123}.ToString(), "123");
  EXPECT_EQ((JobId{123, 4}).ToString(), "123_4");
  for (const char* text : {"", "0", "_4", "123_", "123_x", "123_4_5", "123+1", "-1", "123_[4]"})
    EXPECT_FALSE(ParseJobId(text).has_value()) << text;
}

TEST(JobIdTest, ATaskIsNeitherItsArrayNorAnotherTask) {
  EXPECT_NE((JobId{123, 0}), JobId{123});
  EXPECT_LT((JobId{123, 9}), (JobId{124, 0}));
  EXPECT_LT((JobId{123, 9}), (JobId{123, 10}));
}

TEST(ExpandJobIdsTest, ReadsSetsOfTasks) {
  EXPECT_THAT(ExpandJobIds("7"), ElementsAre(JobId{7}));
  EXPECT_THAT(ExpandJobIds("7_3"), ElementsAre(JobId{7, 3}));
  EXPECT_THAT(ExpandJobIds("7_[3]"), ElementsAre(JobId{7, 3}));
  EXPECT_THAT(ExpandJobIds("7_[0,4-6%2]"),
              ElementsAre(JobId{7, 0}, JobId{7, 4}, JobId{7, 5}, JobId{7, 6}));
  for (const char* text : {"", "7_[", "7_[]", "7_[3-1]", "7_[0-4000001]", "7_[1,...]", "[1]"})
    EXPECT_THAT(ExpandJobIds(text), IsEmpty()) << text;
}

}  // namespace
}  // namespace muster::slurm
