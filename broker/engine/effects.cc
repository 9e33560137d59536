#include "broker/engine/effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "contract/errors.h"
#include "contract/refusals.h"
#include "contract/text.h"
#include "daemon/log.h"
#include "sync/mutex.h"

namespace muster::broker {

namespace {

// Most runs that wait for their specs to be read. At about 10 us each, the last one waits 0.2 s.
constexpr size_t kMaxUnreadAssignments = 20'000;
// Most changes that wait for their jobs to be read: as many as one commit has.
constexpr size_t kMaxUnshownChanges = 20'000;
// All changes share one key, so that they stay in order.
constexpr uint64_t kChanges = 0;

uint64_t LastSequence(const core::Output& committed) {
  uint64_t last = 0;
  for (const core::Effect& effect : committed.effects) {
    if (const auto* changed = std::get_if<core::JobsChanged>(&effect)) {
      last = std::max(last, changed->sequence);
    }
  }
  return last;
}

}  // namespace

Effects::Effects(const store::Store* store, ChangeFeed* feed, ClusterBoard* clusters,
                 UseBoard* uses, AgentSessions* agents, JobsChanged jobs_changed)
    : store_(store),
      feed_(feed),
      clusters_(clusters),
      uses_(uses),
      agents_(agents),
      jobs_changed_(std::move(jobs_changed)),
      assigning_(kMaxUnreadAssignments),
      showing_(kMaxUnshownChanges) {}

void Effects::Start() {
  assigning_.Start();
  showing_.Start();
}

void Effects::Stop() {
  assigning_.Stop();
  showing_.Stop();
}

void Effects::Forget(core::Ticket ticket) {
  const MutexLock lock(mutex_);
  replies_.erase(ticket);
}

void Effects::Abandon() {
  absl::flat_hash_map<core::Ticket, Reply> open;
  {
    const MutexLock lock(mutex_);
    open.swap(replies_);
  }
  const absl::Status status = contract::RetryableError(
      absl::StatusCode::kUnavailable, "BROKER_STOPPED",
      "the broker stopped before it could answer; ask again with the same request_id",
      absl::Seconds(1));
  for (auto& [_, reply] : open) {
    if (auto* submit = std::get_if<SubmitDone>(&reply)) {
      (*submit)(status);
    } else if (auto* cancel = std::get_if<StatusDone>(&reply)) {
      (*cancel)(status);
    } else {
      std::get<ChosenDone>(reply)(status);
    }
  }
}

void Effects::CarryOut(core::Output output) {
  // A client that hears of an effect may ask about the clusters, or its project, next.
  clusters_->Show(std::move(output.clusters));
  uses_->Show(std::move(output.uses));
  assignments_.Remember(output.changes);
  // Watchers that are woken by a change find it in the feed.
  const uint64_t last = LastSequence(output);
  const bool shows_at_once = last == 0 || ShowAtOnce(output.changes, last);
  std::vector<core::JobsChanged> later;
  for (core::Effect& effect : output.effects) {
    auto* news = std::get_if<core::JobsChanged>(&effect);
    if (news != nullptr && !shows_at_once) {
      later.push_back(std::move(*news));
    } else {
      std::visit([this](auto& e) { Do(e); }, effect);
    }
  }
  if (!shows_at_once) ShowLater(std::move(output.changes), std::move(later), last);
}

bool Effects::ShowAtOnce(const core::Changes& changes, uint64_t last) {
  return !showing_.Holds(kChanges) && feed_->AddFromMemory(changes, last);
}

void Effects::ShowLater(core::Changes changes, std::vector<core::JobsChanged> news, uint64_t last) {
  const size_t rows = changes.size();
  const auto shared = std::make_shared<const core::Changes>(std::move(changes));
  showing_.Post(kChanges, rows, [this, shared, news = std::move(news), last] {
    feed_->Add(*shared, last);
    for (const core::JobsChanged& each : news) jobs_changed_(each);
  });
}

std::optional<Effects::Reply> Effects::TakeAnyReply(core::Ticket ticket) {
  const MutexLock lock(mutex_);
  auto node = replies_.extract(ticket);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

template <typename Done>
Done Effects::TakeReply(core::Ticket ticket) {
  std::optional<Reply> reply = TakeAnyReply(ticket);
  return reply ? std::get<Done>(*std::move(reply)) : Done();
}

void Effects::Do(core::SubmitReply& effect) {
  auto done = TakeReply<SubmitDone>(effect.ticket);
  if (!done) return;
  if (const auto* refusal = std::get_if<contract::Refusal>(&effect.result))
    return done(contract::ToStatus(*refusal));
  done(std::get<v1::SubmitJobsResponse>(std::move(effect.result)));
}

void Effects::Do(core::StatusReply& effect) {
  std::optional<Reply> reply = TakeAnyReply(effect.ticket);
  if (!reply) return;
  const absl::Status status = contract::ToStatus(effect.refusal);
  if (auto* done = std::get_if<StatusDone>(&*reply)) return (*done)(status);
  auto& done = std::get<ChosenDone>(*reply);
  if (!status.ok()) return done(status);
  done(ChosenJobs{std::move(effect.changed), effect.is_stale});
}

void Effects::Do(core::JobsChanged& effect) { jobs_changed_(effect); }

void Effects::Do(core::SendToAgent& effect) {
  if (!assigning_.Holds(effect.session)) return Send(effect.session, std::move(effect.message));
  auto message = std::make_shared<agent::v1::ConnectResponse>(std::move(effect.message));
  assigning_.Post(effect.session, /*rows=*/1, [this, session = effect.session, message] {
    Send(session, std::move(*message));
  });
}

void Effects::Do(core::CloseAgent& effect) {
  absl::Status status = contract::ToStatus(effect.why);
  if (!assigning_.Holds(effect.session)) return Close(effect.session, status);
  assigning_.Post(
      effect.session, /*rows=*/1,
      [this, session = effect.session, status = std::move(status)] { Close(session, status); });
}

void Effects::Do(core::SendAssignments& effect) {
  if (agents_->Find(effect.session) == nullptr) return;
  const bool is_filled = assignments_.FillFromMemory(effect.assignments);
  const core::SessionId session = effect.session;
  if (is_filled && !assigning_.Holds(session))
    return Assign(session, std::move(effect.assignments));
  const size_t rows = effect.assignments.size();
  auto assignments =
      std::make_shared<std::vector<agent::v1::Assignment>>(std::move(effect.assignments));
  assigning_.Post(session, rows, [this, session, assignments] {
    const absl::Status status = AssignmentMessages::FillFromStore(*store_, *assignments);
    if (status.ok()) return Assign(session, std::move(*assignments));
    LogEvent(spdlog::level::err, "specs_not_read",
             {{"error", std::string(ToStd(status.message()))}});
    Close(session,
          absl::UnavailableError("the broker could not read the specs of the runs; connect again"));
  });
}

void Effects::Assign(core::SessionId session, std::vector<agent::v1::Assignment> assignments) {
  for (agent::v1::ConnectResponse& message : AssignmentMessages::Pack(std::move(assignments)))
    Send(session, std::move(message));
}

void Effects::Send(core::SessionId session, agent::v1::ConnectResponse message) {
  // Comes before the agent reads it: whoever hears of the connection may ask the agent next.
  if (message.has_welcome()) agents_->Welcome(session);
  const auto peer = agents_->Find(session);
  if (peer == nullptr || peer->Send(std::move(message))) return;
  LogEvent(spdlog::level::warn, "agent_too_slow", {{"session", fmt::format("{}", session)}});
  Close(session, absl::ResourceExhaustedError("the agent does not read what the broker sends; "
                                              "connect again to get what was missed"));
}

void Effects::Close(core::SessionId session, const absl::Status& status) {
  const auto peer = agents_->Find(session);
  if (peer == nullptr) return;
  agents_->Remove(session);
  peer->Close(status);
}

}  // namespace muster::broker
