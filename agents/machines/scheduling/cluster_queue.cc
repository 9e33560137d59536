#include "agents/machines/scheduling/cluster_queue.h"

#include <utility>

namespace muster::machines {

using Choice = WaitingRuns::Choice;

struct ClusterQueue::RoundState {
  absl::Time now;
  std::optional<Reservation> reservation;  // of the first blocked run
  absl::Time blocked_since;
  size_t looks = 0;
  std::vector<Allocation> allocations;  // of those taken, in their order
};

void ClusterQueue::StartOver(std::vector<ClusterHost> hosts) {
  ClusterQueue fresh(std::move(hosts));
  fresh.waiting_ = std::move(waiting_);
  fresh.blocked_since_ = std::move(blocked_since_);
  *this = std::move(fresh);
}

std::optional<QueuedRun> ClusterQueue::Remove(std::string_view run_key) {
  is_settled_ = false;
  if (const auto since = blocked_since_.find(run_key); since != blocked_since_.end()) {
    blocked_since_.erase(since);
  }
  return waiting_.Remove(run_key);
}

bool ClusterQueue::SetHeld(std::string_view run_key, bool held) {
  std::optional<QueuedRun> run = Remove(run_key);
  if (!run.has_value()) return false;
  run->held = held;
  Push(*std::move(run));
  return true;
}

void ClusterQueue::Restore(const std::string& run_key, const Allocation& allocation,
                           absl::Time end) {
  is_settled_ = false;
  Release(run_key);
  const EndOrder order = {.end = end, .start = next_start_++};
  ledger_.Take(allocation);
  occupants_[order] = {.run_key = run_key, .allocation = allocation};
  running_[run_key] = order;
}

void ClusterQueue::Release(std::string_view run_key) {
  const auto found = running_.find(run_key);
  if (found == running_.end()) return;
  is_settled_ = false;
  const auto occupant = occupants_.find(found->second);
  ledger_.Release(occupant->second.allocation);
  occupants_.erase(occupant);
  running_.erase(found);
}

std::vector<ReadyRun> ClusterQueue::Round(absl::Time now) {
  blocked_.reset();
  reserved_.reset();
  RoundState round;
  round.now = now;
  std::vector<QueuedRun> taken =
      waiting_.Choose([&](const QueuedRun& run) { return Consider(run, &round); });
  std::vector<ReadyRun> ready;
  ready.reserve(taken.size());
  for (size_t i = 0; i < taken.size(); ++i) {
    blocked_since_.erase(taken[i].run_key);
    ready.push_back({.run = std::move(taken[i]), .allocation = std::move(round.allocations[i])});
  }
  is_settled_ = round.looks <= kMaxBackfillLooks;
  return ready;
}

Choice ClusterQueue::Consider(const QueuedRun& run, RoundState* round) {
  if (round->looks > kMaxBackfillLooks) return Choice::kStop;
  bool from_beside = false;
  std::optional<Allocation> allocation = FindPlace(run, round, &from_beside);
  if (!allocation.has_value()) {
    if (!round->reservation.has_value()) Block(run, round);
    return Choice::kLeave;
  }
  Restore(run.run_key, *allocation, round->now + run.time_limit);
  if (round->reservation.has_value()) {
    round->reservation->OnStart(*allocation, from_beside, ledger_.room());
  }
  round->allocations.push_back(*std::move(allocation));
  return Choice::kTake;
}

std::optional<Allocation> ClusterQueue::FindPlace(const QueuedRun& run, RoundState* round,
                                                  bool* from_beside) {
  if (!round->reservation.has_value()) return ledger_.room().Find(run.request);
  round->looks += ledger_.hosts().size();
  *from_beside = !MayTakeAnything(run.time_limit, round->reservation->time(), round->blocked_since,
                                  round->now);
  return (*from_beside ? round->reservation->beside() : ledger_.room()).Find(run.request);
}

void ClusterQueue::Block(const QueuedRun& run, RoundState* round) {
  const bool could_fit = ledger_.CouldFit(run.request);
  if (could_fit || !blocked_.has_value()) blocked_ = BlockedRun{.run = run};
  if (!could_fit) return;
  round->blocked_since = blocked_since_.try_emplace(run.run_key, round->now).first->second;
  round->reservation.emplace(run.request, ledger_.room(), occupants_, round->now);
  blocked_->start = round->reservation->time();
  reserved_ = {
      .priority = run.priority, .request = run.request, .blocked_since = round->blocked_since};
}

}  // namespace muster::machines
