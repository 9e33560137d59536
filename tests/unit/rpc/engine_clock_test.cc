// Tests the engine with clocks that somebody sets.
#include "tests/unit/rpc/engine_fixture.h"

namespace muster::broker {
namespace {

// The parameter says by how many hours the wall clock is set while an agent is connected.
class SetClockTest : public EngineTest, public ::testing::WithParamInterface<int> {};

TEST_P(SetClockTest, AgentsAreSilentAfterThePassedTimeAndNotForTheSetClock) {
  Start();
  ASSERT_EQ(StateOfCluster(), v1::CLUSTER_STATE_CONNECTED);
  std::future<absl::Status> closed = peer_->closed();

  clock_.SetWallClock(absl::Hours(GetParam()));
  EXPECT_EQ(StateOfCluster(), v1::CLUSTER_STATE_CONNECTED);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(StateOfCluster(), v1::CLUSTER_STATE_CONNECTED);

  // No input wakes the core from here on, so the engine's own ticks must find out.
  clock_.Advance(absl::Seconds(10));
  ASSERT_EQ(closed.wait_for(kPatience), std::future_status::ready) << "the ticks go on";
  EXPECT_EQ(closed.get().code(), absl::StatusCode::kDeadlineExceeded);
}

INSTANTIATE_TEST_SUITE_P(HoursForwardOrBack, SetClockTest, ::testing::Values(1, -1, 0));

}  // namespace
}  // namespace muster::broker
