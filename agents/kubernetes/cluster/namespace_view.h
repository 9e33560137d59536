// Watches one namespace that runs are in: its limits, whether it is there, and its pods where those
// of the whole cluster may not be seen.
#ifndef MUSTER_AGENTS_KUBERNETES_CLUSTER_NAMESPACE_VIEW_H_
#define MUSTER_AGENTS_KUBERNETES_CLUSTER_NAMESPACE_VIEW_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/kubernetes/api/api.h"
#include "agents/kubernetes/api/object_watch.h"
#include "agents/kubernetes/cluster/inventory.h"
#include "agents/kubernetes/cluster/namespace_limits.h"
#include "agents/kubernetes/objects/kept_objects.h"
#include "agents/kubernetes/objects/node_objects.h"
#include "sync/mutex.h"

namespace muster::kubernetes {

using KeptPods = KeptObjects<PodUse>;
using OnPods = std::function<void(const KeptPods::Moves&)>;

// Parses the pods that have not ended. `gpu_resources` must outlive the result.
KeptPods::Parse PodParser(const std::vector<std::string>& gpu_resources);
// Returns a watch of the pods there that have not ended.
std::unique_ptr<ObjectWatch> WatchPods(const std::string& path, Api* api, KeptPods* sink,
                                       std::function<void()> on_recovery);

// Any thread may use it.
class NamespaceView {
 public:
  // Begins to watch its limits at once. The arguments must outlive this object. `on_pods` is told
  // of its pods, once they are watched. `on_recovery` is that of its watches, and is called when
  // its limits change.
  NamespaceView(std::string name, const std::vector<std::string>& gpu_resources, Api* api,
                OnPods on_pods, std::function<void()> on_recovery);
  NamespaceView(const NamespaceView&) = delete;
  NamespaceView& operator=(const NamespaceView&) = delete;

  const std::string& name() const { return name_; }
  // Begins to watch its pods; only once.
  void WatchItsPods();
  // Hurries its watches; see ObjectWatch.
  void Hurry();
  // Waits for the first answers of the watches, `timeout` for each.
  void Await(absl::Duration timeout);
  // Asks the server for the namespace, and logs when it begins or ceases to take runs. `runs`:
  // whether they can be made and seen there, as the server says now.
  void Judge(const absl::Status& runs);

  // Says whether the namespace is there as the latest Judge found.
  SeenNamespace Look() const;
  // OK: they are told of, once they are watched.
  absl::Status pods_state() const;
  std::vector<PodUse> Pods() const { return kept_pods_.All(); }

 private:
  ObjectWatch* pods() const;
  // Other limits are news for the broker, which judges jobs by them.
  template <typename Line>
  typename KeptObjects<std::vector<Line>>::News NewsOf() const {
    return {.is_other = [](const std::vector<Line>& before,
                           const std::vector<Line>& now) { return HaveOtherLimits(before, now); },
            .on_other = on_recovery_};
  }

  const std::string name_;
  Api& api_;
  const std::function<void()> on_recovery_;
  KeptPods kept_pods_;
  KeptObjects<std::vector<QuotaLine>> kept_quotas_;
  KeptObjects<std::vector<RangeLine>> kept_ranges_;
  mutable Mutex mutex_;
  SeenNamespace known_ ABSL_GUARDED_BY(mutex_);  // without its limits
  // After what they tell of changes.
  ObjectWatch quotas_;
  ObjectWatch ranges_;
  std::unique_ptr<ObjectWatch> pods_ ABSL_GUARDED_BY(mutex_);  // set once
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_CLUSTER_NAMESPACE_VIEW_H_
