// Reads a job's request to a machine, for the queue and for the run's record. Pure.
#ifndef MUSTER_AGENTS_MACHINES_RUN_REQUEST_H_
#define MUSTER_AGENTS_MACHINES_RUN_REQUEST_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "agents/machines/run_records.h"
#include "agents/machines/scheduling/request.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/job_spec.pb.h"

namespace muster::machines {

// A machines cluster's only pool.
inline constexpr char kPoolName[] = "default";

// Refuses a job that names another pool.
std::optional<Misfit> CheckPool(const v1::JobSpec& spec);

// Asks for whole cores, one at least.
Request RequestOf(const v1::JobSpec& spec);
// Returns the request of a run of the job, which keeps away from hosts.
Request RequestOf(const agent::v1::Assignment& assignment);
// Returns the request for one node.
Request RequestOf(const RunSpec& spec);

// Returns the indexes of its GPUs, with commas.
std::string DevicesText(const NodeAllocation& node);

}  // namespace muster::machines

#endif  // MUSTER_AGENTS_MACHINES_RUN_REQUEST_H_
