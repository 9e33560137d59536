// Names the directory of results in the working directory of a job that names none, where the job
// may bring along something else.
#ifndef MUSTER_AGENTS_MACHINES_RESULTS_NAME_H_
#define MUSTER_AGENTS_MACHINES_RESULTS_NAME_H_

#include "absl/status/status.h"
#include "agents/files/job_files.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::machines {

// INVALID_ARGUMENT on the field results_directory.
absl::Status ResultsNameIsTaken();
bool IsResultsNameTaken(const absl::Status& status);

// Returns whether what the job brings along leaves the name free. A failure of the broker to send
// the list within two seconds says nothing about the job. `files`: null if there are none.
absl::Status CheckResultsName(const v1::JobSpec& spec, uploads::JobFiles* files);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RESULTS_NAME_H_
