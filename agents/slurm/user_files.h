// Reads the files of runs that run as their users, for people, as those users.
#ifndef MUSTER_AGENTS_SLURM_USER_FILES_H_
#define MUSTER_AGENTS_SLURM_USER_FILES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agents/core/run_files.h"
#include "agents/slurm/slurm.h"

namespace muster::slurm {

// Returns the working directory of a run. NOT_FOUND: the agent has submitted no such run.
absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenUserRunFiles(const SlurmConfig& config,
                                                                   const std::string& state_dir,
                                                                   const agents::RankOfRun& of);
// Returns the directory of its results, as above.
absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenUserResults(const SlurmConfig& config,
                                                                  const std::string& state_dir,
                                                                  const agents::RankOfRun& of);

}  // namespace muster::slurm

#endif  // MUSTER_AGENTS_SLURM_USER_FILES_H_
