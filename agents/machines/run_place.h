// The place of a run in the queue and on the machine, as its job or its files tell.
#ifndef MUSTER_AGENTS_MACHINES_RUN_PLACE_H_
#define MUSTER_AGENTS_MACHINES_RUN_PLACE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "agents/machines/run_directory.h"
#include "agents/machines/run_records.h"
#include "agents/machines/scheduling/request.h"
#include "agents/machines/scheduling/waiting_runs.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::machines {

// Returns the longest time from a run's start until it is gone: after a limit it gets the grace as
// well.
absl::Duration LongestLife(const RunSpec& spec);
QueuedRun QueuedFrom(const RunSpec& spec, bool held);
QueuedRun QueuedFrom(const agent::v1::Assignment& assignment, uint64_t order, bool held,
                     absl::Duration cancel_grace);
// Returns the resources that the run has: those that it asked for, on the devices that its claim
// names. There must be a claim.
Allocation AllocationOf(const RunFiles& files);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_PLACE_H_
