#include "contract/errors.h"
#include "contract/text.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class HoldTest : public CoreTest {
 protected:
  uint64_t sequence_ = 0;  // of events
};

TEST_F(HoldTest, AHeldJobGetsNoRunUntilItIsReleased) {
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Hold({id}).ok());
  EXPECT_TRUE(Job(id).held());
  EXPECT_EQ(Job(id).state_reason().message(), "held by bob: not yet");
  const SessionId session = Connect("a");
  EXPECT_THAT(Assigned(session), IsEmpty());
  EXPECT_EQ(core_->counters().queued, 1u);
  EXPECT_TRUE(Release({id}).ok());
  EXPECT_THAT(Assigned(session), ElementsAre(Key(id)));
  EXPECT_FALSE(Job(id).held());
  const auto history = History(id);
  ASSERT_THAT(history, SizeIs(4));
  EXPECT_EQ(history[1].kind(), v1::TRANSITION_KIND_HOLD_REQUESTED);
  EXPECT_EQ(history[1].evidence().source(), v1::EVIDENCE_SOURCE_USER);
  EXPECT_EQ(history[2].kind(), v1::TRANSITION_KIND_RELEASE_REQUESTED);
  EXPECT_EQ(history[2].evidence().detail(), "released by carol");
}

TEST_F(HoldTest, AJobMayBeHeldFromTheStart) {
  const SessionId session = Connect("a");
  v1::JobSpec spec = Spec();
  spec.mutable_slurm()->mutable_batch_script();
  spec.mutable_slurm()->add_extra_options("--hold");
  const uint64_t id = MustSubmit(spec);
  EXPECT_THAT(Assigned(session), IsEmpty());
  EXPECT_TRUE(Job(id).held());
  EXPECT_EQ(History(id).back().kind(), v1::TRANSITION_KIND_HOLD_REQUESTED);
  EXPECT_TRUE(Release({id}).ok());
  EXPECT_THAT(Assigned(session), ElementsAre(Key(id)));
}

TEST_F(HoldTest, TheOthersOfItsGroupGoAhead) {
  const uint64_t first = MustSubmit(Spec());
  const uint64_t second = MustSubmit(Spec());
  EXPECT_TRUE(Hold({first}).ok());
  const SessionId session = Connect("a");
  EXPECT_THAT(Assigned(session), ElementsAre(Key(second)));
}

TEST_F(HoldTest, AReleasedJobHasItsOldPlaceInLine) {
  LetAllWaitOnClusters();
  std::vector<uint64_t> ids;
  for (int i = 0; i < 200; ++i) ids.push_back(MustSubmit(Spec()));
  const std::vector<uint64_t> some(ids.begin() + 50, ids.begin() + 150);
  EXPECT_TRUE(Hold(some).ok());
  EXPECT_TRUE(Release(some).ok());
  EXPECT_TRUE(Hold(some).ok());
  EXPECT_TRUE(Release({ids[60], ids[50]}).ok());
  agent::v1::AgentHello hello = Hello("a");
  hello.set_max_active_runs(60);
  const auto assigned = Assigned(Connect(hello));
  ASSERT_THAT(assigned, SizeIs(60));
  EXPECT_EQ(assigned[49], Key(ids[49]));
  EXPECT_EQ(assigned[50], Key(ids[50]));
  EXPECT_EQ(assigned[51], Key(ids[60]));
  EXPECT_EQ(assigned[52], Key(ids[150]));
}

TEST_F(HoldTest, WhoWaitsForAFullClusterHearsHowManyOfItsRunsAreHeld) {
  agent::v1::AgentHello hello = Hello("a");
  hello.set_max_active_runs(3);
  const SessionId session = Connect(hello);
  std::vector<uint64_t> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(MustSubmit(Spec()));
  EXPECT_THAT(Explain(ids[3]).message(), EndsWith("3 active runs of at most 3"));
  EXPECT_TRUE(Hold({ids[0], ids[1], ids[2]}).ok());
  EXPECT_THAT(Explain(ids[3]).message(), EndsWith("at most 3 (3 of them held)"));
  // One is released, one begins all the same: neither is held any longer.
  EXPECT_TRUE(Release({ids[0]}).ok());
  Report(session, {Event(1, Key(ids[1]), v1::RUN_STATE_LAUNCHING),
                   Event(2, Key(ids[1]), v1::RUN_STATE_RUNNING)});
  EXPECT_THAT(Explain(ids[3]).message(), EndsWith("(1 of them held)"));
  Restart();
  hello.add_runs()->set_run_key(Key(ids[0]));
  hello.add_runs()->set_run_key(Key(ids[1]));
  hello.add_runs()->set_run_key(Key(ids[2]));
  const SessionId again = Connect(hello);
  EXPECT_THAT(Explain(ids[3]).message(), EndsWith("(1 of them held)"));
  // A held run that ends without having begun leaves its place, and is not counted any longer.
  Report(again, {Event(3, Key(ids[2]), v1::RUN_STATE_CANCELED)});
  EXPECT_THAT(Assigned(again), ElementsAre(Key(ids[3])));
  const uint64_t next = MustSubmit(Spec());
  EXPECT_THAT(Explain(next).message(), EndsWith("3 active runs of at most 3"));
}

TEST_F(HoldTest, TheHoldOutlivesTheBroker) {
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Hold({id}).ok());
  Restart();
  const SessionId session = Connect("a");
  EXPECT_THAT(Assigned(session), IsEmpty());
  EXPECT_TRUE(Release({id}).ok());
  EXPECT_THAT(Assigned(session), ElementsAre(Key(id)));
}

TEST_F(HoldTest, ASecondWishChangesNothing) {
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Hold({id, id}).ok());
  EXPECT_THAT(History(id), SizeIs(2));
  EXPECT_TRUE(Hold({id}).ok());
  EXPECT_THAT(last_.changes, IsEmpty());
  EXPECT_TRUE(Release({id}).ok());
  EXPECT_TRUE(Release({id}).ok());
  EXPECT_THAT(last_.changes, IsEmpty());
}

TEST_F(HoldTest, AHeldJobCanBeCanceled) {
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Hold({id}).ok());
  EXPECT_TRUE(Cancel({id}).ok());
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_CANCELED);
  EXPECT_FALSE(Job(id).held());
  EXPECT_TRUE(Release({id}).ok()) << "a job that has ended is not held";
}

TEST_F(HoldTest, TheClusterOfAPendingJobIsToldAndToldAgain) {
  SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Hold({id}).ok());
  EXPECT_THAT(ToldToHold(session), ElementsAre(Key(id)));
  EXPECT_EQ(Job(id).state_reason().message(), "asked to hold; it is being handed to its cluster")
      << "it may start yet";
  Restart();
  agent::v1::AgentHello hello = Hello("a");
  hello.add_runs()->set_run_key(Key(id));
  session = Connect(hello);
  EXPECT_THAT(ToldToHold(session), ElementsAre(Key(id)));
  // The release, too, reaches an agent that was away.
  Gone(session);
  EXPECT_TRUE(Release({id}).ok());
  Restart();
  session = Connect(hello);
  EXPECT_THAT(ToldToHold(session), IsEmpty());
  EXPECT_THAT(ToldToHold(session, /*held=*/false), ElementsAre(Key(id)));
}

// Seed 810 of the simulation.
TEST_F(HoldTest, AReleaseReachesAnAgentThatHasLostItsJournal) {
  Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Hold({id}).ok());
  EXPECT_TRUE(Release({id}).ok());
  Restart();
  const SessionId session = Connect("a");
  ASSERT_THAT(Assignments(session), SizeIs(1));
  EXPECT_FALSE(Assignments(session)[0].held());
  EXPECT_THAT(ToldToHold(session, /*held=*/false), ElementsAre(Key(id)));
}

TEST_F(HoldTest, TheWishTravelsWithAnAssignmentThatIsSentAgain) {
  Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Hold({id}).ok());
  Restart();
  const auto assignments = Assignments(Connect("a"));
  ASSERT_THAT(assignments, SizeIs(1));
  EXPECT_TRUE(assignments[0].held());
}

TEST_F(HoldTest, AHoldThatComesTooLateEndsWhenTheJobStarts) {
  const SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  Report(session, {Event(1, Key(id), v1::RUN_STATE_LAUNCHING)});
  EXPECT_TRUE(Hold({id}).ok());
  Report(session, {Event(2, Key(id), v1::RUN_STATE_RUNNING)});
  EXPECT_FALSE(Job(id).held());
  EXPECT_THAT(ToldToHold(session, /*held=*/false), ElementsAre(Key(id)));
}

TEST_F(HoldTest, AHoldThatComesTooLateIsAStepOfTheHistoryBeforeTheStart) {
  const SessionId session = Connect("a");
  for (const v1::RunState begun :
       {v1::RUN_STATE_STARTING, v1::RUN_STATE_RUNNING, v1::RUN_STATE_SUCCEEDED}) {
    const uint64_t id = MustSubmit(Spec());
    Report(session, {Event(++sequence_, Key(id), v1::RUN_STATE_LAUNCHING)});
    EXPECT_TRUE(Hold({id}).ok());
    Report(session, {Event(++sequence_, Key(id), begun)});
    const auto history = History(id);
    ASSERT_GE(history.size(), 2u);
    const v1::Transition& late = history[history.size() - 2];
    EXPECT_EQ(late.kind(), v1::TRANSITION_KIND_RELEASE_REQUESTED);
    EXPECT_EQ(late.evidence().source(), v1::EVIDENCE_SOURCE_BROKER);
    EXPECT_EQ(late.evidence().detail(), "the hold came too late: run 1 had begun on cluster \"a\"");
    EXPECT_EQ(late.job_state(), v1::JOB_STATE_PENDING);
    EXPECT_EQ(history.back().run_state(), begun);
    EXPECT_FALSE(Job(id).held());
  }
}

TEST_F(HoldTest, AHoldThatIsKeptIsNotCalledLateWhenTheRunEndsWithoutHavingBegun) {
  const SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  Report(session,
         {Event(1, Key(id), v1::RUN_STATE_LAUNCHING), Event(2, Key(id), v1::RUN_STATE_PENDING)});
  EXPECT_TRUE(Hold({id}).ok());
  Report(session, {Event(3, Key(id), v1::RUN_STATE_FINISHING)});
  EXPECT_TRUE(Job(id).held());
  Report(session, {Event(4, Key(id), v1::RUN_STATE_CANCELED)});
  for (const v1::Transition& step : History(id))
    EXPECT_NE(step.kind(), v1::TRANSITION_KIND_RELEASE_REQUESTED);
}

TEST_F(HoldTest, ARunThatItsClusterHasBegunWithIsNotHeld) {
  const SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  Report(session,
         {Event(1, Key(id), v1::RUN_STATE_LAUNCHING), Event(2, Key(id), v1::RUN_STATE_STARTING)});
  const absl::Status status = Hold({id});
  EXPECT_EQ(ReasonOf(status), "NOT_WAITING");
  EXPECT_THAT(
      std::string(ToStd(status.message())),
      AllOf(HasSubstr("a node has it, or it is ending; to keep it back, cancel it and submit "
                      "it again as a job that is held"),
            Not(HasSubstr("the others"))));
  EXPECT_FALSE(Job(id).held());
}

TEST_F(HoldTest, JobsThatDoNotWaitAreNamedAndNoneIsHeld) {
  const SessionId session = Connect("a");
  const uint64_t running = MustSubmit(Spec());
  const uint64_t ended = MustSubmit(Spec());
  const uint64_t stopping = MustSubmit(Spec());
  const uint64_t pending = MustSubmit(Spec());
  Report(session, {Event(1, Key(running), v1::RUN_STATE_LAUNCHING),
                   Event(2, Key(running), v1::RUN_STATE_RUNNING),
                   Event(3, Key(ended), v1::RUN_STATE_FAILED)});
  EXPECT_TRUE(Cancel({stopping}).ok());
  const absl::Status status = Hold({pending, running, ended, stopping});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "NOT_WAITING");
  EXPECT_THAT(
      std::string(ToStd(status.message())),
      HasSubstr(
          "1 (RUNNING), 2 (has ended), 3 (is being canceled); nothing was held, hold the others"));
  const auto metadata = contract::GetErrorInfo(status)->metadata();
  EXPECT_EQ(metadata.at("jobs"), "1,2,3");
  EXPECT_EQ(metadata.at("count"), "3");
  EXPECT_FALSE(Job(pending).held());
}

TEST_F(HoldTest, ManyThatDoNotWaitAreCounted) {
  std::vector<uint64_t> ids;
  for (int i = 0; i < 30; ++i) ids.push_back(MustSubmit(Spec()));
  EXPECT_TRUE(Cancel(ids).ok());
  const absl::Status status = Hold(ids);
  EXPECT_THAT(std::string(ToStd(status.message())), HasSubstr(" and 20 more"));
  const auto metadata = contract::GetErrorInfo(status)->metadata();
  EXPECT_EQ(metadata.at("jobs"), "1,2,3,4,5,6,7,8,9,10");
  EXPECT_EQ(metadata.at("count"), "30");
}

TEST_F(HoldTest, AnUnknownJobRefusesTheWholeRequest) {
  const uint64_t id = MustSubmit(Spec());
  for (uint64_t unknown : {uint64_t{0}, id + 1}) {
    EXPECT_EQ(ReasonOf(Hold({id, unknown})), "UNKNOWN_JOB");
    EXPECT_EQ(ReasonOf(Release({id, unknown})), "UNKNOWN_JOB");
  }
  EXPECT_FALSE(Job(id).held());
}

TEST_F(HoldTest, AHeldJobThatWaitsForItsNextRunStaysHeldWhenTheTimeComes) {
  const SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Hold({id}).ok());
  Report(session, {InfraFailure(1, Key(id))});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
  EXPECT_TRUE(Job(id).held());
  now_ += absl::Seconds(10);
  Beat(session);
  Tick();
  EXPECT_THAT(Assigned(session), IsEmpty());
  EXPECT_TRUE(Release({id}).ok());
  EXPECT_THAT(Assigned(session), ElementsAre(Key(id, 2)));
}

TEST_F(HoldTest, AReleasedJobStillWaitsForItsTime) {
  const SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  Report(session, {InfraFailure(1, Key(id))});
  EXPECT_TRUE(Hold({id}).ok());
  EXPECT_TRUE(Release({id}).ok());
  EXPECT_THAT(Assigned(session), IsEmpty());
  EXPECT_TRUE(Job(id).has_retry_time());
}

}  // namespace
}  // namespace muster::core
