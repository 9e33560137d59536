// Models a cluster in memory: nodes, what runs on them, and a queue.
//
// The queue is first come, first served; a run that fits starts although an earlier one does not,
// until the first one has waited kMaxOvertaking: then nothing behind it starts before it.
#ifndef MUSTER_BROKER_REPLAY_CLUSTER_H_
#define MUSTER_BROKER_REPLAY_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "broker/replay/fleet.h"
#include "broker/replay/trace.h"
#include "muster/v1/cluster.pb.h"

namespace muster::replay {

// Large jobs would wait for ever behind small ones. 1 h: most jobs of clusters end within it.
inline constexpr absl::Duration kMaxOvertaking = absl::Hours(1);

// The nodes, and what is free of each.
class Nodes {
 public:
  // The part of one node that a run has.
  struct Piece {
    size_t node = 0;
    std::vector<std::pair<size_t, uint32_t>> gpus = {};  // device of the node, thousandths of it
  };
  using Allocation = std::vector<Piece>;

  explicit Nodes(const FleetCluster& cluster);

  // Takes the first nodes that have room; nothing: too few have.
  std::optional<Allocation> Take(const TraceJob& job);
  void Give(const TraceJob& job, const Allocation& allocation);
  uint64_t gpus() const { return gpus_; }
  uint64_t cpus() const { return cpus_; }
  // Returns the part of the capacity that is taken: of GPUs, or of cores if there are none.
  double load() const;
  // Sets what the inventory of an agent tells of its pool now.
  void Describe(v1::Pool* pool) const;

 private:
  struct Node {
    uint64_t cpu_millis = 0;
    uint64_t memory_bytes = 0;
    std::string gpu_type;
    std::vector<uint32_t> gpu_millis;  // of each device
  };
  std::optional<Piece> TakeOn(size_t index, const TraceJob& job);
  void GiveBack(const TraceJob& job, const Piece& piece);

  std::vector<Node> nodes_;
  std::vector<NodeShape> shapes_;
  uint64_t gpus_ = 0;
  uint64_t cpus_ = 0;
  uint64_t taken_gpu_millis_ = 0;
  uint64_t taken_cpu_millis_ = 0;
};

class ReplayCluster {
 public:
  explicit ReplayCluster(const FleetCluster& cluster);

  // Jobs are named by their index in the trace.
  void Submit(size_t job, const TraceJob& ask, absl::Duration now);
  // Starts what fits, and returns it.
  std::vector<size_t> StartWhatFits(absl::Duration now);
  void End(size_t job);
  // Takes back a job that has not started. False: it has, or is not here.
  bool TakeBack(size_t job);

  const std::string& name() const { return name_; }
  const Nodes& nodes() const { return nodes_; }
  // Runs that wait or run here.
  size_t active() const { return queue_.size() + running_.size(); }
  // The work that waits and runs here for each GPU (each core, if there are none) of the cluster.
  double demand() const;
  // True if the job would fit if nothing else ran.
  bool CouldRun(const TraceJob& job) const;
  v1::Inventory Inventory() const;

 private:
  struct Waiting {
    size_t job = 0;
    const TraceJob* ask = nullptr;
    absl::Duration since;
  };
  struct Running {
    const TraceJob* ask = nullptr;
    Nodes::Allocation allocation;
  };
  double WeightOf(const TraceJob& job) const;

  std::string name_;
  Nodes empty_;
  Nodes nodes_;
  std::deque<Waiting> queue_;
  absl::flat_hash_map<size_t, Running> running_;
  double demand_ = 0;
};

}  // namespace muster::replay

#endif  // MUSTER_BROKER_REPLAY_CLUSTER_H_
