// Job files: jobs in YAML, in the forms that people write. clients/README.md describes the format.
#ifndef MUSTER_CLIENTS_CPP_JOBFILE_H_
#define MUSTER_CLIENTS_CPP_JOBFILE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client {

// What one request carries; a file that is longer could not be submitted.
inline constexpr size_t kMaxJobFileBytes = 4 << 20;
// As many as SubmitJobs takes.
inline constexpr size_t kMaxJobsInFile = 1000;

// One job for each YAML document of the text, at least one. `file` is for messages. The specs are
// as written, without defaults. INVALID_ARGUMENT: one line for each problem, "FILE:LINE:COLUMN:
// FIELD: what is wrong and what would work". A field that no cluster honours yet is read all the
// same: the broker refuses it by name.
absl::StatusOr<std::vector<v1::JobSpec>> ParseJobFile(std::string_view file, std::string_view text);

// The same from a file; "-" is standard input. NOT_FOUND, PERMISSION_DENIED, ...: it cannot be
// read.
absl::StatusOr<std::vector<v1::JobSpec>> ReadJobFile(const std::string& path);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_JOBFILE_H_
