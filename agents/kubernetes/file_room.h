// How much of what jobs bring along this agent's Jobs have in the cluster's etcd, and whose turn it
// is when that is as much as it may be.
//
// Each Job says in an annotation how large its archive is, so that the watches of Jobs tell what
// there is, to an agent that was started anew as well. An archive that is gone counts on until etcd
// has given it up; a small file tells an agent that was started anew about it, and until when.
// Thread-safe; guarded by a mutex that is held for moments, and for one small write to the disk.
#ifndef MUSTER_AGENTS_KUBERNETES_FILE_ROOM_H_
#define MUSTER_AGENTS_KUBERNETES_FILE_ROOM_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agents/hosts/local_host.h"
#include "agents/kubernetes/api/object_watch.h"

namespace muster::kubernetes {

// Limit for all archives together, in bytes: an eighth of what etcd holds by default (2 GiB), which
// it shares with all else of the cluster; when that is full, nobody can write to the API server.
inline constexpr uint64_t kMaxBytesOfArchives = uint64_t{256} << 20;
// How long the bytes of a Job that is gone count on: etcd gives up what was deleted when the API
// server compacts it, every 5 minutes by default what is older than that
// (--etcd-compaction-interval), so 10 minutes later at most.
inline constexpr absl::Duration kUntilCompacted = absl::Minutes(10);
// An archive of at most so many bytes waits for room, and not for its turn: a hundred of them delay
// the largest as much as one of that size does.
inline constexpr uint64_t kSmallArchiveBytes = uint64_t{64} << 10;

struct FileRoomOptions {
  uint64_t max_bytes = kMaxBytesOfArchives;
  // Where is written how much there is. Empty: nowhere.
  std::string path = {};
  std::function<absl::Time()> now = absl::Now;
};

class FileRoom {
 public:
  explicit FileRoom(FileRoomOptions options);
  FileRoom(const FileRoom&) = delete;
  FileRoom& operator=(const FileRoom&) = delete;

  // Counts the Jobs of a watch in the namespace, and passes them on to `next`. Both outlive the
  // result, which is to outlive the watch.
  std::unique_ptr<ObjectSink> Listen(std::string name_space, ObjectSink* next);

  // Room for the archive of a run, from before its Job is made; OK as well if it has it already.
  // RESOURCE_EXHAUSTED: not now, in words for people. The run waits for its turn then, before those
  // that ask later. Else the status of a disk that does not take what is to be known after a
  // restart.
  absl::Status Take(const std::string& run_key, uint64_t bytes);
  // OK: the run does not wait, or needs to no more. Else as Take.
  absl::Status Ask(const std::string& run_key) const;
  // Answers like Take for a run that is new here, but takes nothing.
  absl::Status Try(uint64_t bytes) const;
  // No Job of the run is being made, nor will be unless Take is called again.
  void Leave(const std::string& run_key);
  // The same, and nothing of its archive was sent.
  void GiveBack(const std::string& run_key);
  // For now and then: writes down what is gone by now, so that a restart does not count what was
  // given up long before it. The result: what an operator is to know; empty: nothing.
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
  bool HasRoomLocked(const std::string& run_key) const;
  void LoseLocked(uint64_t bytes);
  uint64_t PresentLocked() const;
  uint64_t GoneLocked() const;
  uint64_t UsedLocked() const { return PresentLocked() + GoneLocked(); }
  absl::Status AskLocked(const Waiting& who) const;
  absl::Status WriteLocked(uint64_t more);

  const FileRoomOptions options_;
  const absl::Time start_;
  mutable std::mutex mutex_;
  hosts::LocalHost host_;
  size_t namespaces_ = 0;                   // of which watches tell
  std::map<std::string, RunBytes> listed_;  // Jobs that there are, by namespace
  uint64_t listed_bytes_ = 0;
  RunBytes taken_;         // whose Jobs are being made, or were and are not listed yet
  std::deque<Gone> gone_;  // the oldest first; those whose time is over are let go when one comes
  // Bytes from before the start that no watch has listed: their Jobs may have gone since. Once all
  // namespaces are listed, they have gone.
  uint64_t unlisted_bytes_ = 0;
  std::string written_ = "0\n";  // as without the file
  std::map<std::string, Waiting> waiting_;
  uint64_t next_turn_ = 0;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_FILE_ROOM_H_
