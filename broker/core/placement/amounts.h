// The amounts of resources that a run takes on all of its nodes together. Pure values, for any
// thread.
#ifndef MUSTER_BROKER_CORE_PLACEMENT_AMOUNTS_H_
#define MUSTER_BROKER_CORE_PLACEMENT_AMOUNTS_H_

#include <cstdint>

#include "broker/core/placement/need.h"
#include "broker/core/requirements.h"

namespace muster::core::placement {

// A job that leaves its cores open counts as one core for each node.
struct Amounts {
  uint64_t cpu_millis = 0;
  uint64_t memory_bytes = 0;
  uint64_t gpu_millis = 0;

  friend bool operator==(const Amounts&, const Amounts&) = default;
};
Amounts DemandOf(const Requirements& job);
Amounts DemandOf(const RoomNeed& need);

Amounts operator+(const Amounts& a, const Amounts& b);
// Nothing is less than 0.
Amounts operator-(const Amounts& a, const Amounts& b);
// True if there is as much of everything; of what is not asked for there may be nothing.
bool IsWithin(const Amounts& asked, const Amounts& there);

}  // namespace muster::core::placement

#endif  // MUSTER_BROKER_CORE_PLACEMENT_AMOUNTS_H_
