// Tests the simulation, which tests the cores: it is deterministic, its faults strike, and bugs put
// in on purpose are found.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "fmt/format.h"
#include "tests/sim/auditor.h"
#include "tests/sim/simulation.h"

namespace muster::sim {
namespace {

TEST(Simulation, IsTheSameForTheSameSeed) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Verdict first = Simulate(seed, Mutation::kNone, /*wants_history=*/true);
    const Verdict second = Simulate(seed, Mutation::kNone, /*wants_history=*/true);
    EXPECT_EQ(first.history, second.history);
    EXPECT_GT(first.history.size(), 50u);
  }
}

TEST(Simulation, IsAnotherForAnotherSeed) {
  EXPECT_NE(Simulate(1, Mutation::kNone, true).history, Simulate(2, Mutation::kNone, true).history);
}

TEST(Simulation, HasEveryFaultInSomeSeed) {
  std::map<std::string_view, uint64_t> counts;
  constexpr uint64_t kSeeds = 400;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const auto& [what, count] : Simulate(seed, Mutation::kNone, false).counts) {
      counts[what] += count;
    }
  }
  for (const char* what : {"broker dies before a commit",
                           "broker dies in a commit that does not take place",
                           "broker dies after a commit",
                           "broker dies between effects",
                           "broker dies at any time",
                           "agent dies before a commit",
                           "agent dies after a commit",
                           "agent dies between effects",
                           "agent dies at any time",
                           "journal lost",
                           "canceled while its agent was down",
                           "clock jump",
                           "connection cut",
                           "half-open connection",
                           "events delivered twice",
                           "report over an old connection",
                           "launch deferred",
                           "launch unclear",
                           "launch unclear, yet accepted later",
                           "look-up finds the run",
                           "look-up finds a run that the scheduler forgot",
                           "look-up finds nothing",
                           "look-up not answered",
                           "fence proved",
                           "fence not proved yet",
                           "late launch of a fenced run",
                           "scheduler unreachable",
                           "requeue",
                           "suspension",
                           "foreign cancel",
                           "cancel that looks like a failure",
                           "run reported as lost",
                           "another run after a failure",
                           "hold came too late",
                           "run held on its cluster",
                           "cluster cordoned",
                           "a run came back",
                           "job preempted",
                           "submit repeated after its answer",
                           "agent isolated",
                           "lease not renewed",
                           "launch deferred for a lease",
                           "run not started without a lease",
                           "run stopped at the end of its lease",
                           "job failed over",
                           "run that was given up starts all the same",
                           "job that depends on others",
                           "job that failed with another"}) {
    EXPECT_GT(counts[what], 0u) << what;
  }
}

class SeededBug : public testing::TestWithParam<MutationName> {};

TEST_P(SeededBug, IsFound) {
  constexpr uint64_t kSeeds = 1000;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Verdict verdict = Simulate(seed, GetParam().mutation, false);
    if (verdict.ok()) continue;
    const Verdict again = Simulate(seed, GetParam().mutation, true);
    EXPECT_EQ(again.violation, verdict.violation) << "a failing seed reproduces";
    EXPECT_FALSE(again.history.empty());
    return;
  }
  FAIL() << "no seed of " << kSeeds << " shows it";
}

INSTANTIATE_TEST_SUITE_P(All, SeededBug, testing::ValuesIn(kMutations), [](const auto& info) {
  std::string name;
  for (char c : info.param.name) name += c == '-' ? '_' : c;
  return name;
});

// ---- what no mutation of the harness brings about, told to the auditor directly

class AuditorTest : public testing::Test {
 protected:
  AuditorTest() {
    auto spec = std::make_shared<v1::JobSpec>();
    (*spec->mutable_labels())["operation"] = "it";
    spec->mutable_retry()->set_max_runs(2);
    core::InsertJob insert;
    insert.id = 1;
    insert.spec = std::move(spec);
    Commit(insert);
    Step(0, v1::RUN_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED);
  }

  void Commit(core::Change change) { auditor_.Committed({std::move(change)}); }

  static google::protobuf::Timestamp Seconds(int64_t seconds) {
    google::protobuf::Timestamp time;
    time.set_seconds(seconds);
    return time;
  }

  void Step(uint32_t run, v1::RunState run_state, v1::JobState job_state,
            v1::TransitionKind kind = v1::TRANSITION_KIND_UNSPECIFIED, int64_t time = 0) {
    core::AppendTransition step;
    step.job = 1;
    step.transition.set_job_sequence(++job_sequence_);
    step.transition.set_sequence(++sequence_);
    step.transition.set_run(run);
    step.transition.set_run_state(run_state);
    step.transition.set_job_state(job_state);
    step.transition.set_kind(kind);
    *step.transition.mutable_time() = Seconds(time);
    step.transition.mutable_evidence()->set_source(v1::EVIDENCE_SOURCE_AGENT);
    Commit(step);
  }

  void Put(v1::RunState state, int code = 0, uint32_t number = 1) {
    core::PutRun put;
    put.job = 1;
    put.run.set_number(number);
    put.run.set_run_key(fmt::format("s1m0-1-{}", number));
    put.run.set_state(state);
    put.run.mutable_exit()->set_code(code);
    Commit(put);
  }

  void Assign() {
    Step(1, v1::RUN_STATE_ASSIGNED, v1::JOB_STATE_PENDING);
    Put(v1::RUN_STATE_ASSIGNED);
  }

  // Takes a run of this number from its assignment to its end, after which the job is in this
  // state.
  void FailRun(uint32_t number, TrueEnd::Fault fault, v1::JobState job_state, int64_t time = 0) {
    const std::string key = fmt::format("s1m0-1-{}", number);
    Step(number, v1::RUN_STATE_ASSIGNED, v1::JOB_STATE_PENDING, v1::TRANSITION_KIND_UNSPECIFIED,
         time);
    Put(v1::RUN_STATE_ASSIGNED, 0, number);
    auditor_.Submitted(key);
    auditor_.Started(key, 0);
    auditor_.Ended(key, {TrueEnd::Kind::kExit, 3, fault});
    Step(number, v1::RUN_STATE_LAUNCHING, v1::JOB_STATE_PENDING);
    Step(number, v1::RUN_STATE_FAILED, job_state);
    Put(v1::RUN_STATE_FAILED, 3, number);
  }

  void Retry(int64_t time) {
    Step(0, v1::RUN_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED, v1::TRANSITION_KIND_RETRY, time);
  }

  // Inserts job 2, which needs the success of job 1.
  void InsertDependent() {
    v1::JobSpec spec;
    (*spec.mutable_labels())["operation"] = "the next";
    spec.add_depends_on()->set_job_id(1);
    spec.mutable_depends_on(0)->set_outcome(v1::JOB_OUTCOME_SUCCEEDED);
    core::InsertJob insert;
    insert.id = 2;
    insert.spec = std::make_shared<const v1::JobSpec>(spec);
    Commit(std::move(insert));
  }

  bool Found(std::string_view invariant) const {
    return auditor_.violation().starts_with(invariant);
  }

  World world_{1, Mutation::kNone, false};
  Auditor auditor_{&world_};
  uint64_t job_sequence_ = 0;
  uint64_t sequence_ = 0;
};

TEST_F(AuditorTest, FindsNothingInALifeAsItShouldBe) {
  Assign();
  auditor_.Submitted("s1m0-1-1");
  auditor_.Started("s1m0-1-1", 0);
  auditor_.Ended("s1m0-1-1", {TrueEnd::Kind::kExit, 3});
  Step(1, v1::RUN_STATE_LAUNCHING, v1::JOB_STATE_PENDING);
  Step(1, v1::RUN_STATE_FAILED, v1::JOB_STATE_FAILED);
  Put(v1::RUN_STATE_FAILED, 3);
  EXPECT_EQ(auditor_.violation(), "");
}

TEST_F(AuditorTest, FindsNothingInARetryAsItShouldBe) {
  FailRun(1, TrueEnd::Fault::kCluster, v1::JOB_STATE_QUEUED);
  Retry(100);
  FailRun(2, TrueEnd::Fault::kCluster, v1::JOB_STATE_FAILED, 110);
  EXPECT_EQ(auditor_.violation(), "");
}

TEST_F(AuditorTest, FindsARunBeforeItsTime) {
  FailRun(1, TrueEnd::Fault::kCluster, v1::JOB_STATE_QUEUED);
  Retry(100);
  Step(2, v1::RUN_STATE_ASSIGNED, v1::JOB_STATE_PENDING, v1::TRANSITION_KIND_UNSPECIFIED, 109);
  EXPECT_TRUE(Found("retry")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAWaitOfAnotherLength) {
  FailRun(1, TrueEnd::Fault::kCluster, v1::JOB_STATE_QUEUED);
  Retry(100);
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_QUEUED;
  update.retry_time = absl::FromUnixSeconds(110);
  Commit(update);
  EXPECT_EQ(auditor_.violation(), "");
  update.retry_time = absl::FromUnixSeconds(111);
  Commit(update);
  EXPECT_TRUE(Found("retry")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsARunBeyondTheBudget) {
  FailRun(1, TrueEnd::Fault::kCluster, v1::JOB_STATE_QUEUED);
  Retry(100);
  FailRun(2, TrueEnd::Fault::kCluster, v1::JOB_STATE_QUEUED, 110);
  EXPECT_TRUE(Found("retry")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAPlainFailureThatIsTriedAgain) {
  FailRun(1, TrueEnd::Fault::kProgram, v1::JOB_STATE_QUEUED);
  EXPECT_TRUE(Found("retry")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAFailureOfTheClustersThatEndsTheJob) {
  FailRun(1, TrueEnd::Fault::kCluster, v1::JOB_STATE_FAILED);
  EXPECT_TRUE(Found("retry")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsACanceledJobThatEndsAsFailed) {
  Assign();
  Step(0, v1::RUN_STATE_UNSPECIFIED, v1::JOB_STATE_PENDING, v1::TRANSITION_KIND_CANCEL_REQUESTED);
  EXPECT_EQ(auditor_.violation(), "");
  Step(1, v1::RUN_STATE_FAILED, v1::JOB_STATE_FAILED);
  EXPECT_TRUE(Found("legal")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsASecondRunBesideALiveOne) {
  Assign();
  Step(2, v1::RUN_STATE_ASSIGNED, v1::JOB_STATE_PENDING);
  EXPECT_TRUE(Found("conservation")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsARunOfAHeldJob) {
  Step(0, v1::RUN_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED, v1::TRANSITION_KIND_HOLD_REQUESTED);
  Assign();
  EXPECT_TRUE(Found("hold")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAnAcknowledgedHoldThatIsNotCommitted) {
  auditor_.HoldAcknowledged(1);
  EXPECT_TRUE(Found("hold")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAnIllegalStep) {
  Assign();
  Step(1, v1::RUN_STATE_SUCCEEDED, v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(Found("legal")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAJobStateThatDoesNotFollowFromItsRun) {
  Assign();
  Step(1, v1::RUN_STATE_LAUNCHING, v1::JOB_STATE_RUNNING);
  EXPECT_TRUE(Found("legal")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAStepAfterTheEnd) {
  Step(0, v1::RUN_STATE_UNSPECIFIED, v1::JOB_STATE_CANCELED);
  EXPECT_EQ(auditor_.violation(), "");
  Step(0, v1::RUN_STATE_UNSPECIFIED, v1::JOB_STATE_CANCELED);
  EXPECT_TRUE(Found("legal")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAJobThatEndsWhileItsRunLives) {
  Assign();
  Step(0, v1::RUN_STATE_UNSPECIFIED, v1::JOB_STATE_CANCELED);
  EXPECT_TRUE(Found("conservation")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAGapInAHistory) {
  ++job_sequence_;
  Assign();
  EXPECT_TRUE(Found("history")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsARowThatDiffersFromItsTransitions) {
  Assign();
  Put(v1::RUN_STATE_RUNNING);
  EXPECT_TRUE(Found("replay")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsASecondStart) {
  Assign();
  auditor_.Submitted("s1m0-1-1");
  auditor_.Started("s1m0-1-1", 0);
  auditor_.Started("s1m0-1-1", 0);
  EXPECT_TRUE(Found("single start")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsALaunchOfARunThatIsNotCommitted) {
  auditor_.Submitted("s1m0-1-1");
  EXPECT_TRUE(Found("single start")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAnEndThatIsMadeUp) {
  Assign();
  auditor_.Submitted("s1m0-1-1");
  auditor_.Started("s1m0-1-1", 0);
  Step(1, v1::RUN_STATE_LOST, v1::JOB_STATE_FAILED);
  Put(v1::RUN_STATE_LOST);
  EXPECT_TRUE(Found("exit")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAnEpochThatDoesNotRise) {
  Commit(core::PutBrokerEpoch{2});
  EXPECT_EQ(auditor_.violation(), "");
  Commit(core::PutBrokerEpoch{2});
  EXPECT_TRUE(Found("stale")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsWhatAnOldConnectionChanges) {
  auditor_.HandledStale("a report", 0);
  EXPECT_EQ(auditor_.violation(), "");
  auditor_.HandledStale("a report", 1);
  EXPECT_TRUE(Found("stale")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsARunBeforeTheEndOfAJobThatItNeeds) {
  InsertDependent();
  Assign();
  EXPECT_EQ(auditor_.violation(), "");
  core::AppendTransition step;
  step.job = 2;
  step.transition.set_job_sequence(1);
  step.transition.set_sequence(++sequence_);
  step.transition.set_run(1);
  step.transition.set_run_state(v1::RUN_STATE_ASSIGNED);
  step.transition.set_job_state(v1::JOB_STATE_PENDING);
  Commit(step);
  EXPECT_TRUE(Found("dependency")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAJobThatWaitsForOneThatHasFailed) {
  InsertDependent();
  FailRun(1, TrueEnd::Fault::kProgram, v1::JOB_STATE_FAILED);
  EXPECT_TRUE(Found("dependency")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAWatchThatRepeats) {
  v1::Transition transition;
  transition.set_sequence(5);
  auditor_.Watched(1, transition);
  auditor_.Watched(1, transition);
  EXPECT_TRUE(Found("history")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsAnAcknowledgedSubmitThatIsNotCommitted) {
  auditor_.SubmitAcknowledged("other", 2);
  EXPECT_TRUE(Found("durable")) << auditor_.violation();
}

TEST_F(AuditorTest, FindsARunThatIsLetGoWhileItLives) {
  auditor_.Forgotten("s1m0-1-1", true);
  EXPECT_TRUE(Found("conservation")) << auditor_.violation();
}

}  // namespace
}  // namespace muster::sim
