// What is seen of one namespace that runs are in: its limits, whether it is there, and its pods
// where those of the whole cluster may not be seen.
#ifndef MUSTER_AGENTS_KUBERNETES_NAMESPACE_VIEW_H_
#define MUSTER_AGENTS_KUBERNETES_NAMESPACE_VIEW_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "agents/kubernetes/api.h"
#include "agents/kubernetes/inventory.h"
#include "agents/kubernetes/kept_objects.h"
#include "agents/kubernetes/namespace_limits.h"
#include "agents/kubernetes/node_objects.h"
#include "agents/kubernetes/object_watch.h"

namespace muster::kubernetes {

using KeptPods = KeptObjects<PodUse>;

// Those that have not ended. `gpu_resources` must outlive what is returned.
KeptPods::Parse PodParser(const std::vector<std::string>& gpu_resources);
// A watch of the pods there that have not ended.
std::unique_ptr<ObjectWatch> WatchPods(const std::string& path, Api* api, KeptPods* sink);

// Thread-safe.
class NamespaceView {
 public:
  // Begins to watch its limits at once. What is given must outlive this object.
  NamespaceView(std::string name, const std::vector<std::string>& gpu_resources, Api* api);
  NamespaceView(const NamespaceView&) = delete;
  NamespaceView& operator=(const NamespaceView&) = delete;

  const std::string& name() const { return name_; }
  // Begins to watch its pods; only once.
  void WatchItsPods();
  // Waits for the first answers of the watches, `timeout` for each.
  void Await(absl::Duration timeout);
  // Asks the server for the namespace. `runs`: whether what runs make there can be seen; if not,
  // the server is asked for that as well, because watches try again seldom.
  void Judge(const absl::Status& runs);

  // Whether it is there is what the latest Judge found.
  SeenNamespace Look() const;
  // OK: they are told of, once they are watched.
  absl::Status pods_state() const;
  std::vector<PodUse> Pods() const { return kept_pods_.All(); }

 private:
  ObjectWatch* pods() const;
  absl::Status MayListJobs();

  const std::string name_;
  Api& api_;
  KeptPods kept_pods_;
  KeptObjects<std::vector<QuotaLine>> kept_quotas_;
  KeptObjects<std::vector<RangeLine>> kept_ranges_;
  mutable std::mutex mutex_;
  SeenNamespace known_;  // without its limits; guarded by mutex_
  // After what they tell of changes.
  ObjectWatch quotas_;
  ObjectWatch ranges_;
  std::unique_ptr<ObjectWatch> pods_;  // set once; guarded by mutex_
};

}  // namespace muster::kubernetes

#endif  // MUSTER_AGENTS_KUBERNETES_NAMESPACE_VIEW_H_
