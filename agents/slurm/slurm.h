// Runs on a Slurm cluster, driven with Slurm's own commands from a host that has them (a login
// node), or through its slurmrestd.
//
// The backend keeps its own files outside Slurm under SlurmConfig::run_dir, which the compute nodes
// must see under the same path; README.md in this folder describes them.
#ifndef MUSTER_AGENTS_SLURM_SLURM_H_
#define MUSTER_AGENTS_SLURM_SLURM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/files/job_files.h"
#include "agents/hosts/host.h"
#include "agents/slurm/profile.h"
#include "agents/slurm/run_files.h"

namespace muster::slurm {

struct SlurmConfig {
  // The operator's name for the cluster; runs read it as MUSTER_CLUSTER.
  std::string cluster;
  // The directory of the runs, which is absolute, writable for the agent and shared with the
  // compute nodes. Default: "runs" in the agent's state directory.
  std::string run_dir;
  // Fetches the files that jobs bring along; must outlive the backend. Null: the cluster takes no
  // such jobs.
  uploads::JobFiles* files = nullptr;
  // SLURM_CONF for every command. Default: the agent's own SLURM_CONF (on this machine), or where
  // Slurm looks by itself.
  std::string slurm_conf;
  // The directory of sbatch, squeue and so on. Default: they are looked up in the agent's PATH.
  std::string bin_dir;
  // This user runs the commands on another host, and its HOME is looked up there. Default: the
  // agent's own user on this machine.
  std::string user_on_host;
  // PATH of the jobs. Default: bin_dir, and the usual system directories.
  std::string job_path;
  // The most looks at Slurm in any 60 s (its queue, accounting, partitions, nodes), by commands or
  // slurmrestd; 0 means no limit. A quarter of them may come at once, the others come one by one.
  // The default is what sites that complain ask for.
  uint32_t max_polls_per_minute = 20;
  // The most calls of all kinds, likewise. No limit by default: somebody waits for submissions,
  // cancels and holds.
  uint32_t max_scheduler_calls_per_minute = 0;
  // A submission waits this long for its turn among those; then it goes to the end of the
  // queue.
  absl::Duration submit_patience = absl::Minutes(5);
  // A look at the runs may still begin calls about single jobs this long after its squeue. Later
  // jobs wait for the next look, because the look reports no state before its last call.
  absl::Duration round_patience = absl::Seconds(20);
  // One read of files in a look at the runs waits no longer than this. A file server that takes
  // longer holds up the ends that it keeps, and no other states.
  absl::Duration read_patience = absl::Seconds(20);
  // Two calls of squeue are this far apart; less while an end is awaited (look_pace.h). It grows to
  // five times the duration of the last call, and when few of max_polls_per_minute are left.
  absl::Duration observe_interval = absl::Seconds(5);
  // Two listings of the directory of exit records are this far apart; they show an end before the
  // next squeue does.
  absl::Duration record_interval = absl::Milliseconds(250);
  // Time limit of any command but sbatch. slurmctld's own time-out, with one retry, is 20 s by
  // default.
  absl::Duration command_timeout = absl::Seconds(60);
  // Time limit of sbatch, which retries by itself for about two minutes when slurmctld is busy.
  absl::Duration sbatch_timeout = absl::Seconds(180);
  // The time for which Slurm must not know a run key before the run is launched again.
  absl::Duration lookup_grace = absl::Seconds(30);
  // The time for which queue, history and exit record must all be silent before a run is LOST.
  absl::Duration absence_grace = absl::Seconds(60);
  // Jobs name these directories of their data as slurm://NAME/...; data outside of them is refused.
  // Default: none, and every path may be used.
  std::map<std::string, std::string> storage_roots;
  // Jobs that name no results directory get one below this, named by their number. It is absolute,
  // writable, and shared with the nodes. Default: none; such jobs have no results directory.
  std::string results_root;
  // An exit record or an accounting record may follow the end that Slurm reports by this much: file
  // servers and slurmdbd lag.
  absl::Duration record_grace = absl::Seconds(30);

  // A job that reaches its slurm.timeout is not requeued any more after this number of restarts, 1
  // to 10000, so that a program without progress does not hold its nodes forever.
  uint32_t max_timeout_requeues = kMaxTimeoutRequeues;

  // Values for what a job leaves open. Default: none; Slurm's own defaults count.
  Profile profile;

  // ---- slurmrestd in place of Slurm's commands; the files of runs still go through the host
  // It is "http://host:port", "https://host:port" or "unix:/path". Empty: commands. kRestVersions
  // has the versions of its API that the agent speaks.
  std::string rest_url;
  // The user of the token. Default: the commands' user.
  std::string rest_user;
  // A file on the agent's machine with the user's token, which only its owner may read. Default:
  // `scontrol token` on the host, renewed in time.
  std::string rest_token_file;
  // ClusterName. Default: that of slurmrestd's accounting, if it has one cluster only, or of a job
  // in the queue.
  std::string rest_cluster;

  // ---- jobs that run as their users, by muster-run-as (agents/run_as) on the login host
  bool run_as_user = false;
  // This file says which user of the login host a user of Muster is. Default: the same names.
  std::string run_as_map;
  // The path of muster-run-as. Default: beside this program.
  std::string run_as_helper;
  // The agent's own directory for what its jobs' users must not change. Default: "runs" in the
  // agent's state directory.
  std::string own_directory;

  // Jobs may set these options of the site's SPANK plug-ins, without "--". Default: none. They go
  // to sbatch; slurmrestd has no way for them.
  std::vector<std::string> spank_options;

  // ---- containers, which need Pyxis on the cluster
  // Whether images are converted to squashfs files before a run takes nodes. Otherwise each node
  // pulls them itself.
  bool convert_images = true;
  // The squashfs files are in this directory: absolute, writable, shared with the nodes. Default:
  // "images" beside run_dir.
  std::string image_dir;
  // A conversion asks Slurm for these resources: the partition (default: Slurm's own), CPUs, memory
  // and time. A large image takes half an hour.
  std::string conversion_partition;
  // The account and the QOS that pay for it. Default: the account and the QOS of the profile, or
  // else the user's own.
  std::string conversion_account;
  std::string conversion_qos;
  uint32_t conversion_cpus = 4;
  uint32_t conversion_memory_mib = 32 * 1024;
  absl::Duration conversion_time_limit = absl::Minutes(30);
  // True: each node pulls an image itself if its conversion fails. By default the run fails,
  // because a pull on every node, while all of them are held, costs too much.
  bool pull_if_conversion_fails = false;
  // Directories of the cluster that every container shows under the same path.
  std::vector<std::string> container_mounts;
};

// Slurm's commands run on `host`, which has the run directories; null means this machine.
std::unique_ptr<agents::Backend> CreateSlurmBackend(SlurmConfig config, std::string state_dir,
                                                    std::unique_ptr<hosts::Host> host = nullptr);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_SLURM_H_
