#include "broker/core/timestamps.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RetryTest : public CoreTest {
 protected:
  RetryTest() { session_ = Connect("a"); }

  uint64_t SubmitWith(uint32_t max_runs, absl::Duration backoff = absl::Seconds(10)) {
    v1::JobSpec spec = Spec();
    spec.mutable_retry()->set_max_runs(max_runs);
    spec.mutable_retry()->mutable_backoff()->set_seconds(absl::ToInt64Seconds(backoff));
    return MustSubmit(spec);
  }

  void Fail(uint64_t job, int run = 1) {
    Report(session_, {InfraFailure(++event_, Key(job, run))});
  }

  // Lets the time pass that the job waits for.
  void Await(absl::Duration time) {
    now_ += time;
    Beat(session_);
    Tick();
  }

  SessionId session_ = 0;
  uint64_t event_ = 0;
};

TEST_F(RetryTest, AJobWhoseClusterFailedItWaitsAndRunsAgainUnderItsNumber) {
  const uint64_t id = MustSubmit(Spec());
  Fail(id);
  v1::Job job = Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(ToTime(job.retry_time()), now_ + absl::Seconds(10));
  EXPECT_FALSE(job.has_end_time());
  EXPECT_EQ(job.failure().message(), "node n1 failed");
  EXPECT_EQ(job.cluster(), "a");
  Await(absl::Seconds(10) - absl::Microseconds(1));
  EXPECT_THAT(Assigned(session_), IsEmpty());
  Await(absl::Microseconds(1));
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(id, 2)));
  job = Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_PENDING);
  EXPECT_FALSE(job.has_retry_time());
  EXPECT_FALSE(job.has_failure());
  ASSERT_THAT(job.runs(), SizeIs(2));
  EXPECT_EQ(job.runs(0).state(), v1::RUN_STATE_FAILED);
  Report(session_, {Event(++event_, Key(id, 2), v1::RUN_STATE_LAUNCHING),
                    Event(event_ + 1, Key(id, 2), v1::RUN_STATE_SUCCEEDED)});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(core_->counters().retries, 1u);
}

TEST_F(RetryTest, TheHistoryNamesTheNextRunTheBudgetAndTheReason) {
  const uint64_t id = MustSubmit(Spec());
  Fail(id);
  const auto history = History(id);
  ASSERT_THAT(history, SizeIs(4));
  EXPECT_EQ(history[2].run_state(), v1::RUN_STATE_FAILED);
  EXPECT_EQ(history[2].job_state(), v1::JOB_STATE_QUEUED);
  const v1::Transition& retry = history[3];
  EXPECT_EQ(retry.kind(), v1::TRANSITION_KIND_RETRY);
  EXPECT_EQ(retry.run(), 0u);
  EXPECT_EQ(retry.job_state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(retry.evidence().source(), v1::EVIDENCE_SOURCE_BROKER);
  EXPECT_THAT(retry.evidence().detail(), HasSubstr("run 2 of at most 11 follows"));
  EXPECT_THAT(retry.evidence().detail(), HasSubstr("(INFRA): node n1 failed"));
  EXPECT_THAT(Job(id).state_reason().message(),
              HasSubstr(" UTC for run 2 after an infrastructure failure"));
}

TEST_F(RetryTest, TheWaitDoublesUpToAnHour) {
  const uint64_t id = SubmitWith(20, absl::Minutes(10));
  for (const int minutes : {10, 20, 40, 60, 60}) {
    const int run = Job(id).runs_size();
    Fail(id, run);
    EXPECT_EQ(ToTime(Job(id).retry_time()), now_ + absl::Minutes(minutes)) << run;
    Await(absl::Minutes(minutes));
    EXPECT_EQ(Job(id).runs_size(), run + 1);
  }
}

TEST_F(RetryTest, WithoutAWaitTheNextRunComesAtOnce) {
  const uint64_t id = SubmitWith(2, absl::ZeroDuration());
  Fail(id);
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(id, 2)));
}

TEST_F(RetryTest, AUsedUpBudgetEndsTheJobWithItsLastFailureAndSaysAfterHowManyRuns) {
  const uint64_t id = SubmitWith(2);
  Fail(id);
  Await(absl::Seconds(10));
  Fail(id, 2);
  const v1::Job job = Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.failure().message(), "after 2 runs: node n1 failed");
  EXPECT_EQ(job.runs(1).failure().message(), "node n1 failed");
  EXPECT_FALSE(job.has_retry_time());
  Fail(id, 2);
  EXPECT_EQ(Job(id).failure().message(), "after 2 runs: node n1 failed") << "told once more";
}

TEST_F(RetryTest, ABudgetOfOneRunIsNoRetry) {
  const uint64_t id = SubmitWith(1);
  Fail(id);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Job(id).failure().message(), "node n1 failed");
}

TEST_F(RetryTest, APlainFailureSurfacesAtOnce) {
  const uint64_t id = MustSubmit(Spec());
  agent::v1::RunEvent event = InfraFailure(1, Key(id));
  event.mutable_failure()->set_retriable(false);
  event.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_PROGRAM);
  Report(session_, {event});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_FAILED);
}

TEST_F(RetryTest, ALostRunIsNotFollowedBecauseItMayStillRun) {
  const uint64_t id = MustSubmit(Spec());
  agent::v1::RunEvent event = InfraFailure(1, Key(id));
  event.set_state(v1::RUN_STATE_LOST);
  Report(session_, {event});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_FAILED);
}

TEST_F(RetryTest, APreemptedRunIsFollowedIfTheJobSaysSo) {
  v1::JobSpec spec = Spec();
  const uint64_t plain = MustSubmit(spec);
  spec.mutable_retry()->set_on_preemption(true);
  const uint64_t stubborn = MustSubmit(spec);
  for (const uint64_t id : {plain, stubborn}) {
    agent::v1::RunEvent event = InfraFailure(++event_, Key(id));
    event.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_PREEMPTED);
    Report(session_, {event});
  }
  EXPECT_EQ(Job(plain).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Job(stubborn).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(RetryTest, ACanceledJobIsNotTriedAgain) {
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Cancel({id}).ok());
  Fail(id);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_CANCELED);
}

TEST_F(RetryTest, ACancelWhileItWaitsEndsTheJobNow) {
  const uint64_t id = MustSubmit(Spec());
  agent::v1::RunEvent failure = InfraFailure(1, Key(id));
  SetTimestamp(now_, failure.mutable_end_time());
  Report(session_, {failure});
  now_ += absl::Seconds(3);
  EXPECT_TRUE(Cancel({id}).ok());
  const v1::Job job = Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELED);
  EXPECT_EQ(ToTime(job.end_time()), now_) << "not when its run ended";
  EXPECT_FALSE(job.has_retry_time());
  Await(absl::Minutes(1));
  EXPECT_THAT(Assigned(session_), IsEmpty());
}

TEST_F(RetryTest, TheWaitOutlivesTheBroker) {
  const uint64_t id = MustSubmit(Spec());
  Fail(id);
  Report(session_, {LogsComplete(++event_, Key(id), v1::RUN_STATE_FAILED)});
  Restart();
  session_ = Connect("a");
  EXPECT_THAT(Assigned(session_), IsEmpty());
  EXPECT_EQ(Job(id).cluster(), "a");
  Await(absl::Seconds(9));
  EXPECT_THAT(Assigned(session_), IsEmpty());
  Await(absl::Seconds(1));
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(id, 2)));
}

TEST_F(RetryTest, AClockThatIsSetChangesNothingAboutTheWait) {
  const uint64_t id = MustSubmit(Spec());
  Fail(id);
  now_ -= absl::Hours(1);
  Do(core::Tick{-absl::Hours(1)});
  EXPECT_EQ(ToTime(Job(id).retry_time()), now_ + absl::Seconds(10));
  Restart();
  session_ = Connect("a");
  Await(absl::Seconds(10));
  EXPECT_THAT(Assigned(session_), ElementsAre(Key(id, 2)));
}

TEST_F(RetryTest, TheNextRunMayGoToAnotherCluster) {
  const uint64_t id = MustSubmit(Spec());
  const SessionId other = Connect("b");
  Fail(id);
  Gone(session_);
  now_ += absl::Seconds(10);
  Beat(other);
  Tick();
  EXPECT_THAT(Assigned(other), ElementsAre(Key(id, 2)));
  EXPECT_EQ(Job(id).cluster(), "b");
}

TEST_F(RetryTest, TheLogsOfTheEarlierRunMayComeInAfterTheNextHasBegun) {
  const uint64_t id = MustSubmit(Spec());
  Fail(id);
  Await(absl::Seconds(10));
  Restart();
  agent::v1::AgentHello hello = Hello("a");
  for (const int run : {1, 2}) hello.add_runs()->set_run_key(Key(id, run));
  session_ = Connect(hello);
  EXPECT_THAT(Released(session_), IsEmpty());
  Report(session_, {LogsComplete(++event_, Key(id), v1::RUN_STATE_FAILED)});
  EXPECT_TRUE(Job(id).runs(0).logs_complete());
  EXPECT_EQ(core_->counters().illegal_transitions, 0u);
}

TEST_F(RetryTest, NodesOfFailedRunsAreRememberedForThoseWhoAsk) {
  v1::JobSpec spec = Spec();
  spec.mutable_retry()->set_exclude_failed_nodes(true);
  const uint64_t id = MustSubmit(spec);
  agent::v1::RunEvent failure = InfraFailure(1, Key(id));
  failure.add_nodes("n1");
  failure.add_nodes("n2");
  Report(session_, {failure});
  auto stored = store_.GetSpecs(store::Scope::All(), {id});
  ASSERT_TRUE(stored.ok());
  EXPECT_THAT(stored->front().excluded_nodes, ElementsAre("n1", "n2"));
}

TEST_F(RetryTest, JobsWithoutAPolicyAreOneGroupAndOthersHaveTheirOwn) {
  MustSubmit(Spec());
  MustSubmit(Spec());
  EXPECT_EQ(core_->counters().groups, 1u);
  SubmitWith(3);
  EXPECT_EQ(core_->counters().groups, 2u);
}

TEST_F(RetryTest, AProgramThatFailsRunsAgainIfItsUserSaysSo) {
  v1::JobSpec spec = Spec();
  spec.mutable_retry()->set_max_runs(3);
  spec.mutable_retry()->add_exit_codes(75);
  const uint64_t id = MustSubmit(spec);
  const auto fail = [&](int run, int code) {
    agent::v1::RunEvent event = Event(++event_, Key(id, run), v1::RUN_STATE_FAILED);
    event.mutable_exit()->set_code(code);
    event.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_PROGRAM);
    event.mutable_failure()->set_message("exit code");
    Report(session_, {event});
  };
  fail(1, 75);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_THAT(Job(id).state_reason().message(), HasSubstr("a failure of the program"));
  Await(absl::Seconds(10));
  fail(2, 1);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_FAILED) << "of this code the user has said nothing";
}

}  // namespace
}  // namespace muster::core
