// Finds the paths of a job that are this machine's, and turns them into its uploads. Private to the
// client library and the command.
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

// Where a file or directory of this machine goes, as people write it: "./data/", "data". Absolute
// places are the cluster's own, and so is a home there: INVALID_ARGUMENT says what would do.
absl::StatusOr<std::string> UploadTarget(const std::string& written);

// Adds an upload to the spec of a job.
void AddLocalUpload(size_t job, std::string source, std::string target, v1::JobSpec* spec,
                    std::vector<LocalUpload>* uploads);

// The working directory of a job of the file, in place of the one that it has: an absolute path is
// the cluster's, every other one this machine's. `is_local`: each is this machine's.
void SetWorkdir(const std::string& path, bool is_local, size_t job, JobFile* file);

}  // namespace muster::client

#endif  // MUSTER_CLIENTS_CPP_LOCAL_UPLOAD_H_
