// A job in memory follows the table for every pair of stage and event.
#include "broker/core/job_machine.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace muster::core {
namespace {

using contract::JobEvent;
using contract::JobStage;

// Makes a job in each stage, taken there by the table.
std::map<JobStage, Job> JobsInEveryStage() {
  std::map<JobStage, Job> jobs = {{JobStage::kNew, Job()}};
  std::vector<JobStage> open = {JobStage::kNew};
  while (!open.empty()) {
    const JobStage stage = open.back();
    open.pop_back();
    for (const contract::JobTransition& row : contract::kJobTransitions) {
      if (row.from != stage || jobs.contains(row.to)) continue;
      Job job = jobs.at(stage);
      EXPECT_TRUE(job.Apply({row.event}));
      jobs.emplace(row.to, job);
      open.push_back(row.to);
    }
  }
  return jobs;
}

TEST(JobMachine, TakesWhatTheTableHasAndRefusesTheRest) {
  const auto jobs = JobsInEveryStage();
  ASSERT_EQ(jobs.size(), static_cast<size_t>(contract::kJobStages));
  for (const auto& [stage, before] : jobs) {
    for (int i = 0; i < contract::kJobEvents; ++i) {
      const auto event = static_cast<JobEvent>(i);
      SCOPED_TRACE(testing::Message() << "stage " << static_cast<int>(stage) << ", event " << i);
      Job job = before;
      const auto next = contract::Next(stage, event);
      EXPECT_EQ(job.Takes(event), next.has_value());
      EXPECT_EQ(job.Apply({event, /*cluster=*/9, /*start_unix_micros=*/77}), next.has_value());
      EXPECT_EQ(job.stage(), next.value_or(stage));
      const bool is_assigned = next.has_value() && event == JobEvent::kAssign;
      EXPECT_EQ(job.runs(), before.runs() + (is_assigned ? 1 : 0));
      EXPECT_EQ(job.cluster(), is_assigned ? 9 : before.cluster());
      EXPECT_EQ(job.start_unix_micros().has_value(), next.has_value());
    }
  }
}

TEST(JobMachine, KeepsTheFirstStart) {
  Job job;
  for (JobEvent event : {JobEvent::kSubmit, JobEvent::kAssign}) EXPECT_TRUE(job.Apply({event}));
  EXPECT_EQ(job.start_unix_micros(), std::nullopt);
  EXPECT_TRUE(job.Apply({JobEvent::kRunRuns, 0, 5}));
  EXPECT_TRUE(job.Apply({JobEvent::kRetry, 0, 6}));
  EXPECT_EQ(job.start_unix_micros(), 5);
}

TEST(JobMachine, IsTheSameAfterARestart) {
  for (const auto& [stage, job] : JobsInEveryStage()) {
    LiveJob stored;
    stored.state = job.state();
    stored.cancel_requested = job.cancel_requested();
    stored.hold = job.hold();
    if (job.withdrawn()) stored.withdrawal.emplace();
    if (job.preempted()) stored.withdrawal.emplace().set_cause(v1::WITHDRAWAL_CAUSE_PREEMPTION);
    EXPECT_EQ(Job(stored).stage(), stage) << static_cast<int>(stage);
  }
}

// A database of an older broker has cancels of runs that were held.
TEST(JobMachine, DropsAHoldForACancelAndForAStart) {
  LiveJob stored;
  stored.state = v1::JOB_STATE_PENDING;
  stored.cancel_requested = true;
  stored.hold = HoldState::kHeld;
  EXPECT_EQ(Job(stored).stage(), JobStage::kPendingCanceling);
  stored.state = v1::JOB_STATE_RUNNING;
  stored.cancel_requested = false;
  EXPECT_EQ(Job(stored).stage(), JobStage::kRunningReleased);
}

}  // namespace
}  // namespace muster::core
