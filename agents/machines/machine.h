// Finds the resources of this machine.
#ifndef MUSTER_AGENTS_MACHINES_MACHINE_H_
#define MUSTER_AGENTS_MACHINES_MACHINE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agents/hosts/host.h"
#include "agents/machines/container_runtime.h"
#include "agents/machines/control_group.h"
#include "agents/machines/host_config.h"
#include "agents/machines/machines.h"
#include "agents/machines/scheduling/hosts.h"
#include "muster/v1/facts.pb.h"

namespace muster::machines {

struct Machine {
  std::string identity;  // the machine-id, else the host's name
  std::string hostname;
  Capacity capacity;
  std::string limits;  // the limits that runs have, in words; empty: none
  ContainerRuntime containers;
  std::vector<v1::ClusterIssue> issues;
};

// Asks the machine for the values that the config leaves open: cores that this process may use,
// memory, nvidia-smi and rocm-smi for GPUs. A tool that is missing means none; one that fails is an
// issue. INTERNAL: the kernel does not tell cores or memory.
absl::StatusOr<Machine> ReadMachine(const MachinesConfig& config, hosts::Host& host);

// Does the same for another host, by commands there. UNAVAILABLE: the host could not be asked.
// FAILED_PRECONDITION: its answers lack cores or memory.
absl::StatusOr<Machine> ReadRemoteMachine(const HostConfig& config, hosts::Host& host);

// Puts the operator's values for a host in place of those that were found.
void TakeOperatorsWord(const HostConfig& config, Capacity* capacity);

// Finds the program that makes containers on the host. UNAVAILABLE: the host could not be asked.
absl::Status TellContainers(const std::string& wanted, hosts::Host& host, Machine* machine);

// Fills in the limits that runs have there, or why they have none. `wanted`: whether the operator
// wants limits.
void TellLimits(bool wanted, const LimitsFound& found, Machine* machine);

// Reads the answer of nvidia-smi --query-gpu=index,uuid,name,memory.total --format=csv,noheader.
// INVALID_ARGUMENT quotes a line that cannot be read.
absl::StatusOr<std::vector<Gpu>> ParseGpuList(std::string_view csv);

// Returns the short type of a product: "NVIDIA H100 80GB HBM3" is "h100", "NVIDIA GeForce RTX 3090"
// is "rtx3090", "AMD Instinct MI300X" is "mi300x".
std::string GpuTypeOf(std::string_view product);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_MACHINE_H_
