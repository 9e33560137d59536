// A job that waits for room, as the looks for such jobs find it (keep_room.cc).
#ifndef MUSTER_BROKER_CORE_LONG_WAIT_H_
#define MUSTER_BROKER_CORE_LONG_WAIT_H_

#include <cstddef>
#include <tuple>

#include "broker/core/impl.h"

namespace muster::core {

// In a cluster with more runs, about 2 ms, nothing is expected of each of them.
inline constexpr size_t kMostRunsLookedAt = 20'000;

// Compared in the order of service; of jobs of one priority those that wait on a cluster come
// first, because they can go nowhere else.
struct Core::Impl::LongWait {
  Turn turn;
  Cluster* there = nullptr;  // the cluster that its run waits on; null: it waits here
  double family_score = kNoScore;
  double score = kNoScore;
  double user_score = kNoScore;
  const Group* group = nullptr;

  friend bool operator<(const LongWait& a, const LongWait& b) {
    const auto key = [](const LongWait& one) {
      return std::tuple(-one.turn.priority, one.there == nullptr, one.family_score, one.score,
                        one.user_score, one.turn.job);
    };
    return key(a) < key(b);
  }
};

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_LONG_WAIT_H_
