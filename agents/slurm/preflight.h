// Asks everything that a preflight of a Slurm cluster looks at. checks.h decides what the answers
// mean; a check that depends on one that failed is skipped.
//
// Any thread may use it, for one Run at a time. It asks Slurm nine times at most.
#ifndef MUSTER_AGENTS_SLURM_PREFLIGHT_H_
#define MUSTER_AGENTS_SLURM_PREFLIGHT_H_

#include <string>
#include <vector>

#include "agents/core/check_list.h"
#include "agents/hosts/host.h"
#include "agents/slurm/checks.h"
#include "agents/slurm/commands.h"
#include "agents/slurm/job_users.h"
#include "agents/slurm/scheduler.h"
#include "agents/slurm/slurm.h"

namespace muster::slurm {

class Preflight {
 public:
  // All of them must outlive this object.
  // `users`: null if all jobs run as the agent's user.
  Preflight(const SlurmConfig& config, hosts::Host* host, Commands* commands, Scheduler* scheduler,
            JobUsers* users)
      : config_(config),
        host_(*host),
        commands_(*commands),
        scheduler_(*scheduler),
        users_(users) {}

  v1::ClusterChecks Run();

 private:
  bool CheckHost();
  bool CheckSlurm();
  // Says as whom jobs run.
  void CheckUsers();
  void CheckClocks(const Access& access);
  void CheckAccounting(const Access& access);
  void CheckPartitions();
  void CheckDirectories();
  void CheckContainers();
  bool CheckPyxis();
  // Finds the owner of the jobs, that user's home directory and groups.
  void FindIdentity();
  std::string Ask(std::vector<std::string> argv);

  const SlurmConfig& config_;
  hosts::Host& host_;
  Commands& commands_;
  Scheduler& scheduler_;
  JobUsers* const users_;
  agents::CheckList checks_;
  std::string user_;
  std::string home_;
  Asker asker_;
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_PREFLIGHT_H_
