// The runs in one namespace, as its watches tell of them.
#ifndef MUSTER_AGENTS_KUBERNETES_NAMESPACE_RUNS_H_
#define MUSTER_AGENTS_KUBERNETES_NAMESPACE_RUNS_H_

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/api/object_watch.h"
#include "agents/kubernetes/cluster/access.h"
#include "agents/kubernetes/cluster/inventory.h"
#include "agents/kubernetes/file_room.h"
#include "agents/kubernetes/run_store.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

// The age that an answer about rights may have while runs wait for them.
inline constexpr absl::Duration kRightsAreFresh = absl::Seconds(10);

// Thread-safe, once Watch has returned.
class NamespaceRuns {
 public:
  // `on_pod`, `clock` and `wake` are RunStore's.
  NamespaceRuns(std::string name, std::function<void(const PodObject&)> on_pod,
                RunStore::Clock clock, std::function<void()> wake);
  NamespaceRuns(const NamespaceRuns&) = delete;
  NamespaceRuns& operator=(const NamespaceRuns&) = delete;

  const std::string& name() const { return name_; }
  RunStore& store() { return store_; }
  const RunStore& store() const { return store_; }

  // Begins to watch its Jobs, pods and Events; once. Both must outlive this object; `room` gets the
  // Jobs, too.
  void Watch(Api* api, FileRoom* room);
  // Waits for the first lists, or why there are none.
  void AwaitFirstAnswers(absl::Time deadline);

  // OK: the store has what there is. Otherwise why not: runs there cannot be judged.
  absl::Status state() const;

  // Notes that a launch of the run may not make something there; `why` has the server's words.
  // Returns whether this is news.
  bool Forbid(const std::string& run_key, Access what, absl::Status why);
  bool is_forbidden() const;
  // Returns the reason that launches wait there, for people, as it is now or was within
  // kRightsAreFresh: that the namespace is not there, or which right is missing; with what to do.
  // OK: they do not.
  absl::Status WhyUnmade();
  // Returns whether the server says that there is no such namespace, so that nothing can be in it.
  // Asks it.
  bool IsMissing() const;
  // Returns whether the launch of the run was forbidden at its first step, so that it has left
  // nothing there.
  bool IsUnmade(const std::string& run_key) const;
  void ForgetUnmade(const std::string& run_key);
  // PERMISSION_DENIED: launches are forbidden there, or the namespace is not, as the server says
  // now, or has said within that time. OK else.
  absl::Status AskLaunchRights(absl::Duration max_age);
  // PERMISSION_DENIED: the agent may not make runs there; or it may not see them, and has not for a
  // while. OK else. Asks again for what was refused: watches try again seldom.
  absl::Status AskRights();

 private:
  struct Forbidden {
    Access what;
    absl::Status why;
    absl::Time asked;
    absl::Status told = absl::OkStatus();  // by WhyUnmade
    absl::Time told_at = absl::InfinitePast();
  };

  bool AreRunsHidden() const;
  // Asks now, and returns what is known against the namespace.
  SeenNamespace LookAtNamespace() const;

  const std::string name_;
  RunStore store_;
  Api* api_ = nullptr;
  mutable Mutex mutex_;
  std::optional<Forbidden> forbidden_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> unmade_ ABSL_GUARDED_BY(mutex_);  // run keys; empty unless forbidden_
  std::unique_ptr<ObjectSink> jobs_;                      // of the watch of Jobs
  // Last, so that they end first.
  std::vector<std::unique_ptr<ObjectWatch>> watches_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_NAMESPACE_RUNS_H_
