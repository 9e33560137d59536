// Reasons of a job's state, and holds, against a fake broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "clients/cli/views.h"
#include "contract/sentences.h"
#include "tests/unit/clients/command_fixture.h"

namespace muster::cli {
namespace {

using client::JobInState;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CommandTest, WhySaysSinceWhenAJobThatNoClusterHasWaits) {
  job_ = JobInState(42, v1::JOB_STATE_QUEUED);
  job_.clear_runs();
  job_.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_CLUSTER_FULL);
  job_.mutable_state_reason()->mutable_since()->set_seconds(1772366400);
  EXPECT_THAT(Run({"why", "42"}).out, HasSubstr("Since       2026-03-01T12:00:00Z ("));
}

TEST_F(CommandTest, WhySaysSinceWhenAJobIsQueuedWhereNobodyKnowsSinceWhenItFitsNowhere) {
  job_ = JobInState(42, v1::JOB_STATE_QUEUED);
  job_.clear_runs();
  job_.mutable_create_time()->set_seconds(1'772'366'400);
  job_.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_DOES_NOT_FIT);
  std::string out = Run({"why", "42"}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("Queued      2026-03-01T12:00:00Z ("), Not(HasSubstr("Since"))));
  // Since its last run, if it had one.
  job_.add_runs()->mutable_end_time()->set_seconds(1'772'366'460);
  EXPECT_THAT(Run({"why", "42"}).out, HasSubstr("Queued      2026-03-01T12:01:00Z ("));
  job_.mutable_state_reason()->mutable_since()->set_seconds(1'772'366'470);
  EXPECT_THAT(Run({"why", "42"}).out, Not(HasSubstr("Queued ")));
}

TEST_F(CommandTest, WhySaysTheReasonSinceWhenAndWhenItWouldStart) {
  job_ = JobInState(42, v1::JOB_STATE_PENDING);
  *job_.mutable_state_reason() = client::SlurmSays("Resources");
  job_.set_held(true);
  v1::Run& run = *job_.mutable_runs(0);
  *run.mutable_state_reason() = job_.state_reason();
  run.mutable_state_reason()->mutable_since()->set_seconds(1'772'366'400);
  run.mutable_estimated_start_time()->set_seconds(1'772'366'460);
  run.set_restarts(2);
  const Outcome outcome = Run({"why", "42"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Job 42  train  PENDING\n"));
  EXPECT_THAT(outcome.out,
              HasSubstr("Because     waiting for free nodes, first in line (Resources)\n"));
  EXPECT_THAT(outcome.out, HasSubstr("Since       2026-03-01T12:00:00Z ("));
  EXPECT_THAT(outcome.out, HasSubstr("Would start 2026-03-01T12:01:00Z ("));
  EXPECT_THAT(outcome.out, HasSubstr("Restarts    2 by the scheduler itself\n"));
}

TEST_F(CommandTest, WhySaysThatAJobIsKeptBackOnlyOnceItIs) {
  const std::string kept = "Held        to start it: muster release 42\n";
  const std::string asked = "Held        asked to hold; if too late: muster events 42\n";
  job_ = JobInState(42, v1::JOB_STATE_PENDING);
  job_.set_held(true);
  *job_.mutable_state_reason() =
      client::Because("held by ada: not yet", v1::STATE_REASON_CODE_HELD);
  v1::Run& run = *job_.mutable_runs(0);
  *run.mutable_state_reason() =
      client::Because("Unschedulable: no node; the hold waits: it was let go in that moment");
  const std::string open = Run({"why", "42"}).out;
  EXPECT_THAT(open, AllOf(HasSubstr(asked), Not(HasSubstr(kept)), Not(HasSubstr("Scheduler"))));
  EXPECT_THAT(open,
              HasSubstr("Because     Unschedulable: no node; the hold waits: it was let go "));
  for (const v1::StateReason& reason :
       {contract::MakeReason(v1::STATE_REASON_CODE_HELD), client::SlurmSays("JobHeldUser")}) {
    *run.mutable_state_reason() = reason;
    EXPECT_THAT(Run({"why", "42"}).out,
                AllOf(HasSubstr(kept), Not(HasSubstr("asked to hold")), HasSubstr("held by ada")));
  }
  *run.mutable_state_reason() = client::Because("node n1 was lost");
  job_.set_state(v1::JOB_STATE_QUEUED);
  EXPECT_THAT(Run({"why", "42"}).out, HasSubstr(kept)) << "no cluster has it";
}

TEST_F(CommandTest, WhoHeldReleasedOrCanceledAJobIsSaidWithTheReasonGiven) {
  v1::WatchJobsResponse step = client::Step(42, 1, v1::JOB_STATE_PENDING);
  broker_.watch_jobs = [&](const auto&, const auto& write) {
    return write(step), absl::OkStatus();
  };
  const auto why = [&](v1::TransitionKind kind, const std::string& detail) {
    step.mutable_changes(0)->mutable_transition()->set_kind(kind);
    step.mutable_changes(0)->mutable_transition()->mutable_evidence()->set_detail(detail);
    return Run({"why", "42"}).out;
  };
  job_ = JobInState(42, v1::JOB_STATE_PENDING);
  *job_.mutable_state_reason() = client::SlurmSays("JobHeldAdmin");
  *job_.mutable_runs(0)->mutable_state_reason() = job_.state_reason();
  EXPECT_THAT(why(v1::TRANSITION_KIND_UNSPECIFIED, ""),
              HasSubstr("administrator (JobHeldAdmin)\n"));
  *job_.mutable_state_reason() = contract::MakeReason(v1::STATE_REASON_CODE_RELEASED);
  EXPECT_THAT(why(v1::TRANSITION_KIND_RELEASE_REQUESTED, "released by ada"),
              AllOf(HasSubstr("Because     released; its cluster, as last seen, still holds it\n"),
                    HasSubstr("By          released by ada\n"), Not(HasSubstr("Scheduler"))));
  *job_.mutable_state_reason() =
      contract::MakeReason(v1::STATE_REASON_CODE_HELD, {.detail = "held by ada: not yet"});
  job_.set_held(true);
  const std::string held = why(v1::TRANSITION_KIND_HOLD_REQUESTED, "held by ada: not yet");
  EXPECT_THAT(held, HasSubstr("Because     held by ada: not yet\n"));
  EXPECT_THAT(held, HasSubstr("muster release 42\n"));
  EXPECT_THAT(held, Not(HasSubstr("  By "))) << "it is said already";
  EXPECT_THAT(held, Not(HasSubstr("administrator"))) << "the cluster sees only who told it";
  *job_.mutable_state_reason() = contract::MakeReason(v1::STATE_REASON_CODE_HELD);
  EXPECT_THAT(why(v1::TRANSITION_KIND_HOLD_REQUESTED, "held by ada: not yet"),
              AllOf(HasSubstr("Because     held: it starts once it is released\n"),
                    HasSubstr("By          held by ada: not yet\n")));
  job_ = JobInState(42, v1::JOB_STATE_CANCELED);
  EXPECT_THAT(why(v1::TRANSITION_KIND_CANCEL_REQUESTED, "canceled by ada: wrong data"),
              HasSubstr("Canceled    canceled by ada: wrong data\n"));
  EXPECT_THAT(why(v1::TRANSITION_KIND_UNSPECIFIED, "CANCELLED by 1000"),
              HasSubstr("Canceled    CANCELLED by 1000\n"))
      << "not through Muster";
}

TEST_F(CommandTest, AHoldAndAReleaseShowWhatTheBrokerSaysOfTheJobs) {
  const auto answer = [](v1::StateReasonCode code, auto response) {
    *response.add_jobs() = JobInState(42, v1::JOB_STATE_PENDING);
    *response.mutable_jobs(0)->mutable_state_reason() = client::Because("as the broker says", code);
    return response;
  };
  broker_.release_jobs = [&](const auto&) -> absl::StatusOr<v1::ReleaseJobsResponse> {
    return answer(v1::STATE_REASON_CODE_RELEASED, v1::ReleaseJobsResponse());
  };
  broker_.hold_jobs = [&](const auto&) -> absl::StatusOr<v1::HoldJobsResponse> {
    return answer(v1::STATE_REASON_CODE_WAITS_IN_CLUSTER, v1::HoldJobsResponse());
  };
  EXPECT_THAT(Run({"release", "42"}).out, HasSubstr("as the broker says\n"));
  EXPECT_THAT(Run({"hold", "42"}).out, HasSubstr("as the broker says\n"));
}

TEST_F(CommandTest, WhyTellsWhatTheSchedulerSaysOnlyIfTheJobDoesNot) {
  job_ = JobInState(42, v1::JOB_STATE_PENDING);
  const v1::StateReason known = client::SlurmSays("Resources");
  *job_.mutable_runs(0)->mutable_state_reason() = known;
  *job_.mutable_state_reason() = known;
  job_.mutable_state_reason()->set_message("in other words");
  EXPECT_THAT(Run({"why", "42"}).out, Not(HasSubstr("Scheduler")));
  contract::Silence silence;
  silence.cluster = "box";
  *job_.mutable_state_reason() = contract::NoWord(silence, job_);
  const std::string silent = Run({"why", "42"}).out;
  EXPECT_THAT(silent, HasSubstr("Because     no word from cluster \"box\" (its agent is not "));
  EXPECT_THAT(silent, Not(HasSubstr("Scheduler"))) << "it is what was known last";
  *job_.mutable_state_reason() = client::Because(known.message());
  EXPECT_THAT(Run({"why", "42"}).out, HasSubstr("Scheduler")) << "the same words, another reason";
}

TEST_F(CommandTest, WhyLooksBehindTheSilenceOfACluster) {
  job_ = JobInState(42, v1::JOB_STATE_PENDING);
  contract::Silence silence;
  silence.cluster = "box";
  const auto why = [&](const v1::StateReason& known) {
    *job_.mutable_state_reason() = known;
    *job_.mutable_runs(0)->mutable_state_reason() = client::SlurmSays("JobHeldUser");
    *job_.mutable_state_reason() = contract::NoWord(silence, job_);
    return Run({"why", "42"}).out;
  };
  const std::string silent = "What to do  start the cluster's agent (muster-agent)";
  EXPECT_THAT(why(contract::MakeReason(v1::STATE_REASON_CODE_CANNOT_START,
                                       {.detail = "no such claim", .remedy = "make the claim"})),
              AllOf(HasSubstr("Last known  no such claim\n"), HasSubstr(silent),
                    HasSubstr("What to do  make the claim\n")));
  v1::WatchJobsResponse step = client::Step(42, 1, v1::JOB_STATE_PENDING);
  step.mutable_changes(0)->mutable_transition()->set_kind(v1::TRANSITION_KIND_RELEASE_REQUESTED);
  step.mutable_changes(0)->mutable_transition()->mutable_evidence()->set_detail("released by ada");
  broker_.watch_jobs = [&](const auto&, const auto& write) {
    return write(step), absl::OkStatus();
  };
  EXPECT_THAT(why(contract::MakeReason(v1::STATE_REASON_CODE_RELEASED)),
              AllOf(HasSubstr("By          released by ada\n"), Not(HasSubstr("Scheduler"))));
  job_.set_held(true);
  EXPECT_THAT(why(contract::MakeReason(v1::STATE_REASON_CODE_HELD)),
              AllOf(HasSubstr("muster release 42\n"), HasSubstr(silent),
                    HasSubstr("Last known  held: it starts once it is released\n")));
}

TEST_F(CommandTest, AHoldThatCameTooLateIsAStepOfItsOwn) {
  v1::WatchJobsResponse step = client::Step(42, 1, v1::JOB_STATE_PENDING);
  step.mutable_changes(0)->mutable_transition()->set_kind(v1::TRANSITION_KIND_RELEASE_REQUESTED);
  step.mutable_changes(0)->mutable_transition()->mutable_evidence()->set_source(
      v1::EVIDENCE_SOURCE_BROKER);
  EXPECT_EQ(StepText(step.changes(0).transition()), "hold too late");
  step.mutable_changes(0)->mutable_transition()->mutable_evidence()->set_source(
      v1::EVIDENCE_SOURCE_USER);
  EXPECT_EQ(StepText(step.changes(0).transition()), "released");
}

TEST_F(CommandTest, AReleaseOfAJobThatWasNotHeldSaysSo) {
  broker_.release_jobs = [this](const auto&) -> absl::StatusOr<v1::ReleaseJobsResponse> {
    v1::ReleaseJobsResponse response;
    *response.add_jobs() = job_;
    return response;
  };
  job_ = JobInState(42, v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(Run({"release", "42"}).err, HasSubstr("job 42 was not held"));
  contract::Silence silence;
  silence.cluster = "box";
  job_ = JobInState(42, v1::JOB_STATE_PENDING);
  *job_.mutable_state_reason() = client::SlurmSays("JobHeldAdmin");
  *job_.mutable_state_reason() = contract::NoWord(silence, job_);
  EXPECT_EQ(Run({"release", "42"}).err, "") << "its cluster holds it, as last seen";
  job_ = JobInState(42, v1::JOB_STATE_QUEUED);
  job_.set_held(true);
  EXPECT_EQ(Run({"release", "42"}).err, "");
}

TEST_F(CommandTest, WhyQuotesWhatAFailureWasJudgedBy) {
  job_ = JobInState(42, v1::JOB_STATE_FAILED);
  v1::Failure& failure = *job_.mutable_failure();
  failure.set_failure_class(v1::FAILURE_CLASS_OOM);
  failure.set_message("it needed more memory");
  failure.set_remedy("a smaller batch");
  v1::FailureQuote* quote = failure.add_quotes();
  quote->set_source("rank-0.err");
  quote->set_text("Killed");
  const Outcome outcome = Run({"why", "42"});
  EXPECT_EQ(outcome.code, 0);
  for (const char* words : {"Class       OOM\n", "Because     it needed more memory\n",
                            "rank-0.err: Killed\n", "What to do  a smaller batch\n"}) {
    EXPECT_THAT(outcome.out, HasSubstr(words));
  }
}

TEST_F(CommandTest, WhySaysOfEachClusterWhatKeepsAQueuedJobFromIt) {
  std::vector<v1::StateReason> reasons;
  for (const char* cluster : {"a", "b", "c", "d", "e", "f"}) {
    reasons.push_back(contract::MakeReason(v1::STATE_REASON_CODE_POOL_UNAVAILABLE,
                                           {.cluster = cluster, .pool = "cpu"}));
  }
  job_ = JobInState(42, v1::JOB_STATE_QUEUED);
  *job_.mutable_state_reason() = contract::NotPlaced(reasons);
  const std::string why = Run({"why", "42"}).out;
  EXPECT_THAT(why, HasSubstr("cluster \"b\": muster clusters b tells more\n"));
  EXPECT_THAT(why, HasSubstr("cluster \"f\": pool \"cpu\" takes no jobs at the moment. muster "
                             "clusters f tells more\n"));
  EXPECT_THAT(why, HasSubstr("What to do  muster clusters a tells more\n"));
}

TEST_F(CommandTest, WhySaysOfARunWithoutAReasonWhatTheBrokerSays) {
  job_ = JobInState(42, v1::JOB_STATE_PENDING);
  const v1::StateReason starts =
      client::Because("as the broker says", v1::STATE_REASON_CODE_STARTING);
  *job_.mutable_state_reason() = starts;
  const std::string because = "Because     as the broker says\n";
  EXPECT_THAT(Run({"why", "42"}).out, HasSubstr(because));
  job_.set_held(true);
  *job_.mutable_state_reason() = contract::HoldAsked(starts);
  EXPECT_THAT(Run({"why", "42"}).out, HasSubstr("Because     asked to hold; as the broker says\n"));
  job_.set_held(false);
  *job_.mutable_state_reason() = contract::CancelAsked(starts);
  EXPECT_THAT(Run({"why", "42"}).out,
              HasSubstr("Because     cancel requested; as the broker says\n"));
}

}  // namespace
}  // namespace muster::cli
