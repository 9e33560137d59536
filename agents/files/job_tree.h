// Joins all uploads of a job to one tree, as it will lie in the run's working directory.
//
// Pure; any thread.
#ifndef MUSTER_AGENTS_FILES_JOB_TREE_H_
#define MUSTER_AGENTS_FILES_JOB_TREE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "muster/v1/file_tree.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::uploads {

// `trees` are those of the uploads, in their order, each checked. If two entries have the same
// path, the later one counts. INVALID_ARGUMENT, HOSTILE_TREE: trees that are harmless alone are not
// so together.
absl::StatusOr<v1::FileTree> JoinTrees(
    const google::protobuf::RepeatedPtrField<v1::Upload>& uploads,
    const std::vector<v1::FileTree>& trees);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_JOB_TREE_H_
