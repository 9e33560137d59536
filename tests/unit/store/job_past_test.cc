// Tests what each store tells of a job as it was after an earlier step, one field at a time.
#include "broker/store/job_past.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "broker/core/timestamps.h"
#include "tests/unit/store/store_fixture.h"

namespace muster::store {
namespace {

using ::testing::ElementsAre;

// A job of two runs. Its state after each step, by job_sequence:
//
//   1 submitted            5 run 1 fails         9 run 2 is assigned to the cluster "there"
//   2 held                 6 the retry          10 run 2 runs
//   3 released             7 a label changes    11 a cancel is asked for
//   4 run 1 is assigned    8 the priority, too  12 run 2 has ended with code 0
class JobPastTest : public StoreTest {
 protected:
  static constexpr int kSteps = 12;

  void SetUp() override {
    core::PutCluster here;
    here.name = "here";
    here.kind = v1::CLUSTER_KIND_SLURM;
    Commit({here, Insert(1, {.labels = {{"team", "a"}}, .priority = 5})});
    OfJob(v1::TRANSITION_KIND_SUBMITTED, v1::JOB_STATE_QUEUED);
    OfJob(v1::TRANSITION_KIND_HOLD_REQUESTED, v1::JOB_STATE_QUEUED);
    OfJob(v1::TRANSITION_KIND_RELEASE_REQUESTED, v1::JOB_STATE_QUEUED);
    v1::Run first;
    first.set_number(1);
    first.set_cluster("here");
    OfRun(first, v1::RUN_STATE_ASSIGNED, v1::JOB_STATE_PENDING);
    first.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_INFRA);
    OfRun(first, v1::RUN_STATE_FAILED, v1::JOB_STATE_QUEUED);
    OfJob(v1::TRANSITION_KIND_RETRY, v1::JOB_STATE_QUEUED);
    Edit(5, {{"team", "a"}}, 5, {{"team", "b"}});
    Edit(5, {{"team", "b"}}, 9, {{"team", "b"}});
    v1::Run second;
    second.set_number(2);
    second.set_cluster("there");
    OfRun(second, v1::RUN_STATE_ASSIGNED, v1::JOB_STATE_PENDING);
    core::SetTimestamp(kStart + absl::Seconds(60), second.mutable_start_time());
    OfRun(second, v1::RUN_STATE_RUNNING, v1::JOB_STATE_RUNNING);
    OfJob(v1::TRANSITION_KIND_CANCEL_REQUESTED, v1::JOB_STATE_RUNNING);
    second.mutable_exit()->set_code(0);
    OfRun(second, v1::RUN_STATE_SUCCEEDED, v1::JOB_STATE_SUCCEEDED);
    core::UpdateJob end;
    end.id = 1;
    end.state = v1::JOB_STATE_SUCCEEDED;
    end.job_sequence = kSteps;
    end.cancel_requested = true;
    end.runs = 2;
    end.cluster = "there";
    end.cluster_kind = v1::CLUSTER_KIND_KUBERNETES;
    end.start_time = kStart + absl::Seconds(60);
    end.end_time = kStart + absl::Seconds(90);
    Commit({end});
    Reopen();
  }

  // Returns the results of `field` for the job after each of its steps.
  std::vector<std::string> AtEachStep(const std::function<std::string(const v1::Job&)>& field) {
    const v1::Job now = store().GetJobsAndRuns(Scope::All(), {1})->front();
    std::vector<std::string> values;
    for (uint64_t sequence = 1; sequence <= kSteps; ++sequence) {
      const auto past = ReadPast(store(), Scope::All(), 1, 10 * sequence);
      EXPECT_TRUE(past.ok()) << past.status();
      EXPECT_EQ(past->steps.job_sequence(), sequence);
      values.push_back(field(past->steps.Then(now, past->edited_later, [](const std::string& name) {
        return name == "here" ? v1::CLUSTER_KIND_SLURM : v1::CLUSTER_KIND_UNSPECIFIED;
      })));
    }
    return values;
  }

 private:
  core::Change NextStep(v1::TransitionKind kind, uint32_t run, v1::RunState run_state,
                        v1::JobState state) {
    ++steps_;
    core::Change step = Step(1, 10 * steps_, steps_);
    v1::Transition& transition = std::get<core::AppendTransition>(step).transition;
    transition.set_kind(kind);
    transition.set_run(run);
    transition.set_run_state(run_state);
    transition.set_job_state(state);
    return step;
  }
  void OfJob(v1::TransitionKind kind, v1::JobState state) {
    Commit({NextStep(kind, 0, v1::RUN_STATE_UNSPECIFIED, state)});
  }
  void OfRun(v1::Run& run, v1::RunState run_state, v1::JobState state) {
    run.set_state(run_state);
    Commit({NextStep(v1::TRANSITION_KIND_UNSPECIFIED, run.number(), run_state, state),
            core::PutRun{.job = 1, .run = run}});
  }
  void Edit(int32_t priority_before, const std::map<std::string, std::string>& labels_before,
            int32_t priority, const std::map<std::string, std::string>& labels) {
    core::Change step =
        NextStep(v1::TRANSITION_KIND_UPDATED, 0, v1::RUN_STATE_UNSPECIFIED, v1::JOB_STATE_QUEUED);
    Commit({step, core::EditJob{.id = 1,
                                .job_sequence = steps_,
                                .sequence = 10 * steps_,
                                .priority = priority,
                                .labels = labels,
                                .priority_before = priority_before,
                                .labels_before = labels_before}});
  }

  uint64_t steps_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Stores, JobPastTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(JobPastTest, TheStateIsThatOfTheStep) {
  EXPECT_THAT(AtEachStep([](const v1::Job& job) { return std::to_string(job.state()); }),
              ElementsAre("1", "1", "1", "2", "1", "1", "1", "1", "2", "3", "3", "5"));
}

TEST_P(JobPastTest, TheJobIsHeldFromTheHoldToTheRelease) {
  EXPECT_THAT(AtEachStep([](const v1::Job& job) { return job.held() ? "held" : ""; }),
              ElementsAre("", "held", "", "", "", "", "", "", "", "", "", ""));
}

TEST_P(JobPastTest, TheCancelIsAskedForFromItsStepOn) {
  EXPECT_THAT(AtEachStep([](const v1::Job& job) { return job.cancel_requested() ? "asked" : ""; }),
              ElementsAre("", "", "", "", "", "", "", "", "", "", "asked", "asked"));
}

TEST_P(JobPastTest, TheClusterIsThatOfTheLatestRunThen) {
  EXPECT_THAT(AtEachStep([](const v1::Job& job) { return job.cluster(); }),
              ElementsAre("", "", "", "here", "here", "here", "here", "here", "there", "there",
                          "there", "there"));
}

TEST_P(JobPastTest, TheKindOfTheClusterGoesWithIt) {
  EXPECT_THAT(AtEachStep([](const v1::Job& job) {
                return job.cluster_kind() == v1::CLUSTER_KIND_UNSPECIFIED  ? ""
                       : job.cluster_kind() == v1::CLUSTER_KIND_KUBERNETES ? "kubernetes"
                                                                           : "slurm";
              }),
              ElementsAre("", "", "", "slurm", "slurm", "slurm", "slurm", "slurm", "kubernetes",
                          "kubernetes", "kubernetes", "kubernetes"));
}

TEST_P(JobPastTest, TheStartIsThereFromTheStepAtWhichTheCommandRanFirst) {
  EXPECT_THAT(AtEachStep([](const v1::Job& job) { return job.has_start_time() ? "began" : ""; }),
              ElementsAre("", "", "", "", "", "", "", "", "", "began", "began", "began"));
}

TEST_P(JobPastTest, TheEndIsThereAtTheEndAlone) {
  EXPECT_THAT(AtEachStep([](const v1::Job& job) { return job.has_end_time() ? "ended" : ""; }),
              ElementsAre("", "", "", "", "", "", "", "", "", "", "", "ended"));
}

TEST_P(JobPastTest, TheFailureIsThatOfTheLatestRunThenOnceThatHasEnded) {
  EXPECT_THAT(
      AtEachStep([](const v1::Job& job) { return std::to_string(job.failure().failure_class()); }),
      ElementsAre("0", "0", "0", "0", "2", "2", "2", "2", "0", "0", "0", "0"));
}

TEST_P(JobPastTest, TheExitCodeIsThatOfTheLatestRunThenOnceThatHasEnded) {
  EXPECT_THAT(AtEachStep([](const v1::Job& job) {
                return job.has_exit() ? std::to_string(job.exit().code()) : "";
              }),
              ElementsAre("", "", "", "", "", "", "", "", "", "", "", "0"));
}

TEST_P(JobPastTest, TheLabelsAreThoseBeforeTheyWereChanged) {
  EXPECT_THAT(AtEachStep([](const v1::Job& job) { return job.labels().at("team"); }),
              ElementsAre("a", "a", "a", "a", "a", "a", "b", "b", "b", "b", "b", "b"));
}

TEST_P(JobPastTest, ThePriorityIsThatBeforeItWasChanged) {
  EXPECT_THAT(AtEachStep([](const v1::Job& job) { return std::to_string(job.priority()); }),
              ElementsAre("5", "5", "5", "5", "5", "5", "5", "9", "9", "9", "9", "9"));
}

TEST_P(JobPastTest, AStepThatChangedTheLabelsTellsWhatTheyWereBeforeIt) {
  const auto steps = store().ListTransitions(Scope::All(), {}, 60, 2);
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_EQ(steps->size(), 2u);
  ASSERT_TRUE((*steps)[0].edited.has_value());
  EXPECT_EQ((*steps)[0].edited->labels.at("team"), "a");
  ASSERT_TRUE((*steps)[0].edited_later.has_value());
  EXPECT_EQ((*steps)[0].edited_later->priority, 5);
  EXPECT_FALSE((*steps)[1].edited_later.has_value());
}

TEST_P(JobPastTest, WhoAsksHearsThatTheRunHasMovedOn) {
  EXPECT_TRUE(ReadPast(store(), Scope::All(), 1, 100)->run_moved_on);
  EXPECT_FALSE(ReadPast(store(), Scope::All(), 1, 60)->run_moved_on);
}

}  // namespace
}  // namespace muster::store
