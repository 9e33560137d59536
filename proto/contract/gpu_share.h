// Computes the cores and memory that go with a node's GPUs, for jobs that leave these open. Pure.
#ifndef MUSTER_PROTO_CONTRACT_GPU_SHARE_H_
#define MUSTER_PROTO_CONTRACT_GPU_SHARE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "muster/v1/cluster.pb.h"

namespace muster::contract {

// The share of a pod with so many GPUs comes from the nodes that could have it: a node's cores and
// memory, less a tenth for what else runs there, divided by its GPUs. The smallest such share of
// all nodes counts, rounded down to whole cores and GiB, so that the pod fits on each.
class GpuShare {
 public:
  explicit GpuShare(uint64_t gpus) : gpus_(gpus) {}

  // Adds a node that the pod may be on. One with fewer GPUs does not count.
  void AddNode(uint64_t cpu_millis, uint64_t memory_bytes, uint64_t gpus);
  // Adds a limit of the namespace for one pod, so that the share alone breaks none. `resource`: as
  // in v1::NamespaceLimit; others than cores and memory do not count.
  void AddLimit(std::string_view resource, int64_t pod_millis);

  // Returns the share, but no less than the default, and the default if no node counts.
  uint64_t CpuMillis(uint64_t default_millis) const;
  uint64_t MemoryBytes(uint64_t default_bytes) const;

 private:
  const uint64_t gpus_;
  // The least of all nodes; nothing if none counts.
  std::optional<uint64_t> cpu_millis_;
  std::optional<uint64_t> memory_bytes_;
  // Unset if there is no limit.
  std::optional<uint64_t> most_cpu_millis_;
  std::optional<uint64_t> most_memory_bytes_;
};

// The cores and the memory of a pod; 0 if left open.
struct PodAmounts {
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
};
// Names what a job gets that asks for GPUs and leaves cores or memory open, for its submitter.
// `defaults`: those of jobs without GPUs. Nothing: it is not such a job, or the cluster does not
// tell.
std::optional<v1::ClusterCheck> TellDefaults(const PodAmounts& asked, uint64_t gpus,
                                             const PodAmounts& got, const PodAmounts& defaults);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_GPU_SHARE_H_
