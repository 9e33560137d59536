// Tests clusters that are lost: leases, and the jobs that fail over.
#include "broker/core/leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/refusals.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Duration kLease = absl::Seconds(60);
constexpr absl::Duration kFence = absl::Seconds(21);

agent::v1::AgentHello FencingHello(const std::string& cluster) {
  agent::v1::AgentHello hello = Hello(cluster);
  hello.mutable_fence_delay()->set_seconds(absl::ToInt64Seconds(kFence));
  return hello;
}

v1::JobSpec With(v1::ClusterLossPolicy policy) {
  v1::JobSpec spec = Spec();
  spec.set_on_cluster_loss(policy);
  return spec;
}
v1::JobSpec WhenFenced() { return With(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED); }
v1::JobSpec Now() { return With(v1::CLUSTER_LOSS_POLICY_FAIL_OVER_NOW); }

class LeasesTest : public CoreTest {
 protected:
  std::optional<agent::v1::LeaseRenewal> Renewal() const {
    for (const Effect& effect : last_.effects) {
      const auto* send = std::get_if<SendToAgent>(&effect);
      if (send != nullptr && send->message.has_lease_renewal())
        return send->message.lease_renewal();
    }
    return std::nullopt;
  }
  void NumberedBeat(SessionId session, uint64_t number) {
    agent::v1::AgentHeartbeat beat;
    beat.set_number(number);
    Beat(session, beat);
  }
  void Pass(absl::Duration time) {
    now_ += time;
    Tick();
  }
  void Run(SessionId session, uint64_t job) {
    Report(session, {Event(1, Key(job), v1::RUN_STATE_LAUNCHING),
                     Event(2, Key(job), v1::RUN_STATE_RUNNING)});
  }
  std::vector<std::string> ReleasedKeys() const {
    std::vector<std::string> keys;
    for (const Effect& effect : last_.effects) {
      const auto* send = std::get_if<SendToAgent>(&effect);
      if (send == nullptr) continue;
      for (const std::string& key : send->message.releases().run_keys()) keys.push_back(key);
    }
    return keys;
  }
};

TEST_F(LeasesTest, AHeartbeatOfAnAgentThatFencesIsAnsweredWithALease) {
  const SessionId a = Connect(FencingHello("a"));
  NumberedBeat(a, 7);
  ASSERT_TRUE(Renewal().has_value());
  EXPECT_EQ(Renewal()->heartbeat_number(), 7);
  EXPECT_EQ(Renewal()->duration().seconds(), 60);
  EXPECT_EQ(Clusters()[0].fence_delay().seconds(), 21);
}

TEST_F(LeasesTest, AnAgentThatDoesNotFenceGetsNone) {
  NumberedBeat(Connect("a"), 1);
  EXPECT_FALSE(Renewal().has_value());
  EXPECT_FALSE(Clusters()[0].has_fence_delay());
}

TEST_F(LeasesTest, AJobThatFailsOverWhenFencedGoesOnlyWhereRunsAreFenced) {
  const SessionId plain = Connect("a");
  const SessionId fencing = Connect(FencingHello("b"));
  const uint64_t id = MustSubmit(WhenFenced());
  EXPECT_THAT(Assigned(plain), IsEmpty());
  EXPECT_THAT(Assigned(fencing), ElementsAre(Key(id)));
}

TEST_F(LeasesTest, ASubmitThatNoClusterCanFenceIsRefusedWithTheRemedy) {
  Connect("a");
  const auto refused = SubmitOne(WhenFenced());
  EXPECT_EQ(ReasonOf(refused.status()), "CANNOT_BE_PLACED");
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("on_cluster_loss"));
  EXPECT_TRUE(SubmitOne(Now()).ok());
}

TEST_F(LeasesTest, AWaitingJobIsToldThatItsClusterCannotFence) {
  Gone(Connect("a"));
  Gone(Connect(FencingHello("b")));
  const v1::StateReason reason = Explain(MustSubmit(WhenFenced()));
  const v1::StateReason* of_a = nullptr;
  for (const v1::StateReason& cluster : reason.clusters()) {
    if (cluster.cluster() == "a") of_a = &cluster;
  }
  ASSERT_NE(of_a, nullptr);
  EXPECT_EQ(of_a->code(), v1::STATE_REASON_CODE_CANNOT_FENCE);
  EXPECT_THAT(of_a->message(), HasSubstr("cannot stop runs whose lease has ended"));
  EXPECT_THAT(of_a->remedy(), HasSubstr("fail_over_now"));
}

TEST_F(LeasesTest, AJobOfALostClusterStartsElsewhereOnlyOnceItsRunMustHaveStopped) {
  const SessionId a = Connect(FencingHello("a"));
  const uint64_t id = MustSubmit(WhenFenced());
  Run(a, id);
  NumberedBeat(a, 1);
  Gone(a);
  const absl::Duration all = kLease + kFence + LeaseMargin(kLease);
  Pass(all - absl::Milliseconds(1));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  const SessionId b = Connect(FencingHello("b"));
  Pass(absl::Milliseconds(1));
  EXPECT_THAT(Assigned(b), ElementsAre(Key(id, 2)));
  const v1::Job job = Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_PENDING);
  EXPECT_EQ(job.runs(0).state(), v1::RUN_STATE_LOST);
  EXPECT_EQ(job.runs(0).failure().code(), v1::FAILURE_CODE_CLUSTER_LOST);
  EXPECT_EQ(job.runs(0).failure().failure_class(), v1::FAILURE_CLASS_INFRA);
  bool is_told = false;
  for (const v1::Transition& step : History(id)) {
    is_told |= step.kind() == v1::TRANSITION_KIND_FAILED_OVER && step.run() == 1 &&
               step.run_state() == v1::RUN_STATE_LOST && step.job_state() == v1::JOB_STATE_QUEUED;
  }
  EXPECT_TRUE(is_told);
}

TEST_F(LeasesTest, AJobThatFailsOverNowStartsElsewhereAtTheEndOfTheLease) {
  const SessionId a = Connect("a");  // it need not fence
  const uint64_t id = MustSubmit(Now());
  Run(a, id);
  Beat(a);
  Gone(a);
  Pass(kLease - absl::Milliseconds(1));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  const SessionId b = Connect("b");
  Pass(absl::Milliseconds(1));
  EXPECT_THAT(Assigned(b), ElementsAre(Key(id, 2)));
}

TEST_F(LeasesTest, AJobThatWaitsIsNeverGivenUp) {
  const SessionId a = Connect(FencingHello("a"));
  const uint64_t id = MustSubmit(Spec());
  Run(a, id);
  Gone(a);
  Connect(FencingHello("b"));
  Pass(absl::Hours(1000));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
}

TEST_F(LeasesTest, EachAnsweredHeartbeatMovesTheEnd) {
  const SessionId a = Connect(FencingHello("a"));
  const uint64_t id = MustSubmit(Now());
  for (uint64_t beat = 1; beat <= 20; ++beat) {
    Pass(absl::Seconds(10));
    NumberedBeat(a, beat);
  }
  Gone(a);
  Pass(kLease - absl::Seconds(1));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_PENDING);
  Pass(absl::Seconds(1));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(LeasesTest, AClusterThatComesBackInTimeKeepsItsRuns) {
  const SessionId a = Connect(FencingHello("a"));
  const uint64_t id = MustSubmit(WhenFenced());
  Run(a, id);
  Gone(a);
  Pass(kLease);
  agent::v1::AgentHello hello = FencingHello("a");
  hello.add_runs()->set_run_key(Key(id));
  const SessionId again = Connect(hello);
  EXPECT_THAT(ReleasedKeys(), IsEmpty());
  NumberedBeat(again, 1);
  Pass(absl::Seconds(10));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
}

TEST_F(LeasesTest, WhatComesBackLateIsRefusedAcknowledgedAndStopped) {
  const SessionId a = Connect(FencingHello("a"));
  const uint64_t id = MustSubmit(Now());
  Run(a, id);
  Gone(a);
  Pass(absl::Minutes(5));
  const SessionId b = Connect(FencingHello("b"));
  ASSERT_THAT(Assigned(b), ElementsAre(Key(id, 2)));
  agent::v1::AgentHello hello = FencingHello("a");
  hello.add_runs()->set_run_key(Key(id));
  const SessionId late = Connect(hello);
  EXPECT_THAT(ReleasedKeys(), ElementsAre(Key(id)));
  Report(late, {Event(3, Key(id), v1::RUN_STATE_SUCCEEDED)});
  EXPECT_EQ(Acked(late), 3u);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_PENDING);
  EXPECT_EQ(Job(id).runs(0).state(), v1::RUN_STATE_LOST);
}

TEST_F(LeasesTest, AJobThatWasCanceledEndsAsCanceledWithoutAnotherRun) {
  const SessionId a = Connect(FencingHello("a"));
  const uint64_t id = MustSubmit(WhenFenced());
  Run(a, id);
  Gone(a);
  ASSERT_TRUE(Cancel({id}).ok());
  Pass(absl::Minutes(5));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_CANCELED);
  EXPECT_EQ(Job(id).runs_size(), 1);
}

TEST_F(LeasesTest, AHeldJobWaitsInTheQueueThen) {
  const SessionId a = Connect(FencingHello("a"));
  const uint64_t id = MustSubmit(WhenFenced());
  ASSERT_TRUE(Hold({id}).ok());
  Gone(a);
  Pass(absl::Minutes(5));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_TRUE(Job(id).held());
  const SessionId b = Connect(FencingHello("b"));
  ASSERT_TRUE(Release({id}).ok());
  EXPECT_THAT(Assigned(b), ElementsAre(Key(id, 2)));
}

TEST_F(LeasesTest, FailOversAreNoRetriesAndHaveABoundOfTheirOwn) {
  v1::JobSpec spec = Now();
  spec.mutable_retry()->set_max_runs(1);
  const uint64_t id = MustSubmit(spec);
  for (int run = 1; run <= kMaxFailOvers + 1; ++run) {
    ASSERT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED) << run;
    const SessionId session = Connect("a");
    ASSERT_THAT(Assigned(session), ElementsAre(Key(id, run)));
    Gone(session);
    Pass(absl::Minutes(5));
    if (run == kMaxFailOvers / 2) Restart();
  }
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Job(id).failure().code(), v1::FAILURE_CODE_CLUSTER_LOST);
}

TEST_F(LeasesTest, AfterARestartLeasesCountFromItsStart) {
  const SessionId a = Connect(FencingHello("a"));
  const uint64_t id = MustSubmit(WhenFenced());
  Run(a, id);
  NumberedBeat(a, 1);
  now_ += absl::Hours(2);
  Restart();
  Tick();
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  const absl::Duration all = kLease + kFence + LeaseMargin(kLease);
  Pass(all - absl::Milliseconds(1));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  Pass(absl::Milliseconds(1));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(LeasesTest, ABrokerWithShorterLeasesStillWaitsForTheLongerOnesOfBefore) {
  options_.lease = absl::Hours(1);
  Restart(options_);
  const SessionId a = Connect(FencingHello("a"));
  const uint64_t id = MustSubmit(Now());
  NumberedBeat(a, 1);
  options_.lease = kLease;
  Restart(options_);
  Tick();
  Pass(absl::Minutes(59));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_PENDING);
  Pass(absl::Minutes(2));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(LeasesTest, AClockThatIsSetEndsNoLease) {
  const SessionId a = Connect(FencingHello("a"));
  const uint64_t id = MustSubmit(Now());
  NumberedBeat(a, 1);
  Gone(a);
  now_ += absl::Hours(3);
  core::Tick tick;
  tick.clock_set_by = absl::Hours(3);
  Do(tick);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_PENDING);
  Pass(kLease);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(LeasesTest, AShorterFenceDelayCountsOnlyOnceTheRunsOfTheLongerOneAreGone) {
  const SessionId a = Connect(FencingHello("a"));
  const uint64_t id = MustSubmit(WhenFenced());
  Gone(a);
  agent::v1::AgentHello shorter = FencingHello("a");
  shorter.mutable_fence_delay()->set_seconds(1);
  shorter.add_runs()->set_run_key(Key(id));
  Connect(shorter);
  EXPECT_EQ(Clusters()[0].fence_delay().seconds(), 21);
}

}  // namespace
}  // namespace muster::core
