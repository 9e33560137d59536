// Changed inventories under a queue of jobs that all differ, without anything around the core.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "broker/core/core.h"
#include "broker/core/fit.h"
#include "contract/refusals.h"
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

// Processor time of the core's thread, in milliseconds.
struct Turns {
  double message_ms = 0;
  double slowest_ms = 0;
  double all_ms = 0;
  int count = 0;
  absl::Status reply;  // OK if the message has none
};

// Gives the core a message, then as many rounds of placement as it asks for.
Turns HandleToTheEnd(core::Input message, absl::Time now, core::Core& core) {
  core::Output out;
  Turns turns;
  turns.message_ms = MillisecondsOf([&] { core.Handle(std::move(message), now, &out); });
  turns.all_ms = turns.message_ms;
  for (const core::Effect& effect : out.effects) {
    if (const auto* reply = std::get_if<core::StatusReply>(&effect))
      turns.reply = contract::ToStatus(reply->refusal);
  }
  for (bool more = true; more; ++turns.count) {
    const double ms = MillisecondsOf([&] {
      more = core.PlaceJobs(now, &out);
      core.TakeShownClusters(now);
    });
    // The turn that takes the message goes on with a round of placement, as in the engine.
    const double turn_ms = turns.count == 0 ? turns.message_ms + ms : ms;
    turns.slowest_ms = std::max(turns.slowest_ms, turn_ms);
    turns.all_ms += ms;
    out = {};
  }
  return turns;
}

core::AgentConnected Connection(core::SessionId session, const std::string& cluster) {
  core::AgentConnected connected{.session = session, .hello = {}};
  connected.hello.set_protocol_version(1);
  connected.hello.set_cluster(cluster);
  connected.hello.set_kind(v1::CLUSTER_KIND_MACHINES);
  connected.hello.set_journal_id(cluster);
  connected.hello.set_max_active_runs(1);
  *connected.hello.mutable_inventory() = InventoryWith(kMostBefore);
  return connected;
}

// Forgets a cluster that all jobs fit, and that none was given.
Turns ForgetACluster(absl::Time now, core::Core& core) {
  core::Output out;
  core.Handle(Connection(2, "away"), now, &out);
  HandleToTheEnd(core::AgentGone{2}, now, core);
  return HandleToTheEnd(core::ForgetCluster{.ticket = 1, .name = "away"}, now, core);
}

}  // namespace

absl::Status RefitRounds(const Load& load) {
  core::Restored restored;
  restored.instance = "bench";
  core::Core core(core::Options(), std::move(restored));
  absl::Time now = absl::UnixEpoch();
  core::Output out;
  core.Handle(Connection(1, "bench"), now, &out);
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
  const Turns refit = HandleToTheEnd(std::move(beat), now, core);
  const Turns forget = ForgetACluster(now, core);
  if (!forget.reply.ok()) return forget.reply;
  core::PutCluster cluster;
  cluster.kind = v1::CLUSTER_KIND_MACHINES;
  cluster.inventory = InventoryWith(kMostAfter);
  core::Requirements requirements = core::RequirementsOf(DifferentSpec(1, load.jobs));
  uint64_t fitting = 0;
  const double checks_ms = MillisecondsOf([&] {
    for (uint64_t number = 1; number <= load.jobs; ++number) {
      requirements.memory_bytes = number * (kMostBefore / load.jobs);
      fitting += core::CheckFit(requirements, cluster, {}).now() ? 1 : 0;
    }
  });
  fmt::print(
      "{{\"message_ms\": {:.3f}, \"slowest_ms\": {:.3f}, \"all_ms\": {:.3f}, \"turns\": {}, "
      "\"forget_slowest_ms\": {:.3f}, \"checks_ms\": {:.3f}, \"fitting\": {}}}\n",
      refit.message_ms, refit.slowest_ms, refit.all_ms, refit.count, forget.slowest_ms, checks_ms,
      fitting);
  return absl::OkStatus();
}

}  // namespace muster::bench
