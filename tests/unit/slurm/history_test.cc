#include "agents/slurm/history.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::Contains;

TEST(ParseHistoryTest, ReadsWhatSacctPrints) {
  const auto rows = ParseHistory(
      "2\0372\037ref-1\037"
      "FAILED\037"
      "1:0\037None assigned\0371795226827\0371795226827\037gpu\037lab\037long\n"
      "3\0373\037held-1\037"
      "CANCELLED by 1001\037"
      "0:0\037None assigned\037None\0371795226829\037\037\037\n"
      "5\0375\037o53\037"
      "FAILED\037"
      "0:53\037n1\0371795226829\0371795226829\037\037\037\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_TRUE((*rows)[0].WasRefused());
  EXPECT_EQ((*rows)[0].Words(), "FAILED 1:0");
  EXPECT_EQ((*rows)[1].state.cancelled_by, "1001");
  EXPECT_EQ((*rows)[1].Words(), "CANCELLED by 1001 0:0");
  EXPECT_FALSE((*rows)[1].WasRefused());
  EXPECT_EQ((*rows)[1].start_time, std::nullopt);
  EXPECT_EQ((*rows)[2].signal, 53);
  EXPECT_EQ((*rows)[0].allocation.partition(), "gpu");
  EXPECT_EQ((*rows)[0].allocation.qos(), "long");
  EXPECT_FALSE((*rows)[2].WasRefused());
}

TEST(ParseHistoryTest, TasksOfAnArrayHaveARowEachAlsoThoseOnOneLine) {
  const auto rows = ParseHistory(
      "1_2\0373\037arr\037"
      "CANCELLED by 1001\0370:0\037n1\0371795249497\0371795249500\037\037\037\n"
      "1_[4,6-7%2]\0371\037arr\037"
      "PENDING\0370:0\037None assigned\037None\037Unknown\037\037\037\n"
      "9+1\03710\037het\037"
      "FAILED\0371:0\037n1\0371795249497\0371795249500\037\037\037\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  std::vector<JobId> ids;
  for (const HistoryRow& row : *rows) ids.push_back(row.job_id);
  EXPECT_THAT(ids,
              testing::ElementsAre(JobId{1, 2}, JobId{10}, JobId{1, 4}, JobId{1, 6}, JobId{1, 7}));
  EXPECT_EQ((*rows)[4].state.phase, JobPhase::kPending);
}

// sacct of Slurm 22.05 and 24.11 prints the canceled rest of an array so; 24.11 keeps in it the
// tasks that were started.
TEST(ParseHistoryTest, TheRestOfAnArrayIsReadAndATasksOwnLineCounts) {
  const std::string rest =
      "20_[5-2403:2%4]\03720\037one\037"
      "CANCELLED by 1001\0370:0\037None assigned\037None\0371795863149\037\037\037\n";
  const std::string task =
      "20_5\03721\037one\037"
      "COMPLETED\0370:0\037n1\0371795863146\0371795863152\037\037\037\n";
  for (const std::string& output : {rest + task, task + rest}) {
    const auto rows = ParseHistory(output);
    ASSERT_TRUE(rows.ok()) << rows.status();
    ASSERT_EQ(rows->size(), 1200u);
    EXPECT_EQ((*rows)[0].job_id, (JobId{20, 5}));
    EXPECT_EQ((*rows)[0].Words(), "COMPLETED 0:0");
    EXPECT_EQ(rows->back().job_id, (JobId{20, 2403}));
    EXPECT_EQ(rows->back().Words(), "CANCELLED by 1001 0:0");
    EXPECT_EQ(rows->back().node_list, "");
  }
  const std::string other =
      "20_5\03799\037else\037"
      "FAILED\0371:0\037n1\0371795863146\0371795863152\037\037\037\n";
  EXPECT_EQ(ParseHistory(rest + other)->size(), 1201u) << "ids wrap around: it is another job";
}

TEST(ParseHistoryTest, ALineThatCannotBeReadSpoilsTheAnswer) {
  EXPECT_FALSE(ParseHistory("2\0372\037ref-1\037"
                            "FAILED\037"
                            "1\037n1\037"
                            "1\037"
                            "1\037\037\037\n")
                   .ok());
  EXPECT_FALSE(ParseHistory("2|2|ref-1|FAILED|1:0|n1|1|1|||\n").ok());
}

TEST(ParseShowJobTest, ReadsWhatScontrolPrints) {
  const auto row = ParseShowJob(
      "JobId=7 JobName=k7m2-42-1 UserId=slurmtest(1001) Priority=0 JobState=FAILED "
      "Reason=NonZeroExitCode "
      "Requeue=1 Restarts=0 ExitCode=3:0 StartTime=1795226826 EndTime=1795226827 NodeList=n1 "
      "NumNodes=1 Power= Account=lab QOS=normal Partition=gpu\n");
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->job_id, JobId{7});
  EXPECT_EQ(row->name, "k7m2-42-1");
  EXPECT_EQ(row->state.phase, JobPhase::kFailed);
  EXPECT_EQ(row->exit_code, 3);
  EXPECT_EQ(row->node_list, "n1");
  EXPECT_EQ(row->end_time, absl::FromUnixSeconds(1795226827));
  EXPECT_FALSE(row->from_accounting);
  EXPECT_EQ(row->allocation.partition(), "gpu");
  EXPECT_EQ(row->allocation.account(), "lab");
}

TEST(ParseShowJobTest, AnythingElseIsNoJob) {
  EXPECT_FALSE(ParseShowJob("").has_value());
  EXPECT_FALSE(ParseShowJob("slurm_load_jobs error: Invalid job id specified\n").has_value());
  EXPECT_FALSE(ParseShowJob("JobId=7 JobState=FAILED\n").has_value()) << "no exit code";
}

TEST(HistoryArgumentsTest, AlwaysGiveAWindow) {
  const absl::Time since = absl::FromUnixSeconds(1000);
  EXPECT_THAT(HistoryArguments({{4}, {5, 1}, {5, 2}}, since), Contains("--jobs=4,5"));
  EXPECT_THAT(HistoryArguments({{4}, {5}}, since), Contains("--starttime=uts1000"));
  EXPECT_THAT(HistoryArguments("k7m2-42-1", since), Contains("--starttime=uts1000"));
  EXPECT_THAT(HistoryArguments("k7m2-42-1", since), Contains("--duplicates"));
}

TEST(SlurmWordsTest, TellNoAccountingFromAccountingThatIsDown) {
  EXPECT_TRUE(IsAccountingDisabled("Slurm accounting storage is disabled"));
  EXPECT_FALSE(
      IsAccountingDisabled("sacct: error: Problem talking to the database: Connection refused"));
  EXPECT_TRUE(IsUnknownJob("slurm_load_jobs error: Invalid job id specified"));
  EXPECT_FALSE(IsUnknownJob("Unable to contact slurm controller (connect failure)"));
}

}  // namespace
}  // namespace muster::slurm
