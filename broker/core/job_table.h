// The jobs that have not ended, small: a million of them wait in memory. Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_JOB_TABLE_H_
#define MUSTER_BROKER_CORE_JOB_TABLE_H_

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/container/btree_map.h"
#include "broker/core/changes.h"
#include "broker/core/cluster.h"
#include "broker/core/request_memory.h"
#include "muster/v1/job.pb.h"

namespace muster::core {

struct Job {
  static constexpr int64_t kNotStarted = std::numeric_limits<int64_t>::min();

  int64_t start_unix_micros = kNotStarted;
  uint32_t sequence = 0;
  uint32_t group = 0;  // its Group's id
  RequestMemory::Slot request = RequestMemory::kNone;
  uint16_t runs = 0;         // the number of the latest run
  ClusterIndex cluster = 0;  // of the latest run
  int16_t priority = 0;
  uint8_t state_value = 0;
  uint8_t recorded_state_value = 0;  // after the latest transition
  bool cancel_requested = false;
  HoldState hold = HoldState::kNone;

  bool held() const { return hold == HoldState::kHeld; }
  v1::JobState state() const { return static_cast<v1::JobState>(state_value); }
  void set_state(v1::JobState state) { state_value = static_cast<uint8_t>(state); }
};
static_assert(sizeof(Job) <= 32);

// A B-tree: ids come in order, so its nodes are full, and walks over it are the same in every
// process.
using JobTable = absl::btree_map<uint64_t, Job>;

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_JOB_TABLE_H_
