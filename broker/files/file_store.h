// The files that jobs bring along, each named by the SHA-256 of its content.
//
// `kept/` holds whole files, each under its digest: a name is there only after its content was
// checked and is on disk. `incoming/` holds what is on its way and is emptied at each start. When a
// file was last used is its modification time, so that a restart forgets nothing and no table has
// to agree with the directory.
//
// Any thread; all methods do blocking file I/O. One process for each directory: whoever opens it
// holds the lock of the state directory.
#ifndef MUSTER_BROKER_FILES_FILE_STORE_H_
#define MUSTER_BROKER_FILES_FILE_STORE_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/disk/files.h"

namespace muster::files {

struct Options {
  // Limit for the files of one job: each agent carries them to each of its nodes.
  uint64_t max_job_bytes = uint64_t{1} << 30;
  // Limit for all files, each counted in whole blocks: bounds the disk, and the number of files to
  // some 13 million.
  uint64_t max_total_bytes = uint64_t{50} << 30;
  // Space that uploads leave free on the disk: the broker ends when its database cannot grow.
  uint64_t keep_free_bytes = uint64_t{256} << 20;
  // How long a file stays that nobody has used and no unfinished job names.
  absl::Duration retention = absl::Hours(24 * 7);
};

// A file takes at least as much of the disk, as file systems give it.
inline constexpr uint64_t kBlockBytes = 4096;
// A use is noted again only after so long: most are repeats, and each note is a write.
inline constexpr absl::Duration kUseGranularity = absl::Minutes(10);
// No use is younger than this when its file goes, however full the store is: the time from a
// client's question what is missing to its submit.
inline constexpr absl::Duration kLeastRetention = absl::Hours(1);

// Files that a pass over many files went on without.
struct Skipped {
  void Note(absl::Status why) {
    if (count++ == 0) first = std::move(why);
  }

  uint64_t count = 0;
  absl::Status first;
};

class FileStore;

// A file on its way in. Removed when it is destroyed, unless it was kept.
class IncomingFile {
 public:
  IncomingFile(FileStore* store, std::string sha256, uint64_t size_bytes)
      : store_(store), sha256_(std::move(sha256)), size_bytes_(size_bytes) {}
  IncomingFile(const IncomingFile&) = delete;
  IncomingFile& operator=(const IncomingFile&) = delete;
  ~IncomingFile();

  absl::Status Append(std::string_view bytes);
  // No more bytes come; the disk may begin to write those that did.
  void Complete() const;

  uint64_t size_bytes() const { return size_bytes_; }

 private:
  friend class FileStore;

  FileStore* const store_;
  const std::string sha256_;
  const uint64_t size_bytes_;  // that were announced, for which there is room
  uint64_t written_ = 0;
  std::filesystem::path path_;  // empty: none, or it has moved
  disk::FileDescriptor file_;
};

class FileStore {
 public:
  // Makes the directory or reads what is there: about 2 us for each file. Times come from `now`.
  static absl::StatusOr<std::unique_ptr<FileStore>> Open(std::filesystem::path directory,
                                                         Options options,
                                                         std::function<absl::Time()> now);

  const Options& options() const { return options_; }
  absl::Time now() const { return now_(); }

  // The size of a file that is there; it counts as used now. nullopt: it is missing.
  absl::StatusOr<std::optional<uint64_t>> Use(const std::string& sha256);

  struct KeptFile {
    disk::FileDescriptor file;
    uint64_t size_bytes = 0;
  };
  // To be read, also if it is removed meanwhile. NOT_FOUND, FILE_NOT_FOUND: it is missing.
  absl::StatusOr<KeptFile> OpenKept(const std::string& sha256);
  // Its content, checked; the caller knows that it is not too large for the memory. One that is
  // not as its name says is dropped.
  absl::StatusOr<std::string> ReadKept(const std::string& sha256);
  // The disk has changed what was read from `kept`: it is removed, unless another has its name by
  // now, and missing from then on, so that whoever needs it brings it again. Always an error:
  // NOT_FOUND, FILE_NOT_FOUND, or that it could not be removed.
  absl::Status DropDamaged(const std::string& sha256, const KeptFile& kept);
  // How many were dropped so. Knowledge of trees from before the last one may be out of date.
  uint64_t dropped() const { return dropped_; }

  // Room for a file. RESOURCE_EXHAUSTED with FILE_TOO_LARGE, FILES_FULL or DISK_FULL.
  absl::StatusOr<std::unique_ptr<IncomingFile>> NewFile(const std::string& sha256,
                                                        uint64_t size_bytes);
  struct Counts {
    uint32_t stored = 0;
    uint32_t known = 0;  // were there before
  };
  // Takes files whose content was checked. OK: all are on disk under their names.
  absl::StatusOr<Counts> Keep(std::vector<std::unique_ptr<IncomingFile>> files);

  // ---- removing what nobody needs: one thread at a time

  // Files last used before this may go if no unfinished job names them.
  absl::Time Cutoff() const;
  // Returns whether there may be such files.
  bool IsExpiryDue() const;
  // One pass over all files, a bounded number at a time.
  class Expiry {
   public:
    Expiry(FileStore* store, absl::Time cutoff)
        : store_(store), cutoff_(cutoff), first_use_(store->now()) {}
    // Looks at up to max_files and removes those last used before the cutoff. False: the pass has
    // ended. Files that cannot be looked at or removed are skipped.
    absl::StatusOr<bool> Step(int max_files);
    uint64_t removed() const { return removed_; }
    const Skipped& skipped() const { return skipped_; }

   private:
    FileStore* const store_;
    const absl::Time cutoff_;
    std::optional<std::filesystem::directory_iterator> next_;
    absl::Time first_use_;  // of those seen; whatever comes meanwhile is used later than the begin
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
  absl::Status Reserve(const std::string& sha256, uint64_t size_bytes);
  void Release(uint64_t size_bytes);
  // Moves one file; the caller holds mutex_. False: it was there before.
  absl::StatusOr<bool> MoveLocked(IncomingFile* file);
  // When it was last used; nullopt: it is there no more.
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

  mutable std::mutex mutex_;  // also over each look at a name in kept/ that is acted upon
  // No file was last used before this.
  absl::Time first_use_ = absl::InfiniteFuture();
  uint64_t used_bytes_ = 0;
  uint64_t incoming_bytes_ = 0;  // announced, and not kept yet
  // Under their names, but the directory is not on disk yet: nobody is told that they are there.
  absl::flat_hash_set<std::string> unsynced_;
};

}  // namespace muster::files

#endif  // MUSTER_BROKER_FILES_FILE_STORE_H_
