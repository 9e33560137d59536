// Tests what the core does with the usage of runs, which may come after everything else.
#include "broker/core/event_bounds.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

class LateUsageTest : public CoreTest {
 protected:
  LateUsageTest() {
    session_ = Connect("a");
    job_ = MustSubmit(Spec());
    key_ = Key(job_);
  }

  static v1::ResourceUsage UsageOf(int64_t seconds) {
    v1::ResourceUsage usage;
    usage.mutable_user_cpu_time()->set_seconds(seconds);
    usage.mutable_system_cpu_time()->set_nanos(5'000'000);
    usage.set_max_rss_bytes(1 << 20);
    return usage;
  }

  SessionId session_;
  uint64_t job_;
  std::string key_;
};

TEST_F(LateUsageTest, WhatARunUsedMayComeAfterItsEndItsLogsAndARestart) {
  const auto told = [&](uint64_t sequence, int64_t seconds) {
    agent::v1::RunEvent event = LogsComplete(sequence, key_, v1::RUN_STATE_SUCCEEDED);
    *event.mutable_usage() = UsageOf(seconds);
    return event;
  };
  Report(session_,
         {Event(1, key_, v1::RUN_STATE_LAUNCHING), LogsComplete(2, key_, v1::RUN_STATE_SUCCEEDED)});
  EXPECT_FALSE(Job(job_).runs(0).has_usage());
  const v1::Job before = Job(job_);
  Restart();
  session_ = Connect("a");
  Report(session_, {told(3, 7)});
  v1::Job after = Job(job_);
  EXPECT_EQ(after.runs(0).usage().user_cpu_time().seconds(), 7);
  EXPECT_EQ(CountChanges<PutUsage>(), 1);
  after.mutable_runs(0)->clear_usage();
  EXPECT_EQ(after.SerializeAsString(), before.SerializeAsString()) << "nothing else changes";
  Report(session_, {told(4, 7)});
  EXPECT_EQ(core_->counters().illegal_transitions, 0u);
  EXPECT_EQ(History(job_).back().run_state(), v1::RUN_STATE_SUCCEEDED);
}

TEST_F(LateUsageTest, UsageOfARunThatHasNotEndedOrIsUnknownIsRefused) {
  agent::v1::RunEvent unknown = LogsComplete(1, Key(77), v1::RUN_STATE_SUCCEEDED);
  *unknown.mutable_usage() = UsageOf(1);
  Report(session_, {unknown});
  EXPECT_EQ(core_->counters().illegal_transitions, 1u);
  EXPECT_EQ(CountChanges<PutUsage>(), 0);
}

TEST_F(LateUsageTest, UsageAndWhatSlurmChoseComeWithAnyEvent) {
  agent::v1::RunEvent runs = Event(2, key_, v1::RUN_STATE_RUNNING);
  runs.mutable_slurm_allocation()->set_partition("gpu");
  runs.mutable_slurm_allocation()->set_account(std::string(300, 'a'));
  agent::v1::RunEvent ends = Event(3, key_, v1::RUN_STATE_SUCCEEDED);
  *ends.mutable_usage() = UsageOf(3);
  Report(session_, {Event(1, key_, v1::RUN_STATE_LAUNCHING), runs, ends});
  const v1::Run run = Job(job_).runs(0);
  EXPECT_EQ(run.slurm_allocation().partition(), "gpu");
  EXPECT_EQ(run.slurm_allocation().account().size(), kMaxSlurmNameBytes);
  EXPECT_EQ(run.usage().user_cpu_time().seconds(), 3);
}

}  // namespace
}  // namespace muster::core
