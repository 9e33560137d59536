// Kueue's objects as far as runs need them: which queues there are, and why a run waits in one.
// Pure.
//
// The source is https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta1/; what is read here is the
// same in all its versions since v1beta1.
#ifndef MUSTER_AGENTS_KUBERNETES_OBJECTS_KUEUE_H_
#define MUSTER_AGENTS_KUBERNETES_OBJECTS_KUEUE_H_

#include <optional>
#include <string>

#include "agents/kubernetes/api/json_fields.h"
#include "agents/kubernetes/objects/objects.h"

namespace muster::kubernetes {

inline constexpr char kKueueGroup[] = "kueue.x-k8s.io";
// Kueue puts each new Job without a queue into the one of this name, where there is one.
inline constexpr char kDefaultQueue[] = "default";
// A queue that nobody makes. A suspended Job that names it stays where it is: Kueue puts it into
// no other queue, keeps no room for it, and never lets it go. (Kueue lets go a Job whose label is
// taken away if its room is kept already, and takes none away where there is a default queue.)
inline constexpr char kHeldQueue[] = "muster-held";

// Returns whether Kueue may let the Job go: it names a queue, which is not kHeldQueue.
bool IsInQueue(const JobObject& job);

struct LocalQueue {
  std::string name;
  std::string trouble;  // why it lets nothing go, in Kueue's words; empty: it does
};

// The state that Kueue gives a Job.
struct Workload {
  std::string job_uid;
  std::string words;  // why it waits, in Kueue's words; empty: Kueue has said nothing, or it goes
  // Kueue itself has given it up: it was requeued too often, or an admission check has refused it.
  // A Workload that people have made inactive they may make active again.
  bool is_given_up = false;
  // The words of the admission checks that have refused it; empty if none has.
  std::string refusals;
};

LocalQueue ParseLocalQueue(const Json& object);
// Nothing: it does not belong to a Job.
std::optional<Workload> ParseWorkload(const Json& object);
// Kueue itself forgets what the checks have said as it gives a Job up for it: `now` follows
// `before`, of the same Job, and has its refusals then.
void KeepRefusals(const Workload& before, Workload* now);
// Keeps the part that ParseWorkload reads: the most of a Workload is the pods' template.
Json TrimWorkload(const Json& object);

// Returns the sentence about a run's wait, with `words` if there are any.
std::string QueueWords(const std::string& queue, const std::string& words);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_OBJECTS_KUEUE_H_
