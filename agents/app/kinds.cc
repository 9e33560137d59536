#include "agents/app/kinds.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "agents/app/machine_hosts.h"
#include "agents/core/host_run_files.h"
#include "agents/hosts/ssh_host.h"
#include "agents/kubernetes/kubernetes.h"
#include "agents/machines/own_run_files.h"
#include "agents/machines/remote/remote_run_files.h"
#include "agents/machines/run_records.h"
#include "agents/muster/remote.h"
#include "agents/slurm/user_files.h"
#include "contract/task_array.h"

namespace muster::agents {
namespace {

// Each look at the exit records there is a command over SSH.
constexpr absl::Duration kRemoteRecordInterval = absl::Seconds(2);

// Completes the settings of machines with others that they need.
machines::MachinesConfig MachinesConfigOf(const AgentConfig& config) {
  machines::MachinesConfig machines = config.machines;
  machines.cluster = config.cluster;
  machines.run_as_user = config.run_as_user;
  if (config.machine_hosts_file.empty()) return machines;
  machines.read_hosts = [file = config.machine_hosts_file, ssh = config.machine_ssh] {
    return ReadMachineHosts(file, ssh);
  };
  return machines;
}

absl::StatusOr<std::unique_ptr<Backend>> MakeMachinesBackend(const AgentConfig& config,
                                                             uploads::JobFiles* files) {
  machines::MachinesConfig machines = MachinesConfigOf(config);
  machines.files = files;
  if (machines.read_hosts != nullptr) {
    absl::StatusOr<std::vector<machines::HostConfig>> hosts = machines.read_hosts();
    if (!hosts.ok()) return hosts.status();
    machines.hosts = *std::move(hosts);
  }
  return machines::CreateMachinesBackend(machines, config.state_dir);
}

absl::StatusOr<std::unique_ptr<Backend>> MakeKubernetesBackend(const AgentConfig& config,
                                                               uploads::JobFiles* files) {
  kubernetes::KubernetesConfig kubernetes = config.kubernetes;
  kubernetes.cluster = config.cluster;
  kubernetes.files = files;
  return kubernetes::CreateKubernetesBackend(kubernetes, config.state_dir);
}

absl::StatusOr<std::unique_ptr<Backend>> MakeSlurmBackend(const AgentConfig& config,
                                                          uploads::JobFiles* files) {
  slurm::SlurmConfig slurm = config.slurm;
  slurm.cluster = config.cluster;
  slurm.files = files;
  slurm.run_as_user = config.run_as_user;
  slurm.run_as_map = config.machines.run_as_map;
  if (config.slurm_ssh.hosts.empty()) return slurm::CreateSlurmBackend(slurm, config.state_dir);
  absl::StatusOr<std::unique_ptr<hosts::SshHost>> host = hosts::SshHost::Create(config.slurm_ssh);
  if (!host.ok()) return host.status();
  slurm.user_on_host = config.slurm_ssh.user;
  slurm.record_interval = kRemoteRecordInterval;
  if (slurm.image_dir.empty()) slurm.image_dir = slurm.run_dir + "/images";
  return slurm::CreateSlurmBackend(slurm, config.state_dir, *std::move(host));
}

// Machines and Slurm call the directory alike.
std::string WorkOf(const RankOfRun& of) {
  return fmt::format("{}/{}", of.run_key, machines::kWorkDirectory);
}

// Opens the files over a connection of its own, so that copies do not hold up Slurm's commands.
OpenRunFiles RunFilesOnLoginHost(const AgentConfig& config) {
  return [ssh = config.slurm_ssh, runs = config.slurm.run_dir](
             const RankOfRun& of) -> absl::StatusOr<std::unique_ptr<RunFiles>> {
    absl::StatusOr<std::unique_ptr<hosts::SshHost>> host = hosts::SshHost::Create(ssh);
    if (!host.ok()) return host.status();
    return MakeHostRunFiles(
        *std::move(host), {.host_title = "the login host", .root = runs, .directory = WorkOf(of)});
  };
}

std::string OwnRuns(const AgentConfig& config) { return config.state_dir + "/runs"; }

OpenRunFiles RunFilesOfMachines(const AgentConfig& config) {
  const std::string runs = OwnRuns(config);
  if (config.machine_hosts_file.empty()) {
    if (config.run_as_user) {
      return [runs, keep = config.machines.keep_work](const RankOfRun& of) {
        return machines::OpenUserRunFiles(runs, keep, of);
      };
    }
    return [runs, keep = config.machines.keep_work](const RankOfRun& of) {
      return machines::OpenOwnRunFiles(runs, keep, of);
    };
  }
  return [machines = MachinesConfigOf(config), runs](const RankOfRun& of) {
    return machines::OpenRemoteRunFiles(machines, runs, of);
  };
}

OpenRunFiles RunFilesOfSlurm(const AgentConfig& config) {
  if (config.run_as_user) {
    return [slurm = config.slurm, state_dir = config.state_dir](const RankOfRun& of) {
      return slurm::OpenUserRunFiles(slurm, state_dir, of);
    };
  }
  if (!config.slurm_ssh.hosts.empty()) return RunFilesOnLoginHost(config);
  const std::string& shared = config.slurm.run_dir;
  return [runs = shared.empty() ? OwnRuns(config) : shared](const RankOfRun& of) {
    return OpenLocalRunFiles(runs, WorkOf(of));
  };
}

OpenRunFiles ResultsOfMachines(const AgentConfig& config) {
  if (config.run_as_user) {
    return [runs = OwnRuns(config)](const RankOfRun& of) {
      return machines::OpenUserResults(runs, of);
    };
  }
  if (config.machine_hosts_file.empty())
    return [](const RankOfRun& of) { return OpenLocalResults(of.results_directory); };
  return [machines = MachinesConfigOf(config), runs = OwnRuns(config)](const RankOfRun& of) {
    return machines::OpenRemoteResults(machines, runs, of);
  };
}

OpenRunFiles ResultsOfSlurm(const AgentConfig& config) {
  if (config.run_as_user) {
    return [slurm = config.slurm, state_dir = config.state_dir](const RankOfRun& of) {
      return slurm::OpenUserResults(slurm, state_dir, of);
    };
  }
  if (config.slurm_ssh.hosts.empty())
    return [](const RankOfRun& of) { return OpenLocalResults(of.results_directory); };
  return
      [ssh = config.slurm_ssh](const RankOfRun& of) -> absl::StatusOr<std::unique_ptr<RunFiles>> {
        absl::StatusOr<std::unique_ptr<hosts::SshHost>> host = hosts::SshHost::Create(ssh);
        if (!host.ok()) return host.status();
        return MakeHostResults(*std::move(host), "the login host", of.results_directory);
      };
}

OpenRunFiles NoRunFiles(const AgentConfig&) { return nullptr; }

OpenRunFiles ResultsOfKubernetes(const AgentConfig& config) {
  if (config.kubernetes.agent_roots.empty()) return nullptr;
  return [kubernetes = config.kubernetes](const RankOfRun& of) {
    return kubernetes::OpenResults(kubernetes, of.results_directory);
  };
}

remote::RemoteConfig RemoteConfigOf(const AgentConfig& config) {
  remote::RemoteConfig remote = config.remote;
  remote.cluster = config.cluster;
  return remote;
}

absl::StatusOr<std::unique_ptr<Backend>> MakeRemoteBackend(const AgentConfig& config,
                                                           uploads::JobFiles* files) {
  remote::RemoteConfig remote = RemoteConfigOf(config);
  remote.files = files;
  return remote::CreateRemoteBackend(remote);
}

RelayRunFiles RelayRemoteFiles(const AgentConfig& config) {
  return remote::RelayFilesOf(RemoteConfigOf(config));
}

constexpr std::array kKinds = {
    // A machine starts runs in the order of their arrival; a scheduler has an order of its own.
    Kind{v1::CLUSTER_KIND_MACHINES, 1, 1000, MakeMachinesBackend, RunFilesOfMachines,
         ResultsOfMachines},
    // Each launch is an sbatch, which the controller takes one after the other.
    Kind{v1::CLUSTER_KIND_SLURM, 4, contract::kMaxArrayTasks, MakeSlurmBackend, RunFilesOfSlurm,
         ResultsOfSlurm},
    // An API server does many small writes at a time; each launch is three, one after the other.
    // The files of a run go with its pod; results on a volume stay.
    Kind{v1::CLUSTER_KIND_KUBERNETES, 16, 1000, MakeKubernetesBackend, NoRunFiles,
         ResultsOfKubernetes},
    // A broker takes many submissions at a time, and waits for its disk once for all of them.
    Kind{v1::CLUSTER_KIND_MUSTER, 16, 10'000, MakeRemoteBackend, NoRunFiles, NoRunFiles,
         RelayRemoteFiles},
};

}  // namespace

const Kind& KindOf(v1::ClusterKind kind) {
  const auto* found = std::find_if(kKinds.begin(), kKinds.end(),
                                   [kind](const Kind& row) { return row.kind == kind; });
  // CheckComplete lets no other kind through.
  if (found == kKinds.end()) std::abort();
  return *found;
}

}  // namespace muster::agents
