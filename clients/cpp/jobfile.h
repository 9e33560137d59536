// Reads files of jobs in YAML, in the forms that people write: Muster's own, and SkyPilot's tasks.
// docs/job-file.md and docs/coming-from-skypilot.md describe them.
#ifndef MUSTER_CLIENTS_CPP_JOBFILE_H_
#define MUSTER_CLIENTS_CPP_JOBFILE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "clients/cpp/job_file_result.h"

namespace muster::client {

// One request carries as much; a file that is longer could not be submitted.
inline constexpr size_t kMaxJobFileBytes = 4 << 20;
// Returns the jobs of the text, in either dialect (see dialect.h), unless the options say which:
// one for each document of a job file, or what skypilot/task_file.h makes of SkyPilot tasks. `file`
// is for messages. INVALID_ARGUMENT: one line for each problem, "FILE:LINE:COLUMN: FIELD: what is
// wrong and what would work". A field that no cluster honours yet is read all the same: the broker
// refuses it by name, and the places tell where it is.
absl::StatusOr<JobFile> ParseJobFile(std::string_view file, std::string_view text,
                                     const JobFileOptions& options = {});

// Does the same for a file; "-" is standard input. NOT_FOUND, PERMISSION_DENIED, ...: it cannot be
// read.
absl::StatusOr<JobFile> ReadJobFile(const std::string& path, const JobFileOptions& options = {});

// Returns whether the text is YAML of more than a plain text, as SkyPilot tells a task's file from
// others.
bool IsYamlStructure(std::string_view text);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_JOBFILE_H_
