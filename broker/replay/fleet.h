// The clusters and projects that a trace is replayed over.
#ifndef MUSTER_BROKER_REPLAY_FLEET_H_
#define MUSTER_BROKER_REPLAY_FLEET_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "broker/replay/trace.h"
#include "muster/v1/cluster.pb.h"

namespace muster::replay {

// Nodes that are alike.
struct NodeShape {
  uint32_t count = 1;
  uint32_t cpus = 1;
  uint64_t memory_bytes = 0;
  uint32_t gpus = 0;
  std::string gpu_type;
};

struct FleetCluster {
  std::string name;
  v1::ClusterKind kind = v1::CLUSTER_KIND_MACHINES;
  uint32_t max_active_runs = 1000;  // the most runs that its agent takes at the same time
  std::vector<NodeShape> nodes = {};
};

struct Fleet {
  std::vector<FleetCluster> clusters;  // by name, at least one
};

// Returns the GPUs, or cores if there are none, of all nodes.
uint64_t GpusOf(const Fleet& fleet);

// Reads YAML:
//   clusters:
//   - name: lab
//     kind: slurm            # or kubernetes, machines
//     max_active_runs: 500   # default 1000
//     nodes: [{count: 4, cpus: 64, memory: 512GB, gpus: a100:8}]
// INVALID_ARGUMENT names the place and what would work.
absl::StatusOr<Fleet> ReadFleet(std::string_view yaml);

// Makes a fleet of six clusters of unlike size and kind from the nodes of
// https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2023. Keeps about `nodes` of them,
// evenly spread over the file; 0 means all.
absl::StatusOr<Fleet> FleetOfOpenb(std::string_view csv, size_t nodes);

// Moves the arrivals closer together, or further apart, so that the jobs ask for this part of what
// the fleet's GPUs can give from the first arrival to the last. FAILED_PRECONDITION: there are no
// GPUs, or all jobs arrive at once.
absl::Status StretchToLoad(double load, const Fleet& fleet, Trace* trace);

}  // namespace muster::replay

#endif  // MUSTER_BROKER_REPLAY_FLEET_H_
