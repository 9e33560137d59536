// Fetches the list of the files that a job brings along, and checks their names and sizes, before
// any content is fetched.
#ifndef MUSTER_AGENTS_FILES_FETCH_TREE_H_
#define MUSTER_AGENTS_FILES_FETCH_TREE_H_

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/files/file_cache.h"
#include "muster/v1/file_tree.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::uploads {

// Returns all uploads of a spec as one tree, as it will lie in the run's working directory. Errors
// as of FileCache::Fetch; INVALID_ARGUMENT, HOSTILE_TREE: the tree must not be laid out, although
// the broker has accepted it.
absl::StatusOr<v1::FileTree> FetchTree(const v1::JobSpec& spec, FileCache* cache,
                                       absl::Duration patience);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_FETCH_TREE_H_
