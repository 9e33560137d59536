// Tests the duties of every store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "broker/core/timestamps.h"
#include "contract/errors.h"
#include "contract/run_key.h"
#include "contract/sentences.h"
#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

INSTANTIATE_TEST_SUITE_P(Stores, StoreTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(StoreTest, AnEmptyStoreHasAnInstanceAndStartsCountingAtOne) {
  const core::Restored restored = Restore();
  EXPECT_TRUE(contract::IsInstance(restored.instance)) << restored.instance;
  EXPECT_EQ(restored.broker_epoch, 0u);
  EXPECT_EQ(restored.next_job_id, 1u);
  EXPECT_EQ(restored.next_sequence, 1u);
  EXPECT_THAT(restored.jobs, IsEmpty());
  EXPECT_EQ(*store().LastSequence(), 0u);
}

TEST_P(StoreTest, TheInstanceStaysTheSame) {
  const std::string instance = Restore().instance;
  Reopen();
  EXPECT_EQ(Restore().instance, instance);
}

TEST_P(StoreTest, AJobComesBackAsItWasInserted) {
  Commit({Insert(1, {.name = "digits",
                     .project = "vision",
                     .labels = {{"team", "a"}, {"empty", ""}},
                     .request_id = "r1",
                     .priority = -7}),
          Step(1, 1, 1)});
  Reopen();
  auto job = store().GetJob(Scope::All(), 1);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->id(), 1u);
  EXPECT_EQ(job->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(job->name(), "digits");
  EXPECT_EQ(job->project(), "vision");
  EXPECT_EQ(job->priority(), -7);
  EXPECT_EQ(job->user(), "alice");
  EXPECT_EQ(job->labels_size(), 2);
  EXPECT_EQ(job->labels().at("team"), "a");
  EXPECT_EQ(core::ToTime(job->create_time()), kStart);
  EXPECT_EQ(job->job_sequence(), 1u);
  EXPECT_EQ(job->spec().command().script(), std::string(10, 'x'));
  EXPECT_FALSE(job->has_start_time());
  EXPECT_FALSE(job->has_end_time());

  const core::Restored restored = Restore();
  ASSERT_THAT(restored.jobs, SizeIs(1));
  EXPECT_EQ(restored.jobs[0].priority, -7);
  EXPECT_EQ(restored.jobs[0].requirements, 0u);
  ASSERT_THAT(restored.requirements, SizeIs(1));
  EXPECT_EQ(restored.requirements[0], core::RequirementsOf(job->spec()));
  ASSERT_THAT(restored.requests, SizeIs(1));
  EXPECT_EQ(restored.requests[0].project, "vision");
  EXPECT_EQ(restored.requests[0].request_id, "r1");
  EXPECT_EQ(restored.requests[0].fingerprint, 0xF000000000000001);
  EXPECT_FALSE(restored.requests[0].end_time.has_value());
}

TEST_P(StoreTest, AnUpdateChangesWhatItNames) {
  Commit({Insert(1), Step(1, 1, 1)});
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_RUNNING;
  update.job_sequence = 4;
  update.cancel_requested = true;
  update.runs = 1;
  update.cluster = "here";
  update.start_time = kStart + absl::Seconds(5);
  Commit({update, RunOf(1, 1, v1::RUN_STATE_RUNNING), Step(1, 2, 2)});
  Reopen();
  auto job = store().GetJob(Scope::All(), 1);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(job->job_sequence(), 4u);
  EXPECT_TRUE(job->cancel_requested());
  EXPECT_EQ(job->cluster(), "here");
  EXPECT_EQ(core::ToTime(job->start_time()), kStart + absl::Seconds(5));
  ASSERT_EQ(job->runs_size(), 1);
  EXPECT_EQ(job->runs(0).state(), v1::RUN_STATE_RUNNING);

  const core::Restored restored = Restore();
  ASSERT_THAT(restored.jobs, SizeIs(1));
  EXPECT_EQ(restored.jobs[0].state, v1::JOB_STATE_RUNNING);
  EXPECT_EQ(restored.jobs[0].job_sequence, 4u);
  EXPECT_TRUE(restored.jobs[0].cancel_requested);
  EXPECT_EQ(restored.jobs[0].runs, 1u);
  EXPECT_EQ(restored.jobs[0].start_time, kStart + absl::Seconds(5));
  EXPECT_EQ(restored.next_sequence, 3u);
  ASSERT_THAT(restored.runs, SizeIs(1));
  EXPECT_EQ(restored.runs[0].job, 1u);
}

v1::StateReason Reason(const std::string& words) {
  return contract::MakeReason(v1::STATE_REASON_CODE_OTHER, {.detail = words});
}

TEST_P(StoreTest, AJobShowsTheExitFailureAndReasonOfItsLatestRun) {
  core::Change first = RunOf(1, 1, v1::RUN_STATE_LOST, true);
  core::Change second = RunOf(1, 2, v1::RUN_STATE_PENDING);
  std::get<core::PutRun>(first).run.mutable_exit()->set_code(9);
  *std::get<core::PutRun>(second).run.mutable_state_reason() = Reason("Priority");
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_PENDING;
  update.runs = 2;
  update.cluster = "here";
  Commit({Insert(1), first, second, update});
  auto jobs = store().GetJobs(Scope::All(), {1});
  ASSERT_TRUE(jobs.ok());
  EXPECT_EQ((*jobs)[0].state_reason().message(), "Priority");
  EXPECT_FALSE((*jobs)[0].has_exit());
  EXPECT_EQ((*jobs)[0].runs_size(), 0) << "with their nodes and replicas";
  EXPECT_FALSE((*jobs)[0].has_spec());

  auto failed = RunOf(1, 2, v1::RUN_STATE_FAILED);
  std::get<core::PutRun>(failed).run.mutable_exit()->set_code(3);
  std::get<core::PutRun>(failed).run.mutable_failure()->set_message("exit code 3");
  std::get<core::PutRun>(failed).run.add_replicas()->set_name("pod-0");
  update.state = v1::JOB_STATE_FAILED;
  Commit({failed, update});
  auto whole = store().GetJob(Scope::All(), 1);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->exit().code(), 3);
  EXPECT_EQ(whole->failure().message(), "exit code 3");
  EXPECT_EQ(whole->state_reason().message(), "");
  ASSERT_EQ(whole->runs_size(), 2);
  EXPECT_EQ(whole->runs(1).replicas(0).name(), "pod-0");
}

TEST_P(StoreTest, AJobThatOthersCanceledSaysSo) {
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_CANCELED;
  update.runs = 1;
  update.cluster = "here";
  core::Change run = RunOf(1, 1, v1::RUN_STATE_CANCELED, true);
  Commit({Insert(1), run, update});
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->state_reason().message(),
            "canceled on its cluster, not by Muster");
  *std::get<core::PutRun>(run).run.mutable_state_reason() =
      Reason("deleted on the cluster, not by Muster");
  Commit({run});
  EXPECT_EQ(store().GetJobs(Scope::All(), {1})->front().state_reason().message(),
            "deleted on the cluster, not by Muster");
  update.cancel_requested = true;
  Commit({update});
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->state_reason().message(), "");
}

TEST_P(StoreTest, AJobThatWaitsForItsNextRunComesBackWithItsTime) {
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_QUEUED;
  update.job_sequence = 4;
  update.runs = 1;
  update.cluster = "here";
  update.retry_time = absl::FromUnixSeconds(1'750'000'000);  // 15:06:40 UTC
  core::Change failed = RunOf(1, 1, v1::RUN_STATE_FAILED, true);
  v1::Failure* failure = std::get<core::PutRun>(failed).run.mutable_failure();
  failure->set_failure_class(v1::FAILURE_CLASS_INFRA);
  failure->set_message("node n1 failed");
  failure->set_retriable(true);
  Commit({Insert(1), Step(1, 1, 1), failed, update});
  Reopen();
  auto job = store().GetJob(Scope::All(), 1);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(core::ToTime(job->retry_time()), *update.retry_time);
  const std::string waits =
      "waits until 15:06:40 UTC for run 2 after an infrastructure failure: node n1 failed";
  EXPECT_EQ(job->state_reason().message(), waits);
  EXPECT_EQ(store().GetJobs(Scope::All(), {1})->front().state_reason().message(), waits);
  EXPECT_EQ(job->state_reason().code(), v1::STATE_REASON_CODE_RETRY_DELAY);
  EXPECT_EQ(core::ToTime(job->state_reason().until()), *update.retry_time);
  ASSERT_THAT(Restore().jobs, SizeIs(1));
  EXPECT_EQ(Restore().jobs[0].retry_time, update.retry_time);

  update.retry_time.reset();
  update.cluster = "";
  Commit({update});
  EXPECT_FALSE(store().GetJob(Scope::All(), 1)->has_retry_time());
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->cluster(), "here")
      << "no cluster says nothing about it";
  EXPECT_EQ(Restore().jobs[0].retry_time, std::nullopt);
}

TEST_P(StoreTest, AJobThatHasUsedUpItsRunsSaysSo) {
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_FAILED;
  update.runs = 3;
  update.cluster = "here";
  core::Change failed = RunOf(1, 3, v1::RUN_STATE_FAILED, true);
  std::get<core::PutRun>(failed).run.mutable_failure()->set_message("node n1 failed");
  std::get<core::PutRun>(failed).run.mutable_failure()->set_after_runs(3);
  Commit({Insert(1), failed, update});
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->failure().message(), "after 3 runs: node n1 failed");
  EXPECT_EQ(store().GetJobs(Scope::All(), {1})->front().failure().message(),
            "after 3 runs: node n1 failed")
      << "a list without specs says the same";
  std::get<core::PutRun>(failed).run.mutable_failure()->clear_after_runs();
  Commit({failed});
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->failure().message(), "node n1 failed");
}

TEST_P(StoreTest, AHeldJobSaysByWhomAndComesBackHeld) {
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_QUEUED;
  update.hold = core::HoldState::kHeld;
  core::Change step = Step(1, 2, 2);
  v1::Transition& transition = std::get<core::AppendTransition>(step).transition;
  transition.set_kind(v1::TRANSITION_KIND_HOLD_REQUESTED);
  transition.mutable_evidence()->set_detail("held by bob: not yet");
  Commit({Insert(1), Step(1, 1, 1), step, Step(1, 3, 3), update});
  Reopen();
  EXPECT_TRUE(store().GetJob(Scope::All(), 1)->held());
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->state_reason().message(), "held by bob: not yet");
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->state_reason().code(), v1::STATE_REASON_CODE_HELD);
  EXPECT_EQ(store().GetJobs(Scope::All(), {1})->front().state_reason().message(),
            "held: it starts once it is released");
  EXPECT_EQ(Restore().jobs[0].hold, core::HoldState::kHeld);

  update.hold = core::HoldState::kReleased;
  Commit({update});
  EXPECT_FALSE(store().GetJob(Scope::All(), 1)->held());
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->state_reason().message(), "");
  EXPECT_EQ(Restore().jobs[0].hold, core::HoldState::kReleased);
}

TEST_P(StoreTest, AReleasedJobSaysSoWhileItsClusterHoldsItStill) {
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_PENDING;
  update.runs = 1;
  update.cluster = "here";
  update.hold = core::HoldState::kReleased;
  core::Change run = RunOf(1, 1, v1::RUN_STATE_PENDING);
  v1::StateReason& reason = *std::get<core::PutRun>(run).run.mutable_state_reason();
  reason = contract::MakeReason(v1::STATE_REASON_CODE_HELD);
  Commit({Insert(1), run, update});
  const auto shown = [this] {
    EXPECT_EQ(store().GetJobs(Scope::All(), {1})->front().state_reason().code(),
              store().GetJob(Scope::All(), 1)->state_reason().code());
    return store().GetJob(Scope::All(), 1)->state_reason().code();
  };
  EXPECT_EQ(shown(), v1::STATE_REASON_CODE_RELEASED);
  update.hold = core::HoldState::kNone;
  Commit({update});
  EXPECT_EQ(shown(), v1::STATE_REASON_CODE_HELD) << "others hold it";
  update.hold = core::HoldState::kReleased;
  reason = Reason("no node is free");
  Commit({run, update});
  EXPECT_EQ(shown(), v1::STATE_REASON_CODE_OTHER) << "the cluster has let it go";
}

TEST_P(StoreTest, AJobWhoseClusterHasOnlyBeenAskedToHoldItDoesNotSayThatItIsHeld) {
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_PENDING;
  update.runs = 1;
  update.cluster = "here";
  update.hold = core::HoldState::kHeld;
  core::Change run = RunOf(1, 1, v1::RUN_STATE_LAUNCH_UNKNOWN);
  *std::get<core::PutRun>(run).run.mutable_state_reason() = Reason("no answer");
  Commit({Insert(1), run, update});
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->state_reason().message(), "asked to hold; no answer");
  EXPECT_EQ(store().GetJobs(Scope::All(), {1})->front().state_reason().message(),
            "asked to hold; no answer");
  *std::get<core::PutRun>(run).run.mutable_state_reason() =
      contract::MakeReason(v1::STATE_REASON_CODE_HELD);
  Commit({run});
  EXPECT_EQ(store().GetJobs(Scope::All(), {1})->front().state_reason().message(),
            "held: it starts once it is released");
}

TEST_P(StoreTest, AJobThatRunsShowsThatItsHostIsSilentUntilItAnswers) {
  core::Change run = RunOf(1, 1, v1::RUN_STATE_RUNNING);
  v1::Run& there = std::get<core::PutRun>(run).run;
  *there.mutable_state_reason() = contract::MakeReason(
      v1::STATE_REASON_CODE_HOST_SILENT,
      {.detail = "no route", .subject = "gpu2", .since = absl::FromUnixSeconds(1'750'000'000)});
  Commit({Insert(1), run, Update(1, v1::JOB_STATE_RUNNING, 1, "here")});
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->state_reason().message(),
            there.state_reason().message());
  EXPECT_EQ(store().GetJobs(Scope::All(), {1})->front().state_reason().message(),
            there.state_reason().message());
  *there.mutable_state_reason() = contract::MakeReason(v1::STATE_REASON_CODE_HOST_ANSWERS);
  Commit({run});
  EXPECT_EQ(store().GetJob(Scope::All(), 1)->state_reason().message(), "");
  EXPECT_EQ(store().GetJobs(Scope::All(), {1})->front().state_reason().message(), "");
}

TEST_P(StoreTest, AnEarlierRunWhoseLogsAreNotCompleteIsRestoredBesideTheLatest) {
  Commit({Insert(1), RunOf(1, 1, v1::RUN_STATE_FAILED, false), RunOf(1, 2, v1::RUN_STATE_PENDING),
          Update(1, v1::JOB_STATE_PENDING, 2, "here")});
  Reopen();
  EXPECT_THAT(Restore().runs, SizeIs(2));
  Commit({RunOf(1, 1, v1::RUN_STATE_FAILED, true)});
  ASSERT_THAT(Restore().runs, SizeIs(1));
  EXPECT_EQ(Restore().runs[0].run.number(), 2u);
}

TEST_P(StoreTest, SpecsCarryTheNodesOfFailedRunsForThoseWhoAsk) {
  core::Change insert = Insert(1);
  auto spec = std::make_shared<v1::JobSpec>(*std::get<core::InsertJob>(insert).spec);
  spec->mutable_retry()->set_exclude_failed_nodes(true);
  std::get<core::InsertJob>(insert).spec = spec;
  std::vector<core::Change> changes = {insert, Insert(2)};
  for (const uint64_t job : {1, 2}) {
    for (uint32_t number = 1; number <= 3; ++number) {
      core::Change change = RunOf(job, number, v1::RUN_STATE_FAILED, true);
      v1::Run& run = std::get<core::PutRun>(change).run;
      run.mutable_failure()->set_retriable(number != 2);  // the second one failed by itself
      for (int node = 0; node < 40; ++node) {
        run.add_nodes("run" + std::to_string(number) + "-n" + std::to_string(node));
      }
      changes.push_back(change);
    }
  }
  Commit(changes);
  const auto specs = store().GetSpecs(Scope::All(), {1, 2});
  ASSERT_TRUE(specs.ok());
  const std::vector<std::string>& nodes = (*specs)[0].excluded_nodes;
  ASSERT_THAT(nodes, SizeIs(64));
  EXPECT_EQ(nodes[0], "run3-n0");
  EXPECT_EQ(nodes[40], "run1-n0");
  EXPECT_THAT((*specs)[1].excluded_nodes, IsEmpty());

  core::Change elsewhere = RunOf(1, 4, v1::RUN_STATE_ASSIGNED);
  std::get<core::PutRun>(elsewhere).run.set_cluster("there");
  Commit({elsewhere});
  EXPECT_THAT(store().GetSpecs(Scope::All(), {1})->front().excluded_nodes, IsEmpty())
      << "other nodes there";
}

TEST_P(StoreTest, AJobThatHasEndedIsNotRestoredButItsRequestIsForADay) {
  Commit({Insert(1, {.request_id = "old"}), Insert(2, {.request_id = "new"}), Insert(3)});
  Commit(Finished(1, kStart));
  Commit(Finished(2, kStart + absl::Hours(2)));
  Reopen();
  const core::Restored restored = Restore(kStart + absl::Hours(25));
  ASSERT_THAT(restored.jobs, SizeIs(1));
  EXPECT_EQ(restored.jobs[0].id, 3u);
  ASSERT_THAT(restored.requests, SizeIs(1));
  EXPECT_EQ(restored.requests[0].request_id, "new");
  EXPECT_EQ(restored.requests[0].job, 2u);
  EXPECT_EQ(restored.requests[0].end_time, kStart + absl::Hours(2));
  EXPECT_THAT(restored.runs, IsEmpty());
  EXPECT_EQ(restored.next_job_id, 4u);
}

TEST_P(StoreTest, ARunWhoseLogsAreNotCompleteIsRestored) {
  Commit({Insert(1), RunOf(1, 1, v1::RUN_STATE_SUCCEEDED, false),
          Update(1, v1::JOB_STATE_SUCCEEDED, 2, "here")});
  EXPECT_THAT(Restore().runs, SizeIs(1));
  Commit({RunOf(1, 1, v1::RUN_STATE_SUCCEEDED, true)});
  EXPECT_THAT(Restore().runs, IsEmpty());
}

TEST_P(StoreTest, ARunThatIsNeverHeardOfAgainIsNotRestoredAndItsLogsStayIncomplete) {
  core::Change last = RunOf(1, 1, v1::RUN_STATE_SUCCEEDED, false);
  std::get<core::PutRun>(last).is_last = true;
  Commit({Insert(1), Update(1, v1::JOB_STATE_SUCCEEDED, 2, "here"),
          RunOf(1, 1, v1::RUN_STATE_SUCCEEDED, false), last});
  Reopen();
  EXPECT_THAT(Restore().runs, IsEmpty());
  EXPECT_FALSE(store().GetJob(Scope::All(), 1)->runs(0).logs_complete());
}

TEST_P(StoreTest, RequirementsOfLiveJobsComeBackWithoutDoubles) {
  Commit({Insert(1, {.nodes = 2}), Insert(2), Insert(3, {.name = "other", .nodes = 2}), Insert(4)});
  Commit(Finished(2, kStart));
  Reopen();
  const core::Restored restored = Restore();
  ASSERT_THAT(restored.jobs, SizeIs(3));
  ASSERT_THAT(restored.requirements, SizeIs(2));
  EXPECT_EQ(restored.jobs[0].requirements, restored.jobs[1].requirements);
  EXPECT_EQ(restored.requirements[restored.jobs[1].requirements].nodes, 2u);
  EXPECT_EQ(restored.requirements[restored.jobs[2].requirements].nodes, 1u);
}

TEST_P(StoreTest, LiveJobsComeInTheOrderOfTheirIds) {
  Commit({Insert(1), Insert(2), Insert(3), Update(2, v1::JOB_STATE_RUNNING, 2, "here")});
  std::vector<uint64_t> ids;
  for (const core::LiveJob& job : Restore().jobs) ids.push_back(job.id);
  EXPECT_THAT(ids, ElementsAre(1, 2, 3));
}

TEST_P(StoreTest, ClustersAndTheEpochComeBack) {
  core::PutCluster cluster;
  cluster.name = "here";
  cluster.kind = v1::CLUSTER_KIND_SLURM;
  cluster.inventory.set_identity("id");
  cluster.agent_version = "1";
  cluster.journal_id = "j";
  cluster.acked_event_sequence = 7;
  cluster.agent_epoch = 3;
  cluster.max_active_runs = 100;
  cluster.last_seen = kStart;
  Commit({core::PutBrokerEpoch{5}, cluster, core::AdvanceCluster{"here", 9}});
  Reopen();
  core::Restored restored = Restore();
  EXPECT_EQ(restored.broker_epoch, 5u);
  ASSERT_THAT(restored.clusters, SizeIs(1));
  const core::PutCluster& found = restored.clusters[0];
  EXPECT_EQ(found.name, "here");
  EXPECT_EQ(found.kind, v1::CLUSTER_KIND_SLURM);
  EXPECT_EQ(found.inventory.identity(), "id");
  EXPECT_EQ(found.agent_version, "1");
  EXPECT_EQ(found.journal_id, "j");
  EXPECT_EQ(found.acked_event_sequence, 9u);
  EXPECT_EQ(found.agent_epoch, 3u);
  EXPECT_EQ(found.max_active_runs, 100u);
  EXPECT_EQ(found.last_seen, kStart);
}

TEST_P(StoreTest, UnknownIdsAreNamed) {
  Commit({Insert(1)});
  EXPECT_EQ(store().GetJob(Scope::All(), 2).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store().GetSpecs(Scope::All(), {2}).status().code(), absl::StatusCode::kNotFound);
  const absl::Status status = store().GetJobs(Scope::All(), {1, 77, 78}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(contract::GetErrorInfo(status)->metadata().at("job_id"), "77");
}

TEST_P(StoreTest, JobsAndSpecsComeInTheOrderOfTheQuestion) {
  Commit({Insert(1, {.name = "a"}), Insert(2, {.name = "b"})});
  auto jobs = store().GetJobs(Scope::All(), {2, 1, 2});
  ASSERT_TRUE(jobs.ok());
  EXPECT_EQ((*jobs)[0].name() + (*jobs)[1].name() + (*jobs)[2].name(), "bab");
  auto specs = store().GetSpecs(Scope::All(), {2, 1});
  ASSERT_TRUE(specs.ok());
  EXPECT_EQ((*specs)[0].spec.name(), "b");
  EXPECT_EQ((*specs)[1].user, "alice");
}

TEST_P(StoreTest, TransitionsComeInOrderAfterASequence) {
  Commit({Insert(1), Step(1, 1, 1), Insert(2), Step(2, 2, 1), Step(1, 5, 2), Step(2, 6, 2)});
  auto sequences = [&](std::vector<uint64_t> jobs, uint64_t after, int limit) {
    auto found = store().ListTransitions(Scope::All(), jobs, after, limit);
    EXPECT_TRUE(found.ok()) << found.status();
    std::vector<std::pair<uint64_t, uint64_t>> out;
    for (const JobTransition& item : *found) {
      out.emplace_back(item.job, item.transition.sequence());
    }
    return out;
  };
  using P = std::pair<uint64_t, uint64_t>;
  EXPECT_THAT(sequences({}, 0, 100), ElementsAre(P(1, 1), P(2, 2), P(1, 5), P(2, 6)));
  EXPECT_THAT(sequences({}, 2, 1), ElementsAre(P(1, 5)));
  EXPECT_THAT(sequences({1}, 0, 100), ElementsAre(P(1, 1), P(1, 5)));
  EXPECT_THAT(sequences({2, 1, 2}, 1, 2), ElementsAre(P(2, 2), P(1, 5)));
  EXPECT_THAT(sequences({1}, 5, 100), IsEmpty());
  EXPECT_THAT(sequences({9}, 0, 100), IsEmpty());
  EXPECT_EQ(*store().LastSequence(), 6u);
}

TEST_P(StoreTest, ReadersSeeWholeCommitsWhileTheWriterWrites) {
  Commit({Insert(1), Step(1, 1, 1)});
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) {
      auto job = store().GetJob(Scope::All(), 1);
      ASSERT_TRUE(job.ok()) << job.status();
      // Each commit below writes both.
      if (job->runs_size() > 0) {
        ASSERT_EQ(job->job_sequence(), std::stoull(job->runs(0).state_reason().message()));
      }
    }
  });
  for (uint64_t sequence = 2; sequence < 300; ++sequence) {
    core::Change run = RunOf(1, 1, v1::RUN_STATE_RUNNING);
    *std::get<core::PutRun>(run).run.mutable_state_reason() = Reason(std::to_string(sequence));
    Commit({Update(1, v1::JOB_STATE_RUNNING, sequence, "here"), run});
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace muster::store
