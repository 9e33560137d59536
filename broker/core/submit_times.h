// The times at which jobs were submitted. Numbers of jobs rise with time, so that an entry for each
// minute with submits is enough: a job waits as long as this says, or up to a minute longer. Owner:
// the core's thread.
#ifndef MUSTER_BROKER_CORE_SUBMIT_TIMES_H_
#define MUSTER_BROKER_CORE_SUBMIT_TIMES_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>

#include "absl/time/time.h"

namespace muster::core {

class SubmitTimes {
 public:
  // The job's number must be higher than those before it.
  void Add(uint64_t job, absl::Time time) {
    if (entries_.empty() || time - entries_.back().first >= kStep || time < entries_.back().first)
      entries_.push_back({job, time, time});
    entries_.back().last = std::max(entries_.back().last, time);
  }
  // The job must have been added.
  absl::Time Of(uint64_t job) const {
    const auto after =
        std::upper_bound(entries_.begin(), entries_.end(), job,
                         [](uint64_t number, const Entry& entry) { return number < entry.from; });
    return after == entries_.begin() ? absl::InfiniteFuture() : std::prev(after)->last;
  }
  // No job before this one is asked for any more.
  void ForgetBefore(uint64_t job) {
    while (entries_.size() > 1 && entries_[1].from <= job) entries_.pop_front();
  }

 private:
  static constexpr absl::Duration kStep = absl::Minutes(1);
  struct Entry {
    uint64_t from;  // the first job
    absl::Time first;
    absl::Time last;
  };
  std::deque<Entry> entries_;
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_SUBMIT_TIMES_H_
