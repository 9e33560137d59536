// Runs that wait in a cluster's queue come back, provably not begun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WithdrawTest : public CoreTest {
 protected:
  absl::Status Move(std::vector<uint64_t> jobs) {
    Do(core::Move{.ticket = ++ticket_, .jobs = std::move(jobs), .reason = "slow", .user = "bob"});
    for (const Effect& effect : last_.effects) {
      const auto* reply = std::get_if<StatusReply>(&effect);
      if (reply != nullptr && reply->ticket == ticket_) return contract::ToStatus(reply->refusal);
    }
    return absl::InternalError("no reply");
  }
  void Drain(const std::string& cluster) {
    SetCordon wish{.ticket = ++ticket_, .name = cluster, .cordon = v1::ClusterCordon()};
    wish.cordon->set_user("ann");
    wish.cordon->set_drain(true);
    Do(std::move(wish));
  }
  agent::v1::RunEvent Says(uint64_t job, v1::RunState state, int run = 1) {
    return Event(++sequence_, Key(job, run), state);
  }
  agent::v1::RunEvent Waits(uint64_t job, v1::StateReasonCode code, int run = 1) {
    agent::v1::RunEvent event = Says(job, v1::RUN_STATE_PENDING, run);
    event.mutable_state_reason()->set_code(code);
    return event;
  }
  agent::v1::RunEvent SaysHeld(uint64_t job, int run = 1) {
    return Waits(job, v1::STATE_REASON_CODE_HELD, run);
  }
  // A job whose run waits for resources on the cluster.
  uint64_t WaitingOn(SessionId session, const v1::JobSpec& spec = Spec()) {
    const uint64_t id = MustSubmit(spec);
    EXPECT_THAT(Assigned(session), ElementsAre(Key(id)));
    Report(session, {Says(id, v1::RUN_STATE_LAUNCHING),
                     Waits(id, v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES)});
    return id;
  }
  agent::v1::AgentHello Back(const std::string& cluster, uint64_t job, int run = 1) {
    agent::v1::AgentHello hello = Hello(cluster);
    hello.add_runs()->set_run_key(Key(job, run));
    return hello;
  }
  std::vector<v1::TransitionKind> Kinds(uint64_t job) {
    std::vector<v1::TransitionKind> kinds;
    for (const v1::Transition& step : History(job)) {
      if (step.kind() == v1::TRANSITION_KIND_WITHDRAWAL_REQUESTED ||
          step.kind() == v1::TRANSITION_KIND_WITHDRAWN)
        kinds.push_back(step.kind());
    }
    return kinds;
  }

  Ticket ticket_ = 1'000'000;
  uint64_t sequence_ = 0;
};

TEST_F(WithdrawTest, ARunIsHeldThenEndedAndItsJobGoesToTheQueue) {
  const SessionId a = Connect("a");
  const uint64_t id = WaitingOn(a);
  ASSERT_TRUE(Move({id}).ok());
  EXPECT_THAT(ToldToHold(a), ElementsAre(Key(id)));
  EXPECT_THAT(Cancelled(a), IsEmpty()) << "it may have begun";
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_PENDING);
  EXPECT_EQ(Job(id).withdrawal().cause(), v1::WITHDRAWAL_CAUSE_USER);
  EXPECT_EQ(Job(id).withdrawal().user(), "bob");
  EXPECT_EQ(Job(id).state_reason().code(), v1::STATE_REASON_CODE_WITHDRAWING);
  Report(a, {SaysHeld(id)});
  EXPECT_THAT(Cancelled(a), ElementsAre(Key(id)));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_PENDING);
  const SessionId b = Connect("b");
  Do(SetCordon{.ticket = 1, .name = "a", .cordon = v1::ClusterCordon()});
  Report(a, {Says(id, v1::RUN_STATE_CANCELED)});
  EXPECT_THAT(Assigned(b), ElementsAre(Key(id, 2)));
  EXPECT_EQ(Job(id).cluster(), "b");
  EXPECT_FALSE(Job(id).has_withdrawal());
  EXPECT_THAT(Kinds(id),
              ElementsAre(v1::TRANSITION_KIND_WITHDRAWAL_REQUESTED, v1::TRANSITION_KIND_WITHDRAWN));
  EXPECT_EQ(History(id)[4].evidence().detail(), "moved by bob: slow");
}

TEST_F(WithdrawTest, ARunThatBeginsFirstGoesOn) {
  const SessionId a = Connect("a");
  const uint64_t id = WaitingOn(a);
  ASSERT_TRUE(Move({id}).ok());
  Report(a, {Says(id, v1::RUN_STATE_RUNNING)});
  EXPECT_THAT(ToldToHold(a, /*held=*/false), ElementsAre(Key(id)));
  EXPECT_THAT(Cancelled(a), IsEmpty());
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_RUNNING);
  EXPECT_FALSE(Job(id).has_withdrawal());
  EXPECT_THAT(History(id).at(5).evidence().detail(), HasSubstr("had begun"));
  Report(a, {Says(id, v1::RUN_STATE_SUCCEEDED)});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_SUCCEEDED);
}

TEST_F(WithdrawTest, ItOutlivesBrokerAndAgentAtEachStep) {
  SessionId a = Connect("a");
  const uint64_t id = WaitingOn(a);
  ASSERT_TRUE(Move({id}).ok());
  Restart();
  EXPECT_EQ(Job(id).withdrawal().user(), "bob");
  a = Connect(Back("a", id));
  EXPECT_THAT(ToldToHold(a), ElementsAre(Key(id)));
  EXPECT_THAT(Cancelled(a), IsEmpty());
  Report(a, {SaysHeld(id)});
  Restart();
  a = Connect(Back("a", id));
  EXPECT_THAT(ToldToHold(a), ElementsAre(Key(id)));
  EXPECT_THAT(Cancelled(a), ElementsAre(Key(id))) << "it is known to be held";
  // An agent that has lost its journal launches it held, if at all.
  Gone(a);
  a = Connect("a");
  ASSERT_EQ(Assignments(a).size(), 1u);
  EXPECT_TRUE(Assignments(a)[0].held());
  Report(a, {Says(id, v1::RUN_STATE_CANCELED)});
  EXPECT_EQ(Job(id).runs_size(), 2);
  Restart();
  EXPECT_FALSE(Job(id).has_withdrawal());
}

TEST_F(WithdrawTest, ACancelMeanwhileIsACancel) {
  const SessionId a = Connect("a");
  const uint64_t id = WaitingOn(a);
  ASSERT_TRUE(Move({id}).ok());
  EXPECT_TRUE(Cancel({id}).ok());
  EXPECT_FALSE(Job(id).has_withdrawal());
  Report(a, {Says(id, v1::RUN_STATE_CANCELED)});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_CANCELED);
}

TEST_F(WithdrawTest, AHoldMeanwhileStaysAHold) {
  const SessionId a = Connect("a");
  const uint64_t id = WaitingOn(a);
  ASSERT_TRUE(Move({id}).ok());
  EXPECT_TRUE(Hold({id}).ok());
  EXPECT_TRUE(Job(id).held());
  Report(a, {SaysHeld(id), Says(id, v1::RUN_STATE_CANCELED)});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_TRUE(Job(id).held());
  EXPECT_TRUE(Release({id}).ok());
  EXPECT_THAT(Assigned(a), ElementsAre(Key(id, 2)));
}

TEST_F(WithdrawTest, AReleaseMeanwhileLetsTheRunNotGo) {
  const SessionId a = Connect("a");
  const uint64_t id = WaitingOn(a);
  EXPECT_TRUE(Hold({id}).ok());
  Report(a, {SaysHeld(id)});
  ASSERT_TRUE(Move({id}).ok());
  EXPECT_THAT(Cancelled(a), ElementsAre(Key(id))) << "it is held already";
  EXPECT_TRUE(Release({id}).ok());
  EXPECT_THAT(ToldToHold(a, /*held=*/false), IsEmpty());
  Report(a, {Says(id, v1::RUN_STATE_CANCELED)});
  EXPECT_THAT(Assigned(a), ElementsAre(Key(id, 2)));
}

TEST_F(WithdrawTest, WhatIsKnownOfAnEarlierHoldIsNoProof) {
  const SessionId a = Connect("a");
  const uint64_t id = WaitingOn(a);
  EXPECT_TRUE(Hold({id}).ok());
  Report(a, {SaysHeld(id)});
  EXPECT_TRUE(Release({id}).ok());
  ASSERT_TRUE(Move({id}).ok());
  EXPECT_FALSE(Job(id).has_withdrawal()) << "it may begin at any time";
  Report(a, {Waits(id, v1::STATE_REASON_CODE_WAITS_FOR_TURN)});
  ASSERT_TRUE(Move({id}).ok());
  EXPECT_TRUE(Job(id).has_withdrawal());
}

TEST_F(WithdrawTest, RunsThatCameBackAreNoRetries) {
  v1::JobSpec spec = Spec();
  spec.mutable_retry()->set_max_runs(2);
  spec.mutable_retry()->mutable_backoff()->set_seconds(1);
  SessionId a = Connect("a");
  const uint64_t id = WaitingOn(a, spec);
  for (int run = 1; run <= 3; ++run) {
    ASSERT_TRUE(Move({id}).ok());
    Report(a, {SaysHeld(id, run), Says(id, v1::RUN_STATE_CANCELED, run)});
    ASSERT_THAT(Assigned(a), ElementsAre(Key(id, run + 1)));
    Report(a, {Says(id, v1::RUN_STATE_LAUNCHING, run + 1)});
  }
  Restart();
  a = Connect(Back("a", id, 4));
  Report(a, {InfraFailure(++sequence_, Key(id, 4))});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED) << "its second run of two";
}

TEST_F(WithdrawTest, OnlyJobsThatWaitOnAClusterAreMoved) {
  Gone(Connect("b"));
  const uint64_t queued = MustSubmit(SpecOn("b"));
  const SessionId a = Connect("a");
  const uint64_t running = WaitingOn(a, SpecOn("a"));
  Report(a, {Says(running, v1::RUN_STATE_RUNNING)});
  ASSERT_TRUE(Move({queued, running}).ok());
  EXPECT_FALSE(Job(queued).has_withdrawal());
  EXPECT_FALSE(Job(running).has_withdrawal());
  EXPECT_TRUE(absl::IsNotFound(Move({77})));
}

TEST_F(WithdrawTest, ADrainTakesBackWhatHasNeverBegun) {
  const SessionId a = Connect("a");
  const uint64_t runs = WaitingOn(a);
  Report(a, {Says(runs, v1::RUN_STATE_RUNNING)});
  const uint64_t waits = WaitingOn(a);
  Drain("a");
  EXPECT_THAT(ToldToHold(a), ElementsAre(Key(waits)));
  EXPECT_EQ(Job(waits).withdrawal().cause(), v1::WITHDRAWAL_CAUSE_DRAIN);
  EXPECT_FALSE(Job(runs).has_withdrawal());
  Restart();
  agent::v1::AgentHello hello = Back("a", runs);
  hello.add_runs()->set_run_key(Key(waits));
  const SessionId again = Connect(hello);
  EXPECT_THAT(ToldToHold(again), ElementsAre(Key(waits)));
  // Its scheduler puts it back into its queue: it has begun, and is no longer proved not to have.
  Report(again, {Says(runs, v1::RUN_STATE_PENDING)});
  Tick();
  EXPECT_THAT(ToldToHold(again), IsEmpty());
  EXPECT_FALSE(Job(runs).has_withdrawal());
}

TEST_F(WithdrawTest, ADrainTakesBackLaterWhatItCouldNotAtFirst) {
  const SessionId a = Connect("a");
  const uint64_t id = WaitingOn(a);
  EXPECT_TRUE(Hold({id}).ok());
  Report(a, {SaysHeld(id)});
  EXPECT_TRUE(Release({id}).ok());
  Drain("a");
  EXPECT_FALSE(Job(id).has_withdrawal());
  Report(a, {Waits(id, v1::STATE_REASON_CODE_WAITS_FOR_TURN)});
  Tick();
  EXPECT_THAT(ToldToHold(a), ElementsAre(Key(id)));
}

TEST_F(WithdrawTest, ARunIsTakenBackOnceAnotherClusterHasHadRoomForAWhile) {
  SessionId a = Connect("a");
  const uint64_t id = WaitingOn(a);
  const SessionId b = Connect("b");
  const auto pass = [&](int seconds) {
    for (int i = 0; i < seconds; i += 5) {
      now_ += absl::Seconds(5);
      Beat(a);
      Beat(b);
      Tick();
    }
  };
  pass(20);
  EXPECT_FALSE(Job(id).has_withdrawal());
  pass(20);
  EXPECT_EQ(Job(id).withdrawal().cause(), v1::WITHDRAWAL_CAUSE_SOONER_ELSEWHERE);
  EXPECT_THAT(History(id).back().evidence().detail(), HasSubstr("cluster \"b\" has had room"));
  Report(a, {SaysHeld(id), Says(id, v1::RUN_STATE_CANCELED)});
  EXPECT_EQ(Job(id).cluster(), "b") << "a looks as free as b, and let it wait";
}

TEST_F(WithdrawTest, AJobIsNotTakenBackForEver) {
  const SessionId a = Connect("a");
  const SessionId b = Connect("b");
  uint64_t of_a = 0, of_b = 0;
  const uint64_t id = MustSubmit(Spec());
  int moves = 0;
  for (int run = 1; run <= 6; ++run) {
    const bool is_on_a = Job(id).cluster() == "a";
    const SessionId here = is_on_a ? a : b;
    uint64_t& sequence = is_on_a ? of_a : of_b;
    auto waits = Event(sequence + 2, Key(id, run), v1::RUN_STATE_PENDING);
    waits.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES);
    Report(here, {Event(sequence + 1, Key(id, run), v1::RUN_STATE_LAUNCHING), waits});
    sequence += 2;
    for (int i = 0; i < 12; ++i) {
      now_ += absl::Seconds(5);
      Beat(a);
      Beat(b);
      Tick();
    }
    if (!Job(id).has_withdrawal()) break;
    ++moves;
    Report(here, {Event(++sequence, Key(id, run), v1::RUN_STATE_CANCELED)});
  }
  EXPECT_EQ(moves, 3);
}

}  // namespace
}  // namespace muster::core
