// What the engine makes of clocks that somebody sets.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "broker/engine/engine.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

constexpr std::chrono::seconds kPatience{60};

// Stands still unless the test moves it.
class TestClock {
 public:
  Instant Read() {
    std::lock_guard lock(mutex_);
    return now_;
  }
  void Advance(absl::Duration by) {
    std::lock_guard lock(mutex_);
    now_.wall += by;
    now_.steady += absl::ToChronoNanoseconds(by);
  }
  void SetWallClock(absl::Duration by) {
    std::lock_guard lock(mutex_);
    now_.wall += by;
  }

 private:
  std::mutex mutex_;
  Instant now_ = Now();
};

class SilentPeer : public AgentPeer {
 public:
  bool Send(v1::ConnectResponse) override { return true; }
  void Close(const absl::Status& status) override { closed_.set_value(status); }
  void Handled() override {}

  std::future<absl::Status> closed() { return closed_.get_future(); }

 private:
  std::promise<absl::Status> closed_;
};

// The parameter: by how many hours the wall clock is set while an agent is connected.
class SetClockTest : public ::testing::TestWithParam<int> {
 protected:
  SetClockTest() {
    EngineOptions options;
    options.tick_interval = absl::Milliseconds(1);
    options.clock = [this] { return clock_.Read(); };
    auto core = std::make_unique<core::Core>(core::Options{}, *store_.Restore(clock_.Read().wall));
    engine_ = std::make_unique<Engine>(
        options, std::move(core), &store_, [](const core::JobsChanged&) {},
        [](const absl::Status&) {});
    engine_->Start();
    v1::AgentHello hello;
    hello.set_protocol_version(1);
    hello.set_cluster("gpu");
    hello.set_kind(v1::CLUSTER_KIND_MACHINES);
    hello.set_journal_id("journal-1");
    hello.set_max_active_runs(1);
    hello.mutable_inventory()->set_identity("machine-gpu");
    engine_->Connect(hello, peer_);
  }

  // Answered after the core has handled a batch at the clock's time of this call, or later.
  v1::ClusterState StateOfCluster() {
    std::promise<v1::ClusterState> state;
    engine_->ListClusters([&](auto clusters) {
      state.set_value(clusters->empty() ? v1::CLUSTER_STATE_UNSPECIFIED
                                        : clusters->front().state());
    });
    return state.get_future().get();
  }

  TestClock clock_;
  GatedStore store_;
  std::shared_ptr<SilentPeer> peer_ = std::make_shared<SilentPeer>();
  std::unique_ptr<Engine> engine_;
};

TEST_P(SetClockTest, AgentsAreSilentAfterThePassedTimeAndNotForTheSetClock) {
  ASSERT_EQ(StateOfCluster(), v1::CLUSTER_STATE_CONNECTED);
  std::future<absl::Status> closed = peer_->closed();

  clock_.SetWallClock(absl::Hours(GetParam()));
  EXPECT_EQ(StateOfCluster(), v1::CLUSTER_STATE_CONNECTED);
  clock_.Advance(absl::Seconds(10));
  EXPECT_EQ(StateOfCluster(), v1::CLUSTER_STATE_CONNECTED);

  // No input wakes the core from here on: the engine's own ticks must find out.
  clock_.Advance(absl::Seconds(10));
  ASSERT_EQ(closed.wait_for(kPatience), std::future_status::ready) << "the ticks go on";
  EXPECT_EQ(closed.get().code(), absl::StatusCode::kDeadlineExceeded);
}

INSTANTIATE_TEST_SUITE_P(HoursForwardOrBack, SetClockTest, ::testing::Values(1, -1, 0));

}  // namespace
}  // namespace muster::broker
