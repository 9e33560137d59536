// Shows the clusters as of the latest commit: a question waits for no commit and for no thread. Any
// thread; the effects thread updates it.
#ifndef MUSTER_BROKER_ENGINE_CLUSTER_BOARD_H_
#define MUSTER_BROKER_ENGINE_CLUSTER_BOARD_H_

#include <memory>
#include <vector>

#include "broker/core/cluster_view.h"
#include "sync/mutex.h"

namespace muster::broker {

class ClusterBoard {
 public:
  // Takes over the changed clusters: O(changed).
  void Show(std::vector<core::ShownCluster> changed);
  // Returns all clusters as they are now; the result does not change. The first call after a Show
  // copies a pointer for each cluster, later calls copy none.
  std::shared_ptr<const core::ClusterViews> Read() const;

 private:
  mutable Mutex mutex_;
  core::ClusterViews clusters_ ABSL_GUARDED_BY(mutex_);
  // The last result; null if clusters have changed since.
  mutable std::shared_ptr<const core::ClusterViews> copy_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_CLUSTER_BOARD_H_
