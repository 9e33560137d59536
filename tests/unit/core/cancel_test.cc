#include "broker/core/timestamps.h"
#include "contract/errors.h"
#include "tests/unit/core/core_fixture.h"

namespace muster::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CancelTest : public CoreTest {};

TEST_F(CancelTest, AQueuedJobEndsAtOnce) {
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Cancel({id}).ok());
  const v1::Job job = Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELED);
  EXPECT_TRUE(job.cancel_requested());
  EXPECT_TRUE(job.has_end_time());
  const auto history = History(id);
  ASSERT_THAT(history, SizeIs(2));
  EXPECT_EQ(history[1].kind(), v1::TRANSITION_KIND_CANCEL_REQUESTED);
  EXPECT_EQ(history[1].job_state(), v1::JOB_STATE_CANCELED);
  EXPECT_EQ(history[1].evidence().source(), v1::EVIDENCE_SOURCE_USER);
  EXPECT_EQ(history[1].evidence().detail(), "canceled by bob: enough");
  EXPECT_THAT(Assigned(Connect("a")), IsEmpty());
}

TEST_F(CancelTest, AnActiveJobEndsWhenItsClusterSaysSo) {
  const SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Cancel({id}).ok());
  EXPECT_THAT(Cancelled(session), ElementsAre(Key(id)));
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_PENDING);
  EXPECT_TRUE(Job(id).cancel_requested());
  Report(session, {Event(1, Key(id), v1::RUN_STATE_CANCELED)});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_CANCELED);
}

TEST_F(CancelTest, ARunThatSucceededMeanwhileKeepsItsEnd) {
  const SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Cancel({id}).ok());
  Report(session,
         {Event(1, Key(id), v1::RUN_STATE_LAUNCHING), Event(2, Key(id), v1::RUN_STATE_SUCCEEDED)});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(Job(id).cancel_requested());
}

// The agent had told of the failure before it heard of the cancel.
TEST_F(CancelTest, ARunThatFailedMeanwhileEndsItsJobAsCanceled) {
  const SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Cancel({id}).ok());
  now_ += absl::Seconds(7);
  agent::v1::RunEvent failure = InfraFailure(1, Key(id));
  SetTimestamp(now_ - absl::Seconds(5), failure.mutable_end_time());
  Report(session, {failure});
  const v1::Job job = Job(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELED);
  EXPECT_EQ(ToTime(job.end_time()), now_ - absl::Seconds(5));
  EXPECT_EQ(job.runs(0).state(), v1::RUN_STATE_FAILED) << "what the cluster said of the run stays";
  EXPECT_EQ(History(id).back().job_state(), v1::JOB_STATE_CANCELED);
  EXPECT_EQ(core_->counters().retries, 0u);
}

TEST_F(CancelTest, ARunThatIsLostEndsItsJobAsCanceled) {
  const SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Cancel({id}).ok());
  Report(session, {Event(1, Key(id), v1::RUN_STATE_LOST)});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_CANCELED);
  EXPECT_EQ(Job(id).runs(0).state(), v1::RUN_STATE_LOST);
}

TEST_F(CancelTest, ACancelThatIsOnDiskEndsTheJobAsCanceledAfterARestart) {
  Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Cancel({id}).ok());
  Restart();
  agent::v1::AgentHello hello = Hello("a");
  hello.add_runs()->set_run_key(Key(id));
  Report(Connect(hello), {InfraFailure(1, Key(id))});
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_CANCELED);
}

TEST_F(CancelTest, TheWishIsSentAgainOnConnectionForARunThatTheAgentHolds) {
  Gone(Connect("a"));
  Connect("a");
  const uint64_t id = MustSubmit(Spec());
  Gone(2);
  EXPECT_TRUE(Cancel({id}).ok());
  Restart();
  agent::v1::AgentHello hello = Hello("a");
  hello.add_runs()->set_run_key(Key(id));
  const SessionId session = Connect(hello);
  EXPECT_THAT(Cancelled(session), ElementsAre(Key(id)));
  EXPECT_THAT(Assigned(session), IsEmpty());
}

TEST_F(CancelTest, TheWishTravelsWithAnAssignmentThatIsSentAgain) {
  Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Cancel({id}).ok());
  Restart();
  const SessionId session = Connect("a");
  const auto assignments = Assignments(session);
  ASSERT_THAT(assignments, SizeIs(1));
  EXPECT_TRUE(assignments[0].cancel_requested());
  EXPECT_THAT(Cancelled(session), IsEmpty());
}

TEST_F(CancelTest, AnUnknownJobRefusesTheWholeRequest) {
  const uint64_t id = MustSubmit(Spec());
  for (uint64_t unknown : {uint64_t{0}, id + 1}) {
    const absl::Status status = Cancel({id, unknown});
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(contract::GetErrorInfo(status)->metadata().at("job_id"), std::to_string(unknown));
    EXPECT_THAT(last_.changes, IsEmpty());
  }
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_QUEUED);
}

TEST_F(CancelTest, AJobThatHasEndedIsLeftAsItIs) {
  const SessionId session = Connect("a");
  const uint64_t id = MustSubmit(Spec());
  Report(session, {Event(1, Key(id), v1::RUN_STATE_FAILED)});
  EXPECT_TRUE(Cancel({id}).ok());
  EXPECT_THAT(last_.changes, IsEmpty());
  EXPECT_EQ(Job(id).state(), v1::JOB_STATE_FAILED);
}

TEST_F(CancelTest, ASecondWishChangesNothing) {
  Connect("a");
  const uint64_t id = MustSubmit(Spec());
  EXPECT_TRUE(Cancel({id, id}).ok());
  EXPECT_THAT(History(id), SizeIs(3));
  EXPECT_TRUE(Cancel({id}).ok());
  EXPECT_THAT(last_.changes, IsEmpty());
}

TEST_F(CancelTest, TheCancelMakesRoomInTheQueue) {
  const uint64_t id = MustSubmit(Spec());
  EXPECT_EQ(core_->counters().queued, 1u);
  EXPECT_TRUE(Cancel({id}).ok());
  EXPECT_EQ(core_->counters().queued, 0u);
}

}  // namespace
}  // namespace muster::core
