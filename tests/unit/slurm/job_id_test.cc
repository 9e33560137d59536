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
  EXPECT_THAT(ExpandJobIds("1_[1999-2004:2%4]"),
              ElementsAre(JobId{1, 1999}, JobId{1, 2001}, JobId{1, 2003}));
  EXPECT_THAT(ExpandJobIds("1_[1,4-8:4]"), ElementsAre(JobId{1, 1}, JobId{1, 4}, JobId{1, 8}));
  for (const char* text : {"", "7_[", "7_[]", "7_[3-1]", "7_[0-4000001]", "7_[1,...]", "[1]",
                           "7_[1-9:0]", "7_[1-9:]", "7_[1-9:x]", "7_[0-4294967295]"})
    EXPECT_THAT(ExpandJobIds(text), IsEmpty()) << text;
}

// As slurmrestd 22.05 and 24.11 print it, unless SLURM_BITSTR_LEN=0 is in their environment.
TEST(ParseTaskSetTest, OfAListThatWasCutOffTheLastIdMayLackItsEnd) {
  const auto set = ParseTaskSet(2, "7,10,13,16,19,22,25,28,31,34,37,40,43,46,49,52,55,58,6...%2");
  ASSERT_TRUE(set.has_value());
  EXPECT_TRUE(set->is_cut);
  EXPECT_EQ(set->ids.size(), 18u);
  EXPECT_EQ(set->ids.back(), (JobId{2, 58}));
  EXPECT_FALSE(ParseTaskSet(2, "7,10%2")->is_cut);
  EXPECT_THAT(ParseTaskSet(2, "7...")->ids, IsEmpty());
  EXPECT_FALSE(ParseTaskSet(2, "").has_value());
}

}  // namespace
}  // namespace muster::slurm
