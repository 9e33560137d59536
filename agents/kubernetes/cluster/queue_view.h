// Shows who else decides when a run's pods start: Kueue and its queues, gang schedulers. It tells
// which of them the cluster has, which queues its namespaces have, and why runs wait there.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_QUEUE_VIEW_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_QUEUE_VIEW_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "agents/core/steady_time.h"
#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/objects/objects.h"
#include "muster/v1/cluster.pb.h"
#include "muster/v1/facts.pb.h"
#include "muster/v1/job_spec.pb.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// An answer about an API server's kinds of objects stays fresh for so long, for jobs that need some
// of them: operators install such things once in a cluster's life. A group that one answer lacks is
// believed to be missing once another answer, so much later, lacks it as well: a server that has
// just started may answer with a part.
inline constexpr absl::Duration kGroupsAreFresh = absl::Seconds(5);

// An answer of the server and the first lists of queues have this: launches wait for it.
inline constexpr absl::Duration kLearnPatience = absl::Seconds(5);

// The groups of /apis that the server has, with the version of each that it prefers.
using ApiGroups = std::map<std::string, std::string>;
ApiGroups ParseGroups(const Json& apis);

// The groups of the gang schedulers.
inline constexpr char kVolcanoGroup[] = "scheduling.volcano.sh";
inline constexpr char kPodGroupsGroup[] = "scheduling.x-k8s.io";

// Returns the reason that a cluster with these groups cannot have the job: it asks for a queue or a
// gang scheduler that is not there. INVALID_ARGUMENT: names the field and the remedy.
absl::Status CheckSchedulers(const v1::JobSpec& spec, const ApiGroups& groups);

// The thing that a suspended Job waits for in its queue.
struct QueueWait {
  std::string words;
  bool is_given_up = false;  // as Workload has it
};

// Any thread may use it.
class QueueView {
 public:
  using Clock = std::function<absl::Time()>;
  // `api` must outlive this object. Nothing is known before Learn. `on_news` is called, from any
  // thread, when a queue comes or goes, or a group is surely missing; it must not block.
  QueueView(std::vector<std::string> namespaces, Api* api, Clock clock = agents::SteadyNow,
            std::function<void()> on_news = nullptr);
  ~QueueView();
  QueueView(const QueueView&) = delete;
  QueueView& operator=(const QueueView&) = delete;

  // Asks the server which groups it has, unless it was asked within that time; where Kueue is among
  // them, watches its queues and workloads from then on. A group that could not be asked about
  // stays as it was, also if the answer comes from a server that is only starting; a group that was
  // there stays until a second answer confirms that it is gone. Takes kLearnPatience at most.
  void Learn(absl::Duration max_age);

  // Returns the reason that the job cannot have the queue or the gang that it names, as
  // CheckSchedulers. UNAVAILABLE: what it names seems to be missing, and nothing has confirmed it
  // yet; ask again after kGroupsAreFresh. OK as well: that is not known. Asks the server about a
  // queue that the watch does not know.
  absl::Status Check(const v1::JobSpec& spec, const std::string& name_space);

  // Adds which of the groups that jobs may need there are, or may be, and the queues of the
  // namespaces that the facts name. Leaves out the parts that are not known.
  void AddFacts(v1::KubernetesFacts* facts) const;

  // Returns the queue that decides when such a run starts: the one that it names, or the
  // namespace's default one. Empty: none, as far as is known.
  std::string QueueOf(const v1::JobSpec& spec, const std::string& name_space) const;
  // Returns whether Kueue may put a Job that names no queue into the namespace's default one. Yes
  // as well: nothing was learnt yet.
  bool MayHaveDefaultQueue(const std::string& name_space) const;

  // Returns the wait of a suspended Job that names a queue.
  QueueWait WaitOf(const JobObject& job) const;
  // Lists the parts of Kueue that are not seen, with advice.
  std::vector<v1::ClusterIssue> Issues() const;

 private:
  class Space;  // what is watched in one namespace

  // Notes the absence of one of the groups that jobs may need, in all whole answers since then.
  struct Absence {
    absl::Time since;
    bool is_sure = false;
  };

  std::shared_ptr<Space> Find(const std::string& name_space) const;
  // The groups of a whole answer, with those that were there and may be there still.
  // `is_news`: another one is surely missing.
  ApiGroups Confirmed(ApiGroups answer, bool* is_news);
  absl::Status CheckQueue(const std::string& queue, const std::string& name_space,
                          const std::string& version);

  const std::vector<std::string> namespaces_;
  Api& api_;
  const Clock clock_;
  const std::function<void()> on_news_;
  Mutex learning_;  // for as long as the server is asked
  mutable Mutex mutex_;
  std::optional<ApiGroups> groups_ ABSL_GUARDED_BY(mutex_);           // none: never learnt
  std::map<std::string, Absence> absences_ ABSL_GUARDED_BY(mutex_);   // by group
  absl::Time learnt_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // or tried to
  // They are by namespace; empty where there is no Kueue.
  std::map<std::string, std::shared_ptr<Space>> spaces_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_QUEUE_VIEW_H_
