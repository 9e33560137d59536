// Sets up an engine without gRPC, on a memory store, by the test's clock, and an agent.
#ifndef MUSTER_TESTS_UNIT_RPC_ENGINE_FIXTURE_H_
#define MUSTER_TESTS_UNIT_RPC_ENGINE_FIXTURE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <utility>

#include "broker/engine/engine.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {

// Long enough for the slowest machine.
inline constexpr std::chrono::seconds kPatience{60};

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
  bool Send(agent::v1::ConnectResponse) override { return true; }
  void Close(const absl::Status& status) override { closed_.set_value(status); }
  void Handled() override {}
  void Ask(agent::v1::AgentQuestion, std::chrono::steady_clock::time_point, Answered) override {}

  std::future<absl::Status> closed() { return closed_.get_future(); }

 private:
  std::promise<absl::Status> closed_;
};

class EngineTest : public ::testing::Test {
 protected:
  // Starts the engine with another clock and shorter ticks than in `options`, and connects the
  // agent.
  void Start(EngineOptions options = {}) {
    options.tick_interval = absl::Milliseconds(1);
    options.clock = [this] { return clock_.Read(); };
    auto core = std::make_unique<core::Core>(core::Options{}, *store_.Restore(clock_.Read().wall));
    engine_ = std::make_unique<Engine>(
        std::move(options), std::move(core), &store_, [](const core::JobsChanged&) {},
        [](const absl::Status&) {});
    engine_->Start();
    agent::v1::AgentHello hello;
    hello.set_protocol_version(1);
    hello.set_cluster("gpu");
    hello.set_kind(v1::CLUSTER_KIND_MACHINES);
    hello.set_journal_id("journal-1");
    hello.set_max_active_runs(1);
    hello.mutable_inventory()->set_identity("machine-gpu");
    v1::Pool& pool = *hello.mutable_inventory()->add_pools();
    pool.set_name("default");
    pool.set_is_default(true);
    pool.set_available(true);
    v1::NodeGroup& nodes = *pool.add_node_groups();
    nodes.set_count(1);
    nodes.set_usable_count(1);
    nodes.set_cpus(4);
    session_ = engine_->Connect(hello, peer_);
  }

  // Stops before the objects go that a test's callbacks use.
  void TearDown() override { engine_.reset(); }

  // Answered after the core has handled a batch at the clock's time of this call, or later.
  v1::ClusterState StateOfCluster() {
    std::promise<void> handled;
    engine_->Cancel({.ticket = 0, .jobs = {}, .reason = "", .user = ""},
                    [&](const absl::Status&) { handled.set_value(); });
    handled.get_future().wait();
    const auto cluster = core::Find("gpu", *engine_->clusters());
    return cluster ? cluster->state() : v1::CLUSTER_STATE_UNSPECIFIED;
  }

  TestClock clock_;
  GatedStore store_;
  std::shared_ptr<SilentPeer> peer_ = std::make_shared<SilentPeer>();
  core::SessionId session_ = 0;
  std::unique_ptr<Engine> engine_;
};

}  // namespace muster::broker

#endif  // MUSTER_TESTS_UNIT_RPC_ENGINE_FIXTURE_H_
