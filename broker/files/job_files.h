// Whether the files that a job brings along are all here.
//
// Any thread; it does blocking file I/O: up to about 0.2 s for a tree of the most entries, next to
// nothing for one that was looked at a moment ago.
#ifndef MUSTER_BROKER_FILES_JOB_FILES_H_
#define MUSTER_BROKER_FILES_JOB_FILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/files/file_store.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::files {

class JobFiles {
 public:
  explicit JobFiles(FileStore* store) : store_(store) {}

  // All files of a normalized spec are here and count as used now. `prefix` is of the spec in its
  // request: "spec.". FAILED_PRECONDITION, FILES_MISSING: upload some. INVALID_ARGUMENT: what is
  // named is no tree, or they are too many bytes.
  absl::Status Check(const v1::JobSpec& spec, std::string_view prefix);

  // How long an archive of those of the spec's trees is that are here, or more by their paths; what
  // is not here counts for nothing.
  uint64_t ArchiveBytes(const v1::JobSpec& spec);

  // The files of an unfinished job's tree count as used now. What is missing is left out: that the
  // job has not got it is not for this to mend.
  absl::Status Use(const std::string& tree_sha256);

 private:
  // Trees that are remembered, about 200 bytes each.
  static constexpr size_t kMaxRemembered = 1024;
  // Missing files that an error names; the others it counts.
  static constexpr size_t kMaxNamed = 3;

  // What is known of a tree.
  struct Look {
    absl::Time time;
    uint64_t dropped = 0;  // FileStore::dropped() at that time
    uint64_t total_bytes = 0;
    uint64_t archive_bytes = 0;
    uint32_t missing = 0;
    std::string named;  // the first of those missing
  };
  absl::StatusOr<Look> LookAt(const std::string& tree_sha256);
  absl::StatusOr<Look> LookAtFiles(const std::string& tree_sha256);
  bool Recall(const std::string& tree_sha256, Look* look);
  void Remember(const std::string& tree_sha256, const Look& look);

  FileStore* const store_;
  std::mutex mutex_;
  std::map<std::string, Look> remembered_;  // of which nothing was missing
};

}  // namespace muster::files

#endif  // MUSTER_BROKER_FILES_JOB_FILES_H_
