// Implements the backend for plain machines: the one that the agent runs on, or several hosts over
// SSH (remote/).
//
// It has a queue for the machine's cores, memory and GPUs, by priority and then first come, first
// served. A run starts when everything that it asks for is free; scheduling/cluster_queue.h says
// when it may pass another one. Each run has a supervisor process of its own, so that runs outlive
// the agent. All that the backend knows is in the runs' directories (run_records.h), from which a
// restarted agent reads it.
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

  // The resources that runs may use. Default: all that the machine has. Empty counts of GPUs mean
  // no GPUs.
  std::optional<uint32_t> cpus;
  std::optional<uint64_t> memory_bytes;
  std::optional<GpuCounts> gpus;

  // The time between TERM and KILL when a run is canceled or at its time limit.
  absl::Duration cancel_grace = absl::Seconds(10);
  // True: runs are limited to the memory and cores that they ask for, where the system allows it.
  bool limits = true;
  // The tool that makes the containers of jobs with an image (container_runtime.h).
  std::string container_runtime = kFirstFound;
  // The number of finished runs whose logs stay on the machine, the newest ones.
  uint32_t keep_finished_runs = 1000;
  // The time that the users' files in work/ stay after a run was forgotten. Infinite: forever.
  absl::Duration keep_work = absl::InfiniteDuration();
  // Default: muster-supervisor in the directory of this program.
  std::string supervisor_path = {};

  // True: programs of runs are those of their users (run_users.h).
  bool run_as_user = false;
  // The file that says who users of Muster are here (agents/users/user_map.h). Empty: the names are
  // the same.
  std::string run_as_map = {};
  // Default: muster-run-as in the directory of this program.
  std::string run_as_helper = {};

  // Fetches the files that jobs bring along; must outlive the backend. Null: the cluster takes no
  // such jobs.
  uploads::JobFiles* files = nullptr;

  // Hosts over SSH, in place of this machine; empty means this machine.
  std::vector<HostConfig> hosts = {};
  // Reads the hosts again, to see which are cordoned now.
  std::function<absl::StatusOr<std::vector<HostConfig>>()> read_hosts = {};
  // The absolute directory in which each host has one of its own. Empty: .muster in the user's
  // home.
  std::string host_directory = {};
  // Runs on a host that has been silent for this long are LOST.
  absl::Duration host_lost_after = absl::Hours(1);
};

// `state_dir` is an absolute path of a directory that exists; run directories are below
// state_dir/runs. Reads what the machine has, which may take seconds. Errors: the machine's
// inventory cannot be read, the directory cannot be used.
absl::StatusOr<std::unique_ptr<agents::Backend>> CreateMachinesBackend(
    const MachinesConfig& config, const std::string& state_dir);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_MACHINES_H_
