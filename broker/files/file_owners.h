// Keeps STATE/files/owners.db: who has brought which of the kept files, so that a digest alone
// gives nobody a file, nor tells anybody that the broker has it.
//
// A user owns what he uploaded, and a project what a job of it brought along. A row is made only
// while its file is there, and goes when the file is gone; a lost row costs another upload of the
// same bytes, nothing else.
//
// Any thread may use it; one file belongs to one process. All methods do blocking file I/O.
#ifndef MUSTER_BROKER_FILES_FILE_OWNERS_H_
#define MUSTER_BROKER_FILES_FILE_OWNERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "broker/files/viewer.h"
#include "daemon/sqlite.h"
#include "sync/mutex.h"

namespace muster::files {

// Most owners of one file, at about 70 bytes each. Files that everybody has, such as an empty one,
// have the most; a project is one owner for all of its members. One more takes the place of the
// earliest, who has to upload the file again.
inline constexpr int kMaxOwnersPerFile = 256;
// Most files of one transaction: others who write wait for it. A job may bring 50,000
// files along.
inline constexpr size_t kMaxFilesPerTransaction = 1000;

class FileOwners {
 public:
  // FAILED_PRECONDITION: the file is of a newer version.
  static absl::StatusOr<std::unique_ptr<FileOwners>> Open(const std::string& path);

  // Adds an owner of files that are there. OK: it is on disk. Returns how many of them were not the
  // owner's before. Nothing is written if none is new. After an error some may have been added.
  absl::StatusOr<uint32_t> Add(const std::vector<std::string>& sha256s, const std::string& owner,
                               absl::Time now);
  // True if the viewer may know of the file, should it be there. Does not wait for those who write.
  absl::StatusOr<bool> MayKnow(const Viewer& viewer, const std::string& sha256) const;
  // Removes all owners of files that are not there. Nothing is written if there are none.
  absl::Status Forget(const std::vector<std::string>& sha256s);
  // Returns the next digests that have owners, in their order; none: those were all.
  absl::StatusOr<std::vector<std::string>> After(const std::string& sha256, int max_files) const;

 private:
  FileOwners(std::unique_ptr<Database> database, std::unique_ptr<Database> reader)
      : database_(std::move(database)), reader_(std::move(reader)) {}
  absl::Status Prepare();
  // Adds an owner of at most kMaxFilesPerTransaction files.
  absl::StatusOr<uint32_t> AddSome(absl::Span<const std::string> sha256s, const std::string& owner,
                                   absl::Time now);

  Mutex mutex_;
  const std::unique_ptr<Database> database_;
  Statement add_ ABSL_GUARDED_BY(mutex_);
  Statement drop_earliest_ ABSL_GUARDED_BY(mutex_);
  Statement forget_ ABSL_GUARDED_BY(mutex_);

  // A connection that reads sees what the other one has committed (WAL), while that one writes on.
  // It closes first, so that the other one can empty the log.
  mutable Mutex reader_mutex_;
  const std::unique_ptr<Database> reader_;
  mutable Statement find_ ABSL_GUARDED_BY(reader_mutex_);
  mutable Statement next_ ABSL_GUARDED_BY(reader_mutex_);
};

}  // namespace muster::files

#endif  // MUSTER_BROKER_FILES_FILE_OWNERS_H_
