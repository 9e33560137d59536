// Changed inventories under a queue of jobs that all differ, without anything around the core.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "broker/core/core.h"
#include "broker/core/fit.h"
#include "tests/bench/tools/processor_time.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {
namespace {

constexpr uint64_t kOneGib = uint64_t{1} << 30;
// Half of the jobs need more than a node has after the change.
constexpr uint64_t kMostBefore = 64 * kOneGib;
constexpr uint64_t kMostAfter = 32 * kOneGib;

v1::Inventory InventoryWith(uint64_t memory_bytes) {
  v1::Inventory inventory;
  inventory.set_identity("bench");
  v1::Pool* pool = inventory.add_pools();
  pool->set_name("default");
  pool->set_is_default(true);
  pool->set_available(true);
  v1::NodeGroup* nodes = pool->add_node_groups();
  nodes->set_count(8);
  nodes->set_cpus(128);
  nodes->set_memory_bytes(memory_bytes);
  return inventory;
}

v1::JobSpec DifferentSpec(uint64_t number, uint64_t jobs) {
  v1::JobSpec spec = SampleSpec(number);
  spec.set_nodes(1);
  spec.mutable_resources()->set_memory_bytes(number * (kMostBefore / jobs));
  return spec;
}

}  // namespace

absl::Status RefitRounds(const Load& load) {
  core::Restored restored;
  restored.instance = "bench";
  core::Core core(core::Options(), std::move(restored));
  absl::Time now = absl::UnixEpoch();
  core::Output out;
  agent::v1::AgentHello hello;
  hello.set_protocol_version(1);
  hello.set_cluster("bench");
  hello.set_kind(v1::CLUSTER_KIND_MACHINES);
  hello.set_journal_id("bench");
  hello.set_max_active_runs(1);
  *hello.mutable_inventory() = InventoryWith(kMostBefore);
  core.Handle(core::AgentConnected{1, hello}, now, &out);
  for (uint64_t number = 1; number <= load.jobs; ++number) {
    core::Submit submit;
    submit.items.push_back(
        {.spec = std::make_shared<const v1::JobSpec>(DifferentSpec(number, load.jobs)),
         .request_id = ""});
    core.Handle(std::move(submit), now, &out);
    out = {};
  }
  // The first job is all that the agent takes.
  while (core.PlaceJobs(now, &out)) out = {};
  if (core.counters().groups != load.jobs) return absl::InternalError("some jobs are alike");

  core::AgentBeat beat{.session = 1, .heartbeat = {}};
  *beat.heartbeat.mutable_inventory() = InventoryWith(kMostAfter);
  const double message_ms = MillisecondsOf([&] { core.Handle(std::move(beat), now, &out); });
  double slowest_ms = 0;
  double all_ms = message_ms;
  int turns = 0;
  for (bool more = true; more; ++turns) {
    const double ms = MillisecondsOf([&] {
      more = core.PlaceJobs(now, &out);
      core.TakeShownClusters();
    });
    // As in the engine, the turn that takes the message goes on with a round of placement.
    slowest_ms = std::max(slowest_ms, turns == 0 ? message_ms + ms : ms);
    all_ms += ms;
    out = {};
  }
  core::PutCluster cluster;
  cluster.kind = v1::CLUSTER_KIND_MACHINES;
  cluster.inventory = InventoryWith(kMostAfter);
  core::Requirements requirements = core::RequirementsOf(DifferentSpec(1, load.jobs));
  uint64_t fitting = 0;
  const double checks_ms = MillisecondsOf([&] {
    for (uint64_t number = 1; number <= load.jobs; ++number) {
      requirements.memory_bytes = number * (kMostBefore / load.jobs);
      fitting += core::CheckFit(requirements, cluster).now() ? 1 : 0;
    }
  });
  fmt::print(
      "{{\"message_ms\": {:.3f}, \"slowest_ms\": {:.3f}, \"all_ms\": {:.3f}, \"turns\": {}, "
      "\"checks_ms\": {:.3f}, \"fitting\": {}}}\n",
      message_ms, slowest_ms, all_ms, turns, checks_ms, fitting);
  return absl::OkStatus();
}

}  // namespace muster::bench
