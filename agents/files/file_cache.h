// The files that runs have brought along, on the agent's disk by their content, so that a second
// job with the same file does not fetch it again.
//
// `kept/` holds whole files, each under its digest; `incoming/` holds received parts of others,
// from which fetching goes on. Nothing is synced: whoever reads a file checks its digest, and one
// that is not as its name says is dropped and fetched anew. When a file was last used is its
// modification time, so that a restart forgets nothing.
//
// Any thread; one process for each directory: the agent's state directory is locked. Fetching
// blocks until its deadline.
#ifndef MUSTER_AGENTS_FILES_FILE_CACHE_H_
#define MUSTER_AGENTS_FILES_FILE_CACHE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
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

namespace muster::uploads {

// Returns the free space of the disk that the directory is on, for users other than root.
absl::StatusOr<uint64_t> FreeBytes(const std::string& directory);

struct CacheOptions {
  // Limit for kept files that no launch is using, each counted in whole blocks: some twenty jobs
  // with the most that a broker takes of each.
  uint64_t max_bytes = uint64_t{20} << 30;
  // Space that files leave free on the disk: the agent's journal and its runs' records are there.
  uint64_t keep_free_bytes = uint64_t{256} << 20;
  // Kept files that no launch is using: what is known of each takes some 250 bytes of memory.
  size_t max_files = 200'000;
  // How long a file stays that nobody has used.
  absl::Duration retention = absl::Hours(24 * 7);
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

  // Files that stay as long as this lives.
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

  // All of the files are here, and stay. Files that came before an error stay for the next try.
  // Until InfinitePast nobody is asked. NOT_FOUND: the source lacks one. UNAVAILABLE: not until
  // then. RESOURCE_EXHAUSTED: the disk is full. DATA_LOSS: the content that came does not have the
  // digest.
  absl::StatusOr<Hold> Fetch(const std::vector<Wanted>& files, absl::Time deadline);

  // A held file's bytes, in pieces. UNAVAILABLE: it was damaged on this disk, and is gone from the
  // cache; what the sink has had is worth nothing.
  absl::Status Read(const std::string& sha256, uint64_t size_bytes, const ByteSink& sink);
  // The same, whole.
  absl::StatusOr<std::string> ReadAll(const std::string& sha256);

  // Removes files that are kept for later, until so many bytes fit onto the directory's disk
  // besides the space that is left free there and the bytes that downloads under way will write.
  // RESOURCE_EXHAUSTED: they do not; `what` needs them.
  absl::Status MakeRoom(uint64_t size_bytes, const std::string& directory, std::string_view what);
  // Returns whether a copy of so many bytes of files, which are kept or have to be, may fit there;
  // leaves all as it is.
  bool MayHaveRoom(uint64_t size_bytes, const std::string& directory) const;
  uint64_t keep_free_bytes() const { return options_.keep_free_bytes; }

  // The agent ends: what fetches now is UNAVAILABLE soon, and what would fetch later at once.
  void Stop();

  // Bytes of kept files, in whole blocks.
  uint64_t used_bytes() const;

 private:
  struct Kept {
    uint64_t bytes = 0;  // in whole blocks
    absl::Time last_use;
  };

  FileCache(std::string directory, CacheOptions options, FileSource* source);

  // Makes the directories of the cache; those that are there stay.
  absl::Status MakeDirectories() const;
  absl::Status Survey();
  // One of the files, from the source if need be.
  absl::Status Get(const Wanted& file, absl::Time deadline);
  absl::Status FetchWithRetries(const Wanted& file, absl::Time deadline);
  absl::Status FetchOnce(const Wanted& file, absl::Time deadline);
  // The bytes that a download may write, from when there is room for them until they are written or
  // given up.
  class Promise;
  // Returns whether it is here; then it counts as used now. The caller holds mutex_.
  bool UseLocked(const std::string& sha256);
  void Drop(const std::string& sha256);
  void DropLocked(const std::string& sha256);
  void DropOldPartsLocked();
  void Unhold(const std::vector<std::string>& digests);
  // Removes what is old, then the longest unused until no more than so many bytes and files are
  // left of what nobody holds. The caller holds mutex_.
  void TrimLocked(uint64_t max_bytes, size_t max_files);
  absl::Status MakeRoomLocked(uint64_t size_bytes, const std::string& directory,
                              std::string_view what);
  // Returns the bytes that could be removed. The caller holds mutex_.
  uint64_t IdleBytesLocked() const;
  // Returns the bytes that are missing, less those that have come.
  uint64_t BytesToFetch(const std::vector<const Wanted*>& missing) const;
  std::string KeptPath(const std::string& sha256) const { return kept_ + "/" + sha256; }
  std::string IncomingPath(const std::string& sha256) const { return incoming_ + "/" + sha256; }

  const std::string directory_;
  const std::string kept_;
  const std::string incoming_;
  const CacheOptions options_;
  FileSource* const source_;
  std::atomic<bool> stopped_ = false;

  mutable std::mutex mutex_;
  std::condition_variable fetched_;
  std::map<std::string, Kept> files_;  // kept, by digest
  std::map<std::string, int> holds_;   // of files that are kept or will be
  std::set<std::string> fetching_;     // each by one thread
  uint64_t used_bytes_ = 0;
  uint64_t promised_bytes_ = 0;  // that downloads under way have room for and have not written
  absl::Time next_expiry_ = absl::InfinitePast();
};

}  // namespace muster::uploads

#endif  // MUSTER_AGENTS_FILES_FILE_CACHE_H_
