// Files of runs on their way to clients: which stream of an agent belongs to which call.
//
// Any thread. A ticket is taken by the agent's stream that names it, once.
#ifndef MUSTER_BROKER_APP_FETCHES_H_
#define MUSTER_BROKER_APP_FETCHES_H_

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/files_service.pb.h"

namespace muster::broker {

// At the same time, of all clients. Each has one message of up to 256 KiB here and what gRPC keeps
// of it on its way, and holds a thread of its agent.
inline constexpr size_t kMaxFetches = 64;

// How long a client waits.
struct FetchBounds {
  // From the call to the agent's first message: it dials the broker at once.
  absl::Duration begin_patience = absl::Seconds(30);
  // Between two pieces, of either side: a client that takes nothing holds a thread of the agent,
  // and an agent whose file system hangs holds the client. Longer than an agent waits for a host,
  // so that it can say which one is silent.
  absl::Duration max_silence = absl::Seconds(60);
};

// Where the pieces come from: an agent's stream. Any thread; no method is called with locks held.
class FileFeed {
 public:
  virtual ~FileFeed() = default;
  // The last piece is with the client: the next one may come.
  virtual void ReadOn() = 0;
  // Nobody wants any more of it.
  virtual void Close(const absl::Status& status) = 0;
};

// Where they go: a client's call. Any thread; no method is called with locks held.
class FileTaker {
 public:
  virtual ~FileTaker() = default;
  // The agent has begun. False: it is too late, or another stream has.
  virtual bool Attach(std::shared_ptr<FileFeed> feed) = 0;
  // One piece; ReadOn follows.
  virtual void Take(v1::FetchFilesResponse piece) = 0;
  // The end; the first one counts.
  virtual void EndWith(const absl::Status& status) = 0;
};

// What has kept an agent from the files, such as a host that does not answer: with a reason,
// FETCH_FAILED, so that no client takes it for trouble on its own way to the broker.
absl::Status AgentFailed(const absl::Status& status);

class Fetches {
 public:
  // A new ticket. RESOURCE_EXHAUSTED, TOO_MANY_FETCHES.
  absl::Status Add(const std::shared_ptr<FileTaker>& taker, std::string* ticket);
  // Null: nobody waits for it.
  std::shared_ptr<FileTaker> Find(std::string_view ticket) const;
  void Remove(const std::string& ticket);

 private:
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, std::weak_ptr<FileTaker>> takers_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_FETCHES_H_
