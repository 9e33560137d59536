// Tests the fields that a change shows of its job, and which changes a filter takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/unit/rpc/harness.h"
#include "tests/unit/rpc/watch_reader.h"

namespace muster::broker {
namespace {

using ::testing::ElementsAre;

v1::WatchJobsRequest WatchFilter(const std::string& filter) {
  v1::WatchJobsRequest request;
  request.set_filter(filter);
  return request;
}

// A broker, an agent, and a job that it has.
class WatchFeedTest : public testing::Test {
 protected:
  explicit WatchFeedTest(std::function<void(BrokerOptions&)> adjust = nullptr)
      : broker(std::move(adjust)) {
    EXPECT_TRUE(agent.Connect());
  }

  // A watch that has begun.
  std::unique_ptr<WatchReader> Watch(const v1::WatchJobsRequest& request) {
    auto watch = std::make_unique<WatchReader>(broker, request);
    EXPECT_TRUE(watch->NextMessage().has_heartbeat());
    return watch;
  }
  std::string Submit() {
    broker.Submit();
    return agent.ReadAssignments(1)[0].run_key();
  }
  // All at once, as of a job that ends at once.
  void ReportAtOnce(const std::string& run_key, const std::vector<v1::RunState>& states) {
    agent::v1::ConnectRequest request;
    for (const v1::RunState state : states) {
      agent::v1::RunEvent& event = *request.mutable_events()->add_events();
      event.set_sequence(agent.next_sequence++);
      event.set_run_key(run_key);
      event.set_state(state);
      event.mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_PROCESS);
    }
    agent.Write(request);
    agent.AwaitAck(agent.next_sequence - 1);
  }
  void EndAtOnce(const std::string& run_key) {
    ReportAtOnce(run_key, {v1::RUN_STATE_LAUNCHING, v1::RUN_STATE_PENDING, v1::RUN_STATE_RUNNING,
                           v1::RUN_STATE_SUCCEEDED});
  }
  static std::vector<v1::JobState> JobStates(const std::vector<v1::JobChange>& changes) {
    std::vector<v1::JobState> states;
    for (const v1::JobChange& change : changes) states.push_back(change.job().state());
    return states;
  }
  static std::vector<v1::JobChange> Take(WatchReader& watch, int count) {
    std::vector<v1::JobChange> changes;
    for (int i = 0; i < count; ++i) {
      auto change = watch.Next();
      EXPECT_TRUE(change.has_value());
      if (!change) break;
      changes.push_back(*std::move(change));
    }
    return changes;
  }

  TestBroker broker;
  FakeAgent agent{broker};
};

TEST_F(WatchFeedTest, AChangeShowsTheJobAsItWasRightAfterTheStep) {
  const auto watch = Watch({});
  const std::string run_key = Submit();
  EndAtOnce(run_key);
  const auto changes = Take(*watch, 6);
  EXPECT_THAT(JobStates(changes),
              ElementsAre(v1::JOB_STATE_QUEUED, v1::JOB_STATE_PENDING, v1::JOB_STATE_PENDING,
                          v1::JOB_STATE_PENDING, v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED));
  std::vector<v1::RunState> runs;
  for (const v1::JobChange& change : changes) {
    EXPECT_EQ(change.sequence(), change.transition().sequence());
    EXPECT_EQ(change.job().state(), change.transition().job_state());
    EXPECT_EQ(change.job().job_sequence(), change.transition().job_sequence());
    EXPECT_EQ(change.job().name(), "true");
    EXPECT_FALSE(change.job().has_spec());
    if (change.job().runs_size() == 1) runs.push_back(change.job().runs(0).state());
  }
  EXPECT_THAT(runs,
              ElementsAre(v1::RUN_STATE_ASSIGNED, v1::RUN_STATE_LAUNCHING, v1::RUN_STATE_PENDING,
                          v1::RUN_STATE_RUNNING, v1::RUN_STATE_SUCCEEDED));
  EXPECT_EQ(changes[1].job().cluster(), "gpu");
  EXPECT_FALSE(changes[3].job().has_start_time());
  EXPECT_TRUE(changes[4].job().has_start_time());
  EXPECT_FALSE(changes[4].job().has_end_time());
  EXPECT_TRUE(changes[5].job().has_end_time());
}

TEST_F(WatchFeedTest, AFilterIsJudgedAtTheStepAndTellsOfTheStepByWhichAJobCeasesToMatch) {
  const auto watch = Watch(WatchFilter("state = RUNNING"));
  for (int i = 0; i < 3; ++i) {
    EndAtOnce(Submit());
    EXPECT_THAT(JobStates(Take(*watch, 2)),
                ElementsAre(v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED));
  }
}

TEST_F(WatchFeedTest, WhoCatchesUpGetsEachStepOfTheFilterToo) {
  for (int i = 0; i < 3; ++i) EndAtOnce(Submit());
  v1::WatchJobsRequest request = WatchFilter("state = RUNNING");
  request.mutable_beginning();
  const auto watch = Watch(request);
  std::vector<v1::JobState> states;
  uint64_t running = 0;
  for (const v1::JobChange& change : Take(*watch, 6)) {
    states.push_back(change.transition().job_state());
    if (change.transition().job_state() == v1::JOB_STATE_RUNNING) running = change.sequence();
  }
  EXPECT_THAT(states,
              ElementsAre(v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_RUNNING,
                          v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_RUNNING, v1::JOB_STATE_SUCCEEDED));
  // Begins in the middle of a job's history.
  request.set_after(running);
  EXPECT_THAT(Watch(request)->NextStates(1), ElementsAre(v1::JOB_STATE_SUCCEEDED));
}

TEST_F(WatchFeedTest, AJobThatMatchedBeforeAnybodyWatchedCeasesToMatch) {
  const std::string run_key = Submit();
  ReportAtOnce(run_key, {v1::RUN_STATE_LAUNCHING, v1::RUN_STATE_RUNNING});
  const auto watch = Watch(WatchFilter("state = RUNNING"));
  ReportAtOnce(run_key, {v1::RUN_STATE_SUCCEEDED});
  EXPECT_THAT(watch->NextStates(1), ElementsAre(v1::JOB_STATE_SUCCEEDED));
}

TEST_F(WatchFeedTest, AJobThatNobodyWatchedCeasesToMatchByALabel) {
  v1::SubmitJobRequest request = SubmitTrue();
  (*request.mutable_spec()->mutable_labels())["team"] = "a";
  const uint64_t id = broker.Submit(request);
  agent.ReadAssignments(1);
  const auto watch = Watch(WatchFilter("label.team = a"));
  v1::UpdateJobRequest update;
  update.set_job_id(id);
  (*update.mutable_set_labels())["team"] = "b";
  v1::UpdateJobResponse response;
  ASSERT_TRUE(broker.jobs().UpdateJob(Call().get(), update, &response).ok());
  const auto changes = Take(*watch, 1);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].transition().kind(), v1::TRANSITION_KIND_UPDATED);
  EXPECT_EQ(changes[0].job().labels().at("team"), "b");
}

TEST_F(WatchFeedTest, WhatChangesWithoutATransitionIsAChange) {
  const std::string run_key = Submit();
  ReportAtOnce(run_key, {v1::RUN_STATE_LAUNCHING, v1::RUN_STATE_PENDING});
  const auto watch = Watch({});
  agent.Report(run_key, v1::RUN_STATE_PENDING, false, absl::ZeroDuration(), {"n1", "n2"});
  agent.Report(run_key, v1::RUN_STATE_PENDING, false, absl::ZeroDuration(), {"n1", "n2"});
  agent.AwaitAck(agent.Report(run_key, v1::RUN_STATE_RUNNING));
  const auto changes = Take(*watch, 2);
  EXPECT_FALSE(changes[0].has_transition());
  ASSERT_EQ(changes[0].job().runs_size(), 1);
  EXPECT_THAT(changes[0].job().runs(0).nodes(), ElementsAre("n1", "n2"));
  EXPECT_EQ(changes[1].job().state(), v1::JOB_STATE_RUNNING)
      << "what was seen once more is not a change";
  EXPECT_GT(changes[1].sequence(), changes[0].sequence());
}

TEST_F(WatchFeedTest, AHoldShowsWhoHeldTheJob) {
  const auto watch = Watch({});
  agent.Finish();
  const uint64_t id = broker.Submit();
  v1::HoldJobsRequest hold;
  hold.add_job_ids(id);
  hold.set_reason("for later");
  v1::HoldJobsResponse response;
  ASSERT_TRUE(broker.jobs().HoldJobs(Call().get(), hold, &response).ok());
  const auto changes = Take(*watch, 2);
  EXPECT_FALSE(changes[0].job().held());
  EXPECT_TRUE(changes[1].job().held());
  EXPECT_THAT(changes[1].job().state_reason().message(), testing::HasSubstr("for later"));
}

class ShortTailTest : public WatchFeedTest {
 protected:
  ShortTailTest()
      : WatchFeedTest([](BrokerOptions& options) { options.engine.changes.max_entries = 7; }) {}
};

TEST_F(ShortTailTest, WhoFallsBehindTheTailCatchesUpAndRejoinsWithoutGapOrRepeat) {
  const auto watch = Watch({});
  constexpr int kJobs = 2000;
  v1::SubmitJobsRequest batch;
  for (int i = 0; i < kJobs / 4; ++i) *batch.add_requests() = SubmitTrue();
  for (int i = 0; i < 4; ++i) {
    v1::SubmitJobsResponse responses;
    ASSERT_TRUE(broker.jobs().SubmitJobs(Call().get(), batch, &responses).ok());
  }
  std::set<uint64_t> submitted;
  uint64_t last = 0;
  while (submitted.size() < kJobs) {
    const auto change = watch->Next();
    ASSERT_TRUE(change.has_value());
    EXPECT_GT(change->sequence(), last);
    last = change->sequence();
    if (change->transition().kind() != v1::TRANSITION_KIND_SUBMITTED) continue;
    EXPECT_TRUE(submitted.insert(change->job().id()).second);
  }
}

}  // namespace
}  // namespace muster::broker
