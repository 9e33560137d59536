// Registers agents' connections: where the messages of each session go, and which session speaks
// for each cluster. Any thread.
//
//   Open --> known to the core --Welcome--> speaks for its cluster --> Remove
//
// A cluster's later session takes the place of an earlier one as soon as the core welcomes it.
#ifndef MUSTER_BROKER_ENGINE_AGENT_SESSIONS_H_
#define MUSTER_BROKER_ENGINE_AGENT_SESSIONS_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "broker/core/core.h"
#include "broker/engine/agent_peer.h"
#include "sync/mutex.h"

namespace muster::broker {

class AgentSessions {
 public:
  core::SessionId Open(std::string cluster, std::string journal_id,
                       std::shared_ptr<AgentPeer> peer);
  // Does nothing if the session has gone.
  void Welcome(core::SessionId session);
  // Does nothing if the session has gone.
  void Remove(core::SessionId session);

  // Null: the session has gone.
  std::shared_ptr<AgentPeer> Find(core::SessionId session) const;
  // Returns the agent that the core has welcomed. Null: the cluster is not connected.
  std::shared_ptr<AgentPeer> FindWelcomed(std::string_view cluster) const;
  // True if the agent that speaks for the cluster has this journal.
  bool IsWelcomed(std::string_view cluster, std::string_view journal_id) const;

 private:
  struct Session {
    std::string cluster;
    std::string journal_id;
    std::shared_ptr<AgentPeer> peer;
  };
  // Null: the cluster is not connected.
  const Session* Welcomed(std::string_view cluster) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  core::SessionId last_session_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<core::SessionId, Session> sessions_ ABSL_GUARDED_BY(mutex_);
  // The welcomed sessions by cluster, all in sessions_.
  absl::flat_hash_map<std::string, core::SessionId> welcomed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_ENGINE_AGENT_SESSIONS_H_
