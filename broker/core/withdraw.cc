// Lets runs that wait in a cluster's queue come back, provably not begun.
//
//   asked for --> held there --told by its agent--> ended there --CANCELED, no start--> QUEUED
//        |            |
//        +------------+-- the run begins: it is let go, and goes on
//
// The run is ended only once its agent has told that it is held, so that nothing that has begun is
// ended. The wish is stored, and told again on each connection.
#include <algorithm>
#include <utility>
#include <vector>

#include "broker/core/fit.h"
#include "broker/core/impl.h"
#include "broker/core/run_machine.h"
#include "broker/core/timestamps.h"
#include "contract/refusals.h"
#include "contract/run_key.h"
#include "contract/sentences.h"
#include "contract/states.h"

namespace muster::core {
namespace {

// A run is asked back once another cluster has had room for it for so long: its own scheduler is
// about to start it, or the other's inventory is out of date, if it takes less.
constexpr absl::Duration kRoomElsewhere = absl::Seconds(30);
// A job that came back so often stays where it is: there is something that Muster does not know of
// these clusters.
constexpr uint16_t kMostReturns = 3;
// Runs of one cluster that are looked at in a tick, the oldest first; few more wait there.
constexpr int kMostLookedAt = 64;

}  // namespace

void Core::Impl::On(Move& in, Step& step) {
  StatusReply reply{.ticket = in.ticket};
  for (const uint64_t id : in.jobs) {
    if (id != 0 && id < next_job_id_) continue;
    reply.refusal =
        contract::Refusal{contract::refused::UnknownJob{id, contract::refused::Wish::kMove}};
    break;
  }
  if (reply.refusal || in.validate_only) {
    step.out->effects.push_back(std::move(reply));
    return;
  }
  const bool is_chosen = !in.chosen_at.empty();
  for (size_t i = 0; i < in.jobs.size(); ++i) {
    const uint64_t id = in.jobs[i];
    auto it = jobs_.find(id);
    const bool is_as_chosen = it != jobs_.end() && IsAsChosen(it->second, in.chosen_at, i);
    if (is_chosen && !is_as_chosen) reply.is_stale = true;
    if (!is_as_chosen || !CanWithdraw(id, it->second)) continue;
    Withdraw(id, it->second, v1::WITHDRAWAL_CAUSE_USER, in.user,
             UserEvidence({.verb = "moved", .user = in.user, .reason = in.reason}, step.now), step);
    if (is_chosen) reply.changed.push_back(id);
  }
  step.out->effects.push_back(std::move(reply));
}

bool Core::Impl::IsKnownToBeHeld(const v1::Run& run) {
  return run.state() == v1::RUN_STATE_PENDING &&
         run.state_reason().code() == v1::STATE_REASON_CODE_HELD;
}

bool Core::Impl::CanWithdraw(uint64_t id, const Job& job) const {
  if (!job.is_on_cluster() || !job.Takes(contract::JobEvent::kWithdraw)) return false;
  const v1::Run& run = *clusters_[job.cluster()]->runs.at({id, job.runs()});
  // A run that its scheduler has put back into its queue has begun before.
  if (run.state() == v1::RUN_STATE_FINISHING || HasBegun(run) || run.has_start_time()) return false;
  // Its release is on its way, and the run may begin although it was held when last seen.
  return !job.released() || !IsKnownToBeHeld(run);
}

void Core::Impl::Withdraw(uint64_t id, Job& job, v1::WithdrawalCause cause, const std::string& user,
                          v1::Evidence evidence, Step& step) {
  v1::Transition transition;
  transition.set_kind(v1::TRANSITION_KIND_WITHDRAWAL_REQUESTED);
  *transition.mutable_evidence() = std::move(evidence);
  if (!Apply(id, job, {contract::JobEvent::kWithdraw}, std::move(transition), step)) return;
  v1::Withdrawal& withdrawal = withdrawals_[id];
  withdrawal.set_cause(cause);
  withdrawal.set_user(user);
  SetTimestamp(step.now, withdrawal.mutable_create_time());
  step.out->changes.push_back(PutWithdrawal{id, withdrawal, job.returned()});
  const Cluster& cluster = *clusters_[job.cluster()];
  if (!cluster.session) return;
  const v1::Run& run = *cluster.runs.at({id, job.runs()});
  SendHolds(*cluster.session, {run.run_key()}, /*held=*/true, step);
  if (IsKnownToBeHeld(run)) SendCancellations(*cluster.session, {run.run_key()}, step);
}

void Core::Impl::EndIfHeld(const Cluster& cluster, const v1::Run& run, Step& step) {
  const auto key = contract::RunKey::Parse(run.run_key());
  if (!key.ok() || !cluster.session) return;
  const auto job = jobs_.find(key->job);
  if (job == jobs_.end() || !job->second.withdrawn() || job->second.runs() != run.number()) return;
  SendCancellations(*cluster.session, {run.run_key()}, step);
}

void Core::Impl::EndLateWithdrawal(const v1::Run& run, RunId id, Job& job, Step& step) {
  v1::Transition transition;
  transition.set_kind(v1::TRANSITION_KIND_RELEASE_REQUESTED);
  *transition.mutable_evidence() = BrokerEvidence(contract::WithdrawnTooLate(run), step.now);
  Apply(id.job, job, {contract::JobEvent::kBeginsFirst}, std::move(transition), step);
  // An agent that goes on holding the run would let its scheduler start it again.
  if (contract::IsTerminal(run.state())) return;
  const Cluster& cluster = *clusters_[job.cluster()];
  if (cluster.session) SendHolds(*cluster.session, {run.run_key()}, /*held=*/false, step);
}

void Core::Impl::DropWithdrawal(uint64_t id, const Job& job, Step& step) {
  withdrawals_.erase(id);
  step.out->changes.push_back(PutWithdrawal{id, std::nullopt, job.returned()});
}

void Core::Impl::Drain(Cluster* cluster, Step& step) {
  if (!cluster->saved.cordon || !cluster->saved.cordon->drain()) return;
  const v1::ClusterCordon& cordon = *cluster->saved.cordon;
  std::vector<uint64_t> waiting;
  for (const auto& [id, run] : cluster->runs) {
    const auto job = jobs_.find(id.job);
    if (job == jobs_.end() || job->second.runs() != id.number) continue;
    if (CanWithdraw(id.job, job->second)) waiting.push_back(id.job);
  }
  for (const uint64_t id : waiting) {
    Withdraw(id, jobs_.at(id), v1::WITHDRAWAL_CAUSE_DRAIN, cordon.user(),
             BrokerEvidence(contract::Drained(cordon, cluster->name()), step.now), step);
  }
}

Cluster* Core::Impl::FindRoomFor(uint64_t id, const Job& job, absl::Time now,
                                 const absl::flat_hash_set<Cluster*>& taken) const {
  const Group& group = *groups_.at(job.group);
  for (Cluster* other : group.lane()->fits) {
    if (other->index == job.cluster() || !other->TakesRuns() || taken.contains(other)) continue;
    if (Refits::IsStale(group, *other)) continue;
    const placement::Capacity capacity = CapacityFor(group.requirements, other->saved);
    // If nodes are not known, room is a guess.
    if (!capacity.knows_nodes) continue;
    const Turn turn{job.priority, id};
    if (placement::MakeEstimate(group.requirements, turn, capacity, other->load, now).has_room)
      return other;
  }
  return nullptr;
}

void Core::Impl::MoveToRoom(Step& step) {
  absl::flat_hash_map<RunId, absl::Time> could_start;
  absl::flat_hash_set<Cluster*> taken;
  for (const auto& [name, cluster] : clusters_by_name_) {
    const auto& pools = cluster->load.pools();
    const bool queues = std::any_of(pools.begin(), pools.end(),
                                    [](const auto& pool) { return pool.second.queueing > 0; });
    if (!queues || !cluster->session) continue;
    int looked_at = 0;
    for (const auto& [id, run] : cluster->runs) {
      if (!LookAt(*run).queues) continue;
      if (++looked_at > kMostLookedAt) break;
      Job& job = jobs_.at(id.job);
      if (ReturnsOf(id.job, job) >= kMostReturns || job.held() || !CanWithdraw(id.job, job))
        continue;
      Cluster* const other = FindRoomFor(id.job, job, step.now, taken);
      if (other == nullptr) continue;
      const auto known = could_start_.find(id);
      const absl::Time since = known == could_start_.end() ? step.now : known->second;
      could_start.emplace(id, since);
      if (step.now - since < kRoomElsewhere) continue;
      // Others see the room again when this one has come back, or has not.
      taken.insert(other);
      // It has waited so long at least; else it would look as good as before.
      const auto place = cluster->places.find(id);
      cluster->load.waits[placement::ShapeOf(groups_.at(job.group)->requirements)].Add(
          step.now - ToTime(run->assign_time()), place == cluster->places.end() ? 0 : place->second,
          step.now);
      Withdraw(id.job, job, v1::WITHDRAWAL_CAUSE_SOONER_ELSEWHERE, "",
               BrokerEvidence(contract::SoonerElsewhere(other->name(), step.now - since), step.now),
               step);
    }
  }
  could_start_ = std::move(could_start);
}

}  // namespace muster::core
