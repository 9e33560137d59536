// The jobs that have not ended. Owner: the core's thread.
#ifndef MUSTER_BROKER_CORE_JOB_TABLE_H_
#define MUSTER_BROKER_CORE_JOB_TABLE_H_

#include <cstdint>

#include "absl/container/btree_map.h"
#include "broker/core/job_machine.h"

namespace muster::core {

// The table is a B-tree: ids come in order, so its nodes are full, and walks over it are the same
// in every process.
using JobTable = absl::btree_map<uint64_t, Job>;

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_JOB_TABLE_H_
