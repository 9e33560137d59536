// How much of what jobs bring along this agent's Jobs have in the cluster's etcd, and whose turn it
// is when that is as much as it may be.
//
// Each Job says in an annotation how large its archive is, so that the watches of Jobs tell what
// there is, to an agent that was started anew as well. Thread-safe; guarded by a mutex that is held
// for moments only.
#ifndef MUSTER_AGENTS_KUBERNETES_FILE_ROOM_H_
#define MUSTER_AGENTS_KUBERNETES_FILE_ROOM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "agents/kubernetes/api/object_watch.h"

namespace muster::kubernetes {

// Of all archives together, in bytes: an eighth of what etcd holds by default (2 GiB), which it
// shares with all else of the cluster; when that is full, nobody can write to the API server.
inline constexpr uint64_t kMaxBytesOfArchives = uint64_t{256} << 20;

class FileRoom {
 public:
  explicit FileRoom(uint64_t max_bytes = kMaxBytesOfArchives) : max_bytes_(max_bytes) {}
  FileRoom(const FileRoom&) = delete;
  FileRoom& operator=(const FileRoom&) = delete;

  // What a watch of Jobs in the namespace tells is counted and passed on to `next`. Both outlive
  // the result, which is to outlive the watch.
  std::unique_ptr<ObjectSink> Listen(std::string name_space, ObjectSink* next);

  // Room for the archive of a run, from before its Job is made; OK as well if it has it already.
  // RESOURCE_EXHAUSTED: not now, in words for people. The run waits for its turn then, before those
  // that ask later.
  absl::Status Take(const std::string& run_key, uint64_t bytes);
  // OK: the run does not wait, or needs to no more. Else as Take.
  absl::Status Ask(const std::string& run_key) const;
  // No Job of the run is being made, nor will be unless Take is called again.
  void Leave(const std::string& run_key);

 private:
  class Sink;
  using RunBytes = std::map<std::string, uint64_t>;  // by run key
  struct Waiting {
    uint64_t bytes = 0;
    uint64_t turn = 0;
  };

  void SetListed(const std::string& name_space, RunBytes jobs);
  void SetListed(const std::string& name_space, const std::string& run_key, uint64_t bytes);
  bool IsListedLocked(const std::string& run_key) const;
  absl::Status AskLocked(const Waiting& who) const;

  const uint64_t max_bytes_;
  mutable std::mutex mutex_;
  std::map<std::string, RunBytes> listed_;  // Jobs that there are, by namespace
  uint64_t listed_bytes_ = 0;
  RunBytes taken_;  // whose Jobs are being made, or were and are not listed yet
  std::map<std::string, Waiting> waiting_;
  uint64_t next_turn_ = 0;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_FILE_ROOM_H_
