// Counts the bytes that the archives of jobs' files take in the cluster's etcd, and decides which
// run is next when they have reached their limit.
//
// An annotation of each Job has the size of its archive, so that an agent learns the sizes from its
// watches, also after a restart. The archive of a deleted Job counts until etcd has freed its
// bytes; a small file keeps these bytes, and until when they count, for an agent that restarts.
// Thread-safe; a mutex guards it, held for moments and for one small write to the disk.
#ifndef MUSTER_AGENTS_KUBERNETES_FILE_ROOM_H_
#define MUSTER_AGENTS_KUBERNETES_FILE_ROOM_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/core/steady_time.h"
#include "agents/hosts/local_host.h"
#include "agents/kubernetes/api/object_watch.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// All archives together have at most this many bytes: an eighth of what etcd holds by default (2
// GiB) for the whole cluster. When etcd is full, nobody can write to the API server.
inline constexpr uint64_t kMaxBytesOfArchives = uint64_t{256} << 20;
// The bytes of a deleted Job still count for this long. etcd frees them when the API server
// compacts it: every 5 minutes by default (--etcd-compaction-interval), and only what was deleted
// more than 5 minutes ago; so after 10 minutes at most.
inline constexpr absl::Duration kUntilCompacted = absl::Minutes(10);
// An archive of at most this size waits only for room, not for its turn: a hundred of them delay
// the largest archive no more than another one of the largest size does.
inline constexpr uint64_t kSmallArchiveBytes = uint64_t{64} << 10;

struct FileRoomOptions {
  uint64_t max_bytes = kMaxBytesOfArchives;
  // The file that keeps the bytes for an agent that restarts. Empty: none.
  std::string path = {};
  std::function<absl::Time()> now = agents::SteadyNow;
};

class FileRoom {
 public:
  explicit FileRoom(FileRoomOptions options);
  FileRoom(const FileRoom&) = delete;
  FileRoom& operator=(const FileRoom&) = delete;

  // Counts the Jobs of a watch in the namespace, and passes them on to `next`. The result must
  // outlive the watch; this object and `next` must outlive the result.
  std::unique_ptr<ObjectSink> Listen(std::string name_space, ObjectSink* next);

  // Reserves room for the archive of a run, before its Job is made; also OK if the run has it
  // already. RESOURCE_EXHAUSTED: there is no room now, in words for people; the run then waits for
  // its turn, before those that ask later. Other errors: the file could not be written.
  absl::Status Take(const std::string& run_key, uint64_t bytes);
  // Answers as Take would for a new run, but reserves nothing.
  absl::Status Try(uint64_t bytes) const;
  // The run's Job is not being made, and will not be unless Take is called again.
  void Leave(const std::string& run_key);
  // Does the same if nothing of the archive was sent, so that its room is free at once.
  void GiveBack(const std::string& run_key);
  // Call it now and then. Updates the file, so that a restart does not count bytes that were freed
  // long before it. Returns what an operator should know; empty if nothing.
  std::string Settle();

 private:
  class Sink;
  using RunBytes = std::map<std::string, uint64_t>;  // by run key
  struct Waiting {
    uint64_t bytes = 0;
    uint64_t turn = 0;
  };
  struct Gone {
    absl::Time until;
    uint64_t bytes = 0;
  };

  void ReadWritten();
  void SetListed(const std::string& name_space, RunBytes jobs);
  void SetListed(const std::string& name_space, const std::string& run_key, uint64_t bytes);
  bool HasRoomLocked(const std::string& run_key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LoseLocked(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t PresentLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t GoneLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t UsedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return PresentLocked() + GoneLocked();
  }
  absl::Status AskLocked(const Waiting& who) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteLocked(uint64_t more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FileRoomOptions options_;
  const absl::Time start_;
  mutable Mutex mutex_;
  hosts::LocalHost host_;
  size_t namespaces_ ABSL_GUARDED_BY(mutex_) = 0;  // number of namespaces that are watched
  std::map<std::string, RunBytes> listed_ ABSL_GUARDED_BY(mutex_);  // existing Jobs, by namespace
  uint64_t listed_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  RunBytes taken_ ABSL_GUARDED_BY(mutex_);  // runs whose Jobs are being made, or are not listed yet
  std::deque<Gone> gone_
      ABSL_GUARDED_BY(mutex_);  // the oldest first; expired ones are removed when a new one comes
  // Bytes from before the start that no watch has listed yet. Once all namespaces are listed, the
  // Jobs of the rest are gone.
  uint64_t unlisted_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string written_ ABSL_GUARDED_BY(mutex_) = "0\n";  // as without the file
  std::map<std::string, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_turn_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_FILE_ROOM_H_
