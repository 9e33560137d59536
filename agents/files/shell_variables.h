// Fetches from the broker the variables of a shell that a batch script takes along from where it
// was submitted.
//
// Any thread may use it. Fetching blocks; the file of a shell is kept, so that only its first job
// waits.
#ifndef MUSTER_AGENTS_FILES_SHELL_VARIABLES_H_
#define MUSTER_AGENTS_FILES_SHELL_VARIABLES_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/files/job_files.h"
#include "contract/shell_environment.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::uploads {

// Returns the variables; none if the job takes none along. `files`: null if the agent takes no
// files. Errors as of FileCache::Fetch, and INVALID_ARGUMENT: no such file can be had, or it is
// damaged.
absl::StatusOr<contract::ShellVariables> FetchShellVariables(
    const v1::JobSpec& spec, JobFiles* files, absl::Duration patience = kFetchPatience);

// Returns the assignment as a cluster of another kind than Slurm runs it: its env has those of the
// variables that mean something there, and all that were named, unless the job sets them itself.
// Errors as above.
absl::StatusOr<agent::v1::Assignment> WithShellVariables(const agent::v1::Assignment& assignment,
                                                         JobFiles* files);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_SHELL_VARIABLES_H_
