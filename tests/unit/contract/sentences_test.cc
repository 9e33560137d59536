// The sentences of facts, which every client shows alike.
#include "contract/sentences.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::contract {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::StateReason Unfit(const std::string& cluster) {
  return MakeReason(v1::STATE_REASON_CODE_DOES_NOT_FIT,
                    {.detail = "it has no GPUs", .cluster = cluster});
}

TEST(StateReason, EveryCodeButThreeHasASentenceOfItsOwn) {
  for (int code = 1; code < v1::StateReasonCode_ARRAYSIZE; ++code) {
    // The detail has the missing resources, and others' words.
    if (code == v1::STATE_REASON_CODE_DOES_NOT_FIT || code == v1::STATE_REASON_CODE_RETRY_DELAY ||
        code == v1::STATE_REASON_CODE_OTHER || !v1::StateReasonCode_IsValid(code))
      continue;
    EXPECT_NE(MakeReason(static_cast<v1::StateReasonCode>(code)).message(), "")
        << v1::StateReasonCode_Name(code);
  }
}

TEST(StateReason, TheSchedulersWordComesBeforeItsSentence) {
  const v1::StateReason reason =
      MakeReason(v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES,
                 {.detail = "0/2 nodes are available", .scheduler_reason = "Unschedulable"});
  EXPECT_EQ(reason.message(), "Unschedulable: 0/2 nodes are available");
  EXPECT_EQ(reason.detail(), "0/2 nodes are available");
  EXPECT_EQ(reason.remedy(), "");
}

TEST(StateReason, WhatCannotStartSaysUntilWhenItIsWaitedFor) {
  v1::StateReason reason =
      MakeReason(v1::STATE_REASON_CODE_CANNOT_START, {.detail = "no such image",
                                                      .scheduler_reason = "ErrImagePull",
                                                      .remedy = "correct it",
                                                      .until = absl::FromUnixSeconds(300)});
  EXPECT_EQ(reason.message(),
            "ErrImagePull: no such image; Muster gives the run up at 00:05:00 UTC");
  EXPECT_EQ(reason.until().seconds(), 300);
  EXPECT_EQ(reason.remedy(), "correct it");
  reason.clear_until();
  PutSentence(&reason);
  EXPECT_EQ(reason.message(), "ErrImagePull: no such image");
}

TEST(StateReason, ASilentHostIsNamedWithSinceWhen) {
  EXPECT_EQ(
      MakeReason(v1::STATE_REASON_CODE_HOST_SILENT,
                 {.detail = "no route", .subject = "gpu2", .since = absl::FromUnixSeconds(60)})
          .message(),
      "host gpu2 has not answered since 1970-01-01T00:01:00Z: no route");
  EXPECT_EQ(MakeReason(v1::STATE_REASON_CODE_HOST_SILENT, {.detail = "no route", .subject = "gpu2"})
                .message(),
            "host gpu2 has not answered since the agent was started: no route");
}

TEST(StateReason, AFullClusterHasItsNumbers) {
  v1::StateReason reason;
  reason.set_code(v1::STATE_REASON_CODE_CLUSTER_FULL);
  reason.set_active_runs(3);
  reason.set_max_active_runs(3);
  PutSentence(&reason);
  EXPECT_EQ(reason.message(), "the job fits; the cluster has 3 active runs of at most 3");
  reason.set_held_runs(2);
  PutSentence(&reason);
  EXPECT_EQ(reason.message(),
            "the job fits; the cluster has 3 active runs of at most 3 (2 of them held)");
}

TEST(StateReason, AJobThatWasAskedToBeHeldKeepsWhyItWaits) {
  const v1::StateReason waits =
      MakeReason(v1::STATE_REASON_CODE_WAITS_FOR_TURN, {.scheduler_reason = "Priority"});
  const v1::StateReason asked = HoldAsked(waits);
  EXPECT_EQ(asked.code(), v1::STATE_REASON_CODE_WAITS_FOR_TURN);
  EXPECT_EQ(asked.scheduler_reason(), "Priority");
  EXPECT_EQ(asked.message(), "asked to hold; Priority");
  EXPECT_EQ(HoldAsked({}).message(), "asked to hold");
  EXPECT_NE(HoldAsked({}).code(), v1::STATE_REASON_CODE_HELD) << "it may start yet";
}

TEST(StateReason, AJobThatIsBeingCanceledKeepsWhyItWaits) {
  const v1::StateReason waits =
      MakeReason(v1::STATE_REASON_CODE_WAITS_FOR_TURN, {.scheduler_reason = "Priority"});
  const v1::StateReason asked = CancelAsked(waits);
  EXPECT_EQ(asked.code(), v1::STATE_REASON_CODE_WAITS_FOR_TURN);
  EXPECT_EQ(asked.scheduler_reason(), "Priority");
  EXPECT_EQ(asked.message(), "cancel requested; Priority");
  EXPECT_EQ(CancelAsked({}).message(), "cancel requested");
  EXPECT_EQ(CancelAsked({}).code(), v1::STATE_REASON_CODE_CANCELING);
}

TEST(StateReason, ARunWithoutAReasonHasThatOfItsState) {
  const auto of = [](v1::RunState state) {
    v1::Run run;
    run.set_state(state);
    run.set_cluster("lab");
    return Unexplained(run);
  };
  EXPECT_EQ(of(v1::RUN_STATE_ASSIGNED).message(), "it is being handed to its cluster");
  EXPECT_EQ(of(v1::RUN_STATE_LAUNCHING).code(), v1::STATE_REASON_CODE_LAUNCHING);
  EXPECT_EQ(of(v1::RUN_STATE_LAUNCH_UNKNOWN).code(), v1::STATE_REASON_CODE_LAUNCH_UNKNOWN);
  EXPECT_EQ(of(v1::RUN_STATE_PENDING).code(), v1::STATE_REASON_CODE_WAIT_UNEXPLAINED);
  EXPECT_EQ(of(v1::RUN_STATE_PENDING).message(),
            "it is queued on its cluster, which has given no reason yet");
  EXPECT_EQ(of(v1::RUN_STATE_STARTING).code(), v1::STATE_REASON_CODE_STARTING);
  EXPECT_EQ(of(v1::RUN_STATE_STARTING).message(), "its cluster is starting it");
  EXPECT_EQ(of(v1::RUN_STATE_STARTING).cluster(), "lab");
  EXPECT_EQ(of(v1::RUN_STATE_RUNNING).code(), v1::STATE_REASON_CODE_UNSPECIFIED);
}

TEST(Failure, ATimeOutNamesTheLimitOfTheJob) {
  v1::Failure failure;
  failure.set_failure_class(v1::FAILURE_CLASS_TIMEOUT);
  failure.set_message("stopped at its time limit");
  v1::JobSpec spec;
  SayTimeLimit(spec, &failure);
  EXPECT_EQ(failure.message(), "stopped at its time limit") << "it has none";
  spec.mutable_time_limit()->set_seconds(5400);
  SayTimeLimit(spec, &failure);
  EXPECT_EQ(failure.message(), "stopped at its time limit (the job's is 1h30m)");
  failure.set_failure_class(v1::FAILURE_CLASS_INFRA);
  failure.set_message("node n1 failed");
  SayTimeLimit(spec, &failure);
  EXPECT_EQ(failure.message(), "node n1 failed");
}

TEST(StateReason, SilenceOfAClusterSaysWhoIsSilentSinceWhenAndWhatWasKnownLast) {
  v1::Job job;
  job.set_state(v1::JOB_STATE_RUNNING);
  Silence silence;
  silence.cluster = "lab";
  silence.since = absl::FromUnixSeconds(1'772'366'400);
  const v1::StateReason gone = NoWord(silence, job);
  EXPECT_EQ(gone.code(), v1::STATE_REASON_CODE_AGENT_DISCONNECTED);
  EXPECT_EQ(gone.cluster(), "lab");
  EXPECT_EQ(gone.since().seconds(), 1'772'366'400);
  EXPECT_FALSE(gone.has_last_known());
  EXPECT_EQ(gone.message(),
            "no word from cluster \"lab\" since 2026-03-01T12:00:00Z (its agent is not connected); "
            "last known: RUNNING");
  EXPECT_THAT(gone.remedy(), HasSubstr("muster-agent"));

  job.set_state(v1::JOB_STATE_PENDING);
  *job.mutable_state_reason() =
      MakeReason(v1::STATE_REASON_CODE_WAITS_FOR_TURN, {.scheduler_reason = "Priority"});
  silence.since.reset();
  silence.is_agent_connected = true;
  silence.scheduler_error = "timed out";
  const v1::StateReason mute = NoWord(silence, job);
  EXPECT_EQ(mute.code(), v1::STATE_REASON_CODE_SCHEDULER_SILENT);
  EXPECT_EQ(mute.detail(), "timed out");
  EXPECT_EQ(mute.last_known().code(), v1::STATE_REASON_CODE_WAITS_FOR_TURN);
  EXPECT_EQ(mute.message(),
            "no word from cluster \"lab\" (it does not answer its agent: timed out); last known: "
            "Priority");
}

TEST(StateReason, OfAJobThatNoClusterHasTheFirstIsItsOwnReason) {
  const v1::StateReason full =
      MakeReason(v1::STATE_REASON_CODE_AGENT_DISCONNECTED, {.cluster = "near"});
  const v1::StateReason reason = NotPlaced({full, Unfit("far")});
  EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_AGENT_DISCONNECTED);
  EXPECT_EQ(reason.cluster(), "near");
  EXPECT_EQ(reason.remedy(), full.remedy());
  EXPECT_EQ(reason.message(),
            "cluster \"near\": the job fits, but the cluster's agent is not connected; cluster "
            "\"far\": it has no "
            "GPUs");
  ASSERT_EQ(reason.clusters_size(), 2);
  EXPECT_EQ(reason.clusters(1).code(), v1::STATE_REASON_CODE_DOES_NOT_FIT);
  EXPECT_EQ(reason.unlisted_clusters(), 0u);
  EXPECT_EQ(NotPlaced({}).ByteSizeLong(), 0u);
}

TEST(StateReason, OfManyClustersSomeAreNamedMoreAreListedAndTheRestAreCounted) {
  std::vector<v1::StateReason> reasons;
  for (int i = 0; i < 14; ++i) reasons.push_back(Unfit("c" + std::to_string(i)));
  const v1::StateReason reason = NotPlaced(reasons);
  EXPECT_EQ(reason.clusters_size(), 10);
  EXPECT_EQ(reason.unlisted_clusters(), 4u);
  EXPECT_THAT(reason.message(), HasSubstr("cluster \"c4\": it has no GPUs; and 9 more"));
}

TEST(StateReason, OfSeveralClustersSaysOfEachWhatItsSentenceAndItsRemedyLeaveOut) {
  const auto unavailable = [](const char* cluster) {
    return MakeReason(v1::STATE_REASON_CODE_POOL_UNAVAILABLE, {.cluster = cluster, .pool = "cpu"});
  };
  EXPECT_THAT(BesidesTheFirst(NotPlaced({unavailable("a"), Unfit("b"), unavailable("c")})),
              ElementsAre("cluster \"c\": muster clusters c tells more"))
      << "the first one's remedy is the job's";
  std::vector<v1::StateReason> reasons(11, Unfit("x"));
  reasons[5] = unavailable("y");
  const std::vector<std::string> lines = BesidesTheFirst(NotPlaced(reasons));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(
      lines[0],
      "cluster \"y\": pool \"cpu\" takes no jobs at the moment. muster clusters y tells more");
  EXPECT_EQ(lines[1], "cluster \"x\": it has no GPUs");
  EXPECT_EQ(lines[5], "and 1 more");
}

TEST(StateReason, ARetrySaysWhenForWhichRunAndAfterWhat) {
  v1::Run last;
  last.set_number(1);
  last.mutable_end_time()->set_seconds(540);
  last.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_INFRA);
  last.mutable_failure()->set_message("node n1 failed");
  google::protobuf::Timestamp time;
  time.set_seconds(600);
  const v1::StateReason reason = RetryDelay(last, time);
  EXPECT_EQ(reason.code(), v1::STATE_REASON_CODE_RETRY_DELAY);
  EXPECT_EQ(reason.since().seconds(), 540);
  EXPECT_EQ(reason.until().seconds(), 600);
  EXPECT_EQ(reason.message(),
            "waits until 00:10:00 UTC for run 2 after an infrastructure failure: node n1 failed");
}

TEST(SubmitWarning, HasTheCheckThatWarnedAndTheClusterThatItIsOf) {
  v1::ClusterCheck check;
  check.set_subject("kubernetes.volumes[0].claim");
  check.set_seen("\"data\": there is none");
  check.set_remedy("Make it.");
  v1::SubmitWarning warning = MakeWarning(v1::SUBMIT_WARNING_CODE_NOT_THERE_YET, check);
  SetCluster("lab", &warning);
  EXPECT_EQ(warning.message(),
            "on cluster lab: kubernetes.volumes[0].claim \"data\": there is none");
  EXPECT_EQ(warning.cluster(), "lab");
  EXPECT_EQ(warning.subject(), "kubernetes.volumes[0].claim");
  EXPECT_EQ(WithRemedy(warning.message(), warning.remedy()), warning.message() + ". Make it.");
  EXPECT_EQ(WithRemedy("All is well.", "Nothing"), "All is well. Nothing");
  EXPECT_EQ(WithRemedy("x", ""), "x");
}

TEST(SubmitWarning, OfANewPriorityAdvisesOnlyWhereTheRunWaits) {
  v1::Job job;
  job.set_id(5);
  job.set_cluster("lab");
  job.set_state(v1::JOB_STATE_PENDING);
  EXPECT_THAT(RunKeepsPriority(job).remedy(), HasSubstr("submit it again"));
  job.set_cluster_kind(v1::CLUSTER_KIND_SLURM);
  EXPECT_THAT(RunKeepsPriority(job).remedy(), HasSubstr("Slurm's administrators"));
  job.set_state(v1::JOB_STATE_RUNNING);
  EXPECT_EQ(RunKeepsPriority(job).remedy(), "");
  EXPECT_THAT(RunKeepsPriority(job).message(), HasSubstr("cluster \"lab\""));
}

TEST(RequestEvidence, HasWhoAskedAndWhyBesideTheSentence) {
  const v1::Evidence evidence =
      RequestEvidence({.verb = "canceled", .user = "ann", .reason = "too slow"});
  EXPECT_EQ(evidence.source(), v1::EVIDENCE_SOURCE_USER);
  EXPECT_EQ(evidence.detail(), "canceled by ann: too slow");
  EXPECT_EQ(evidence.requested_by(), "ann");
  EXPECT_EQ(evidence.request_reason(), "too slow");
  EXPECT_EQ(
      RequestEvidence({.verb = "submitted", .user = "ann", .more = ", with the spec of job 3"})
          .detail(),
      "submitted by ann, with the spec of job 3");
}

TEST(SubmitWarning, OfAPlaceThatIsShutSaysSinceWhen) {
  const v1::StateReason reason = MakeReason(v1::STATE_REASON_CODE_AGENT_DISCONNECTED,
                                            {.cluster = "a", .since = absl::FromUnixSeconds(60)});
  EXPECT_EQ(WaitsForPlace(1, reason).since().seconds(), 60);
  EXPECT_FALSE(WaitsForPlace(1, MakeReason(v1::STATE_REASON_CODE_POOL_UNAVAILABLE)).has_since());
}

}  // namespace
}  // namespace muster::contract
