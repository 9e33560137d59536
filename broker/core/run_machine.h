// Holds a run, and gives it the one way in which it changes: an agent's report is taken over, or
// refused. The states and their order are drawn in contract/transitions.h.
//
// These are pure functions, for any thread.
#ifndef MUSTER_BROKER_CORE_RUN_MACHINE_H_
#define MUSTER_BROKER_CORE_RUN_MACHINE_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "contract/job_transitions.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::core {

// The effect of a report.
enum class RunStep {
  kRefused,    // the report is illegal, nothing has changed
  kUnseen,     // nothing that lists and pages show, such as how fresh the run is
  kShown,      // something that lists and pages show, but not the state
  kMoved,      // the state
  kRestarted,  // the scheduler has started the run again; the state may be the same
};

// Makes a run that a cluster was just chosen for.
v1::Run AssignedRun(uint32_t number, std::string run_key, std::string cluster, absl::Time now);

// True if the report is legal: its state follows the run's or equals it, and only an ended run has
// complete logs.
bool Accepts(const v1::Run& run, const agent::v1::RunEvent& event);

// Takes over what the report says, within the bounds of event_bounds.h; what it leaves out stays.
// Consequences of the new state, such as an end time, are filled in. The report is used up, except
// for its evidence. kRefused: the run is as it was.
RunStep Apply(agent::v1::RunEvent& event, absl::Time now, v1::Run* run);

// The run is LOST because its cluster is, for this reason.
void GiveUp(v1::Failure failure, absl::Time now, v1::Run* run);

// True if the cluster has begun with the run: nodes are being prepared for it, or its program runs
// or ran. False: it waits, or ended without a beginning.
bool HasBegun(const v1::Run& run);

// Returns what the state of the job's latest run means to the job. `is_followed`: the run has
// failed, and the job gets another one. A run that is FINISHING without having begun (its
// Kubernetes Job is being deleted, say) has never been RUNNING, and neither has its job.
contract::JobEvent JobEventOf(const v1::Run& run, bool is_followed);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_RUN_MACHINE_H_
