// Ends runs of preemptible jobs, so that a job of a higher priority finds room.
//
//   RUNNING --asked for--> its run is canceled on its cluster --CANCELED--> QUEUED
//      |                        |
//      +------------------------+-- the run ends by itself: that is its job's end
//
// It does so only on clusters whose room Muster shares out, for a job that can start nowhere. The
// room is kept for that job (keep_room.cc), so that each pool has one such job at a time. A job
// that is preemptible itself preempts none, so that one preemption never leads to another. The wish
// is stored, and told again on each connection.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "broker/core/fit.h"
#include "broker/core/impl.h"
#include "broker/core/long_wait.h"
#include "broker/core/placement/preemption.h"
#include "broker/core/timestamps.h"
#include "contract/gpu_types.h"
#include "contract/reservations.h"
#include "contract/states.h"

namespace muster::core {
namespace {

// A job whose runs were ended or taken back this often is not preempted again, because it would
// never finish.
constexpr uint16_t kMostPreemptions = 5;
// A run that has waited on its cluster for less than this is probably about to start.
constexpr absl::Duration kSettles = absl::Seconds(5);
// At most this many clusters are compared for one job, at the cost of a visit to each of their
// runs.
constexpr int kMostPreemptedClusters = 16;
constexpr uint64_t kMillisOfOne = 1000;

enum class Certainty { kAtLeast, kAtMost };

// Returns the part of a run's demand on one of its nodes that a job with such GPUs could use.
// `has_one_type` says that all GPUs of the nodes are of one type.
placement::Amounts EachOf(const Requirements& run, const Requirements& job, bool has_one_type,
                          Certainty certainty) {
  placement::Amounts each{.cpu_millis = std::max(run.cpu_millis, kMillisOfOne),
                          .memory_bytes = run.memory_bytes,
                          .gpu_millis = run.gpu_millis};
  const bool is_unclear = run.gpu_type.empty() && !has_one_type;
  const bool may_have =
      job.gpu_type.empty() ||
      (is_unclear ? certainty == Certainty::kAtMost
                  : run.gpu_type.empty() || contract::IsSameGpuType(run.gpu_type, job.gpu_type));
  if (job.gpu_millis == 0 || !may_have) each.gpu_millis = 0;
  return each;
}

// Returns what one node of the pool offers the job, or nothing if its nodes differ.
std::optional<placement::Amounts> NodeOf(const v1::Pool& pool, const Requirements& job) {
  if (pool.node_groups_size() != 1) return std::nullopt;
  const v1::NodeGroup& group = pool.node_groups(0);
  if (group.usable_count() != group.count()) return std::nullopt;
  placement::Amounts node{.cpu_millis = group.cpus() * kMillisOfOne,
                          .memory_bytes = group.memory_bytes()};
  for (const auto& [type, count] : group.gpus()) {
    if (job.gpu_type.empty() || contract::IsSameGpuType(type, job.gpu_type))
      node.gpu_millis += count * kMillisOfOne;
  }
  return node;
}

// Returns whether a run that waits there, or will wait there, would take the room before the job
// does: a job that is still here comes after all runs there of its own priority.
bool ComesFirst(const Turn& other, const Turn& turn, bool is_there) {
  return is_there ? other < turn : other.priority >= turn.priority;
}

}  // namespace

bool Core::Impl::MayBePreempted(uint64_t id, const Job& job, int32_t priority) const {
  return job.priority < priority && job.Takes(contract::JobEvent::kPreempt) &&
         ReturnsOf(id, job) < kMostPreemptions && groups_.at(job.group)->requirements.preemptible &&
         StandingOf(id, job).phase == placement::Phase::kRuns;
}

std::optional<std::vector<uint64_t>> Core::Impl::FindRunsToEnd(const Cluster& cluster,
                                                               const LongWait& wait) const {
  const Requirements& job = wait.group->requirements;
  const placement::Capacity capacity = CapacityFor(job, cluster.saved);
  std::optional<placement::Amounts> node = NodeOf(*capacity.pool, job);
  const bool has_one_type = node && capacity.pool->node_groups(0).gpus_size() == 1;
  // Pods that are not Muster's may use the rest of a node, so only what ended runs give back is
  // known to be free.
  if (capacity.shares_nodes) node = std::nullopt;
  std::map<std::string, placement::NodeRoom> nodes;
  std::vector<placement::PreemptibleRun> runs;
  std::vector<uint64_t> jobs;
  for (const auto& [id, run] : cluster.runs) {
    if (contract::IsTerminal(run->state()) || id.job == wait.turn.job) continue;
    const Job& other = jobs_.at(id.job);
    const Requirements& needs = groups_.at(other.group)->requirements;
    if (!placement::Load::CountsIn(needs, *capacity.pool, capacity.shares_nodes)) continue;
    if (LookAt(*run).queues &&
        ComesFirst({other.priority, id.job}, wait.turn, wait.there != nullptr))
      return std::nullopt;
    const placement::Amounts takes = EachOf(needs, job, has_one_type, Certainty::kAtMost);
    for (const std::string& name : run->nodes()) {
      placement::NodeRoom& room = nodes.try_emplace(name).first->second;
      if (room.name.empty()) room = {.name = name, .free = node.value_or(placement::Amounts())};
      room.free = room.free - takes;
    }
    // A run that is finishing gives its room back by itself, and must report its own end.
    if (run->state() == v1::RUN_STATE_FINISHING) continue;
    if (run->nodes().empty() || !MayBePreempted(id.job, other, wait.turn.priority)) continue;
    std::vector<std::string> names(run->nodes().begin(), run->nodes().end());
    runs.push_back({.began = ToTime(run->assign_time()),
                    .each = EachOf(needs, job, has_one_type, Certainty::kAtLeast),
                    .nodes = std::move(names)});
    jobs.push_back(id.job);
  }
  if (runs.empty()) return std::nullopt;
  std::vector<placement::NodeRoom> rooms;
  for (auto& [name, room] : nodes) rooms.push_back(std::move(room));
  placement::Amounts each = EachOf(job, job, has_one_type, Certainty::kAtMost);
  if (capacity.usable.memory_bytes == 0) each.memory_bytes = 0;
  const uint64_t others =
      capacity.good_nodes - std::min<uint64_t>(capacity.good_nodes, nodes.size());
  const uint64_t free_nodes = node && placement::IsWithin(each, *node) ? others : 0;
  const auto chosen = placement::ChooseRunsToEnd(each, job.nodes, free_nodes, rooms, runs);
  if (!chosen) return std::nullopt;
  std::vector<uint64_t> ends;
  for (const size_t index : *chosen) ends.push_back(jobs[index]);
  return ends;
}

bool Core::Impl::CanPreemptIn(const Cluster& cluster, const LongWait& wait) const {
  return cluster.TakesRuns() && !cluster.has_own_queue && !cluster.preemptible.empty() &&
         cluster.preemptible.begin()->first < wait.turn.priority &&
         cluster.runs.size() <= options_.max_preemption_visits_per_round;
}

bool Core::Impl::PreemptFor(const LongWait& wait, Step& step) {
  if (wait.group->requirements.preemptible) return false;
  const ClusterSet here = {wait.there};
  const ClusterSet& among = wait.there != nullptr ? here : wait.group->lane()->fits;
  Cluster* best = nullptr;
  std::optional<placement::KeptRoom> best_kept;
  std::vector<uint64_t> best_ends;
  int compared = 0;
  for (size_t i = preempting_.Resume(wait.turn.job); i < among.size(); ++i) {
    Cluster* const cluster = among[i];
    if (!CanPreemptIn(*cluster, wait) || Refits::IsStale(*wait.group, *cluster)) continue;
    if (++compared > kMostPreemptedClusters) break;
    if (!preempting_.Visit(cluster->runs.size(), wait.turn.job, i)) break;
    auto kept = RoomToKeep(*cluster, wait, step.now);
    if (!kept) continue;
    auto ends = FindRunsToEnd(*cluster, wait);
    if (!ends || ends->empty()) continue;
    if (best != nullptr && ends->size() >= best_ends.size()) continue;
    best = cluster;
    best_kept = std::move(kept);
    best_ends = *std::move(ends);
  }
  if (best == nullptr) return false;
  for (const uint64_t id : best_ends) Preempt(id, jobs_.at(id), wait.turn, step);
  ExpectStart(*best, wait.group->requirements, step.now, &*best_kept);
  Keep(best, *std::move(best_kept), step.now);
  return true;
}

void Core::Impl::Preempt(uint64_t id, Job& job, const Turn& by, Step& step) {
  v1::Transition transition;
  transition.set_kind(v1::TRANSITION_KIND_WITHDRAWAL_REQUESTED);
  *transition.mutable_evidence() =
      BrokerEvidence(contract::PreemptedFor(by.job, by.priority), step.now);
  if (!Apply(id, job, {contract::JobEvent::kPreempt}, std::move(transition), step)) return;
  v1::Withdrawal& withdrawal = withdrawals_[id];
  withdrawal.set_cause(v1::WITHDRAWAL_CAUSE_PREEMPTION);
  withdrawal.set_for_job(by.job);
  SetTimestamp(step.now, withdrawal.mutable_create_time());
  step.out->changes.push_back(PutWithdrawal{id, withdrawal, job.returned()});
  const Cluster& cluster = *clusters_[job.cluster()];
  if (cluster.session)
    SendCancellations(*cluster.session, {cluster.runs.at({id, job.runs()})->run_key()}, step);
}

bool Core::Impl::PreemptForNext(const Group& group, const Turn& turn, Step& step) {
  const LongWait wait{.turn = turn, .group = &group};
  const ClusterSet& fits = group.lane()->fits;
  const auto can = [&](const Cluster* cluster) { return CanPreemptIn(*cluster, wait); };
  if (preempting_.tries_left == 0 || std::none_of(fits.begin(), fits.end(), can)) return false;
  --preempting_.tries_left;
  return FindRoomFor(turn.job, jobs_.at(turn.job), step.now, {}) == nullptr &&
         PreemptFor(wait, step);
}

void Core::Impl::PreemptForThoseWhoWait(Step& step) {
  const bool any =
      std::any_of(clusters_by_name_.begin(), clusters_by_name_.end(), [](const auto& entry) {
        return !entry.second->preemptible.empty() && !entry.second->has_own_queue;
      });
  if (!any) return;
  std::vector<LongWait> waits = FindWaits(step.now, /*at_least=*/absl::ZeroDuration());
  const auto next = std::find_if(waits.begin(), waits.end(), [this](const LongWait& wait) {
    return wait.turn.job == preempting_.next_job;
  });
  if (next != waits.end()) std::rotate(waits.begin(), next, waits.end());
  for (const LongWait& wait : waits) {
    if (preempting_.is_spent) return;
    const Job& job = jobs_.at(wait.turn.job);
    if (wait.there != nullptr) {
      const v1::Run& run = *wait.there->runs.at({wait.turn.job, job.runs()});
      if (step.now - ToTime(run.assign_time()) < kSettles) continue;
    }
    if (FindRoomFor(wait.turn.job, job, step.now, {}) != nullptr) continue;
    if (PreemptFor(wait, step) && wait.there == nullptr) waiting_.Unblock(wait.group->queue);
  }
}

void Core::Impl::KeepRoomForPreemptors(absl::Time now) {
  std::map<uint64_t, Cluster*> rooms;  // by the job that they become free for
  for (const auto& [id, withdrawal] : withdrawals_) {
    if (withdrawal.cause() == v1::WITHDRAWAL_CAUSE_PREEMPTION)
      rooms.emplace(withdrawal.for_job(), clusters_[jobs_.at(id).cluster()].get());
  }
  for (const auto& [id, cluster] : rooms) {
    const auto at = jobs_.find(id);
    if (at == jobs_.end() || !cluster->session || cluster->saved.cordon) continue;
    const Job& job = at->second;
    const Standing standing = StandingOf(id, job);
    LongWait wait{.turn = {job.priority, id}, .group = groups_.at(job.group)};
    if (standing.cluster == cluster) wait.there = cluster;
    const bool waits =
        wait.there != nullptr ? standing.phase == placement::Phase::kWaits : standing.is_in_line;
    if (!waits || job.cancel_requested()) continue;
    auto kept = RoomToKeep(*cluster, wait, now);
    if (!kept) continue;
    Keep(cluster, *std::move(kept), now);
    if (wait.there == nullptr) waiting_.Unblock(groups_.at(job.group)->queue);
  }
}

void Core::Impl::CountPreemptible(const Job& job, Cluster* cluster, int difference) {
  if (!groups_.at(job.group)->requirements.preemptible) return;
  const auto at = cluster->preemptible.try_emplace(job.priority).first;
  at->second += static_cast<uint32_t>(difference);
  if (at->second == 0) cluster->preemptible.erase(at);
}

}  // namespace muster::core
