#include "broker/engine/effects.h"

#include <fmt/format.h>

#include <utility>

#include "contract/errors.h"
#include "contract/text.h"
#include "daemon/log.h"

namespace muster::broker {

Effects::Effects(store::Store* store, ChangeFeed* feed, JobsChanged jobs_changed)
    : feed_(feed), jobs_changed_(std::move(jobs_changed)), assignments_(store) {}

void Effects::Forget(core::Ticket ticket) {
  std::lock_guard lock(mutex_);
  replies_.erase(ticket);
}

void Effects::Abandon() {
  absl::flat_hash_map<core::Ticket, Reply> open;
  {
    std::lock_guard lock(mutex_);
    open.swap(replies_);
  }
  const absl::Status status = contract::RetryableError(
      absl::StatusCode::kUnavailable, "BROKER_STOPPED",
      "the broker stopped before it could answer; ask again with the same request_id",
      absl::Seconds(1));
  for (auto& [_, reply] : open) {
    if (auto* explain = std::get_if<ExplainDone>(&reply)) {
      (*explain)({});
    } else if (auto* submit = std::get_if<SubmitDone>(&reply)) {
      (*submit)(status);
    } else if (auto* cancel = std::get_if<StatusDone>(&reply)) {
      (*cancel)(status);
    } else if (auto* chosen = std::get_if<ChosenDone>(&reply)) {
      (*chosen)(status);
    } else {
      std::get<ClustersDone>(reply)(status);
    }
  }
}

core::SessionId Effects::Open(std::shared_ptr<AgentPeer> peer) {
  std::lock_guard lock(mutex_);
  peers_.emplace(++last_session_, std::move(peer));
  return last_session_;
}

void Effects::Forsake(core::SessionId session) {
  std::shared_ptr<AgentPeer> last_reference;  // freed outside the lock
  std::lock_guard lock(mutex_);
  const auto found = peers_.find(session);
  if (found == peers_.end()) return;
  last_reference = std::move(found->second);
  peers_.erase(found);
}

void Effects::CarryOut(core::Output committed) {
  feed_->Add(committed);
  assignments_.Remember(committed.changes);
  for (core::Effect& effect : committed.effects) {
    std::visit([this](auto& e) { Do(e); }, effect);
  }
}

std::optional<Effects::Reply> Effects::TakeAnyReply(core::Ticket ticket) {
  std::lock_guard lock(mutex_);
  auto node = replies_.extract(ticket);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

template <typename Done>
Done Effects::TakeReply(core::Ticket ticket) {
  std::optional<Reply> reply = TakeAnyReply(ticket);
  return reply ? std::get<Done>(*std::move(reply)) : Done();
}

std::shared_ptr<AgentPeer> Effects::Peer(core::SessionId session) {
  std::lock_guard lock(mutex_);
  const auto found = peers_.find(session);
  return found == peers_.end() ? nullptr : found->second;
}

void Effects::Do(core::SubmitReply& effect) {
  if (auto done = TakeReply<SubmitDone>(effect.ticket)) done(std::move(effect.result));
}

void Effects::Do(core::StatusReply& effect) {
  std::optional<Reply> reply = TakeAnyReply(effect.ticket);
  if (!reply) return;
  if (auto* done = std::get_if<StatusDone>(&*reply)) return (*done)(std::move(effect.status));
  auto& done = std::get<ChosenDone>(*reply);
  if (!effect.status.ok()) return done(std::move(effect.status));
  done(ChosenJobs{std::move(effect.changed), effect.is_stale});
}

void Effects::Do(core::ExplainReply& effect) {
  if (auto done = TakeReply<ExplainDone>(effect.ticket)) done(std::move(effect.reasons));
}

void Effects::Do(core::ClustersReply& effect) {
  if (auto done = TakeReply<ClustersDone>(effect.ticket)) done(std::move(effect));
}

void Effects::Do(core::SendToAgent& effect) {
  if (auto peer = Peer(effect.session)) Send(effect.session, *peer, std::move(effect.message));
}

void Effects::Do(core::CloseAgent& effect) {
  auto peer = Peer(effect.session);
  if (!peer) return;
  Forsake(effect.session);
  peer->Close(effect.status);
}

void Effects::Do(core::JobsChanged& effect) { jobs_changed_(effect); }

void Effects::Do(core::SendAssignments& effect) {
  auto peer = Peer(effect.session);
  if (!peer) return;
  auto messages = assignments_.Make(std::move(effect.assignments));
  if (!messages.ok()) {
    LogEvent(spdlog::level::err, "specs_not_read",
             {{"error", std::string(ToStd(messages.status().message()))}});
    peer->Close(
        absl::UnavailableError("the broker could not read the specs of the runs; connect again"));
    return;
  }
  for (agent::v1::ConnectResponse& message : *messages)
    Send(effect.session, *peer, std::move(message));
}

void Effects::Send(core::SessionId session, AgentPeer& peer, agent::v1::ConnectResponse message) {
  if (peer.Send(std::move(message))) return;
  LogEvent(spdlog::level::warn, "agent_too_slow", {{"session", fmt::format("{}", session)}});
  Forsake(session);
  peer.Close(absl::ResourceExhaustedError(
      "the agent does not read what the broker sends; connect again to get what was missed"));
}

}  // namespace muster::broker
