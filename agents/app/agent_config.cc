#include "agents/app/agent_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "agents/app/kubernetes_settings.h"
#include "agents/app/machine_hosts.h"
#include "agents/app/remote_settings.h"
#include "agents/app/setting_values.h"
#include "agents/app/slurm_profile_settings.h"
#include "agents/app/ssh_settings.h"
#include "agents/slurm/http.h"
#include "contract/spank_options.h"
#include "contract/storage_uri.h"
#include "contract/text.h"
#include "contract/units.h"
#include "contract/validate.h"
#include "rpc/address.h"

namespace muster::agents {
namespace {

// More active runs would not fit into one hello of 4 MiB.
constexpr uint64_t kMaxActiveRuns = 100'000;
constexpr uint64_t kMebibyte = uint64_t{1} << 20;
// No image takes more room while it is unpacked and packed.
constexpr uint64_t kMaxConversionBytes = uint64_t{1} << 40;
constexpr uint64_t kMaxCallsPerMinute = 100'000;  // more than any slurmctld answers
constexpr uint64_t kMaxLaunchParallelism = 64;    // threads, each with a command of its own

absl::Status SetKind(AgentConfig* config, const std::string& value) {
  if (value == "machines") {
    config->kind = v1::CLUSTER_KIND_MACHINES;
  } else if (value == "slurm") {
    config->kind = v1::CLUSTER_KIND_SLURM;
  } else if (value == "kubernetes") {
    config->kind = v1::CLUSTER_KIND_KUBERNETES;
  } else if (value == "muster") {
    config->kind = v1::CLUSTER_KIND_MUSTER;
  } else {
    return InvalidSetting(fmt::format(
        "\"{}\" is no kind of cluster; use machines, slurm, kubernetes or muster", value));
  }
  return absl::OkStatus();
}

// "/lustre,/data"; empty: none.
Setter PathListInto(std::vector<std::string>* out) {
  return [out](const std::string& value) {
    std::vector<std::string> paths;
    for (size_t begin = 0; begin < value.size();) {
      const size_t comma = std::min(value.find(',', begin), value.size());
      std::string path = value.substr(begin, comma - begin);
      begin = comma + 1;
      if (!path.starts_with('/')) {
        return InvalidSetting(
            fmt::format("\"{}\" is not an absolute path; use /lustre,/data", path));
      }
      paths.push_back(std::move(path));
    }
    *out = std::move(paths);
    return absl::OkStatus();
  };
}

// "flavour,renice"; empty: none.
Setter SpankOptionsInto(std::vector<std::string>* out) {
  return [out](const std::string& value) {
    std::vector<std::string> names = SplitAtCommas(value);
    for (const std::string& name : names) {
      if (contract::IsSpankName(name)) continue;
      return InvalidSetting(
          fmt::format("\"{}\" cannot be an option of a plug-in: write names without \"--\", as in "
                      "flavour,renice, and none that begins an option of sbatch's own or of Pyxis'",
                      name));
    }
    if (names.size() > contract::kMaxSpankOptions)
      return InvalidSetting(
          fmt::format("{} options; list at most {}", names.size(), contract::kMaxSpankOptions));
    *out = std::move(names);
    return absl::OkStatus();
  };
}

// "lustre=/lustre,home=/home/ada"; empty: none.
Setter RootsInto(std::map<std::string, std::string>* out) {
  return [out](const std::string& value) -> absl::Status {
    contract::ClusterStorage storage;
    for (size_t begin = 0; begin < value.size();) {
      const size_t comma = std::min(value.find(',', begin), value.size());
      const std::string part = value.substr(begin, comma - begin);
      begin = comma + 1;
      const size_t equals = part.find('=');
      if (equals == std::string::npos ||
          !storage.roots.emplace(part.substr(0, equals), part.substr(equals + 1)).second) {
        return InvalidSetting(
            fmt::format("\"{}\" is not of the form NAME=DIR, e.g. lustre=/lustre", part));
      }
    }
    if (absl::Status good = contract::ValidateClusterStorage(storage); !good.ok()) return good;
    *out = std::move(storage.roots);
    return absl::OkStatus();
  };
}

// "a100:4,h100:2"; empty: none.
absl::Status SetGpus(machines::MachinesConfig* machines, const std::string& value) {
  auto gpus = ParseGpuCounts(value);
  if (!gpus.ok()) return gpus.status();
  machines->gpus = *std::move(gpus);
  return absl::OkStatus();
}

// A slip that is harmless elsewhere costs people their files here: the unit has to be written down.
absl::Status SetKeepWork(machines::MachinesConfig* machines, const std::string& value) {
  constexpr std::string_view kForever = "forever";
  constexpr absl::Duration kLeast = absl::Seconds(1);
  if (value == kForever) {
    machines->keep_work = absl::InfiniteDuration();
    return absl::OkStatus();
  }
  const absl::StatusOr<absl::Duration> keep = contract::ParseDuration(value);
  if (!keep.ok()) return keep.status();
  if (value.find_first_of("smhd") == value.npos) {
    return InvalidSetting(
        fmt::format("\"{}\" has no unit; write for example 720h, 30d, or {}", value, kForever));
  }
  if (*keep < kLeast) {
    return InvalidSetting(
        fmt::format("\"{}\" is too short; write at least 1s, or {}", value, kForever));
  }
  machines->keep_work = *keep;
  return absl::OkStatus();
}

// The SSH settings of Slurm's login hosts, except for the hosts, which are in their own file.
std::vector<Setting> MachineSshSettings(hosts::SshConfig* ssh) {
  std::vector<Setting> settings = SshSettings("machines", ssh);
  std::erase_if(settings, [](const Setting& s) { return s.key == "machines.ssh_hosts"; });
  for (Setting& setting : settings) {
    if (setting.key == "machines.ssh_user")
      setting.help = "user on the hosts of machines.hosts, except on hosts that name their own";
  }
  return settings;
}

std::vector<Setting> MachinesSettings(machines::MachinesConfig* machines, std::string* hosts_file) {
  return {
      {"machines.cpus", "cores that runs may use [all]",
       NumberInto(1, 100'000, [machines](uint64_t n) { machines->cpus = n; })},
      {"machines.memory", "memory that runs may use, e.g. 64Gi [all]",
       [machines](const std::string& value) -> absl::Status {
         const absl::StatusOr<uint64_t> bytes = contract::ParseBytes(value);
         if (bytes.ok()) machines->memory_bytes = *bytes;
         return bytes.status();
       }},
      {"machines.gpus",
       "GPUs that runs may use, TYPE:COUNT,... in the order of the devices "
       "[what nvidia-smi and rocm-smi find]",
       [machines](const std::string& value) { return SetGpus(machines, value); },
       /*is_mapping=*/true},
      {"machines.cancel_grace", "time between TERM and KILL [10s]",
       DurationInto(&machines->cancel_grace)},
      {"machines.limits",
       "whether runs are limited to the memory and cores that they ask for, yes or no [yes]",
       YesInto(&machines->limits)},
      {"machines.container_runtime",
       "program that makes containers: podman, docker, enroot, apptainer, none; auto: the first "
       "found [auto]",
       OneOf({machines::kFirstFound, machines::kNoContainers, "podman", "docker", "enroot",
              "apptainer"},
             [machines](const std::string& word) { machines->container_runtime = word; })},
      {"machines.keep_finished_runs", "finished runs whose logs stay on the machine [1000]",
       NumberInto(0, 1'000'000, [machines](uint64_t n) { machines->keep_finished_runs = n; })},
      {"machines.keep_work",
       "how long files of finished runs stay at least, e.g. 30d, or forever [forever]",
       [machines](const std::string& value) { return SetKeepWork(machines, value); }},
      {"machines.hosts", "file of the hosts that are reached over SSH [this machine alone, no SSH]",
       AbsolutePathInto(hosts_file)},
      {"machines.host_directory",
       "directory on each host for Muster's files [.muster in the home directory]",
       AbsolutePathInto(&machines->host_directory)},
      {"machines.host_lost_after", "silence after which the runs of a host are LOST [1h]",
       DurationInto(&machines->host_lost_after)},
      {"machines.run_as_helper", "path of muster-run-as, for run_as: user [beside muster-agent]",
       AbsolutePathInto(&machines->run_as_helper)},
      {"machines.supervisor", "path of muster-supervisor [beside muster-agent]",
       AbsolutePathInto(&machines->supervisor_path)},
  };
}

std::vector<Setting> SlurmCallSettings(slurm::SlurmConfig* slurm) {
  return {
      {"slurm.max_timeout_requeues",
       "requeues, 1 to 10000, after which a job that reaches its slurm.timeout fails [100]",
       NumberInto(1, 10000,
                  [slurm](uint64_t n) { slurm->max_timeout_requeues = static_cast<uint32_t>(n); })},
      {"slurm.max_polls_per_minute",
       "maximum number of looks at Slurm's queue, accounting and nodes in a minute; 0: no limit "
       "[20]",
       NumberInto(0, kMaxCallsPerMinute,
                  [slurm](uint64_t n) { slurm->max_polls_per_minute = static_cast<uint32_t>(n); })},
      {"slurm.max_scheduler_calls_per_minute",
       "maximum number of calls to Slurm of all kinds in a minute; 0: no limit [0]",
       NumberInto(0, kMaxCallsPerMinute,
                  [slurm](uint64_t n) {
                    slurm->max_scheduler_calls_per_minute = static_cast<uint32_t>(n);
                  })},
      {"slurm.rest_url", "slurmrestd: http[s]://HOST:PORT or unix:/PATH [Slurm's commands]",
       [slurm](const std::string& value) {
         slurm->rest_url = value;
         return slurm::CheckHttpUrl(value);
       }},
      {"slurm.rest_user", "user of the token [the user of the commands]",
       TextInto(&slurm->rest_user)},
      {"slurm.rest_token_file", "file of the token, readable only by its owner [scontrol token]",
       AbsolutePathInto(&slurm->rest_token_file)},
      {"slurm.rest_cluster", "ClusterName [what slurmrestd tells]", TextInto(&slurm->rest_cluster)},
  };
}

std::vector<Setting> SlurmSettings(slurm::SlurmConfig* slurm) {
  return {
      {"slurm.run_dir", "directory of the runs, shared with the nodes [STATE_DIR/runs]",
       AbsolutePathInto(&slurm->run_dir)},
      {"slurm.slurm_conf", "SLURM_CONF of every command [the agent's own]",
       AbsolutePathInto(&slurm->slurm_conf)},
      {"slurm.bin_dir", "directory of sbatch, squeue and so on [found in PATH]",
       AbsolutePathInto(&slurm->bin_dir)},
      {"slurm.job_path", "PATH of the jobs [the usual directories]", TextInto(&slurm->job_path)},
      {"slurm.observe_interval",
       "interval between two calls of squeue; shorter while an end is awaited [5s]",
       DurationInto(&slurm->observe_interval)},
      {"slurm.command_timeout", "time limit of each command except sbatch [1m]",
       DurationInto(&slurm->command_timeout)},
      {"slurm.sbatch_timeout", "time limit of sbatch [3m]", DurationInto(&slurm->sbatch_timeout)},
      {"slurm.lookup_grace",
       "minimum time that Slurm must report a run as unknown before Muster launches it again [30s]",
       DurationInto(&slurm->lookup_grace)},
      {"slurm.absence_grace",
       "how long there must be no trace of a run before it counts as LOST [1m]",
       DurationInto(&slurm->absence_grace)},
      {"slurm.record_grace", "how long exit and accounting records may lag [30s]",
       DurationInto(&slurm->record_grace)},
      {"slurm.convert_images",
       "yes: convert images to squashfs files before a run has nodes; no: nodes pull them [yes]",
       YesInto(&slurm->convert_images)},
      {"slurm.image_dir",
       "directory of the converted images, shared with the nodes [images, beside run_dir]",
       AbsolutePathInto(&slurm->image_dir)},
      {"slurm.conversion_partition", "partition of image conversions [Slurm's default partition]",
       TextInto(&slurm->conversion_partition)},
      {"slurm.conversion_account",
       "account of image conversions [slurm.default_account, or the user's own]",
       TextInto(&slurm->conversion_account)},
      {"slurm.conversion_qos", "QOS of image conversions [slurm.default_qos, or the user's own]",
       TextInto(&slurm->conversion_qos)},
      {"slurm.conversion_cpus", "cores of a conversion [4]",
       NumberInto(1, 1024,
                  [slurm](uint64_t n) { slurm->conversion_cpus = static_cast<uint32_t>(n); })},
      {"slurm.conversion_memory", "memory of a conversion [32Gi]",
       [slurm](const std::string& value) -> absl::Status {
         const absl::StatusOr<uint64_t> bytes = contract::ParseBytes(value);
         if (!bytes.ok()) return bytes.status();
         if (*bytes < kMebibyte || *bytes > kMaxConversionBytes)
           return InvalidSetting(fmt::format("\"{}\" is not between 1Mi and 1Ti", value));
         slurm->conversion_memory_mib = static_cast<uint32_t>(*bytes / kMebibyte);
         return absl::OkStatus();
       }},
      {"slurm.conversion_time_limit", "time limit of a conversion [30m]",
       DurationInto(&slurm->conversion_time_limit)},
      {"slurm.pull_if_conversion_fails",
       "yes: each node pulls an image that could not be converted; no: the run fails [no]",
       YesInto(&slurm->pull_if_conversion_fails)},
      {"slurm.container_mounts", "directories that are mounted in every container, DIR,... [none]",
       PathListInto(&slurm->container_mounts)},
      {"slurm.spank_options",
       "options of the site's SPANK plug-ins that jobs may set, without \"--\": NAME,... [none]",
       SpankOptionsInto(&slurm->spank_options)},
      {"slurm.storage_roots", "directories of jobs' data, NAME=DIR,... [every path]",
       RootsInto(&slurm->storage_roots), /*is_mapping=*/false},
      {"slurm.run_as_helper", "path of muster-run-as, for run_as: user [beside muster-agent]",
       AbsolutePathInto(&slurm->run_as_helper)},
      {"slurm.results_root", "directory below which each job gets one for its results [none]",
       AbsolutePathInto(&slurm->results_root)},
  };
}

// On Slurm by commands on this machine alone.
absl::Status CheckSlurmRunAs(const AgentConfig& config) {
  const slurm::SlurmConfig& slurm = config.slurm;
  std::string_view with;
  if (!config.slurm_ssh.hosts.empty()) with = "slurm.ssh_hosts";
  if (!slurm.rest_url.empty()) with = "slurm.rest_url";
  if (!with.empty()) {
    return InvalidSetting(fmt::format(
        "run_as: user is not there with {}: jobs would run as its one user; let the agent run on a "
        "login node, with muster-run-as beside it, or leave run_as out and let only people who "
        "trust each other use this cluster",
        with));
  }
  if (slurm.run_dir.empty()) {
    return InvalidSetting(
        "slurm.run_dir DIR is required with run_as: user: a directory that compute nodes share, "
        "where each user has a directory; as a rule the work-root of /etc/muster/run-as.conf");
  }
  if (!slurm.results_root.empty()) {
    return InvalidSetting(
        "slurm.results_root cannot be had with run_as: user: whoever may write there could make "
        "the directories of others' jobs; leave it out, and let jobs name their results_directory");
  }
  return absl::OkStatus();
}

// Only the kind that can do it takes run_as: user, so that nobody counts on what is not done.
absl::Status CheckRunAs(const AgentConfig& config) {
  if (!config.run_as_user) {
    if (config.machines.run_as_map.empty()) return absl::OkStatus();
    return InvalidSetting("run_as_map needs run_as: user; set that, too, or leave run_as_map out");
  }
  if (config.kind == v1::CLUSTER_KIND_SLURM) return CheckSlurmRunAs(config);
  std::string_view where;
  if (config.kind == v1::CLUSTER_KIND_KUBERNETES) where = "of kind kubernetes";
  if (config.kind == v1::CLUSTER_KIND_MUSTER) where = "of kind muster";
  if (!config.machine_hosts_file.empty()) where = "with machines.hosts";
  if (where.empty()) return absl::OkStatus();
  if (config.kind == v1::CLUSTER_KIND_KUBERNETES) {
    return InvalidSetting(
        "run_as: user is not there for clusters of kind kubernetes, whose users are service "
        "accounts of projects; set kubernetes.projects, which gives each project a namespace and "
        "an account, and leave run_as out");
  }
  return InvalidSetting(fmt::format(
      "run_as: user is not there for clusters {}, only for Slurm and for machines without "
      "machines.hosts; leave it out, and let only people who trust each other use this cluster: "
      "its jobs run as the "
      "agent's user",
      where));
}

}  // namespace

std::vector<Setting> SettingsOf(AgentConfig* config) {
  std::vector<Setting> settings = {
      {"cluster", "name of the cluster (required)",
       [config](const std::string& value) {
         config->cluster = value;
         return contract::ValidateClusterName(value);
       }},
      {"kind", "machines, slurm, kubernetes or muster (required)",
       [config](const std::string& value) { return SetKind(config, value); }},
      {"broker", "unix:PATH, HOST:PORT, or tls:HOST:PORT from another machine (required)",
       [config](const std::string& value) {
         config->broker = value;
         return rpc::ParseAddress(value).status();
       }},
      {"state_dir", "directory of the journal and, on machines, of the runs (required)",
       TextInto(&config->state_dir)},
      {"run_as",
       "whose processes jobs are: agent, or user: their users', on Slurm and on machines without "
       "hosts [agent]",
       OneOf({"agent", "user"},
             [config](const std::string& value) { config->run_as_user = value == "user"; })},
      {"run_as_map", "file with a line MUSTER_USER: LOCAL_USER for each user [the same names]",
       AbsolutePathInto(&config->machines.run_as_map)},
      {"log_format", "text or json [text]",
       OneOf({"text", "json"},
             [config](const std::string& value) { config->json_logs = value == "json"; })},
      {"log_level", "debug, info, warning or error [info]",
       OneOf({"debug", "info", "warning", "error"},
             [config](const std::string& value) { config->log_level = value; })},
      {"max_active_runs",
       "maximum number of runs that the cluster gets at the same time [1000; Slurm and Muster "
       "10000]",
       NumberInto(1, kMaxActiveRuns,
                  [config](uint64_t n) { config->max_active_runs = static_cast<uint32_t>(n); })},
      {"launch_parallelism",
       "launches at the same time [4; Kubernetes and Muster 16; on machines 1, which keeps their "
       "order]",
       NumberInto(1, kMaxLaunchParallelism,
                  [config](uint64_t n) { config->launch_parallelism = static_cast<int>(n); })},
      {"files.max_bytes", "maximum bytes of input files kept for later launches [20Gi]",
       BytesInto(&config->files.max_bytes)},
      {"files.keep_free_bytes",
       "disk space that such files and their copies leave free, also on hosts [256Mi]",
       BytesInto(&config->files.keep_free_bytes)},
      {"files.retention", "how long such a file is kept after its last use [7d]",
       DurationInto(&config->files.retention)},
  };
  for (Setting& setting : MachinesSettings(&config->machines, &config->machine_hosts_file)) {
    settings.push_back(std::move(setting));
  }
  for (Setting& setting : MachineSshSettings(&config->machine_ssh)) {
    settings.push_back(std::move(setting));
  }
  for (Setting& setting : SlurmSettings(&config->slurm)) settings.push_back(std::move(setting));
  for (Setting& setting : SlurmProfileSettings(&config->slurm.profile)) {
    settings.push_back(std::move(setting));
  }
  for (Setting& setting : SlurmCallSettings(&config->slurm)) {
    settings.push_back(std::move(setting));
  }
  for (Setting& setting : SshSettings("slurm", &config->slurm_ssh)) {
    settings.push_back(std::move(setting));
  }
  for (Setting& setting : KubernetesSettings(&config->kubernetes)) {
    settings.push_back(std::move(setting));
  }
  for (Setting& setting : RemoteSettings(&config->remote)) settings.push_back(std::move(setting));
  return settings;
}

absl::Status CheckComplete(const AgentConfig& config, bool needs_broker) {
  if (config.cluster.empty()) return InvalidSetting("--cluster NAME is required");
  if (config.kind == v1::CLUSTER_KIND_UNSPECIFIED) {
    return InvalidSetting("--kind is required: machines, slurm, kubernetes or muster");
  }
  if (needs_broker && config.broker.empty()) {
    return InvalidSetting("--broker ADDRESS is required: unix:PATH, HOST:PORT or tls:HOST:PORT");
  }
  if (config.state_dir.empty()) {
    return InvalidSetting("--state-dir DIR is required; it holds what the agent must not lose");
  }
  if (absl::Status status = CheckRunAs(config); !status.ok()) return status;
  if (config.kind == v1::CLUSTER_KIND_MUSTER && config.remote.address.empty()) {
    return InvalidSetting(
        "--muster-address ADDRESS is required with --kind muster: where the other broker listens, "
        "unix:PATH, HOST:PORT or tls:HOST:PORT");
  }
  const machines::MachinesConfig& machines = config.machines;
  if (!config.machine_hosts_file.empty() &&
      (machines.cpus.has_value() || machines.memory_bytes.has_value() ||
       machines.gpus.has_value())) {
    return InvalidSetting(
        "machines.cpus, machines.memory and machines.gpus are of this machine; with "
        "machines.hosts, "
        "set cpus, memory and gpus of each host in that file");
  }
  if (!config.slurm_ssh.hosts.empty() && config.slurm.run_dir.empty()) {
    return InvalidSetting(
        "--slurm-run-dir DIR is required with --slurm-ssh-hosts: a directory that login hosts and "
        "compute nodes share");
  }
  if (!config.slurm.spank_options.empty() && !config.slurm.rest_url.empty()) {
    return InvalidSetting(
        "slurm.spank_options cannot be had with slurm.rest_url: slurmrestd takes no options of "
        "plug-ins; leave one of them out");
  }
  return absl::OkStatus();
}

}  // namespace muster::agents
