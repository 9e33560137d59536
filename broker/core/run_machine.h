// A run, and the one way in which it changes: an agent's report is taken over, or refused. The
// states, and what may follow what, are drawn in contract/transitions.h.
//
// Pure functions, for any thread.
#ifndef MUSTER_BROKER_CORE_RUN_MACHINE_H_
#define MUSTER_BROKER_CORE_RUN_MACHINE_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "contract/job_transitions.h"
#include "muster/agent/v1/agent_link.pb.h"
#include "muster/v1/job.pb.h"

namespace muster::core {

// What a report has changed.
enum class RunStep {
  kRefused,    // nothing: it is illegal
  kUnseen,     // nothing that lists and pages show, such as how fresh it is
  kShown,      // something that they show, and not the state
  kMoved,      // the state
  kRestarted,  // the scheduler has started the run again; the state may be the same
};

// A run that a cluster was just chosen for.
v1::Run AssignedRun(uint32_t number, std::string run_key, std::string cluster, absl::Time now);

// Whether the report is legal: its state follows the run's, or is the same, and only the logs of a
// run that has ended are complete.
bool Accepts(const v1::Run& run, const agent::v1::RunEvent& event);

// Takes over what the report says, within the bounds of event_bounds.h; what it leaves out stays.
// What follows from the new state, such as an end time, is filled in. The report is used up, except
// for its evidence. kRefused: the run is as it was.
RunStep Apply(agent::v1::RunEvent& event, absl::Time now, v1::Run* run);

// Whether the cluster has begun with it: nodes are being prepared for it, or its program runs or
// ran. False: it waits, or has ended without that.
bool HasBegun(const v1::Run& run);

// What the state of its latest run means to a job. `is_followed`: the run has failed, and the job
// gets another one. A run that is FINISHING without having begun (its Kubernetes Job is being
// deleted, say) has never been RUNNING, and neither has its job.
contract::JobEvent JobEventOf(const v1::Run& run, bool is_followed);

}  // namespace muster::core

#endif  // MUSTER_BROKER_CORE_RUN_MACHINE_H_
