// Registers every open stream: counts them, wakes them once a second, ends those whose token has
// ended, and all of them at shutdown.
//
// Any thread may use it. One thread of its own calls Tick.
#ifndef MUSTER_BROKER_RPC_STREAM_REGISTRY_H_
#define MUSTER_BROKER_RPC_STREAM_REGISTRY_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/auth/token.h"
#include "sync/mutex.h"

namespace muster::broker {

// Streams measure their waits by it, so that a change of the time of day neither lengthens nor
// shortens them.
using SteadyClock = std::chrono::steady_clock;

// A stream as the registry sees it. Both methods are called without locks held and must not block.
class OpenStream {
 public:
  virtual ~OpenStream() = default;
  // Called about once a second.
  virtual void Tick(SteadyClock::time_point now) = 0;
  // The broker shuts down, or the token has ended: end the stream with this status.
  virtual void End(const absl::Status& status) = 0;
};

class StreamRegistry {
 public:
  // `max_streams` bounds the memory: each stream takes some 10 KiB, what its
  // client has not read (64 KiB at most), and gRPC's buffers.
  explicit StreamRegistry(size_t max_streams, absl::Duration tick = absl::Seconds(1));
  ~StreamRegistry();

  // RESOURCE_EXHAUSTED: too many are open. UNAVAILABLE: EndAll was called.
  // `token` is the credential of the stream's caller; null: another one, which does not end.
  absl::Status Add(const std::shared_ptr<OpenStream>& stream,
                   std::shared_ptr<const auth::Token> token = nullptr);
  void Remove(const OpenStream* stream);
  // Open streams.
  size_t size() const;
  // Ends every stream and refuses new ones.
  void EndAll(const absl::Status& status);
  // Waits until all streams are done, or so long. Clients that do not read keep theirs from it.
  void AwaitEnds(absl::Duration patience);
  // Ends the thread.
  void Stop();

 private:
  struct Entry {
    std::weak_ptr<OpenStream> stream;
    std::shared_ptr<const auth::Token> token;
  };
  struct Alive {
    std::shared_ptr<OpenStream> stream;
    std::shared_ptr<const auth::Token> token;
  };
  std::vector<Alive> Snapshot();
  void Run();

  const size_t max_streams_;
  const absl::Duration tick_;
  mutable Mutex mutex_;
  std::condition_variable changed_;
  absl::flat_hash_map<const OpenStream*, Entry> streams_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_STREAM_REGISTRY_H_
