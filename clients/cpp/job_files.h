// Reads several files of jobs, and directories of them, as one submission.
#ifndef MUSTER_CLIENTS_CPP_JOB_FILES_H_
#define MUSTER_CLIENTS_CPP_JOB_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/job_file_result.h"

namespace muster::client {

// The most jobs of one submission: the broker takes as many at once, or none.
inline constexpr size_t kMaxJobsAtOnce = 10'000;

// The jobs of all files, in their order; of a directory those of its files that end with .yaml,
// .yml or .json, by name, without its subdirectories. "-" is standard input. Errors are those of
// ReadJobFile; INVALID_ARGUMENT also: a directory has no such file, or there are too many jobs.
absl::StatusOr<JobFile> ReadJobFiles(const std::vector<std::string>& paths,
                                     const JobFileOptions& options);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_JOB_FILES_H_
