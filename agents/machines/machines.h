// The backend for plain machines: for now, the one that the agent runs on.
//
// It has a queue over the machine's cores, memory and GPUs, by priority and then first come, first
// served; a run starts when everything that it asked for is free, and passes one before it only as
// scheduling/cluster_queue.h says. Each run has a supervisor process of its own, so that runs
// outlive the agent. What the backend knows is in the runs' directories (run_records.h); after a
// restart it is read from there.
#ifndef MUSTER_AGENTS_MACHINES_MACHINES_H_
#define MUSTER_AGENTS_MACHINES_MACHINES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"

namespace muster::machines {

struct MachinesConfig {
  // The cluster's name, for MUSTER_CLUSTER.
  std::string cluster = {};

  // What runs may use; what is left out is found out. GPUs by type (in any case), numbered from 0
  // in the order of the types' names; an empty map: none.
  std::optional<uint32_t> cpus;
  std::optional<uint64_t> memory_bytes;
  std::optional<std::map<std::string, uint32_t>> gpus;

  // Between TERM and KILL when a run is canceled or at its time limit.
  absl::Duration cancel_grace = absl::Seconds(10);
  // Finished runs whose logs stay on the machine, the newest ones. What users wrote into work/
  // always stays.
  uint32_t keep_finished_runs = 1000;
  // Default: muster-supervisor beside this program.
  std::string supervisor_path = {};
};

// `state_dir` is an absolute path of a directory that exists; run directories are below
// state_dir/runs. Reads what the machine has, which may take seconds. Errors: the machine's
// inventory cannot be read, the directory cannot be used.
absl::StatusOr<std::unique_ptr<agent::Backend>> CreateMachinesBackend(const MachinesConfig& config,
                                                                      const std::string& state_dir);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_MACHINES_H_
