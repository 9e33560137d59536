// Remembers which request_id made which job, so that a repeated submit is harmless.
//
// Keeps fingerprints, not texts: about 45 B for each request. Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_REQUEST_MEMORY_H_
#define MUSTER_BROKER_CORE_REQUEST_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "broker/core/fingerprint.h"

namespace muster::core {

class RequestMemory {
 public:
  // Names a remembered request; a job keeps it.
  using Slot = uint32_t;
  static constexpr Slot kNone = 0;

  struct Entry {
    RequestKey key;
    Fingerprint spec = 0;
    uint64_t job = 0;
  };

  RequestMemory();
  RequestMemory(const RequestMemory&) = delete;
  RequestMemory& operator=(const RequestMemory&) = delete;

  // Returns null if it is not known. The pointer holds until the next change.
  const Entry* Find(const RequestKey& key) const;
  // The key must not be known yet.
  Slot Add(const Entry& entry);
  // Lets the request age from `end` on. Ends are expected in the order of time; a request that ends
  // out of order is kept longer.
  void JobEnded(Slot slot, absl::Time end);
  // Forgets at most `limit` requests whose jobs ended before `cutoff`.
  void Expire(absl::Time cutoff, size_t limit);

  size_t size() const { return index_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    const std::deque<Entry>* entries;
    size_t operator()(Slot slot) const { return (*this)((*entries)[slot].key); }
    size_t operator()(const RequestKey& key) const { return key.low; }
  };
  struct Equal {
    using is_transparent = void;
    const std::deque<Entry>* entries;
    bool operator()(Slot a, Slot b) const { return a == b; }
    bool operator()(Slot a, const RequestKey& b) const { return (*entries)[a].key == b; }
    bool operator()(const RequestKey& a, Slot b) const { return a == (*entries)[b].key; }
  };
  struct Ended {
    int64_t unix_micros;
    Slot slot;
  };

  std::deque<Entry> entries_;  // the first is not used, so that 0 can mean none
  std::vector<Slot> free_;
  absl::flat_hash_set<Slot, Hash, Equal> index_;
  std::deque<Ended> ended_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_REQUEST_MEMORY_H_
