#include "broker/app/connected_agents.h"

#include <utility>

namespace muster::broker {

void ConnectedAgents::Add(const std::string& cluster, std::string journal_id,
                          const std::shared_ptr<AskedAgent>& connection) {
  std::lock_guard lock(mutex_);
  by_cluster_[cluster] = {std::move(journal_id), connection.get(), connection};
}

void ConnectedAgents::Remove(const std::string& cluster, const AskedAgent* connection) {
  std::lock_guard lock(mutex_);
  const auto found = by_cluster_.find(cluster);
  if (found != by_cluster_.end() && found->second.connection == connection) {
    by_cluster_.erase(found);
  }
}

bool ConnectedAgents::IsConnected(const std::string& cluster, std::string_view journal_id) const {
  std::lock_guard lock(mutex_);
  const auto found = by_cluster_.find(cluster);
  return found != by_cluster_.end() && found->second.journal_id == journal_id;
}

std::shared_ptr<AskedAgent> ConnectedAgents::Find(const std::string& cluster) const {
  std::lock_guard lock(mutex_);
  const auto found = by_cluster_.find(cluster);
  return found == by_cluster_.end() ? nullptr : found->second.asked.lock();
}

}  // namespace muster::broker
