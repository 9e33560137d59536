// A cluster refuses a run, and another one takes its job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "broker/core/timestamps.h"
#include "contract/failures.h"
#include "contract/launch_refusals.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RefuseTest : public CoreTest {
 protected:
  RefuseTest() {
    a_ = Connect("a");
    b_ = Connect("b");
  }

  // The agent says that its cluster refuses the run, with its logs complete, as agents do.
  agent::v1::RunEvent Refusal(uint64_t sequence, const std::string& key, bool passes = false) {
    agent::v1::RunEvent event = LogsComplete(sequence, key, v1::RUN_STATE_FAILED);
    *event.mutable_failure() = contract::MakeFailure(
        v1::FAILURE_CODE_LAUNCH_REFUSED, v1::FAILURE_CLASS_CONFIG,
        {.detail = "Job violates accounting/QOS policy (job submit limit, ...)",
         .meaning = "it is over a limit of its account or QOS",
         .is_retriable = passes});
    event.mutable_failure()->set_remedy("Use another QOS.");
    SetTimestamp(now_, event.mutable_end_time());
    return event;
  }
  void Refuse(SessionId session, uint64_t job, int run, bool passes = false) {
    Report(session, {Refusal(++(session == a_ ? of_a_ : of_b_), Key(job, run), passes)});
  }
  void Pass(absl::Duration time) {
    now_ += time;
    Beat(a_);
    Beat(b_);
    Tick();
  }
  // A job whose first run "a" has refused. "b" takes no runs meanwhile.
  uint64_t RefusedByA(bool passes = false) {
    Cordon("b", true);
    const uint64_t id = MustSubmit(Spec());
    EXPECT_THAT(Assigned(a_), ElementsAre(Key(id)));
    Refuse(a_, id, 1, passes);
    EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
    return id;
  }
  void Cordon(const std::string& cluster, bool is_on) {
    SetCordon wish{.ticket = ++ticket_, .name = cluster};
    if (is_on) wish.cordon = v1::ClusterCordon();
    Do(std::move(wish));
  }

  SessionId a_ = 0, b_ = 0;
  uint64_t of_a_ = 0, of_b_ = 0;
  Ticket ticket_ = 1'000'000;
};

TEST_F(RefuseTest, AnotherClusterTakesTheJobAtOnce) {
  const uint64_t id = MustSubmit(Spec());
  ASSERT_THAT(Assigned(a_), ElementsAre(Key(id)));
  Refuse(a_, id, 1);
  EXPECT_THAT(Assigned(b_), ElementsAre(Key(id, 2)));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_PENDING);
  const auto history = History(id);
  ASSERT_THAT(history, SizeIs(5));
  EXPECT_EQ(history[3].kind(), v1::TRANSITION_KIND_RETRY);
  EXPECT_THAT(history[3].evidence().detail(),
              HasSubstr("another cluster may take it, because cluster a refused run 1 (The cluster "
                        "refused the run"));
  EXPECT_THAT(history[3].evidence().detail(), HasSubstr("Job violates accounting/QOS policy"));
}

TEST_F(RefuseTest, ARefusedRunIsNoneOfThoseThatARetryCounts) {
  v1::JobSpec spec = Spec();
  spec.mutable_retry()->set_max_runs(1);
  const uint64_t id = MustSubmit(spec);
  Refuse(a_, id, 1);
  ASSERT_THAT(Assigned(b_), ElementsAre(Key(id, 2)));
  Report(b_, {InfraFailure(++of_b_, Key(id, 2))});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Job(id).failure().after_runs(), 0u);
}

TEST_F(RefuseTest, TheJobFailsAsBeforeIfNoOtherClusterCouldEverTakeIt) {
  const uint64_t id = MustSubmit(SpecOn("a"));
  Refuse(a_, id, 1);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(Job(id).failure().code(), v1::FAILURE_CODE_LAUNCH_REFUSED);
  EXPECT_EQ(Job(id).failure().remedy(), "Use another QOS.");
}

TEST_F(RefuseTest, TheJobFailsWithTheLastRefusalIfAllClustersRefuseIt) {
  const uint64_t id = MustSubmit(Spec());
  Refuse(a_, id, 1);
  Refuse(b_, id, 2);
  const v1::Job job = Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.cluster(), "b");
  EXPECT_THAT(job.runs(), SizeIs(2));
}

TEST_F(RefuseTest, ACauseInTheJobEndsIt) {
  const uint64_t id = MustSubmit(Spec());
  agent::v1::RunEvent event = Refusal(++of_a_, Key(id));
  *event.mutable_failure() =
      contract::MakeFailure(v1::FAILURE_CODE_JOB_INVALID, v1::FAILURE_CLASS_CONFIG);
  Report(a_, {event});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_FAILED);
}

TEST_F(RefuseTest, AJobThatIsBeingCanceledIsCanceled) {
  const uint64_t id = MustSubmit(Spec());
  ASSERT_TRUE(Cancel({id}).ok());
  Refuse(a_, id, 1);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_CANCELED);
}

TEST_F(RefuseTest, AHeldJobStaysHeld) {
  const uint64_t id = MustSubmit(Spec());
  ASSERT_TRUE(Hold({id}).ok());
  Refuse(a_, id, 1);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_THAT(Assigned(b_), IsEmpty());
  ASSERT_TRUE(Release({id}).ok());
  EXPECT_THAT(Assigned(b_), ElementsAre(Key(id, 2)));
}

TEST_F(RefuseTest, TheClusterThatRefusedIsAskedAgainAfterAnHourThenAfterTwo) {
  const uint64_t id = RefusedByA();
  Pass(absl::Hours(1) - absl::Seconds(1));
  EXPECT_THAT(Assigned(a_), IsEmpty());
  Pass(absl::Seconds(1));
  ASSERT_THAT(Assigned(a_), ElementsAre(Key(id, 2)));
  Refuse(a_, id, 2);
  Pass(absl::Hours(2) - absl::Seconds(1));
  EXPECT_THAT(Assigned(a_), IsEmpty());
  Pass(absl::Seconds(1));
  EXPECT_THAT(Assigned(a_), ElementsAre(Key(id, 3)));
}

TEST_F(RefuseTest, ACauseThatPassesRulesTheClusterOutForAMinute) {
  const uint64_t id = RefusedByA(/*passes=*/true);
  EXPECT_FALSE(Job(id).has_retry_time());
  Pass(absl::Minutes(1) - absl::Seconds(1));
  EXPECT_THAT(Assigned(a_), IsEmpty());
  Pass(absl::Seconds(1));
  EXPECT_THAT(Assigned(a_), ElementsAre(Key(id, 2)));
}

TEST_F(RefuseTest, ACauseThatPassesIsWaitedForWhereNoOtherClusterCouldTakeTheJob) {
  const uint64_t id = MustSubmit(SpecOn("a"));
  Refuse(a_, id, 1, /*passes=*/true);
  EXPECT_EQ(ToTime(Job(id).retry_time()), now_ + absl::Seconds(10));
  now_ += absl::Seconds(10);
  EXPECT_THAT(Explain(id).message(), ::testing::Not(HasSubstr("refused"))) << "it is asked again";
}

TEST_F(RefuseTest, OtherJobsOfTheSameKindStillGoThere) {
  RefusedByA();
  const uint64_t other = MustSubmit(Spec());
  EXPECT_THAT(Assigned(a_), ElementsAre(Key(other)));
}

TEST_F(RefuseTest, TheReasonHasTheClustersWordsItsRemedyAndTheTime) {
  const uint64_t id = RefusedByA();
  const v1::StateReason reason = Explain(id);
  ASSERT_THAT(reason.clusters(), SizeIs(2));
  EXPECT_EQ(reason.clusters(0).code(), v1::STATE_REASON_CODE_CLUSTER_CORDONED);
  const v1::StateReason& refused = reason.clusters(1);
  EXPECT_EQ(refused.cluster(), "a");
  EXPECT_EQ(refused.code(), v1::STATE_REASON_CODE_CANNOT_START);
  EXPECT_THAT(refused.message(), HasSubstr("it refused run 1: The cluster refused the run"));
  EXPECT_THAT(refused.message(), HasSubstr("Job violates accounting/QOS policy"));
  EXPECT_THAT(refused.message(), HasSubstr("; it is asked again from 2025-06-15T16:06:40Z on"));
  EXPECT_EQ(refused.remedy(), "Use another QOS.");
  EXPECT_EQ(ToTime(refused.until()), now_ + absl::Hours(1));
}

TEST_F(RefuseTest, ARestartForgetsNothingOfIt) {
  const uint64_t id = RefusedByA();
  Restart();
  a_ = Connect("a");
  b_ = Connect("b");
  EXPECT_THAT(Assigned(a_), IsEmpty());
  Pass(absl::Hours(1) - absl::Seconds(1));
  EXPECT_THAT(Assigned(a_), IsEmpty());
  Pass(absl::Seconds(1));
  ASSERT_THAT(Assigned(a_), ElementsAre(Key(id, 2)));
  Refuse(a_, id, 2);
  Restart();
  a_ = Connect("a");
  b_ = Connect("b");
  Pass(absl::Hours(2) - absl::Seconds(1));
  EXPECT_THAT(Assigned(a_), IsEmpty()) << "it has refused two runs";
  Pass(absl::Seconds(1));
  EXPECT_THAT(Assigned(a_), ElementsAre(Key(id, 3)));
}

TEST_F(RefuseTest, AClusterWhoseTimeHasComeDuringARestartIsAskedAtTheFirstTick) {
  const uint64_t id = RefusedByA();
  now_ += absl::Hours(2);
  Restart();
  a_ = Connect("a");
  EXPECT_THAT(Assigned(a_), IsEmpty());
  Tick();
  EXPECT_THAT(Assigned(a_), ElementsAre(Key(id, 2)));
}

TEST_F(RefuseTest, ARestartFindsJobsOfOneKindOfWhichTheFirstWasRefused) {
  const uint64_t refused = RefusedByA();
  const uint64_t other = MustSubmit(Spec());
  const uint64_t third = MustSubmit(Spec());
  Restart();
  EXPECT_THAT(Explain(refused).message(), HasSubstr("it refused run 1"));
  a_ = Connect("a");
  b_ = Connect("b");
  Cordon("b", false);
  for (const uint64_t id : {refused, other, third})
    EXPECT_EQ(Job(id).state(), v1::JOB_STATE_PENDING) << id;
  EXPECT_EQ(Job(refused).cluster(), "b");
}

TEST_F(RefuseTest, AClusterThatIsDueAgainKeepsTheJobFromFailingBeforeTheTickThatSaysSo) {
  const uint64_t id = RefusedByA();
  Cordon("a", true);
  Cordon("b", false);
  ASSERT_THAT(Assigned(b_), ElementsAre(Key(id, 2)));
  now_ += absl::Hours(1);
  Refuse(b_, id, 2);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
  Cordon("a", false);
  EXPECT_THAT(Assigned(a_), ElementsAre(Key(id, 3)));
}

TEST_F(RefuseTest, NoJobWaitsForAClusterThatIsAwayForLong) {
  Gone(b_);
  now_ += absl::Minutes(14);
  Beat(a_);
  const uint64_t early = MustSubmit(Spec());
  Refuse(a_, early, 1);
  EXPECT_EQ(Job(early).state(), v1::JOB_STATE_QUEUED);
  now_ += absl::Minutes(1);
  Beat(a_);
  const uint64_t late = MustSubmit(Spec());
  Refuse(a_, late, 1);
  EXPECT_EQ(Job(late).state(), v1::JOB_STATE_FAILED);
}

TEST_F(RefuseTest, TheTimeCountsByTheBrokersClock) {
  Cordon("b", true);
  const uint64_t id = MustSubmit(Spec());
  agent::v1::RunEvent event = Refusal(++of_a_, Key(id), /*passes=*/true);
  SetTimestamp(now_ - absl::Minutes(10), event.mutable_end_time());
  Report(a_, {event});
  EXPECT_EQ(ToTime(Job(id).runs(0).end_time()), now_);
  Pass(absl::Seconds(59));
  EXPECT_THAT(Assigned(a_), IsEmpty());
  Pass(absl::Seconds(1));
  EXPECT_THAT(Assigned(a_), ElementsAre(Key(id, 2)));
}

TEST_F(RefuseTest, ACauseThatPassesRulesTheClusterOutForTenMinutesAtMost) {
  const uint64_t id = RefusedByA(/*passes=*/true);
  for (int run = 2; run <= 6; ++run) {
    Pass(absl::Minutes(10));
    ASSERT_THAT(Assigned(a_), ElementsAre(Key(id, run)));
    Refuse(a_, id, run, /*passes=*/true);
  }
}

TEST_F(RefuseTest, AClockThatIsSetLeavesTheTimeAsItIs) {
  const uint64_t id = RefusedByA();
  now_ += absl::Hours(3);
  core::Tick tick;
  tick.clock_set_by = absl::Hours(3);
  Do(tick);
  EXPECT_THAT(Assigned(a_), IsEmpty());
  Pass(absl::Hours(1) - absl::Seconds(1));
  EXPECT_THAT(Assigned(a_), IsEmpty());
  Pass(absl::Seconds(1));
  EXPECT_THAT(Assigned(a_), ElementsAre(Key(id, 2)));
}

TEST_F(RefuseTest, RefusalsAreNoReturns) {
  // "a" has a queue of its own and takes one run; another waits there until "b" is open.
  const uint64_t id = RefusedByA();
  for (int run = 2; run <= 4; ++run) {
    Pass(absl::Hours(24));
    ASSERT_THAT(Assigned(a_), ElementsAre(Key(id, run)));
    Refuse(a_, id, run);
  }
  Pass(absl::Hours(24));
  ASSERT_THAT(Assigned(a_), ElementsAre(Key(id, 5)));
  agent::v1::RunEvent waits = Event(++of_a_, Key(id, 5), v1::RUN_STATE_LAUNCHING);
  agent::v1::RunEvent queues = Event(++of_a_, Key(id, 5), v1::RUN_STATE_PENDING);
  queues.mutable_state_reason()->set_code(v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES);
  Report(a_, {waits, queues});
  Cordon("b", false);
  Pass(absl::Seconds(1));
  Pass(absl::Seconds(30));
  EXPECT_EQ(Job(id).withdrawal().cause(), v1::WITHDRAWAL_CAUSE_SOONER_ELSEWHERE);
}

TEST_F(RefuseTest, TheSixtyFifthRefusalIsTheJobsEnd) {
  const uint64_t id = RefusedByA();
  for (uint32_t run = 2; run <= contract::kMostRefusals; ++run) {
    Pass(contract::kLatestAskedAgain);
    ASSERT_THAT(Assigned(a_), ElementsAre(Key(id, static_cast<int>(run))));
    Refuse(a_, id, static_cast<int>(run));
    ASSERT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED) << run;
  }
  Pass(contract::kLatestAskedAgain);
  Refuse(a_, id, contract::kMostRefusals + 1);
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_FAILED);
}

TEST_F(RefuseTest, ARunThatHasBegunWasNotRefused) {
  const uint64_t id = MustSubmit(Spec());
  agent::v1::RunEvent event = Refusal(++of_a_, Key(id));
  SetTimestamp(now_, event.mutable_start_time());
  Report(a_, {event});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_FAILED);
}

}  // namespace
}  // namespace muster::core
