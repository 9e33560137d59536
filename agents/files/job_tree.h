// All that a job brings along as one tree, as it will lie in the run's working directory.
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

// `trees`: of each upload, in their order, each checked. Where two have the same path, the later
// one's is taken. The whole is checked again, since trees that are harmless alone need not be
// together: INVALID_ARGUMENT, HOSTILE_TREE.
absl::StatusOr<v1::FileTree> JoinTrees(
    const google::protobuf::RepeatedPtrField<v1::Upload>& uploads,
    const std::vector<v1::FileTree>& trees);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_JOB_TREE_H_
