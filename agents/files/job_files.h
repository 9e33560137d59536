// The files that a job brings along, fetched, checked and ready to be laid out.
#ifndef MUSTER_AGENTS_FILES_JOB_FILES_H_
#define MUSTER_AGENTS_FILES_JOB_FILES_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/files/file_cache.h"
#include "muster/v1/file_tree.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::uploads {

// The time that one launch waits for its files. Other launches, and the run's own cancel, wait
// behind it. Files that have come stay, so that the next try goes on from there.
inline constexpr absl::Duration kFetchPatience = absl::Seconds(20);

// A job's files, which stay on this machine as long as this object lives.
struct LocalFiles {
  v1::FileTree tree;  // of the run's working directory
  FileCache::Hold hold;
};

// Any thread may use it.
class JobFiles {
 public:
  // `cache` must outlive this object.
  explicit JobFiles(FileCache* cache) : cache_(cache) {}

  FileCache* cache() const { return cache_; }

  // Fetches all uploads of a spec. Errors as of FileCache::Fetch; INVALID_ARGUMENT, HOSTILE_TREE:
  // the tree must not be laid out, although the broker has accepted it.
  absl::StatusOr<LocalFiles> Fetch(const v1::JobSpec& spec,
                                   absl::Duration patience = kFetchPatience);

 private:
  FileCache* const cache_;
};

// Returns the outcome of a launch whose files could not be fetched or laid out: tried again if that
// may help without anybody's doing, otherwise refused, with the remedy.
agents::LaunchOutcome NotLaunched(const absl::Status& status);

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_JOB_FILES_H_
