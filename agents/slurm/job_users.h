// Finds the users of the login host that jobs run as, if they run as their users.
//
// The agent writes down, in a directory of its own, as whom it submits a run. So the run's files
// are found, and its job is told from one that somebody else has given the run's name, whatever
// becomes of the map of users and of what the user's programs write.
//
// Any thread may use it.
#ifndef MUSTER_AGENTS_SLURM_JOB_USERS_H_
#define MUSTER_AGENTS_SLURM_JOB_USERS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/files/host_trees.h"
#include "agents/hosts/host.h"
#include "agents/slurm/call_gate.h"
#include "agents/slurm/command_scheduler.h"
#include "agents/slurm/commands.h"
#include "agents/slurm/patient_reads.h"
#include "agents/slurm/slurm.h"
#include "agents/users/run_as_host.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/job.pb.h"
#include "sync/mutex.h"

namespace muster::slurm {

struct JobUser {
  std::string name;
  uint32_t uid = 0;

  friend bool operator==(const JobUser&, const JobUser&) = default;
};

// The agent's own directory for what its jobs' users must not change.
std::string OwnDirectoryOf(const std::string& state_dir);

// Returns whom the agent has written down for the run; nothing if it is not known.
std::optional<JobUser> ReadJobUser(const std::string& own_directory, std::string_view run_key);

class JobUsers {
 public:
  // The host and Slurm as a user sees them.
  struct Side {
    Side(const SlurmConfig& of_user, hosts::Host* host, const std::string& user, CallGate* gate);

    const SlurmConfig config;
    users::RunAsHost host;
    Commands commands;
    CommandScheduler scheduler;
    PatientReads reads;  // as those of the agent; each user waits for the own ones alone
    // Null: jobs that bring files are not taken.
    std::unique_ptr<uploads::HostTrees> trees;
  };

  // `config` has run_as_user and all that belongs to it. Host and gate must outlive this object.
  JobUsers(const SlurmConfig& config, hosts::Host* host, CallGate* gate);

  // Returns whether programs could run as users, and the agent's own files are closed to them.
  // FAILED_PRECONDITION says what to do; UNAVAILABLE: the host could not be asked.
  absl::Status Probe();
  // Returns the line of a check that says as whom jobs run.
  v1::ClusterCheck CheckLine();
  std::string Meaning() const;

  // Returns whom a user of Muster is here. FAILED_PRECONDITION: nobody, and why; WhyNot makes a
  // failure of it. UNAVAILABLE: the map could not be read, or the host could not be asked.
  absl::StatusOr<JobUser> Find(const std::string& muster_user);
  static v1::Failure WhyNot(const absl::Status& status);

  // Writes down whose the run is, to last. Other errors than those of files: none.
  absl::Status Note(const std::string& run_key, const JobUser& user);
  // Returns whose the run is, as it was written down; nothing if it was not.
  std::optional<JobUser> Of(const std::string& run_key);
  // `keeps_file`: the user has files of the run, so that people may ask for them.
  void Forget(const std::string& run_key, bool keeps_file);

  // The directory of the user's runs.
  std::string RootOf(const std::string& name) const { return config_.run_dir + "/" + name; }
  // Returns the agent's own directory, in which no job of a user's has business.
  const std::string& own_directory() const { return config_.own_directory; }
  Side& SideOf(const std::string& name);

 private:
  absl::Status CheckDirectories();
  void Remember(const std::string& run_key, const JobUser& user);

  const SlurmConfig config_;
  hosts::Host& host_;
  CallGate* const gate_;

  Mutex mutex_;
  std::map<std::string, JobUser> users_ ABSL_GUARDED_BY(mutex_);                // by run key
  std::map<std::string, std::unique_ptr<Side>> sides_ ABSL_GUARDED_BY(mutex_);  // by user
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_JOB_USERS_H_
