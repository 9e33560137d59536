// A host that the agent reaches over SSH, as its operator describes it.
#ifndef MUSTER_AGENTS_MACHINES_HOST_CONFIG_H_
#define MUSTER_AGENTS_MACHINES_HOST_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agents/hosts/ssh_config.h"

namespace muster::machines {

// The agent has four threads for each.
inline constexpr size_t kMaxHosts = 128;

// Holds numbers of GPUs and their types (in any case), in the order of the devices, as a tool such
// as nvidia-smi numbers them: 0, 1, ...
using GpuCounts = std::vector<std::pair<std::string, uint32_t>>;

struct HostConfig {
  std::string name;     // unique in its cluster, as a cluster's name is written
  std::string address;  // by which the other hosts reach it: MASTER_ADDR
  hosts::SshConfig ssh;
  // The resources that runs may use; the host is asked about those that are left out.
  std::optional<uint32_t> cpus = {};
  std::optional<uint64_t> memory_bytes = {};
  std::optional<GpuCounts> gpus = {};
  std::vector<std::string> labels = {};
  bool cordoned = false;  // is given no new runs
};

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_HOST_CONFIG_H_
