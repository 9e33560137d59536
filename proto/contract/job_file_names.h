// The names that job files have for fields of a spec (docs/job-file.md). Details of errors name
// fields as the API does; sentences and advice for users name them as users write them.
#ifndef MUSTER_PROTO_CONTRACT_JOB_FILE_NAMES_H_
#define MUSTER_PROTO_CONTRACT_JOB_FILE_NAMES_H_

#include <string>
#include <string_view>

namespace muster::contract {

// "resources.memory" for "resources.memory_bytes", "cluster" for "placement.clusters[0]",
// "roles[1].run" for "roles[1].command.script". A field that a job file names as the API does
// stays as it is.
std::string JobFileName(std::string_view api_field);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_JOB_FILE_NAMES_H_
