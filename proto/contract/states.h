// The states of jobs and runs, and the one table of legal transitions.
//
//   job: QUEUED -> PENDING -> RUNNING <-> SUSPENDED -> SUCCEEDED | FAILED | CANCELED
//   run: ASSIGNED -> LAUNCHING -> PENDING -> STARTING -> RUNNING -> FINISHING -> SUCCEEDED | FAILED
//   | CANCELED
//                       |            ^                     <-> SUSPENDED
//                       v            |
//                  LAUNCH_UNKNOWN ---+                     any -> LOST
//
// An agent sees a cluster now and then, not at every moment, so a run may skip states on its way
// forward: a fast command goes from LAUNCHING to SUCCEEDED. It never goes back, with three
// exceptions: LAUNCH_UNKNOWN back to LAUNCHING (the scheduler does not know the run: launch again),
// SUSPENDED back to RUNNING, and a requeue by the scheduler itself, which takes a run that had
// started back to PENDING under the same run key.
#ifndef MUSTER_PROTO_CONTRACT_STATES_H_
#define MUSTER_PROTO_CONTRACT_STATES_H_

#include <string_view>

#include "muster/v1/cluster.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::contract {

// Returns whether the state never changes again.
bool IsTerminal(v1::JobState state);
bool IsTerminal(v1::RunState state);

// Returns whether a run may go from one state to the other. From == to is not a transition: false.
bool IsLegal(v1::RunState from, v1::RunState to);

// Returns the state of a job whose latest run is in this state. A LOST run makes its job FAILED.
v1::JobState JobStateFor(v1::RunState latest_run);

// Returns "RUNNING" for RUN_STATE_RUNNING and so on, as people type and read it.
std::string_view Name(v1::JobState state);
std::string_view Name(v1::RunState state);
std::string_view Name(v1::EvidenceSource source);
std::string_view Name(v1::FailureClass failure_class);
// "slurm" for CLUSTER_KIND_SLURM, as the agent's --kind has it; "unknown" for one of a later
// version.
std::string_view Name(v1::ClusterKind kind);

}  // namespace muster::contract

#endif  // MUSTER_PROTO_CONTRACT_STATES_H_
