// The place of a run in the queue and on the machine, as its files tell.
#ifndef MUSTER_AGENTS_MACHINES_RUN_PLACE_H_
#define MUSTER_AGENTS_MACHINES_RUN_PLACE_H_

#include "absl/time/time.h"
#include "agents/machines/run_files.h"
#include "agents/machines/run_records.h"
#include "agents/machines/scheduling/cluster_queue.h"

namespace muster::machines {

// When the run is gone at the latest, from its start: after a limit it gets the grace as well.
absl::Duration LongestLife(const RunSpec& spec);
QueuedRun QueuedFrom(const RunSpec& spec, bool held);
// Returns the resources that the run has: those that it asked for, on the devices that its claim
// names. There must be a claim.
Allocation AllocationOf(const RunFiles& files);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_PLACE_H_
