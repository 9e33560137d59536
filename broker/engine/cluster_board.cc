#include "broker/engine/cluster_board.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sync/mutex.h"

namespace muster::broker {
namespace {

bool StandsBefore(const std::shared_ptr<const core::ClusterView>& cluster,
                  const std::string& name) {
  return cluster->name() < name;
}

}  // namespace

void ClusterBoard::Show(std::vector<core::ShownCluster> changed) {
  if (changed.empty()) return;
  const MutexLock lock(mutex_);
  copy_ = nullptr;
  for (core::ShownCluster& shown : changed) {
    const auto at = std::lower_bound(clusters_.begin(), clusters_.end(), shown.name, StandsBefore);
    const bool is_there = at != clusters_.end() && (*at)->name() == shown.name;
    if (shown.view == nullptr) {
      if (is_there) clusters_.erase(at);
    } else if (is_there) {
      *at = std::move(shown.view);
    } else {
      clusters_.insert(at, std::move(shown.view));
    }
  }
}

std::shared_ptr<const core::ClusterViews> ClusterBoard::Read() const {
  const MutexLock lock(mutex_);
  if (copy_ == nullptr) copy_ = std::make_shared<const core::ClusterViews>(clusters_);
  return copy_;
}

}  // namespace muster::broker
