// Checks whether all files that a job brings along are here.
//
// Any thread may use it. It does blocking file I/O: up to about 0.2 s for a tree of the most
// entries, next to nothing for one that was looked at a moment ago.
#ifndef MUSTER_BROKER_FILES_JOB_FILES_H_
#define MUSTER_BROKER_FILES_JOB_FILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/files/file_store.h"
#include "broker/files/viewer.h"
#include "muster/v1/job_spec.pb.h"
#include "sync/mutex.h"

namespace muster::files {

class JobFiles {
 public:
  explicit JobFiles(FileStore* store) : store_(store) {}

  // Checks that all files of a normalized spec are here, and that of its shell's variables among
  // them. They count as used now. `prefix` is the spec's field in its request: "spec.".
  // FAILED_PRECONDITION, FILES_MISSING: some must be uploaded; a file that the viewer may not know
  // of is missing, also if a tree of the viewer's names it. INVALID_ARGUMENT: the named file is no
  // tree, or the files are too large.
  absl::Status Check(const v1::JobSpec& spec, std::string_view prefix, const Viewer& viewer);

  // Returns the size of an archive of the spec's trees, or more because of long paths. Trees that
  // are not here count as 0.
  uint64_t ArchiveBytes(const v1::JobSpec& spec, const Viewer& viewer);

  // Makes the files of a spec, which were all here a moment ago, those of its project: its members
  // can read them in the job's runs. They need not upload them again. `prefix` is as of Check.
  // FAILED_PRECONDITION, FILES_MISSING: one has gone since.
  absl::Status Share(const v1::JobSpec& spec, std::string_view prefix);

  // Marks the files of an unfinished job's tree as used now. Missing files are skipped: it is not
  // the task of this method to bring them back.
  absl::Status Use(const std::string& tree_sha256);
  // Does the same for the file of a shell's variables.
  absl::Status UseShell(const std::string& file_sha256) {
    return store_->Use(file_sha256, Broker()).status();
  }

 private:
  // Most trees that are remembered, at about 200 bytes each.
  static constexpr size_t kMaxRemembered = 1024;
  // An error names at most this many missing files, and counts the others.
  static constexpr size_t kMaxNamed = 3;

  // The result of a look at a tree.
  struct Look {
    absl::Time time;
    uint64_t dropped = 0;  // FileStore::dropped() at that time
    uint64_t total_bytes = 0;
    uint64_t archive_bytes = 0;
    uint32_t missing = 0;
    std::string named;  // the first missing ones
  };
  static Viewer Broker() { return Viewer::All(""); }

  absl::Status CheckShell(const v1::JobSpec& spec, std::string_view prefix, const Viewer& viewer);
  absl::StatusOr<Look> LookAt(const std::string& tree_sha256, const Viewer& viewer);
  absl::StatusOr<Look> LookAtFiles(const std::string& tree_sha256, const Viewer& viewer);
  // NOT_FOUND: the tree has gone.
  absl::Status ShareTree(const std::string& tree_sha256, const std::string& owner);
  bool Recall(const std::string& key, Look* look);
  void Remember(const std::string& key, const Look& look);

  FileStore* const store_;
  Mutex mutex_;
  // Trees of which nothing was missing for a viewer, and those that are an owner's, by the digest
  // and the key of the viewer, or the owner.
  std::map<std::string, Look> remembered_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::files

#endif  // MUSTER_BROKER_FILES_JOB_FILES_H_
