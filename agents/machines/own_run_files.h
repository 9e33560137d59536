// Reads the files of runs on the agent's machine, and says why old ones have none.
#ifndef MUSTER_AGENTS_MACHINES_OWN_RUN_FILES_H_
#define MUSTER_AGENTS_MACHINES_OWN_RUN_FILES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/run_files.h"

namespace muster::machines {

// Tells that a run is over and has no files any more. `keep`: machines.keep_work.
std::string WorkIsGone(absl::Duration keep);

// Works like agents::OpenLocalRunFiles, below the directory of runs.
absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenOwnRunFiles(const std::string& runs_directory,
                                                                  absl::Duration keep,
                                                                  const agents::RankOfRun& of);

// The same, read as the user of the run, who may be another one than the agent's. A run that has no
// such user has no files: it is from a time when its cluster had run_as: agent.
absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenUserRunFiles(
    const std::string& runs_directory, absl::Duration keep, const agents::RankOfRun& of);
absl::StatusOr<std::unique_ptr<agents::RunFiles>> OpenUserResults(const std::string& runs_directory,
                                                                  const agents::RankOfRun& of);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_OWN_RUN_FILES_H_
