// Removes files that nobody needs any more.
//
// A pass goes through the unfinished jobs first, and marks their files as used. Then it goes
// through the files, and removes those that were not used for long. A job that is accepted
// meanwhile has used its files just before. The pass works in steps on the file workers; Begin
// belongs to the main thread.
#ifndef MUSTER_BROKER_APP_FILE_EXPIRY_H_
#define MUSTER_BROKER_APP_FILE_EXPIRY_H_

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "broker/app/worker_pool.h"
#include "broker/files/file_store.h"
#include "broker/files/job_files.h"
#include "broker/store/store.h"

namespace muster::broker {

class FileExpiry {
 public:
  FileExpiry(files::FileStore* files, files::JobFiles* job_files, const store::Store* store,
             WorkerPool* workers)
      : files_(files), job_files_(job_files), store_(store), workers_(workers) {}

  // Begins a pass if files may be too old, no pass runs and the last one was long enough ago.
  void Begin();

 private:
  void Step();
  void Post();
  // True if there is more to do.
  absl::StatusOr<bool> Go();
  absl::StatusOr<bool> UseFilesOfJobs();

  files::FileStore* const files_;
  files::JobFiles* const job_files_;
  const store::Store* const store_;
  WorkerPool* const workers_;

  std::atomic<bool> is_running_ = false;
  // The members below belong to the running pass; while none runs, to Begin.
  std::optional<std::chrono::steady_clock::time_point> last_begin_;
  std::string page_token_;
  absl::flat_hash_set<std::string> seen_;  // named by unfinished jobs; 64 bytes each
  files::Skipped skipped_trees_;           // trees whose files do not count as used by their jobs
  std::optional<files::FileStore::Expiry> expiry_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_FILE_EXPIRY_H_
