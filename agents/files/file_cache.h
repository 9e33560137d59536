// Keeps the files that jobs have brought along on the agent's disk, by their content, so that a
// second job with the same file does not fetch it again.
//
// `kept/` holds whole files, each named by its digest; `incoming/` holds the received parts of
// others, from which fetching goes on. Nothing is synced: each reader checks the digest, and a file
// that does not match its name is removed and fetched again. The modification time of a file is the
// time of its last use, so that a restart forgets nothing.
//
// Any thread may use it. One process has a directory: the agent's state directory is locked.
// Fetching blocks until its patience is over.
#ifndef MUSTER_AGENTS_FILES_FILE_CACHE_H_
#define MUSTER_AGENTS_FILES_FILE_CACHE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agents/files/file_source.h"
#include "sync/mutex.h"

namespace muster::uploads {

// Returns the free space of the disk that the directory is on, for users other than root.
absl::StatusOr<uint64_t> FreeBytes(const std::string& directory);

struct CacheOptions {
  // Kept files that no launch is using are limited to this, each counted in whole blocks: enough
  // for some twenty jobs of the largest size that a broker takes.
  uint64_t max_bytes = uint64_t{20} << 30;
  // Files leave this much of the disk free for the agent's journal and its runs' records.
  uint64_t keep_free_bytes = uint64_t{256} << 20;
  // At most this many files are kept that no launch uses; each takes some 250 bytes of memory.
  size_t max_files = 200'000;
  // The time that a file is kept after its last use.
  absl::Duration retention = absl::Hours(24 * 7);
  // The time of day, for last uses, which are those of files.
  std::function<absl::Time()> now = absl::Now;
  std::function<absl::StatusOr<uint64_t>(const std::string&)> free_bytes = FreeBytes;
};

// A file that is wanted.
struct Wanted {
  std::string sha256;
  uint64_t size_bytes = 0;  // exactly, or at most
  bool is_exact = true;
};

class FileCache {
 public:
  // Makes the directory or reads what is there. `source` must outlive the cache.
  static absl::StatusOr<std::unique_ptr<FileCache>> Open(std::string directory,
                                                         CacheOptions options, FileSource* source);

  // Holds files: they stay as long as this object lives.
  class Hold {
   public:
    Hold() = default;
    Hold(FileCache* cache, std::vector<std::string> digests)
        : cache_(cache), digests_(std::move(digests)) {}
    Hold(Hold&& other) noexcept
        : cache_(std::exchange(other.cache_, nullptr)), digests_(std::move(other.digests_)) {}
    Hold& operator=(Hold&& other) noexcept;
    ~Hold() { Release(); }

   private:
    void Release();

    FileCache* cache_ = nullptr;
    std::vector<std::string> digests_;
  };

  // Fetches the files that are missing, and holds all of them. Files that came before an error stay
  // for the next try. With the patience -InfiniteDuration the source is not asked. NOT_FOUND: the
  // source lacks a file. UNAVAILABLE: they did not come while the patience lasted.
  // RESOURCE_EXHAUSTED: the disk is full. DATA_LOSS: the content that came does not match its
  // digest.
  absl::StatusOr<Hold> Fetch(const std::vector<Wanted>& files, absl::Duration patience);

  // Reads a held file in pieces. UNAVAILABLE: the file was damaged on this disk, and was removed
  // from the cache; the sink must drop what it got.
  absl::Status Read(const std::string& sha256, uint64_t size_bytes, const ByteSink& sink);
  // Does the same for the whole file.
  absl::StatusOr<std::string> ReadAll(const std::string& sha256);

  // Removes files that no launch is using until so many bytes fit onto the directory's disk,
  // besides the space that stays free there and the bytes that downloads under way will still
  // write. RESOURCE_EXHAUSTED: they do not fit; `what` needs them.
  absl::Status MakeRoom(uint64_t size_bytes, const std::string& directory, std::string_view what);
  // Returns whether a copy of so many bytes may fit there, beside the files themselves. Removes
  // nothing.
  bool MayHaveRoom(uint64_t size_bytes, const std::string& directory) const;
  uint64_t keep_free_bytes() const { return options_.keep_free_bytes; }

  // The agent ends: fetches under way soon fail with UNAVAILABLE, and later ones at once.
  void Stop();

  // Returns bytes of kept files, in whole blocks.
  uint64_t used_bytes() const;

 private:
  struct Kept {
    uint64_t bytes = 0;  // in whole blocks
    absl::Time last_use;
  };

  FileCache(std::string directory, CacheOptions options, FileSource* source);

  // Makes the directories of the cache that are missing.
  absl::Status MakeDirectories() const;
  absl::Status Survey();
  // Fetches one of the files, unless it is kept.
  // `until`: by hosts::SteadyNow, as below.
  absl::Status Get(const Wanted& file, absl::Duration until);
  absl::Status FetchWithRetries(const Wanted& file, absl::Duration until);
  absl::Status FetchOnce(const Wanted& file, absl::Duration until);
  // Reserves bytes on the disk for a download, until they are written or given up.
  class Promise;
  // Returns whether the file is kept, and counts it as used now.
  bool UseLocked(const std::string& sha256) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(const std::string& sha256);
  void DropLocked(const std::string& sha256) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropOldPartsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unhold(const std::vector<std::string>& digests);
  // Removes files that nobody holds: first those that are too old, then those that were not used
  // for the longest time, until at most so many bytes and files are left.
  void TrimLocked(uint64_t max_bytes, size_t max_files) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MakeRoomLocked(uint64_t size_bytes, const std::string& directory,
                              std::string_view what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the bytes that could be removed.
  uint64_t IdleBytesLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the number of missing bytes, without those of received parts.
  uint64_t BytesToFetch(const std::vector<const Wanted*>& missing) const;
  std::string KeptPath(const std::string& sha256) const { return kept_ + "/" + sha256; }
  std::string IncomingPath(const std::string& sha256) const { return incoming_ + "/" + sha256; }

  const std::string directory_;
  const std::string kept_;
  const std::string incoming_;
  const CacheOptions options_;
  FileSource* const source_;
  std::atomic<bool> stopped_ = false;

  mutable Mutex mutex_;
  std::condition_variable fetched_;
  std::map<std::string, Kept> files_ ABSL_GUARDED_BY(mutex_);  // kept, by digest
  // The number of holds of each file, also of one that will be kept.
  std::map<std::string, int> holds_ ABSL_GUARDED_BY(mutex_);
  // Files under way, each fetched by one thread.
  std::set<std::string> fetching_ ABSL_GUARDED_BY(mutex_);
  uint64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Reserved by downloads under way and not yet written.
  uint64_t promised_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time next_expiry_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_FILE_CACHE_H_
