#include "agents/muster/run_book.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::remote {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kNow = absl::Seconds(1000);

v1::Job JobOf(uint64_t id, v1::JobState state, const std::string& run_key) {
  v1::Job job;
  job.set_id(id);
  job.set_state(state);
  (*job.mutable_labels())["muster.run"] = run_key;
  return job;
}

class RunBookTest : public testing::Test {
 protected:
  RunBookTest() { book_.Add("k-1-1", 7); }
  std::vector<uint64_t> Due(absl::Duration now, bool is_live = true) {
    return book_.TakeDue({7}, is_live, now);
  }
  RunBook book_;
};

TEST_F(RunBookTest, AJobIsLookedAtOnceAndThenWhenItChanges) {
  EXPECT_THAT(Due(kNow), ElementsAre(7));
  book_.Put(JobOf(7, v1::JOB_STATE_RUNNING, "k-1-1"), kNow);
  EXPECT_THAT(Due(kNow), IsEmpty());
  EXPECT_TRUE(book_.Mark(7));
  EXPECT_THAT(Due(kNow), ElementsAre(7));
  EXPECT_FALSE(book_.Mark(8)) << "no run of this cluster";
}

TEST_F(RunBookTest, WithoutAFeedEachLookAsksForAll) {
  Due(kNow);
  book_.Put(JobOf(7, v1::JOB_STATE_RUNNING, "k-1-1"), kNow);
  EXPECT_THAT(Due(kNow, /*is_live=*/false), ElementsAre(7));
}

TEST_F(RunBookTest, WhyAJobWaitsIsAskedForNowAndThen) {
  Due(kNow);
  book_.Put(JobOf(7, v1::JOB_STATE_QUEUED, "k-1-1"), kNow);
  EXPECT_THAT(Due(kNow + RunBook::kWaitingAge - absl::Seconds(1)), IsEmpty());
  EXPECT_THAT(Due(kNow + RunBook::kWaitingAge), ElementsAre(7));
}

TEST_F(RunBookTest, AnEndAwaitsItsOutputForAWhile) {
  Due(kNow);
  v1::Job job = JobOf(7, v1::JOB_STATE_SUCCEEDED, "k-1-1");
  job.add_runs();
  book_.Put(job, kNow);
  EXPECT_TRUE(book_.Look("k-1-1", kNow).awaits_output);
  EXPECT_THAT(Due(kNow), ElementsAre(7));
  EXPECT_FALSE(book_.Look("k-1-1", kNow + RunBook::kOutputPatience).awaits_output);
  job.mutable_runs(0)->set_logs_complete(true);
  book_.Put(job, kNow);
  EXPECT_FALSE(book_.Look("k-1-1", kNow).awaits_output);
  EXPECT_THAT(Due(kNow), IsEmpty());
}

TEST_F(RunBookTest, AJobOfAnotherRunUnderTheSameNumberIsMissing) {
  book_.Put(JobOf(7, v1::JOB_STATE_SUCCEEDED, "k-9-1"), kNow);
  const RunBook::Seen seen = book_.Look("k-1-1", kNow + absl::Seconds(5));
  EXPECT_EQ(seen.job, nullptr);
  EXPECT_EQ(seen.missing, absl::Seconds(5));
  book_.Put(JobOf(7, v1::JOB_STATE_RUNNING, "k-1-1"), kNow);
  EXPECT_FALSE(book_.Look("k-1-1", kNow).missing.has_value());
}

TEST_F(RunBookTest, ANumberThatIsGivenOnceMoreHasTheStateOfEachRunApart) {
  book_.Put(JobOf(7, v1::JOB_STATE_SUCCEEDED, "k-1-1"), kNow);
  book_.Add("k-2-1", 7);
  EXPECT_EQ(book_.Look("k-2-1", kNow).job, nullptr) << "the end is the older run's";
  EXPECT_THAT(Due(kNow), ElementsAre(7));
  book_.Put(JobOf(7, v1::JOB_STATE_RUNNING, "k-2-1"), kNow);
  EXPECT_EQ(book_.Look("k-2-1", kNow).job->state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(book_.Look("k-1-1", kNow).job->state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(book_.Look("k-1-1", kNow).missing.has_value());
  book_.Forget("k-1-1");
  EXPECT_TRUE(book_.Mark(7)) << "the younger run is still known";
}

TEST_F(RunBookTest, NothingIsKeptOfAForgottenRun) {
  EXPECT_TRUE(book_.Knows("k-1-1"));
  book_.Forget("k-1-1");
  EXPECT_FALSE(book_.Knows("k-1-1"));
  EXPECT_THAT(Due(kNow), IsEmpty());
}

}  // namespace
}  // namespace muster::remote
