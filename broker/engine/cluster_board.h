// The clusters as of the latest commit, for those who ask: a question waits for no commit and for
// no thread. Any thread; the effects thread shows.
#ifndef MUSTER_BROKER_ENGINE_CLUSTER_BOARD_H_
#define MUSTER_BROKER_ENGINE_CLUSTER_BOARD_H_

#include <memory>
#include <mutex>
#include <vector>

#include "broker/core/cluster_view.h"

namespace muster::broker {

class ClusterBoard {
 public:
  // Takes over what has changed: O(changed).
  void Show(std::vector<core::ShownCluster> changed);
  // All of them as they are now; what is returned does not change. The first call after a Show
  // copies a pointer for each cluster, the others copy none.
  std::shared_ptr<const core::ClusterViews> Read() const;

 private:
  mutable std::mutex mutex_;  // guards what follows
  core::ClusterViews clusters_;
  // As given out last; null: they have changed since.
  mutable std::shared_ptr<const core::ClusterViews> copy_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_CLUSTER_BOARD_H_
