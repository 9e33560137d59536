// What the backend asks of Slurm beyond what its own life of a run takes.
#include "agents/slurm/scheduler.h"

#include <fstream>

#include "agents/hosts/local_host.h"
#include "agents/slurm/command_scheduler.h"
#include "agents/slurm/commands.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/slurm/test_cluster.h"

namespace muster::slurm {
namespace {

using ::testing::HasSubstr;

class SlurmSchedulerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    cluster_ = new TestCluster("--nodes 1 --no-dbd");
    std::ofstream(Script()) << "#!/bin/bash\nexec sleep \"$1\"\n";
  }
  static void TearDownTestSuite() { delete cluster_; }

  static std::string Script() { return cluster_->runs() + "/sleep.sh"; }
  static Submission Sleeper(std::vector<std::string> options = {}) {
    options.emplace_back("--output=/dev/null");
    return {std::move(options), Script(), {"300"}};
  }
  JobId Start(const Submission& submission) {
    const SubmitOutcome outcome = scheduler_.Submit(submission);
    EXPECT_EQ(outcome.kind, agent::LaunchOutcome::Kind::kLaunched) << outcome.words;
    return {outcome.job_id};
  }
  std::vector<QueueRow> Rows() {
    const absl::StatusOr<std::vector<QueueRow>> rows = scheduler_.Queue();
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? *rows : std::vector<QueueRow>();
  }
  std::string ReasonOf(const JobId& id) {
    for (const QueueRow& row : Rows()) {
      if (row.job_id == id) return row.reason;
    }
    return "not there";
  }

  static TestCluster* cluster_;
  SlurmConfig config_ = cluster_->Config();
  hosts::LocalHost host_;
  Commands commands_{config_, &host_};
  CommandScheduler scheduler_{&host_, &commands_};
};

TestCluster* SlurmSchedulerTest::cluster_ = nullptr;

TEST_F(SlurmSchedulerTest, AHeldJobWaitsUntilItIsReleased) {
  // Not to be started before it is held.
  const JobId id = Start(Sleeper({"--begin=now+1hour"}));
  EXPECT_TRUE(scheduler_.Hold(id).ok());
  EXPECT_EQ(ReasonOf(id), "JobHeldUser");
  EXPECT_TRUE(scheduler_.Hold(id).ok()) << "it is held already";
  EXPECT_TRUE(scheduler_.Release(id).ok());
  WaitFor("the release", [&] { return ReasonOf(id) == "BeginTime"; });
  EXPECT_TRUE(scheduler_.Cancel(id).ok());
}

TEST_F(SlurmSchedulerTest, WhatHasEndedOrNeverWasCannotBeHeld) {
  const JobId id = Start(Sleeper());
  EXPECT_TRUE(scheduler_.Cancel(id).ok());
  WaitFor("the end", [&] {
    const absl::StatusOr<HistoryRow> job = scheduler_.ShowJob(id);
    return job.ok() && job->state.phase == JobPhase::kCancelled;
  });
  EXPECT_EQ(scheduler_.Hold(id).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(scheduler_.Cancel(id).ok()) << "what has ended counts as canceled";
  EXPECT_EQ(scheduler_.Hold({999999}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(scheduler_.Release({999999}).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(scheduler_.ShowJob({999999}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(scheduler_.Cancel({999999}).ok());
}

TEST_F(SlurmSchedulerTest, ACancelByNameEndsAllThatAreCalledSo) {
  const JobId first = Start(Sleeper({"--job-name=twice", "--begin=now+1hour"}));
  const JobId second = Start(Sleeper({"--job-name=twice", "--begin=now+1hour"}));
  const JobId other = Start(Sleeper({"--job-name=once", "--begin=now+1hour"}));
  EXPECT_TRUE(scheduler_.CancelNamed("twice").ok());
  for (const JobId& id : {first, second}) {
    EXPECT_EQ(scheduler_.ShowJob(id)->state.phase, JobPhase::kCancelled);
  }
  EXPECT_EQ(scheduler_.ShowJob(other)->state.phase, JobPhase::kPending);
  EXPECT_TRUE(scheduler_.Cancel(other).ok());
}

TEST_F(SlurmSchedulerTest, AnEstimateSubmitsNothing) {
  const absl::StatusOr<std::string> words = scheduler_.EstimateStart(Sleeper());
  ASSERT_TRUE(words.ok()) << words.status();
  EXPECT_THAT(*words, HasSubstr("to start at"));
  const absl::Status refused = scheduler_.EstimateStart(Sleeper({"--partition=nosuch"})).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("Invalid partition name specified"));
  for (const QueueRow& row : Rows()) {
    EXPECT_NE(row.state.phase, JobPhase::kPending) << row.job_id.ToString();
  }
}

}  // namespace
}  // namespace muster::slurm
