// Brings files of runs to clients: knows which stream of an agent belongs to which call.
//
// Any thread may use it. The agent's stream that names a ticket takes it, once.
#ifndef MUSTER_BROKER_APP_FETCHES_H_
#define MUSTER_BROKER_APP_FETCHES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/v1/files_service.pb.h"
#include "sync/mutex.h"

namespace muster::broker {

// Most fetches of all clients at a time. Each has one message of up to 256 KiB here, and gRPC's
// copies of it on its way, and holds a thread of its agent.
inline constexpr size_t kMaxFetches = 64;

// The times that a client waits.
struct FetchBounds {
  // An agent's first message comes within this of the call: it dials the broker at once.
  absl::Duration begin_patience = absl::Seconds(30);
  // Two pieces are at most this far apart, on either side: a client that takes nothing holds a
  // thread of the agent, and an agent whose file system hangs holds the client. It is longer than
  // an agent waits for a host, so that the agent can say which host is silent.
  absl::Duration max_silence = absl::Seconds(60);
};

// Gives the pieces: an agent's stream. Any thread; no method is called with locks held.
class FileFeed {
 public:
  virtual ~FileFeed() = default;
  // The client has taken the last piece: the next one may come.
  virtual void ReadOn() = 0;
  // Says that nobody wants more pieces.
  virtual void Close(const absl::Status& status) = 0;
};

// Takes the pieces: a client's call. Any thread; no method is called with locks held.
class FileTaker {
 public:
  virtual ~FileTaker() = default;
  // The agent has begun. False: it is too late, or another stream has begun.
  virtual bool Attach(std::shared_ptr<FileFeed> feed) = 0;
  // Takes one piece; ReadOn follows.
  virtual void Take(v1::FetchFilesResponse piece) = 0;
  // Ends the call; the first end counts.
  virtual void EndWith(const absl::Status& status) = 0;
};

// Returns the error for an agent that could not get at the files, for example because a host does
// not answer. Its reason FETCH_FAILED tells a client that its own way to the broker is not the
// cause.
absl::Status AgentFailed(const absl::Status& status);

class Fetches {
 public:
  // Makes a new ticket. RESOURCE_EXHAUSTED, TOO_MANY_FETCHES: there are too many.
  absl::Status Add(const std::shared_ptr<FileTaker>& taker, std::string* ticket);
  // Returns null if nobody waits for it.
  std::shared_ptr<FileTaker> Find(std::string_view ticket) const;
  void Remove(const std::string& ticket);
  // Fetches under way.
  size_t size() const;

 private:
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, std::weak_ptr<FileTaker>> takers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_FETCHES_H_
