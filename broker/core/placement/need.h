// Holds the part of a job's requirements that decides where there is room for it. Pure values, for
// any thread.
#ifndef MUSTER_BROKER_CORE_PLACEMENT_NEED_H_
#define MUSTER_BROKER_CORE_PLACEMENT_NEED_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/requirements.h"

namespace muster::core::placement {

struct RoomNeed {
  uint32_t nodes = 1;
  uint64_t cpu_millis = 0;  // the rest is for each node, unless is_total
  uint64_t memory_bytes = 0;
  uint64_t gpu_millis = 0;
  bool is_total = false;
  bool is_array_task = false;  // Slurm gets arrays whole
  // The time limit decides whether a run can pass a large one; the largest number means none.
  int64_t time_limit_s = 0;
  std::string gpu_type;            // in small letters; empty: any
  std::vector<std::string> pools;  // as in Requirements

  friend auto operator<=>(const RoomNeed&, const RoomNeed&) = default;
};
RoomNeed RoomNeedOf(const Requirements& job);

// Is the same for all jobs whose needs hardly differ: cores, memory and time limits are rounded
// down, by less than a fifth. So a million jobs that all differ have few classes.
RoomNeed RoomClassOf(const Requirements& job);

// True if `a` needs no more than `b` of anything: where a run with `a` finds no room, one with `b`
// finds none either. Pools are not looked at.
bool NeedsNoMore(const RoomNeed& a, const RoomNeed& b);

}  // namespace muster::core::placement

#endif  // MUSTER_BROKER_CORE_PLACEMENT_NEED_H_
