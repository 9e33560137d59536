// Job files: jobs in YAML, in the forms that people write. clients/README.md describes the format.
#ifndef MUSTER_CLIENTS_CPP_JOBFILE_H_
#define MUSTER_CLIENTS_CPP_JOBFILE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client {

// What one request carries; a file that is longer could not be submitted.
inline constexpr size_t kMaxJobFileBytes = 4 << 20;
// As many as SubmitJobs takes.
inline constexpr size_t kMaxJobsInFile = 1000;

// Where the fields of the jobs of a file are, so that what the broker says of a field can be said
// of its place.
class FieldPlaces {
 public:
  // "FILE:LINE:COLUMN" of a field, named as the API has it, of one of the jobs, from 0; empty if
  // the file does not give it.
  std::string Find(size_t job, std::string_view api_path) const;

  // One job's fields, by the API's names.
  using OfJob = std::map<std::string, std::string, std::less<>>;
  void Add(OfJob fields) { jobs_.push_back(std::move(fields)); }

 private:
  std::vector<OfJob> jobs_;
};

// One job for each YAML document of the text, at least one. `file` is for messages. The specs are
// as written, without defaults. INVALID_ARGUMENT: one line for each problem, "FILE:LINE:COLUMN:
// FIELD: what is wrong and what would work". A field that no cluster honours yet is read all the
// same: the broker refuses it by name, and `places`, if given, tells where it is.
absl::StatusOr<std::vector<v1::JobSpec>> ParseJobFile(std::string_view file, std::string_view text,
                                                      FieldPlaces* places = nullptr);

// The same from a file; "-" is standard input. NOT_FOUND, PERMISSION_DENIED, ...: it cannot be
// read.
absl::StatusOr<std::vector<v1::JobSpec>> ReadJobFile(const std::string& path,
                                                     FieldPlaces* places = nullptr);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_JOBFILE_H_
