// The hosts of a cluster, and their resources.
#ifndef MUSTER_AGENTS_MACHINES_SCHEDULING_HOSTS_H_
#define MUSTER_AGENTS_MACHINES_SCHEDULING_HOSTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace muster::machines {

struct Gpu {
  uint32_t index = 0;  // unique on its host
  std::string type;    // lower case
  std::string name;    // what programs know it by: a UUID, or the index
  bool is_amd = false;

  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// The resources of one host that runs may use.
struct Capacity {
  uint32_t cores = 0;
  uint64_t memory_bytes = 0;
  std::vector<Gpu> gpus = {};

  // Returns the number of GPUs of each type.
  std::map<std::string, uint32_t> GpuCounts() const;

  friend bool operator==(const Capacity&, const Capacity&) = default;
};

// Only a host that is up is given new runs; what runs there keeps its place in any state.
enum class HostState { kUp, kCordoned, kDown };

struct ClusterHost {
  std::string name;  // unique in its cluster
  Capacity capacity = {};
  HostState state = HostState::kUp;
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_SCHEDULING_HOSTS_H_
