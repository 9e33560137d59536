// Keeps the specs of jobs that were submitted a short while ago, so that a job that is assigned at
// once costs no read. Owner: the effects thread.
#ifndef MUSTER_BROKER_ENGINE_SPEC_CACHE_H_
#define MUSTER_BROKER_ENGINE_SPEC_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::broker {

class SpecCache {
 public:
  struct Entry {
    std::shared_ptr<const v1::JobSpec> spec;
    std::string user;
  };

  // The oldest entry is dropped for the newest beyond `max_entries`, or beyond `max_bytes` of
  // serialised specs.
  SpecCache(size_t max_entries, size_t max_bytes)
      : max_entries_(max_entries), max_bytes_(max_bytes) {}

  void Put(uint64_t job, Entry entry);
  // Returns the entry and removes it: a job is assigned once, nearly always.
  std::optional<Entry> Take(uint64_t job);

  size_t size() const { return entries_.size(); }

 private:
  struct Slot {
    Entry entry;
    size_t bytes = 0;
  };
  void DropOldest();

  const size_t max_entries_;
  const size_t max_bytes_;
  absl::flat_hash_map<uint64_t, Slot> entries_;
  std::deque<uint64_t> order_;  // may name jobs that were taken
  size_t bytes_ = 0;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_SPEC_CACHE_H_
