// A run's request, and its allocation.
#ifndef MUSTER_AGENTS_MACHINES_SCHEDULING_REQUEST_H_
#define MUSTER_AGENTS_MACHINES_SCHEDULING_REQUEST_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "contract/failure_causes.h"

namespace muster::machines {

// Thousandths of a GPU in a whole one.
inline constexpr uint32_t kWholeGpu = 1000;

// States the needs of a run: `nodes` times the rest, each node on a host of its own.
struct Request {
  uint32_t nodes = 1;
  uint32_t cores = 0;
  uint64_t memory_bytes = 0;
  std::string gpu_type = {};  // lower case; empty: any, but of one type on all nodes
  // Thousandths; less than kWholeGpu is a share of one device, else whole devices.
  uint32_t gpu_millis = 0;
  // Names of hosts that the run must not use, as earlier runs of the job failed there. In order.
  std::vector<std::string> excluded_hosts = {};

  bool SharesGpu() const { return gpu_millis > 0 && gpu_millis < kWholeGpu; }
  friend auto operator<=>(const Request&, const Request&) = default;
};

// The allocation on one node.
struct NodeAllocation {
  uint32_t host = 0;  // its place in the cluster's list
  uint32_t cores = 0;
  uint64_t memory_bytes = 0;
  std::map<uint32_t, uint32_t> gpus = {};  // thousandths, by the GPU's index

  friend bool operator==(const NodeAllocation&, const NodeAllocation&) = default;
};

// Holds the allocation of a run: its nodes by rank. Empty: nothing.
struct Allocation {
  std::vector<NodeAllocation> nodes = {};

  friend bool operator==(const Allocation&, const Allocation&) = default;
};

// The reason that a cluster can never run a job.
struct Misfit {
  std::string why;
  contract::FailureCause cause = contract::FailureCause::kNone;
  bool is_of_containers = false;  // it runs none at all
  bool is_of_users = false;       // it runs nothing of this user
  bool may_pass = false;          // nobody can tell now; a later launch may fit
};

// Returns the fault of a request that no cluster could fulfil: more than one GPU, but not whole
// ones.
std::optional<Misfit> CheckShare(const Request& request);

// Returns "2 h100 GPUs", "0.5 of a GPU".
std::string GpuText(const Request& request);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULING_REQUEST_H_
