// Keeps what the watches tell about each run: its Job, its pods, the Events about them.
//
// Any thread may use it: it is guarded by a mutex that is held for moments only.
#ifndef MUSTER_AGENTS_KUBERNETES_RUN_STORE_H_
#define MUSTER_AGENTS_KUBERNETES_RUN_STORE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/kubernetes/api/object_watch.h"
#include "agents/kubernetes/clean_up.h"
#include "agents/kubernetes/objects/objects.h"
#include "agents/kubernetes/verdict/verdict.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// At most this many warnings are kept of one run, the latest ones and the first of each reason: as
// many as a failure may quote.
inline constexpr size_t kMaxEventsOfRun = 8;

class RunStore {
 public:
  using Clock = std::function<absl::Time()>;
  // `on_pod` gets each pod of a wanted run whenever it changes, on a watch's thread. `clock` is the
  // server's.
  RunStore(std::function<void(const PodObject&)> on_pod, Clock clock);
  ~RunStore();
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  // Returns the sinks of the watches. A change that is older than what was put here has no effect.
  // A list always counts, because a server that was restored counts its versions anew.
  ObjectSink* jobs();
  ObjectSink* pods();
  ObjectSink* events();

  // Makes news of the run wake the agent from now on, and keeps its deleted objects until Forget.
  void Want(const std::string& run_key);
  // Returns the clean-up that its Job needs from now on, if the Job is there.
  std::optional<Leftover> Forget(const std::string& run_key);

  // Stores the server's own answer about one Job, so that nobody has to wait for the watch. Nothing
  // happens if the watch has told newer things about the Job.
  void Put(JobObject job);
  // Stores the server's own answer about all pods of one run.
  void PutPods(std::vector<PodObject> pods);
  void PutAbsent(const std::string& run_key);

  // Returns the facts about the run, without the caller's own parts (time, state, what was asked
  // for). A Job that a new list lacks counts neither as there nor as deleted: it may be younger
  // than the list, so that only the server knows.
  RunFacts Facts(const std::string& run_key) const;
  // Returns the Job as it was last seen.
  std::optional<JobObject> FindJob(const std::string& run_key) const;
  // Returns the Jobs that no run wants and that need a clean-up at that time.
  std::vector<Leftover> FindLeftovers(absl::Time now) const;

  // Returns the wanted runs with news since the last call.
  std::set<std::string> TakeNews();
  // Makes news of a run, and wakes.
  void MarkNews(const std::string& run_key);
  void SetWaker(std::function<void()> wake);

 private:
  template <typename Part>
  class Sink;

  struct Entry {
    bool wanted = false;
    bool was_let_go = false;  // Forget was called
    std::optional<JobObject> job;
    std::optional<JobObject> deleted_job;
    std::optional<JobObject> missing_job;   // a new list lacks it
    std::map<std::string, PodObject> pods;  // by uid
    std::vector<EventObject> events;
  };

  void TakeAll(std::vector<JobObject> jobs);
  void TakeAll(std::vector<PodObject> pods);
  void TakeAll(std::vector<EventObject> events);
  void Take(JobObject job);
  void Take(PodObject pod);
  void Take(EventObject event);
  void TakeDeleted(JobObject job);
  void TakeDeleted(PodObject pod);
  static void TakeDeleted(const EventObject&) {}  // Events expire, and have happened all the same

  Entry* FindLocked(const std::string& run_key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetJobLocked(JobObject job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether more is known of it already.
  bool IsBehindLocked(const PodObject& pod) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether its run is wanted.
  bool SetPodLocked(const PodObject& pod) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NewsLocked(const std::string& run_key, const Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropIfEmptyLocked(const std::string& run_key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After the lock is released.
  void Wake();

  const std::function<void(const PodObject&)> on_pod_;
  const Clock clock_;
  const std::unique_ptr<ObjectSink> jobs_, pods_, events_;
  mutable Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by run key
  std::set<std::string> news_ ABSL_GUARDED_BY(mutex_);
  bool wake_due_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
};

// Returns the run to which an object belongs by its name, "<run key>" or "<run key>-...", because
// Events have no labels. Empty: it belongs to none.
std::string RunKeyOfName(const std::string& name);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_RUN_STORE_H_
