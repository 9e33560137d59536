// The queued jobs of one group: higher priority first, then the lower id.
//
// 8 B for each job. A job that leaves from the middle leaves a mark behind, and the marks are swept
// once they are half of the queue, so that a cancel costs O(1) in the long run. Owner: the core's
// thread.
#ifndef MUSTER_BROKER_CORE_JOB_LINE_H_
#define MUSTER_BROKER_CORE_JOB_LINE_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"

namespace muster::core {

// A place in line. The smaller one is served first.
struct Turn {
  int32_t priority = 0;
  uint64_t job = 0;

  friend bool operator==(const Turn&, const Turn&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const Turn& turn) {
    return H::combine(std::move(h), turn.priority, turn.job);
  }
  friend std::strong_ordering operator<=>(const Turn& a, const Turn& b) {
    if (a.priority != b.priority) return b.priority <=> a.priority;
    return a.job <=> b.job;
  }
};

class JobLine {
 public:
  // The job must not be in the queue.
  void Push(Turn turn);
  // The job must be in the queue.
  void Remove(Turn turn);

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // The queue must not be empty.
  Turn front() const;

 private:
  void DropRemovedFront();
  void Sweep();

  std::map<int32_t, std::deque<uint64_t>, std::greater<>> lines_;  // none is empty
  absl::flat_hash_set<Turn> removed_;  // still in a line; never the first of the first line
  size_t size_ = 0;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_JOB_LINE_H_
