#include "agents/muster/translate.h"

#include <memory>

#include "contract/failures.h"
#include "contract/filter.h"
#include "contract/sentences.h"
#include "contract/validate.h"
#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::remote {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RemoteConfig Config() { return {.cluster = "far", .address = "unix:/b.sock"}; }

agent::v1::Assignment AnyRun() {
  agent::v1::Assignment run;
  run.set_run_key("k7m2-42-1");
  run.set_user("ada");
  run.mutable_spec()->set_nodes(1);
  run.mutable_spec()->mutable_command()->set_script("true");
  return run;
}

agents::RunHandle HandleOf(bool cancel_requested = false) {
  agents::RunHandle run;
  run.run_key = "k7m2-42-1";
  run.cancel_requested = cancel_requested;
  return run;
}

// A job with one run in this state.
v1::Job JobOf(v1::JobState state, v1::RunState run_state) {
  v1::Job job;
  job.set_id(7);
  job.set_state(state);
  job.set_cluster("gpu");
  v1::Run* run = job.add_runs();
  run->set_number(1);
  run->set_state(run_state);
  return job;
}

TEST(SpecThere, ARepeatIsTheSameRequestAndAnotherRunIsAnother) {
  agent::v1::Assignment run = AnyRun();
  const v1::SubmitJobRequest first = RequestFor(Config(), run);
  const v1::SubmitJobRequest again = RequestFor(Config(), run);
  EXPECT_EQ(first.request_id(), again.request_id());
  EXPECT_EQ(first.spec().labels().at("muster.run"), "k7m2-42-1");
  run.set_run_key("k7m2-42-2");
  EXPECT_NE(RequestFor(Config(), run).request_id(), first.request_id());
}

TEST(SpecThere, RetriesWaitsAndLossesAreThisBrokersAndThePriorityPasses) {
  v1::JobSpec spec = AnyRun().spec();
  spec.mutable_retry()->set_max_runs(5);
  spec.mutable_retry()->set_on_failure(true);
  spec.add_depends_on()->set_job_id(3);
  spec.set_on_cluster_loss(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_NOW);
  spec.set_preemptible(true);
  spec.set_priority(17);
  spec.mutable_placement()->add_clusters("far");
  const v1::JobSpec there = SpecThere(Config(), spec, "ada");
  EXPECT_EQ(there.retry().max_runs(), 1u);
  EXPECT_FALSE(there.retry().on_failure());
  EXPECT_TRUE(there.depends_on().empty());
  EXPECT_EQ(there.on_cluster_loss(), v1::CLUSTER_LOSS_POLICY_UNSPECIFIED);
  EXPECT_FALSE(there.preemptible());
  EXPECT_EQ(there.priority(), 17);
  EXPECT_TRUE(there.placement().clusters().empty()) << "the name of this broker is unknown there";
}

TEST(SpecThere, APoolIsAClusterAndAPoolThereAndTheSettingLimitsTheOthers) {
  RemoteConfig config = Config();
  config.clusters = {"cpu", "gpu"};
  config.project = "guests";
  v1::JobSpec spec = AnyRun().spec();
  EXPECT_THAT(SpecThere(config, spec, "").placement().clusters(), ElementsAre("cpu", "gpu"));
  spec.mutable_placement()->set_pool("gpu/long");
  const v1::JobSpec there = SpecThere(config, spec, "");
  EXPECT_THAT(there.placement().clusters(), ElementsAre("gpu"));
  EXPECT_EQ(there.placement().pool(), "long");
  EXPECT_EQ(there.project(), "guests");
  // Two brokers further, the pool of a pool.
  spec.mutable_placement()->set_pool("site/gpu/long");
  EXPECT_EQ(SpecThere(config, spec, "").placement().pool(), "gpu/long");
}

TEST(SpecThere, OurLabelsWinAndTheJobKeepsAsManyAsFit) {
  agent::v1::Assignment run = AnyRun();
  auto& labels = *run.mutable_spec()->mutable_labels();
  for (int i = 10; i < 10 + 64; ++i) labels[fmt::format("label{}", i)] = "x";
  labels.erase("label10");
  labels["muster.user"] = "mallory";
  const v1::SubmitJobRequest request = RequestFor(Config(), run);
  EXPECT_EQ(request.spec().labels().size(), 64u);
  EXPECT_EQ(request.spec().labels().at("muster.user"), "ada");
  EXPECT_EQ(request.spec().labels().at("muster.cluster"), "far");
  const v1::JobSpec& spec = request.spec();
  EXPECT_TRUE(contract::NormalizeJobSpec(spec).ok()) << contract::NormalizeJobSpec(spec).status();
}

TEST(SpecThere, WhatCannotBeAskedForIsNamed) {
  v1::JobSpec spec = AnyRun().spec();
  EXPECT_TRUE(CheckSpec(spec).ok());
  spec.mutable_retry()->set_exclude_failed_nodes(true);
  EXPECT_THAT(CheckSpec(spec).ToString(), HasSubstr("retry.exclude_failed_nodes"));
}

TEST(Filters, AHundredJobsFit) {
  const std::vector<uint64_t> ids(kMaxFilterJobs, 12'345'678'901'234);
  EXPECT_LT(FilterOfJobs("far", ids).size(), 4096u);
  EXPECT_EQ(FilterOfJobs("far", {9, 7}),
            "id >= 7 AND id <= 9 AND (id = 9 OR id = 7) AND label.muster.cluster = \"far\"");
}

TEST(Filters, AJobOfAnotherUserOrAgentIsNoRunWhateverItsLabelsSay) {
  const auto filter = contract::ParseFilter(FilterOfRun("far", "oidc:a\"@b", "k7m2-42-1"), {});
  ASSERT_TRUE(filter.ok()) << filter.status();
  v1::Job job;
  job.set_user("oidc:a\"@b");
  auto& labels = *job.mutable_labels();
  labels["muster.run"] = "k7m2-42-1";
  labels["muster.cluster"] = "far";
  EXPECT_TRUE(filter->Matches(job));
  job.set_user("mallory");
  EXPECT_FALSE(filter->Matches(job));
  job.set_user("oidc:a\"@b");
  labels["muster.cluster"] = "near";
  EXPECT_FALSE(filter->Matches(job));
  labels["muster.cluster"] = "far";
  labels["muster.run"] = "k7m2-42-2";
  EXPECT_FALSE(filter->Matches(job));
}

TEST(Filters, OnlyANumberIsAJob) {
  EXPECT_EQ(JobIdOf("42"), 42u);
  for (const char* text : {"", "x", "42 ", "-1", "4x"}) EXPECT_EQ(JobIdOf(text), 0u) << text;
}

TEST(Observations, AJobThatWaitsThereWaitsHereWithItsWords) {
  v1::Job job = JobOf(v1::JOB_STATE_QUEUED, v1::RUN_STATE_ASSIGNED);
  job.clear_runs();
  job.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_CLUSTER_FULL);
  job.mutable_state_reason()->set_message("cluster \"gpu\": it has 8 active runs of at most 8");
  const agents::Observation seen = ObservationOf(HandleOf(), job);
  EXPECT_EQ(seen.state, v1::RUN_STATE_PENDING);
  EXPECT_EQ(seen.external_id, "7");
  EXPECT_EQ(seen.reason.code(), v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES);
  EXPECT_THAT(seen.reason.message(), HasSubstr("8 active runs"));
}

TEST(Observations, TheSoonestEstimateOfTheClustersThereCounts) {
  v1::Job job = JobOf(v1::JOB_STATE_QUEUED, v1::RUN_STATE_ASSIGNED);
  job.clear_runs();
  for (const int64_t seconds : {500, 300, 400})
    job.mutable_state_reason()
        ->add_clusters()
        ->mutable_start_estimate()
        ->mutable_time()
        ->set_seconds(seconds);
  EXPECT_EQ(ObservationOf(HandleOf(), job).estimated_start, absl::FromUnixSeconds(300));
}

TEST(Observations, ARunThatIsLaunchedThereIsPendingHere) {
  for (const v1::RunState state : {v1::RUN_STATE_ASSIGNED, v1::RUN_STATE_LAUNCHING,
                                   v1::RUN_STATE_LAUNCH_UNKNOWN, v1::RUN_STATE_PENDING}) {
    const v1::Job job = JobOf(v1::JOB_STATE_PENDING, state);
    EXPECT_EQ(ObservationOf(HandleOf(), job).state, v1::RUN_STATE_PENDING) << state;
  }
  const v1::Job job = JobOf(v1::JOB_STATE_RUNNING, v1::RUN_STATE_FINISHING);
  EXPECT_EQ(ObservationOf(HandleOf(), job).state, v1::RUN_STATE_FINISHING);
}

TEST(Observations, AFailureKeepsItsQuotesAndLosesTheCountOfRunsThere) {
  v1::Job job = JobOf(v1::JOB_STATE_FAILED, v1::RUN_STATE_FAILED);
  v1::Failure* failure = job.mutable_runs(0)->mutable_failure();
  *failure = contract::OwnEnd(contract::ExitWithCode(3), {.phase = v1::FAILURE_PHASE_COMMAND});
  failure->add_quotes()->set_text("out of luck");
  failure->set_after_runs(1);
  contract::SayAfterRuns(failure);
  job.mutable_runs(0)->mutable_exit()->set_code(3);
  const agents::Observation seen = ObservationOf(HandleOf(), job);
  EXPECT_EQ(seen.state, v1::RUN_STATE_FAILED);
  ASSERT_TRUE(seen.failure && seen.exit);
  EXPECT_EQ(seen.exit->code(), 3);
  EXPECT_EQ(seen.failure->after_runs(), 0u);
  EXPECT_THAT(seen.failure->message(), Not(HasSubstr("after 1 runs")));
  EXPECT_EQ(seen.failure->quotes(0).text(), "out of luck");
}

TEST(Observations, ALostRunIsLostHereToo) {
  const v1::Job job = JobOf(v1::JOB_STATE_FAILED, v1::RUN_STATE_LOST);
  EXPECT_EQ(ObservationOf(HandleOf(), job).state, v1::RUN_STATE_LOST);
}

TEST(Observations, ACancelThatNobodyHereAskedForIsOfOthers) {
  const v1::Job job = JobOf(v1::JOB_STATE_CANCELED, v1::RUN_STATE_CANCELED);
  EXPECT_EQ(ObservationOf(HandleOf(false), job).reason.code(),
            v1::STATE_REASON_CODE_CANCELED_BY_OTHERS);
  EXPECT_EQ(ObservationOf(HandleOf(true), job).reason.code(), v1::STATE_REASON_CODE_UNSPECIFIED);
}

TEST(Observations, AnEndThatAwaitsItsOutputTellsNothingOfTheEnd) {
  v1::Job job = JobOf(v1::JOB_STATE_FAILED, v1::RUN_STATE_FAILED);
  job.mutable_start_time()->set_seconds(100);
  job.mutable_runs(0)->mutable_exit()->set_code(3);
  job.mutable_runs(0)->mutable_end_time()->set_seconds(200);
  EXPECT_FALSE(IsComplete(job));
  const agents::Observation seen = HeldBack(HandleOf(), job);
  EXPECT_EQ(seen.state, v1::RUN_STATE_FINISHING);
  EXPECT_FALSE(seen.exit || seen.failure || seen.end_time);
  job.mutable_runs(0)->set_logs_complete(true);
  EXPECT_TRUE(IsComplete(job));
}

}  // namespace
}  // namespace muster::remote
