// Which cluster is connected with which journal: what LogLink checks a pusher against.
// Any thread.
#ifndef MUSTER_BROKER_RPC_CONNECTED_AGENTS_H_
#define MUSTER_BROKER_RPC_CONNECTED_AGENTS_H_

#include <mutex>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace muster::broker {

class ConnectedAgents {
 public:
  // The core has welcomed this agent. `connection` names its stream; a later one replaces an
  // earlier one.
  void Add(const std::string& cluster, std::string journal_id, const void* connection);
  // Changes nothing if another connection has replaced this one.
  void Remove(const std::string& cluster, const void* connection);
  bool IsConnected(const std::string& cluster, std::string_view journal_id) const;

 private:
  struct Agent {
    std::string journal_id;
    const void* connection = nullptr;
  };
  mutable std::mutex mutex_;
  absl::flat_hash_map<std::string, Agent> by_cluster_;
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_CONNECTED_AGENTS_H_
