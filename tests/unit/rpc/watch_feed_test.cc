// Tests the fields that a change shows of its job, and which changes a filter takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "broker/app/catch_up.h"
#include "contract/filter.h"
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

  // Makes a watch that has begun.
  std::unique_ptr<WatchReader> Watch(const v1::WatchJobsRequest& request) {
    auto watch = std::make_unique<WatchReader>(broker, request);
    EXPECT_TRUE(watch->NextMessage().has_heartbeat());
    return watch;
  }
  std::string Submit() {
    broker.Submit();
    return agent.ReadAssignments(1)[0].run_key();
  }
  // Reports all at once, as for a job that ends at once.
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

TEST_F(WatchFeedTest, AHoldOfAJobThatNobodyWatchedShowsWhoHeldIt) {
  agent.Finish();
  const uint64_t id = broker.Submit();
  v1::HoldJobsRequest hold;
  hold.add_job_ids(id);
  hold.set_reason("for later");
  v1::HoldJobsResponse held;
  ASSERT_TRUE(broker.jobs().HoldJobs(Call().get(), hold, &held).ok());
  const auto watch = Watch({});
  v1::UpdateJobRequest update;
  update.set_job_id(id);
  (*update.mutable_set_labels())["team"] = "b";
  v1::UpdateJobResponse updated;
  ASSERT_TRUE(broker.jobs().UpdateJob(Call().get(), update, &updated).ok());
  const auto changes = Take(*watch, 1);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_THAT(changes[0].job().state_reason().message(), testing::HasSubstr("for later"));
  EXPECT_TRUE(changes[0].job().state_reason().has_since());
}

TEST_F(WatchFeedTest, WhoCatchesUpGetsWhatChangedWithoutATransitionToo) {
  const std::string run_key = Submit();
  ReportAtOnce(run_key, {v1::RUN_STATE_LAUNCHING, v1::RUN_STATE_PENDING});
  agent.Report(run_key, v1::RUN_STATE_PENDING, false, absl::ZeroDuration(), {"n1"});
  agent.AwaitAck(
      agent.Report(run_key, v1::RUN_STATE_PENDING, false, absl::ZeroDuration(), {"n1", "n2"}));
  const uint64_t other = broker.Submit();
  for (v1::WatchJobsRequest request : {v1::WatchJobsRequest(), WatchFilter("state = PENDING"),
                                       WatchFilter("NOT start_time:*"), WatchJob(1)}) {
    request.mutable_beginning();
    const auto changes = Take(*Watch(request), 5);
    ASSERT_EQ(changes.size(), 5u);
    const bool is_filtered = request.filter() == "state = PENDING";
    // The last of the two, in its place.
    const v1::JobChange& change = changes[is_filtered ? 3 : 4];
    EXPECT_FALSE(change.has_transition());
    EXPECT_GT(change.sequence(), changes[3 - is_filtered].sequence());
    ASSERT_EQ(change.job().runs_size(), 1);
    EXPECT_THAT(change.job().runs(0).nodes(), ElementsAre("n1", "n2"));
  }
  EXPECT_EQ(other, 2u);
}

// The filters here are judged in the live feed, and must be judged likewise in the history.
class CatchUpFilterTest : public WatchFeedTest, public testing::WithParamInterface<const char*> {
 protected:
  CatchUpFilterTest() : filter_(*contract::ParseFilter(GetParam(), absl::Now())) {}

  void ReportFailure(const std::string& run_key, v1::FailureClass failure, int exit_code) {
    agent::v1::ConnectRequest request;
    agent::v1::RunEvent& event = *request.mutable_events()->add_events();
    event.set_sequence(agent.next_sequence++);
    event.set_run_key(run_key);
    event.set_state(v1::RUN_STATE_FAILED);
    event.mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_PROCESS);
    event.mutable_exit()->set_code(exit_code);
    event.mutable_failure()->set_failure_class(failure);
    event.mutable_failure()->set_retriable(failure == v1::FAILURE_CLASS_INFRA);
    agent.Write(request);
    agent.AwaitAck(agent.next_sequence - 1);
  }
  void Update(uint64_t id, int32_t priority, const std::string& team) {
    v1::UpdateJobRequest update;
    update.set_job_id(id);
    update.set_priority(priority);
    (*update.mutable_set_labels())["team"] = team;
    v1::UpdateJobResponse response;
    EXPECT_TRUE(broker.jobs().UpdateJob(Call().get(), update, &response).ok());
  }
  // A job that is held, released, edited, fails by its cluster, waits for its next run and is
  // canceled.
  void LiveThrough(v1::SubmitJobRequest request) {
    request.set_held(true);
    (*request.mutable_spec()->mutable_labels())["team"] = "a";
    const uint64_t id = broker.Submit(request);
    Update(id, 5, "a");
    v1::ReleaseJobsRequest release;
    release.add_job_ids(id);
    v1::ReleaseJobsResponse released;
    EXPECT_TRUE(broker.jobs().ReleaseJobs(Call().get(), release, &released).ok());
    const std::string run_key = agent.ReadAssignments(1)[0].run_key();
    ReportAtOnce(run_key, {v1::RUN_STATE_LAUNCHING, v1::RUN_STATE_PENDING, v1::RUN_STATE_RUNNING});
    Update(id, 5, "b");
    ReportFailure(run_key, v1::FAILURE_CLASS_INFRA, 1);
    Update(id, 0, "a");
    v1::CancelJobsRequest cancel;
    cancel.add_job_ids(id);
    v1::CancelJobsResponse canceled;
    EXPECT_TRUE(broker.jobs().CancelJobs(Call().get(), cancel, &canceled).ok());
  }
  // The sequences of those changes that the filter takes by what the job was before or after them.
  std::vector<uint64_t> Taken(WatchReader& watch, const std::string& last) {
    std::map<uint64_t, v1::Job> before;
    std::vector<uint64_t> taken;
    for (auto change = watch.Next(); change; change = watch.Next()) {
      last_ = change->sequence();
      if (change->job().name() == last) break;
      const auto earlier = before.find(change->job().id());
      const bool matched = earlier != before.end() && filter_.Matches(earlier->second);
      if (matched || filter_.Matches(change->job())) taken.push_back(change->sequence());
      before[change->job().id()] = change->job();
    }
    return taken;
  }
  std::vector<uint64_t> CaughtUp() {
    const auto kind_of = [](const std::string&) { return v1::CLUSTER_KIND_MACHINES; };
    CatchUp catch_up(&broker.store(), kind_of, store::Scope::All(), {}, filter_);
    std::vector<uint64_t> taken;
    for (uint64_t at = 0; at < last_ - 1;) {
      const auto page = catch_up.ReadAfter(at, last_ - 1);
      EXPECT_TRUE(page.ok()) << page.status();
      for (const v1::JobChange& change : page->changes) taken.push_back(change.sequence());
      at = page->read_up_to;
    }
    return taken;
  }

 private:
  const contract::Filter filter_;
  uint64_t last_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Filters, CatchUpFilterTest,
                         testing::Values("state = RUNNING AND NOT exit_code:*", "held = true",
                                         "cluster = gpu", "cluster_kind = machines", "start_time:*",
                                         "end_time:*", "failure_class = INFRA",
                                         "failure_class = PROGRAM", "exit_code = 3", "priority = 5",
                                         "label.team = a", "label.team = b"));

TEST_P(CatchUpFilterTest, WhoCatchesUpGetsTheChangesThatTheLiveFeedGives) {
  const auto watch = Watch({});
  LiveThrough(SubmitTrue());
  const std::string run_key = Submit();
  ReportAtOnce(run_key, {v1::RUN_STATE_LAUNCHING, v1::RUN_STATE_RUNNING});
  ReportFailure(run_key, v1::FAILURE_CLASS_PROGRAM, 3);
  v1::SubmitJobRequest last = SubmitTrue();
  last.mutable_spec()->set_name("last");
  broker.Submit(last);
  const std::vector<uint64_t> live = Taken(*watch, "last");
  EXPECT_FALSE(live.empty()) << "nothing was tested";
  EXPECT_EQ(CaughtUp(), live);
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
