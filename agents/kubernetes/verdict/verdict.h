// Derives the state of a run from its Job, its pods and the Events about them. Pure.
#ifndef MUSTER_AGENTS_KUBERNETES_VERDICT_VERDICT_H_
#define MUSTER_AGENTS_KUBERNETES_VERDICT_VERDICT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/core/backend.h"
#include "agents/kubernetes/objects/objects.h"
#include "contract/failure_causes.h"

namespace muster::kubernetes {

// The words for a run that was held and has pods yet.
inline constexpr char kBeingHeldWords[] = "about to be held: its pods are being taken away";

// A claim of the job's that has no volume.
struct UnboundClaim {
  std::string field;  // that names it
  std::string words;  // '"data" has no volume yet, ...'
  // Nothing is about to make one: nothing changes before somebody does something.
  bool is_stuck = false;
};

// Everything that is known of a run at one moment.
struct RunFacts {
  std::string run_key;
  absl::Time now;
  v1::RunState last_state = v1::RUN_STATE_UNSPECIFIED;
  std::optional<JobObject> job;  // none: the API server has none of this name
  // The Job was there and has been deleted, as it was last. Nothing: it was never seen.
  std::optional<JobObject> deleted_job;
  std::vector<PodObject> pods;      // those of the Job, deleted ones that had ended included
  std::vector<EventObject> events;  // about the Job and its pods
  bool cancel_asked = false;
  std::string queue_wait;  // what its Job waits for in its queue, in words; empty: in none
  // Kueue itself will not let it go any more; queue_wait says why.
  bool queue_has_given_up = false;
  // The run's claims, if a pod of it waits for their volumes.
  std::vector<UnboundClaim> unbound_claims;
  bool given_up = false;  // by Muster, which has deleted its Job for that, or is about to
};

struct Patience {
  // A pod may fail to start (an image that cannot be pulled, a Secret that is not there) for this
  // long before that is the end.
  absl::Duration start_grace = absl::Minutes(5);
};

// Nothing: there is nothing new to say. If the run's Job is neither there nor was ever seen, the
// caller has to find out more.
std::optional<agents::Observation> Judge(const RunFacts& facts, const Patience& patience);

// The reason that a pod cannot start, and the time since which the run has had that trouble, in
// whichever of its pods; nothing if it has none now. Taken from its init and main containers, then
// its conditions, then the Events, in that order. `events`: all that are kept of its run.
struct StartTrouble {
  v1::StateReasonCode code = v1::STATE_REASON_CODE_CANNOT_START;
  std::string reason;
  std::string message;
  std::optional<absl::Time> since;
  // It will not go away by itself: no such image, no such Secret, a broken image name.
  bool is_final = false;
  // The registry does not answer, or limits pulls: another run may be luckier.
  bool is_registrys = false;
  bool is_of_claims = false;            // the scheduler waits for volumes of claims
  bool is_of_missing = false;           // a volume names what is not there
  std::optional<absl::Time> last_seen;  // of what is missing
  bool is_nodes = false;                // the node has no room for the image: another one may have
  v1::FailureClass failure_class = v1::FAILURE_CLASS_UNSPECIFIED;
};
std::optional<StartTrouble> FindStartTrouble(const PodObject& pod,
                                             const std::vector<EventObject>& events,
                                             absl::Time now);
// Returns whether a pod of it waits for volumes of claims that are there.
bool WaitsForClaims(const std::vector<PodObject>& pods);
// The scheduler ends what it says of claims with " not found", also of one that is there.
std::string WithoutEcho(std::string words);

// Returns the reason that the Job controller cannot make pods, from the Events about the Job: a
// quota that is used up, an admission that refuses them.
std::optional<StartTrouble> FindCreateTrouble(const JobObject& job,
                                              const std::vector<EventObject>& events,
                                              absl::Time now);
// Returns the cause by which the remedy is chosen.
contract::FailureCause CauseOf(const StartTrouble& trouble);
// Returns the reason that is shown while Muster waits for a trouble to pass. `whose`: the pod;
// empty: of none.
v1::StateReason WhileItLasts(const RunFacts& facts, const StartTrouble& trouble,
                             const std::string& whose, const Patience& patience);
// Returns what happened to a run that the trouble ends.
v1::FailureCode FailureCodeOf(const StartTrouble& trouble);
// Returns the phase in which a run fails that the trouble ends.
v1::FailurePhase PhaseOf(const StartTrouble& trouble);
// Puts it after the reason that the run waits, or in its place, with that code, if none says it.
void AddToReason(v1::StateReasonCode code, const std::string& words, agents::Observation* seen);
// Returns whether a container of it waits for a reason of its own, or has been started again.
bool IsKeptWaiting(const PodObject& pod);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_VERDICT_VERDICT_H_
