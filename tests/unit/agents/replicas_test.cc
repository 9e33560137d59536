#include <gmock/gmock.h>

#include "agents/core/run_events.h"
#include "contract/sentences.h"
#include "tests/unit/agents/core_harness.h"

namespace muster::agents {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class ReplicasTest : public testing::Test, protected CoreHarness {
 protected:
  ReplicasTest() {
    Connect();
    Have(1);
  }
  static Observation WithPhases(v1::RunState state, const std::vector<std::string>& phases) {
    Observation seen = Saw(1, state);
    for (const std::string& phase : phases) {
      v1::Replica& replica = seen.replicas.emplace_back();
      replica.set_rank(static_cast<uint32_t>(seen.replicas.size() - 1));
      replica.set_phase(phase);
    }
    return seen;
  }
};

TEST_F(ReplicasTest, TheirChangeAloneIsAnEventAndARepetitionIsNone) {
  const Observation pending = WithPhases(v1::RUN_STATE_PENDING, {"Pending", "Pending"});
  Observe(pending);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].replicas_size(), 2);
  Observe(pending);
  EXPECT_THAT(NewEvents(), IsEmpty());
  After(kMinReplicasInterval);
  EXPECT_THAT(NewEvents(), IsEmpty());
  Observe(1, v1::RUN_STATE_PENDING);
  EXPECT_THAT(NewEvents(), IsEmpty()) << "none means that they have not changed";
}

TEST_F(ReplicasTest, WhatChangesSoonAfterTheLastWereToldIsToldOnceLater) {
  Observe(WithPhases(v1::RUN_STATE_PENDING, {"Pending", "Pending"}));
  Observe(WithPhases(v1::RUN_STATE_PENDING, {"Pending", "Running"}));
  EXPECT_THAT(NewEvents(), IsEmpty());
  Observation also = WithPhases(v1::RUN_STATE_PENDING, {"Running", "Running"});
  also.reason = contract::MakeReason(v1::STATE_REASON_CODE_OTHER, {.detail = "about to run"});
  Observe(also);
  ASSERT_THAT(NewEvents(), SizeIs(1)) << "the reason is not kept back";
  EXPECT_EQ(NewEvents()[0].replicas_size(), 0);
  After(kMinReplicasInterval / 2);
  EXPECT_THAT(NewEvents(), IsEmpty());
  After(kMinReplicasInterval / 2);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].state(), v1::RUN_STATE_PENDING);
  EXPECT_EQ(NewEvents()[0].replicas(0).phase(), "Running");
  EXPECT_EQ(NewEvents()[0].evidence().source(), v1::EVIDENCE_SOURCE_PROCESS);
  After(kMinReplicasInterval);
  EXPECT_THAT(NewEvents(), IsEmpty());
}

TEST_F(ReplicasTest, WhatChangesBackBeforeItIsToldIsNotTold) {
  Observe(WithPhases(v1::RUN_STATE_PENDING, {"Pending"}));
  Observe(WithPhases(v1::RUN_STATE_PENDING, {"Unknown"}));
  Observe(WithPhases(v1::RUN_STATE_PENDING, {"Pending"}));
  After(kMinReplicasInterval);
  EXPECT_THAT(NewEvents(), IsEmpty());
}

TEST_F(ReplicasTest, AChangeOfStateTellsThemAtOnce) {
  Observe(WithPhases(v1::RUN_STATE_PENDING, {"Pending"}));
  Observe(WithPhases(v1::RUN_STATE_PENDING, {"Unknown"}));
  Observe(1, v1::RUN_STATE_RUNNING);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].replicas(0).phase(), "Unknown") << "those that had to wait";
  Observe(WithPhases(v1::RUN_STATE_SUCCEEDED, {"Succeeded"}));
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].replicas(0).phase(), "Succeeded");
}

TEST_F(ReplicasTest, ARunThatIsQueuedAnewDoesNotTellOfItsOldPods) {
  Observe(WithPhases(v1::RUN_STATE_RUNNING, {"Running"}));
  Observe(WithPhases(v1::RUN_STATE_RUNNING, {"Unknown"}));
  Observe(1, v1::RUN_STATE_PENDING);
  ASSERT_THAT(NewEvents(), SizeIs(1));
  EXPECT_EQ(NewEvents()[0].replicas_size(), 0);
  After(kMinReplicasInterval);
  EXPECT_THAT(NewEvents(), IsEmpty());
}

TEST_F(ReplicasTest, ARunThatIsLetGoHasNothingMoreToTell) {
  Observe(WithPhases(v1::RUN_STATE_PENDING, {"Pending"}));
  Observe(WithPhases(v1::RUN_STATE_PENDING, {"Unknown"}));
  Release(1);
  CancelAsked(1);
  Observe(WithPhases(v1::RUN_STATE_PENDING, {"Running"}));
  Observe(1, v1::RUN_STATE_CANCELED);
  EXPECT_FALSE(Holds(1));
  After(kMinReplicasInterval);
  EXPECT_THAT(NewEvents(), IsEmpty());
}

TEST_F(ReplicasTest, TheirTextsAreMadeUtf8) {
  Observation seen = WithPhases(v1::RUN_STATE_PENDING, {"Pending"});
  seen.replicas[0].mutable_issue()->set_message("cut in a character: \xc3");
  Observe(seen);
  EXPECT_EQ(NewEvents()[0].replicas(0).issue().message(), "cut in a character: ?");
}

}  // namespace
}  // namespace muster::agents
