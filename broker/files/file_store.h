// Keeps the files that jobs bring along, each named by the SHA-256 of its content.
//
// `kept/` holds whole files, each under its digest: a name is there only after its content was
// checked and is on disk. `incoming/` holds files on their way in and is emptied at each start. A
// file's modification time is the time of its last use, so that a restart forgets nothing and no
// table has to agree with the directory. `owners.db` says whose the files are (file_owners.h).
//
// Any thread may use it. All methods do blocking file I/O. Each directory belongs to one process:
// its opener holds the lock of the state directory.
#ifndef MUSTER_BROKER_FILES_FILE_STORE_H_
#define MUSTER_BROKER_FILES_FILE_STORE_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/disk/files.h"
#include "broker/files/file_owners.h"
#include "broker/files/viewer.h"
#include "sync/mutex.h"

namespace muster::files {

struct Options {
  // The files of one job are limited because each agent carries them to each of its nodes.
  uint64_t max_job_bytes = uint64_t{1} << 30;
  // All files together are limited, each counted in whole blocks. This bounds the disk, and the
  // number of files to some 13 million.
  uint64_t max_total_bytes = uint64_t{50} << 30;
  // Space that uploads leave free on the disk: the broker ends when its database cannot grow.
  uint64_t keep_free_bytes = uint64_t{256} << 20;
  // A file stays for this time if it is not used and no unfinished job names it.
  absl::Duration retention = absl::Hours(24 * 7);
};

// A file takes at least this much of the disk, because file systems give whole blocks.
inline constexpr uint64_t kBlockBytes = 4096;
// Another use is noted only after so long: most uses are repeats, and each note is a write.
inline constexpr absl::Duration kUseGranularity = absl::Minutes(10);
// A file stays at least so long after its last use, however full the store is: the time from a
// client's question which files are missing to its submit.
inline constexpr absl::Duration kLeastRetention = absl::Hours(1);

// Files that a pass over many files has skipped.
struct Skipped {
  void Note(absl::Status why) {
    if (count++ == 0) first = std::move(why);
  }

  uint64_t count = 0;
  absl::Status first;
};

class FileStore;

// A file on its way in. Its destruction removes it, unless it was kept.
class IncomingFile {
 public:
  IncomingFile(FileStore* store, std::string sha256, uint64_t size_bytes)
      : store_(store), sha256_(std::move(sha256)), size_bytes_(size_bytes) {}
  IncomingFile(const IncomingFile&) = delete;
  IncomingFile& operator=(const IncomingFile&) = delete;
  ~IncomingFile();

  absl::Status Append(std::string_view bytes);
  // Tells that no more bytes come; the disk may begin to write those that did.
  void Complete() const;

  uint64_t size_bytes() const { return size_bytes_; }

 private:
  friend class FileStore;

  FileStore* const store_;
  const std::string sha256_;
  const uint64_t size_bytes_;  // announced size, for which there is room
  uint64_t written_ = 0;
  std::filesystem::path path_;  // empty: there is no file, or it has moved
  disk::FileDescriptor file_;
};

class FileStore {
 public:
  // Makes the directory, or reads its content: about 2 us for each file. Times come from `now`.
  static absl::StatusOr<std::unique_ptr<FileStore>> Open(std::filesystem::path directory,
                                                         Options options,
                                                         std::function<absl::Time()> now);

  const Options& options() const { return options_; }
  absl::Time now() const { return now_(); }

  // Returns the size of a file that is there and that the viewer may know of; it counts as used
  // now. nullopt: it is missing. A file of others is missing in every respect: the question does
  // not touch it.
  absl::StatusOr<std::optional<uint64_t>> Use(const std::string& sha256, const Viewer& viewer);

  struct KeptFile {
    disk::FileDescriptor file;
    uint64_t size_bytes = 0;
  };
  // Opens a file for reading, which goes on even if it is removed. NOT_FOUND, FILE_NOT_FOUND: it is
  // missing.
  absl::StatusOr<KeptFile> OpenKept(const std::string& sha256, const Viewer& viewer);
  // Returns the checked content; the caller knows that it fits into memory. A file whose content
  // does not match its name is dropped.
  absl::StatusOr<std::string> ReadKept(const std::string& sha256, const Viewer& viewer);
  // Drops a file whose content the disk has changed: `kept` is removed, unless another file has its
  // name by now. The file is missing from then on, so that clients bring it again. Always returns
  // an error: NOT_FOUND, FILE_NOT_FOUND, or that it could not be removed.
  absl::Status DropDamaged(const std::string& sha256, const KeptFile& kept);
  // Returns the number of files that were dropped as damaged. Knowledge of trees from before the
  // last one may be out of date.
  uint64_t dropped() const { return dropped_; }

  // Reserves room for a file. RESOURCE_EXHAUSTED with FILE_TOO_LARGE, FILES_FULL or DISK_FULL. Only
  // a viewer who sees all files is told how much they take.
  absl::StatusOr<std::unique_ptr<IncomingFile>> NewFile(const std::string& sha256,
                                                        uint64_t size_bytes, const Viewer& viewer);
  struct Counts {
    uint32_t stored = 0;
    uint32_t known = 0;  // files that were there before
  };
  // Takes files whose content was checked. OK: all are on disk under their names, and are the
  // viewer's. A file of others that the viewer could not see before counts as stored.
  absl::StatusOr<Counts> Keep(std::vector<std::unique_ptr<IncomingFile>> files,
                              const Viewer& viewer);
  // Adds an owner of files that are there.
  absl::Status AddOwner(const std::vector<std::string>& sha256s, const std::string& owner) {
    return owners_->Add(sha256s, owner, now()).status();
  }

  // ---- removal of files that nobody needs: one thread at a time

  // Files whose last use is older than this may go if no unfinished job names them.
  absl::Time Cutoff() const;
  // True if there may be such files.
  bool IsExpiryDue() const;
  // One pass over all files, and then over those that have owners, a bounded number at a time.
  class Expiry {
   public:
    Expiry(FileStore* store, absl::Time cutoff)
        : store_(store), cutoff_(cutoff), first_use_(store->now()) {}
    // Looks at up to max_files and removes those whose last use is older than the cutoff, or the
    // owners of those that are gone. False: the pass has ended. Files that cannot be looked at or
    // removed are skipped.
    absl::StatusOr<bool> Step(int max_files);
    uint64_t removed() const { return removed_; }
    const Skipped& skipped() const { return skipped_; }

   private:
    absl::StatusOr<bool> StepOwners(int max_files);

    FileStore* const store_;
    const absl::Time cutoff_;
    bool are_files_done_ = false;
    std::string owned_;  // the last digest whose owners were looked at
    std::optional<std::filesystem::directory_iterator> next_;
    absl::Time
        first_use_;  // earliest use of the files seen; later files are used after the pass began
    uint64_t removed_ = 0;
    Skipped skipped_;
  };

  // Counts kept files and those on their way, in whole blocks.
  uint64_t used_bytes() const;

 private:
  friend class IncomingFile;

  FileStore(std::filesystem::path directory, Options options, std::function<absl::Time()> now);

  absl::Status EmptyIncoming() const;
  absl::Status Survey();
  absl::Status Reserve(const std::string& sha256, uint64_t size_bytes, const Viewer& viewer);
  void Release(uint64_t size_bytes);
  // Moves one file. False: it was already there.
  absl::StatusOr<bool> MoveLocked(IncomingFile* file) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the time of the last use of a file that stays; nullopt if the file is gone.
  absl::StatusOr<std::optional<absl::Time>> RemoveIfUnused(const std::string& sha256,
                                                           absl::Time cutoff);
  std::filesystem::path KeptPath(const std::string& sha256) const { return kept_ / sha256; }

  const std::filesystem::path directory_;
  const std::filesystem::path kept_;
  const std::filesystem::path incoming_;
  const Options options_;
  const std::function<absl::Time()> now_;
  std::atomic<uint64_t> next_incoming_ = 0;
  std::atomic<uint64_t> dropped_ = 0;

  std::unique_ptr<FileOwners> owners_;

  mutable Mutex mutex_;  // also held from each look at a name in kept/ until it is acted upon
  // No file's last use is earlier than this.
  absl::Time first_use_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  uint64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Size of files that are announced and not kept yet.
  uint64_t incoming_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // These files have their names, but their directory is not on disk yet: nobody is told that they
  // are there.
  absl::flat_hash_set<std::string> unsynced_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::files

#endif  // MUSTER_BROKER_FILES_FILE_STORE_H_
