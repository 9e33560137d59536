// A file of SkyPilot tasks as jobs.
#ifndef MUSTER_CLIENTS_CPP_SKYPILOT_TASK_FILE_H_
#define MUSTER_CLIENTS_CPP_SKYPILOT_TASK_FILE_H_

#include <yaml-cpp/yaml.h>

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "clients/cpp/job_file_result.h"

namespace muster::client::skypilot {

// One task is one job. Several that a first document with `execution: parallel` makes a group are a
// job each. Several without are a chain: each job depends on the success of the one before it.
// `documents` are those of `text`. INVALID_ARGUMENT: one line for each problem.
absl::StatusOr<JobFile> ReadTasks(std::string_view file, std::string_view text,
                                  const std::vector<YAML::Node>& documents,
                                  const JobFileOptions& options);

}  // namespace muster::client::skypilot

#endif  // MUSTER_CLIENTS_CPP_SKYPILOT_TASK_FILE_H_
