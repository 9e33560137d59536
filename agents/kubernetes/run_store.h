// Keeps the news of the watches about each run: its Job, its pods, the Events about them.
//
// Thread-safe; guarded by a mutex that is held for moments only.
#ifndef MUSTER_AGENTS_KUBERNETES_RUN_STORE_H_
#define MUSTER_AGENTS_KUBERNETES_RUN_STORE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "agents/kubernetes/api/object_watch.h"
#include "agents/kubernetes/clean_up.h"
#include "agents/kubernetes/objects/objects.h"
#include "agents/kubernetes/verdict/verdict.h"

namespace muster::kubernetes {

// Warnings that are kept of one run, the latest and the first of each reason: as many as a failure
// may quote.
inline constexpr size_t kMaxEventsOfRun = 8;

class RunStore {
 public:
  // `on_pod` gets each pod of a wanted run whenever it changes, on a watch's thread.
  explicit RunStore(std::function<void(const PodObject&)> on_pod);
  ~RunStore();
  RunStore(const RunStore&) = delete;
  RunStore& operator=(const RunStore&) = delete;

  // Where the watches' news goes. A change that is older than what was put here changes nothing;
  // a list counts in any case, for a server that was set back counts its versions anew.
  ObjectSink* jobs();
  ObjectSink* pods();
  ObjectSink* events();

  // News of wanted runs wakes, and what was deleted is remembered until Forget.
  void Want(const std::string& run_key);
  // Returns the clean-up that its Job needs from now on, if the Job is there.
  std::optional<Leftover> Forget(const std::string& run_key);

  // Stores the server's own answer about one Job, so that nobody has to wait for the watch. Nothing
  // happens if the watch has told newer things about the Job.
  void Put(JobObject job);
  // Stores the server's own answer about all pods of one run.
  void PutPods(std::vector<PodObject> pods);
  void PutAbsent(const std::string& run_key);

  // Without the caller's own parts: time, state, what was asked for. A Job that a new list lacks is
  // neither here nor deleted: only the server knows, for it may be younger than the list.
  RunFacts Facts(const std::string& run_key) const;
  // The Job as it was last seen.
  std::optional<JobObject> FindJob(const std::string& run_key) const;
  // Jobs that nobody wants, and of which something is due at that time.
  std::vector<Leftover> FindLeftovers(absl::Time now) const;

  // Wanted runs with news since the last call.
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

  Entry* FindLocked(const std::string& run_key);
  void SetJobLocked(JobObject job);
  // Returns whether more is known of it already.
  bool IsBehindLocked(const PodObject& pod);
  // Returns whether its run is wanted.
  bool SetPodLocked(const PodObject& pod);
  void NewsLocked(const std::string& run_key, const Entry& entry);
  void DropIfEmptyLocked(const std::string& run_key);
  // After the lock is released.
  void Wake();

  const std::function<void(const PodObject&)> on_pod_;
  const std::unique_ptr<ObjectSink> jobs_, pods_, events_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // by run key
  std::set<std::string> news_;
  bool wake_due_ = false;
  std::function<void()> wake_;
};

// The run that an object belongs to by its name, "<run key>" or "<run key>-...": Events bear no
// labels. Empty: it is no run's.
std::string RunKeyOfName(const std::string& name);

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_RUN_STORE_H_
