// Events about runs, made from what backends say.
#ifndef MUSTER_AGENTS_CORE_RUN_EVENTS_H_
#define MUSTER_AGENTS_CORE_RUN_EVENTS_H_

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "muster/agent/v1/agent_link.pb.h"

namespace muster::agents {

// Returns the agent's own word for something.
v1::Evidence AgentEvidence(absl::Time now, std::string_view detail);

// Returns a backend's evidence, with the source and the time filled in where it left them out.
v1::Evidence Completed(v1::Evidence evidence, absl::Time now);

// Slurm computes its estimates anew every half minute: one that has moved by less is not told.
inline constexpr absl::Duration kMinEstimateMove = absl::Minutes(5);

// Each event has all replicas of a run, and those change one after the other while it starts: what
// changes sooner than this after the last ones were told is told together.
inline constexpr absl::Duration kMinReplicasInterval = absl::Seconds(2);

// The reason that a run is not on its cluster, or that nobody can tell, is told at most once in
// this time. The reason may change with each try and each look-up, every few seconds; people read
// it, and each telling is a write at the broker.
inline constexpr absl::Duration kMinWhyInterval = absl::Minutes(1);

// Returns an event that so far has its evidence alone.
agent::v1::RunEvent EventWith(v1::Evidence evidence);

// Says in both why a run that is being launched is not known to be on its cluster.
void TakeWhy(v1::StateReasonCode code, const std::string& why, agent::v1::RunEvent* told,
             agent::v1::RunEvent* event);

// Moves what an observation says and `told` does not yet have into both `told` and `event`, except
// for the replicas: external id, reason, nodes, times, restarts, the estimated start, exit,
// failure, results, progress, usage and what Slurm chose. Returns whether there was anything.
bool TakeNews(const Observation& observation, agent::v1::RunEvent* told,
              agent::v1::RunEvent* event);

// Returns whether the cluster has a run in this state, as far as the agent knows.
bool IsOnCluster(v1::RunState state);

// Returns the end of a run that failed after its cancel had been asked for. Such a failure says
// where the cancel met the run (before its first record, in the midst of its launch, in a handler
// of TERM) and nothing that its user has to mend, or that another run would do better: the run was
// canceled. The observations stay as evidence, and the program's end stays as its exit status.
// Returns the state.
v1::RunState EndAsCanceled(agent::v1::RunEvent* event);

}  // namespace muster::agents

#endif  // MUSTER_AGENTS_CORE_RUN_EVENTS_H_
