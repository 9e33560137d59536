#ifndef MUSTER_TESTS_BENCH_TOOLS_HISTOGRAM_H_
#define MUSTER_TESTS_BENCH_TOOLS_HISTOGRAM_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/time/time.h"

namespace muster::bench {

// Keeps all durations: a benchmark has a few million at most.
class Histogram {
 public:
  void Add(absl::Duration duration) { values_.push_back(duration); }
  size_t size() const { return values_.size(); }
  // `share` of the durations are at most this one, 0 < share <= 1. Zero if there are none.
  absl::Duration Percentile(double share) {
    if (values_.empty()) return absl::ZeroDuration();
    const size_t index = std::min(values_.size() - 1, static_cast<size_t>(share * values_.size()));
    std::nth_element(values_.begin(), values_.begin() + index, values_.end());
    return values_[index];
  }

 private:
  std::vector<absl::Duration> values_;
};

}  // namespace muster::bench

#endif  // MUSTER_TESTS_BENCH_TOOLS_HISTOGRAM_H_
