// Remembers how long earlier runs waited on a cluster, and how far the estimates of their starts
// were off. Values without a clock; kept by the core's thread, copied for readers.
#ifndef MUSTER_BROKER_CORE_PLACEMENT_HISTORY_H_
#define MUSTER_BROKER_CORE_PLACEMENT_HISTORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "broker/core/requirements.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/facts.pb.h"

namespace muster::core::placement {

// Runs of one shape wait alike: with or without GPUs, on one node or on several.
inline constexpr size_t kShapes = 4;
inline size_t ShapeOf(const Requirements& job) {
  return (job.gpu_millis > 0 ? 2u : 0u) + (job.nodes > 1 ? 1u : 0u);
}

// Computes a mean in which later values count more: a weight halves with 64 values after it.
class Mean {
 public:
  void Add(double value);
  bool empty() const { return weight_ == 0; }
  double value() const { return empty() ? 0 : sum_ / weight_; }

 private:
  double sum_ = 0;
  double weight_ = 0;
};

// The waits of runs of one shape, from their assignment to their start.
class Waits {
 public:
  // `places` is the run's place among those that waited there when it was placed, from 1; 0 if
  // there was room for it.
  void Add(absl::Duration wait, uint32_t places, absl::Time now);

  // Knows the wait of a run that there is room for, and that of a waiting run for each place. Both
  // fade: half is left after an hour without a new value, so that a cluster that once let runs wait
  // gets another try. Nothing: no run has told.
  std::optional<absl::Duration> WithRoom(absl::Time now) const;
  std::optional<absl::Duration> ForAPlace(absl::Time now) const;

 private:
  Mean with_room_;
  Mean for_a_place_;
  absl::Time room_at_ = absl::InfinitePast();   // of the last value
  absl::Time place_at_ = absl::InfinitePast();  // likewise
};

// Keeps the errors of estimates: the real start less the estimated one.
class Errors {
 public:
  void Add(absl::Duration wait, absl::Duration error);

  // False: none has been recorded.
  bool Describe(v1::EstimateErrors* out) const;
  // Puts around the estimated time the interval in which half of the last 64 runs would have
  // started; nothing as long as there are fewer than 4.
  void PutInterval(absl::Time now, v1::StartEstimate* estimate) const;

 private:
  // These are few enough to be sorted at each start, and enough for quartiles.
  static constexpr size_t kKept = 64;
  static constexpr size_t kFewest = 4;

  uint64_t runs_ = 0;
  Mean waits_;
  Mean errors_;
  std::array<float, kKept> last_ = {};  // in seconds, the oldest is overwritten
  float lower_ = 0, upper_ = 0;         // quartiles of these
};

}  // namespace muster::core::placement

#endif  // MUSTER_BROKER_CORE_PLACEMENT_HISTORY_H_
