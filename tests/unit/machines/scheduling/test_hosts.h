// Hosts for tests.
#ifndef MUSTER_TESTS_UNIT_MACHINES_SCHEDULING_TEST_HOSTS_H_
#define MUSTER_TESTS_UNIT_MACHINES_SCHEDULING_TEST_HOSTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "agents/machines/scheduling/hosts.h"

namespace muster::machines {

// Its GPUs are numbered in the order of `gpu_types`.
inline ClusterHost Host(const std::string& name, uint32_t cores,
                        const std::vector<std::string>& gpu_types, uint64_t memory_bytes = 1000) {
  ClusterHost host = {.name = name, .capacity = {.cores = cores, .memory_bytes = memory_bytes}};
  for (const std::string& type : gpu_types) {
    const auto index = static_cast<uint32_t>(host.capacity.gpus.size());
    host.capacity.gpus.push_back(
        {.index = index, .type = type, .name = "GPU-" + std::to_string(index)});
  }
  return host;
}

}  // namespace muster::machines

#endif  // MUSTER_TESTS_UNIT_MACHINES_SCHEDULING_TEST_HOSTS_H_
