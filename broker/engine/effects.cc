#include "broker/engine/effects.h"

#include <fmt/format.h>

#include <utility>

#include "contract/errors.h"
#include "contract/text.h"
#include "daemon/log.h"

namespace muster::broker {
namespace {

// What waits between submit and assignment on a broker that keeps up; more is read from the store.
constexpr size_t kMaxCachedSpecs = 4'000;
constexpr size_t kMaxCachedSpecBytes = 64 << 20;

}  // namespace

Effects::Effects(store::Store* store, JobsChanged jobs_changed)
    : store_(store),
      jobs_changed_(std::move(jobs_changed)),
      specs_(kMaxCachedSpecs, kMaxCachedSpecBytes) {}

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
  for (core::Change& change : committed.changes) {
    if (auto* job = std::get_if<core::InsertJob>(&change)) {
      specs_.Put(job->id, {std::move(job->spec), std::move(job->user)});
    }
  }
  for (core::Effect& effect : committed.effects) {
    std::visit([this](auto& e) { Do(e); }, effect);
  }
}

template <typename Done>
Done Effects::TakeReply(core::Ticket ticket) {
  std::lock_guard lock(mutex_);
  auto node = replies_.extract(ticket);
  if (node.empty()) return nullptr;
  return std::get<Done>(std::move(node.mapped()));
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
  if (auto done = TakeReply<StatusDone>(effect.ticket)) done(std::move(effect.status));
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
  if (absl::Status status = AddSpecs(effect.assignments); !status.ok()) {
    LogEvent(spdlog::level::err, "specs_not_read",
             {{"error", std::string(ToStd(status.message()))}});
    peer->Close(
        absl::UnavailableError("the broker could not read the specs of the runs; connect again"));
    return;
  }
  v1::ConnectResponse message;
  size_t bytes = 0;
  for (v1::Assignment& assignment : effect.assignments) {
    const size_t size = assignment.ByteSizeLong();
    const int count = message.assignments().assignments_size();
    if (count > 0 && (count == kMaxRunsPerMessage || bytes + size > kMaxBytesPerMessage)) {
      Send(effect.session, *peer, std::exchange(message, {}));
      bytes = 0;
    }
    *message.mutable_assignments()->add_assignments() = std::move(assignment);
    bytes += size;
  }
  if (bytes > 0) Send(effect.session, *peer, std::move(message));
}

absl::Status Effects::AddSpecs(std::vector<v1::Assignment>& assignments) {
  std::vector<uint64_t> ids;
  std::vector<v1::Assignment*> missing;
  for (v1::Assignment& assignment : assignments) {
    // Of an earlier run only the store tells.
    const bool is_first = assignment.run() == 1;
    if (auto cached = is_first ? specs_.Take(assignment.job_id()) : std::nullopt) {
      *assignment.mutable_spec() = *cached->spec;
      assignment.set_user(std::move(cached->user));
    } else {
      ids.push_back(assignment.job_id());
      missing.push_back(&assignment);
    }
  }
  if (ids.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<store::StoredSpec>> stored = store_->GetSpecs(ids);
  if (!stored.ok()) return stored.status();
  for (size_t i = 0; i < missing.size(); ++i) {
    *missing[i]->mutable_spec() = std::move((*stored)[i].spec);
    missing[i]->set_user(std::move((*stored)[i].user));
    for (std::string& node : (*stored)[i].excluded_nodes) {
      missing[i]->add_excluded_nodes(std::move(node));
    }
  }
  return absl::OkStatus();
}

void Effects::Send(core::SessionId session, AgentPeer& peer, v1::ConnectResponse message) {
  if (peer.Send(std::move(message))) return;
  LogEvent(spdlog::level::warn, "agent_too_slow", {{"session", fmt::format("{}", session)}});
  Forsake(session);
  peer.Close(absl::ResourceExhaustedError(
      "the agent does not read what the broker sends; connect again to get what was missed"));
}

}  // namespace muster::broker
