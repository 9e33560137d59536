// Checks what a job brings along by name and size alone: a forbidden entry is known before its
// content is fetched.
#ifndef MUSTER_AGENTS_FILES_FETCH_TREE_H_
#define MUSTER_AGENTS_FILES_FETCH_TREE_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/files/file_cache.h"
#include "muster/v1/file_tree.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::uploads {

// All that the uploads of a spec name as one tree, as it will lie in the run's working directory.
// Errors as of FileCache::Fetch; INVALID_ARGUMENT, HOSTILE_TREE: a tree that must not be laid out,
// whatever the broker thinks of it.
absl::StatusOr<v1::FileTree> FetchTree(const v1::JobSpec& spec, FileCache* cache,
                                       absl::Time deadline);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_FETCH_TREE_H_
