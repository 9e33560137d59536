// Replays a trace: the core of the broker, as it ships, places the jobs of the trace on clusters in
// memory, in the time of the trace.
#ifndef MUSTER_BROKER_REPLAY_REPLAY_H_
#define MUSTER_BROKER_REPLAY_REPLAY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/core/core.h"
#include "broker/replay/fleet.h"
#include "broker/replay/trace.h"

namespace muster::replay {

// The one who chooses the cluster of a job.
enum class Policy : uint8_t {
  kMuster,  // the broker, when it places the job
  // The others choose when the job arrives, among the clusters that could run it, and stay with it.
  kRandom,
  kLeastLoaded,  // the one with the least demand for each GPU
  kStaticSplit,  // always the same one for a project
  kFirstByName,  // the first that has room for one more run in its queue
  kOneCluster,   // all nodes are one cluster: no border keeps a job from a free node
};

inline constexpr Policy kPolicies[] = {Policy::kMuster,      Policy::kRandom,
                                       Policy::kLeastLoaded, Policy::kStaticSplit,
                                       Policy::kFirstByName, Policy::kOneCluster};

std::string_view NameOf(Policy policy);
std::optional<Policy> PolicyNamed(std::string_view name);

// The fate of a job of the trace.
struct Outcome {
  // It counts from the first arrival on; nothing: the broker refused it.
  std::optional<absl::Duration> start;
  std::string refusal;  // why it was refused
  // The start that the broker expected when it chose the cluster; nothing if it expected none.
  std::optional<absl::Duration> expected_start;
  std::string cluster;
};

struct Replayed {
  std::vector<Outcome> outcomes;  // of each job, in the order of the trace
  // The GPU seconds that were free while a waiting job could have used them; see IdleMeter.
  double idle_gpu_seconds = 0;
};

// Sets the places to wait that the policy kMuster has; see core::Options. Jobs of the others wait
// where they were sent at their arrival.
struct PlacesToWait {
  uint32_t own_queue = core::Options().max_waiting_runs_per_pool;
  uint32_t others = core::Options().sent_ahead_per_pool;
};

// INTERNAL: the core refused what should work.
absl::StatusOr<Replayed> ReplayTrace(const Fleet& fleet, const Trace& trace, Policy policy,
                                     uint64_t seed, const PlacesToWait& places = {});

}  // namespace muster::replay

#endif  // MUSTER_BROKER_REPLAY_REPLAY_H_
