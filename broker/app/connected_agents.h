// Knows which clusters are connected, with which journal, and where their questions go. LogLink
// checks pushers against the journal. Any thread.
#ifndef MUSTER_BROKER_APP_CONNECTED_AGENTS_H_
#define MUSTER_BROKER_APP_CONNECTED_AGENTS_H_

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "broker/app/asked_agent.h"

namespace muster::broker {

class ConnectedAgents {
 public:
  // Adds an agent that the core has welcomed. `connection` names its stream; a later one replaces
  // an earlier one.
  void Add(const std::string& cluster, std::string journal_id,
           const std::shared_ptr<AskedAgent>& connection);
  // Does nothing if another connection has replaced this one.
  void Remove(const std::string& cluster, const AskedAgent* connection);
  bool IsConnected(const std::string& cluster, std::string_view journal_id) const;
  // Returns null if the cluster is not connected.
  std::shared_ptr<AskedAgent> Find(const std::string& cluster) const;

 private:
  struct Agent {
    std::string journal_id;
    const AskedAgent* connection = nullptr;  // names the connection, even when it is gone
    std::weak_ptr<AskedAgent> asked;
  };
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, Agent> by_cluster_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_APP_CONNECTED_AGENTS_H_
