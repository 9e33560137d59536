// The backend for plain machines: the one that the agent runs on, or several hosts over SSH
// (remote/).
//
// It has a queue over the machine's cores, memory and GPUs, by priority and then first come, first
// served; a run starts when everything that it asked for is free, and passes one before it only as
// scheduling/cluster_queue.h says. Each run has a supervisor process of its own, so that runs
// outlive the agent. The backend's knowledge is in the runs' directories (run_records.h); after a
// restart it is read from there.
#ifndef MUSTER_AGENTS_MACHINES_MACHINES_H_
#define MUSTER_AGENTS_MACHINES_MACHINES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/files/job_files.h"
#include "agents/machines/container_runtime.h"
#include "agents/machines/host_config.h"

namespace muster::machines {

struct MachinesConfig {
  // The cluster's name, for MUSTER_CLUSTER.
  std::string cluster = {};

  // The resources that runs may use; those that are left out are found out. No counts of GPUs:
  // none.
  std::optional<uint32_t> cpus;
  std::optional<uint64_t> memory_bytes;
  std::optional<GpuCounts> gpus;

  // Between TERM and KILL when a run is canceled or at its time limit.
  absl::Duration cancel_grace = absl::Seconds(10);
  // True if runs are held to the memory and cores that they ask for, where the system lets us.
  bool limits = true;
  // The tool that makes the containers of jobs with an image (container_runtime.h).
  std::string container_runtime = kFirstFound;
  // Finished runs whose logs stay on the machine, the newest ones.
  uint32_t keep_finished_runs = 1000;
  // How long what users wrote into work/ stays after a run was forgotten. Infinite: for ever.
  absl::Duration keep_work = absl::InfiniteDuration();
  // Default: muster-supervisor beside this program.
  std::string supervisor_path = {};

  // The files that jobs bring along; outlives the backend. Null: jobs that bring files are not
  // taken.
  uploads::JobFiles* files = nullptr;

  // Hosts over SSH, in place of this machine; empty: this machine.
  std::vector<HostConfig> hosts = {};
  // Reads them anew, to see which are cordoned now.
  std::function<absl::StatusOr<std::vector<HostConfig>>()> read_hosts = {};
  // Where each of them has a directory of its own: absolute. Empty: .muster in the user's home.
  std::string host_directory = {};
  // A host that has been silent for so long takes its runs with it: they are LOST.
  absl::Duration host_lost_after = absl::Hours(1);
};

// `state_dir` is an absolute path of a directory that exists; run directories are below
// state_dir/runs. Reads what the machine has, which may take seconds. Errors: the machine's
// inventory cannot be read, the directory cannot be used.
absl::StatusOr<std::unique_ptr<agents::Backend>> CreateMachinesBackend(
    const MachinesConfig& config, const std::string& state_dir);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_MACHINES_H_
