// Turns the paths of a job that name files of this machine into its uploads. Private to the client
// library and the command.
#ifndef MUSTER_CLIENTS_CPP_LOCAL_UPLOAD_H_
#define MUSTER_CLIENTS_CPP_LOCAL_UPLOAD_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cpp/job_file_result.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::client {

// Reads the place in the run's working directory to which a file of this machine goes, as people
// write it: "./data/", "data". INVALID_ARGUMENT: an absolute place or one in a home, which are the
// cluster's own.
absl::StatusOr<std::string> UploadTarget(const std::string& written);

// Adds an upload to the spec of a job.
void AddLocalUpload(size_t job, std::string source, std::string target, v1::JobSpec* spec,
                    std::vector<LocalUpload>* uploads);

// Replaces the working directory of a job of the file: an absolute path is the cluster's, every
// other one this machine's. `is_local`: every path is this machine's.
void SetWorkdir(const std::string& path, bool is_local, size_t job, JobFile* file);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_LOCAL_UPLOAD_H_
