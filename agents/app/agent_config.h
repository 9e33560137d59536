// The settings of muster-agent.
#ifndef MUSTER_AGENTS_APP_AGENT_CONFIG_H_
#define MUSTER_AGENTS_APP_AGENT_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agents/files/file_cache.h"
#include "agents/hosts/ssh_config.h"
#include "agents/kubernetes/settings/kubernetes_config.h"
#include "agents/machines/machines.h"
#include "agents/muster/remote.h"
#include "agents/slurm/slurm.h"
#include "daemon/settings.h"
#include "muster/v1/cluster.pb.h"

namespace muster::agents {

struct AgentConfig {
  // required
  std::string cluster;
  v1::ClusterKind kind = v1::CLUSTER_KIND_UNSPECIFIED;
  std::string broker;  // as written
  std::string state_dir;

  std::string log_level = "info";
  bool json_logs = false;
  std::optional<uint32_t> max_active_runs;  // default: by kind
  std::optional<int> launch_parallelism;    // default: by kind
  uploads::CacheOptions files;              // that jobs bring along
  machines::MachinesConfig machines;
  bool run_as_user = false;        // runs are their users', not the agent's
  std::string machine_hosts_file;  // empty: this machine alone
  hosts::SshConfig machine_ssh;    // what its hosts have in common
  kubernetes::KubernetesConfig kubernetes;
  remote::RemoteConfig remote;
  slurm::SlurmConfig slurm;
  hosts::SshConfig slurm_ssh;  // without hosts: Slurm's commands run on this machine
};

// Holds every setting; they write into `config`.
std::vector<Setting> SettingsOf(AgentConfig* config);
// Returns whether the required settings are there; a broker is required only if `needs_broker`.
// INVALID_ARGUMENT names what is not.
absl::Status CheckComplete(const AgentConfig& config, bool needs_broker);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_APP_AGENT_CONFIG_H_
