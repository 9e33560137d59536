// Asks everything that a preflight of a Slurm cluster looks at. What the answers mean is decided in
// checks.h; a thing that depends on one that failed is skipped.
//
// Any thread; one Run at a time for each object. It asks Slurm seven times at most.
#ifndef MUSTER_AGENTS_SLURM_PREFLIGHT_H_
#define MUSTER_AGENTS_SLURM_PREFLIGHT_H_

#include <string>
#include <vector>

#include "agents/hosts/host.h"
#include "agents/slurm/check_list.h"
#include "agents/slurm/checks.h"
#include "agents/slurm/commands.h"
#include "agents/slurm/slurm.h"

namespace muster::slurm {

class Preflight {
 public:
  // All of them must outlive this object.
  Preflight(const SlurmConfig& config, hosts::Host* host, Commands* commands)
      : config_(config), host_(*host), commands_(*commands) {}

  v1::ClusterChecks Run();

 private:
  bool CheckHost();
  bool CheckSlurm();
  void CheckClocks(std::string_view config, AskedBetween config_asked);
  void CheckAccounting(const ClusterSettings& settings, std::string_view config);
  void CheckPartitions();
  void CheckDirectories();
  void CheckContainers();
  // Who the commands run as, their home directory and their groups.
  void FindIdentity();
  std::string Ask(std::vector<std::string> argv);

  const SlurmConfig& config_;
  hosts::Host& host_;
  Commands& commands_;
  CheckList checks_;
  std::string user_;
  std::string home_;
  Asker asker_;
};

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_PREFLIGHT_H_
