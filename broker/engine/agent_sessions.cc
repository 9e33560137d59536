#include "broker/engine/agent_sessions.h"

#include <utility>

#include "contract/text.h"
#include "sync/mutex.h"

namespace muster::broker {

core::SessionId AgentSessions::Open(std::string cluster, std::string journal_id,
                                    std::shared_ptr<AgentPeer> peer) {
  const MutexLock lock(mutex_);
  sessions_.emplace(++last_session_,
                    Session{std::move(cluster), std::move(journal_id), std::move(peer)});
  return last_session_;
}

void AgentSessions::Welcome(core::SessionId session) {
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(session);
  if (found != sessions_.end()) welcomed_[found->second.cluster] = session;
}

void AgentSessions::Remove(core::SessionId session) {
  Session removed;  // its peer is freed outside the lock
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  removed = std::move(found->second);
  sessions_.erase(found);
  const auto welcomed = welcomed_.find(removed.cluster);
  if (welcomed != welcomed_.end() && welcomed->second == session) welcomed_.erase(welcomed);
}

std::shared_ptr<AgentPeer> AgentSessions::Find(core::SessionId session) const {
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second.peer;
}

std::shared_ptr<AgentPeer> AgentSessions::FindWelcomed(std::string_view cluster) const {
  const MutexLock lock(mutex_);
  const Session* session = Welcomed(cluster);
  return session == nullptr ? nullptr : session->peer;
}

bool AgentSessions::IsWelcomed(std::string_view cluster, std::string_view journal_id) const {
  const MutexLock lock(mutex_);
  const Session* session = Welcomed(cluster);
  return session != nullptr && session->journal_id == journal_id;
}

const AgentSessions::Session* AgentSessions::Welcomed(std::string_view cluster) const {
  const auto found = welcomed_.find(ToAbsl(cluster));
  return found == welcomed_.end() ? nullptr : &sessions_.at(found->second);
}

}  // namespace muster::broker
