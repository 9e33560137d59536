// Keeps room for jobs that have waited long, so that others do not pass them for ever.
//
//   waits for keep_room_after, first in its order --look--> room is kept --its run starts--> over
//
// Each pool of a cluster whose room Muster shares out keeps some for one job at most: for a run
// that waits there, or for a job that waits here and is then sent there, where it waits ahead of
// others. A job of a higher priority takes the place of one of a lower one. The core does not store
// kept room: after a restart the next look finds the same jobs, because the wait counts from the
// submit.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "broker/core/fit.h"
#include "broker/core/impl.h"
#include "broker/core/long_wait.h"
#include "broker/core/timestamps.h"
#include "contract/states.h"

namespace muster::core {
namespace {

// A look visits all waiting queues; a job that has waited for minutes can wait for the next look.
constexpr absl::Duration kLookInterval = absl::Seconds(5);
// A look visits at most this many blocked queues, at about 0.1 us each: 2 ms. Few brokers have more
// users and kinds of needs; later queues are visited once earlier ones have gone.
constexpr size_t kMostQueuesLookedAt = 20'000;
// A look finds places for at most this many jobs: the first of each pool, then the others in their
// order.
constexpr size_t kMostLongWaits = 64;
// At most this many clusters are compared for one job, at the cost of a visit to each of their
// runs.
constexpr int kMostClustersCompared = 16;
// The expected start is computed again no more often than this, because it costs a visit to each
// run.
constexpr absl::Duration kExpectInterval = absl::Seconds(1);

// A run that a limit of its user or namespace keeps waiting starts no sooner when room is free.
bool IsAtLimitThere(const v1::Run& run) {
  return run.state_reason().code() == v1::STATE_REASON_CODE_LIMIT_REACHED;
}

}  // namespace

bool Core::Impl::IsAtQuota(const UserQueue& queue) const {
  return accounts_.FindReached(*queue.account, queue.gpus).has_value();
}

void Core::Impl::KeepRoom(Step& step) {
  const absl::Time now = step.now;
  if (!keeping_.empty()) DropKeptThatIsOver();
  const bool is_due = now < looked_for_long_waits_ || now - looked_for_long_waits_ >= kLookInterval;
  if (is_due) {
    looked_for_long_waits_ = now;
    if (!jobs_.empty()) submit_times_.ForgetBefore(jobs_.begin()->first);
    KeepRoomForPreemptors(now);
    for (const LongWait& wait : FindWaits(now, options_.keep_room_after)) KeepRoomFor(wait, now);
    PreemptForThoseWhoWait(step);
  }
  for (Cluster* cluster : keeping_) {
    const bool is_as_before = cluster->kept_version == cluster->load_version;
    const bool is_new = now >= cluster->kept_at && now - cluster->kept_at < kExpectInterval;
    if (is_as_before || is_new) continue;
    for (placement::KeptRoom& kept : cluster->load.kept) {
      const Job& job = jobs_.at(kept.job);
      const placement::KeptRoom before = kept;
      ExpectStart(*cluster, groups_.at(job.group)->requirements, now, &kept);
      if (kept != before) KeptChanged(cluster);
    }
    cluster->kept_version = cluster->load_version;
    cluster->kept_at = now;
  }
}

bool Core::Impl::WaitsForKept(const Cluster& cluster, const placement::KeptRoom& kept) const {
  const auto at = jobs_.find(kept.job);
  if (at == jobs_.end() || !cluster.session || cluster.saved.cordon) return false;
  const Job& job = at->second;
  if (job.cancel_requested() || job.priority != kept.priority) return false;
  const Standing standing = StandingOf(kept.job, job);
  const Group& group = *groups_.at(job.group);
  if (standing.is_in_line) {
    // The job may have been there, and have come back.
    const UserQueue& queue = *group.queue;
    if (kept.is_there || queue.parked_by != nullptr || IsAtQuota(queue)) return false;
    // An older job of its queue that has come back goes first, and the room would keep it out.
    if (queue.first_turn().job != kept.job) return false;
    const ClusterSet& fits = group.lane()->fits;
    if (std::find(fits.begin(), fits.end(), &cluster) == fits.end()) return false;
  } else if (!kept.is_there || standing.cluster != &cluster ||
             standing.phase != placement::Phase::kWaits ||
             IsAtLimitThere(*cluster.runs.at({kept.job, job.runs()}))) {
    return false;
  }
  const placement::Capacity capacity = CapacityFor(group.requirements, cluster.saved);
  return capacity.pool != nullptr && capacity.pool->name() == kept.pool;
}

void Core::Impl::DropKeptThatIsOver() {
  for (Cluster* cluster : keeping_) {
    const size_t over = std::erase_if(cluster->load.kept, [&](const placement::KeptRoom& kept) {
      return !WaitsForKept(*cluster, kept);
    });
    if (over > 0) KeptChanged(cluster);
  }
  std::erase_if(keeping_, [](const Cluster* cluster) { return cluster->load.kept.empty(); });
}

std::vector<Core::Impl::LongWait> Core::Impl::FindWaits(absl::Time now,
                                                        absl::Duration at_least) const {
  std::vector<LongWait> found;
  for (const auto& [name, cluster] : clusters_by_name_) {
    if (cluster->session && !cluster->saved.cordon && !cluster->has_own_queue)
      FindWaitsOn(cluster, now, at_least, &found);
  }
  const WaitingTree::Blocked& blocked = waiting_.blocked();
  size_t looked_at = 0;
  for (auto at = blocked.begin(); at != blocked.end() && looked_at < kMostQueuesLookedAt; ++at) {
    looked_at += at->second.size();
    for (const UserQueue* queue : at->second) {
      if (IsAtQuota(*queue)) continue;
      const Turn turn = queue->first_turn();
      if (now - submit_times_.Of(turn.job) < at_least) continue;
      const ProjectAccount& project = *queue->project->account;
      found.push_back({.turn = turn,
                       .family_score = project.root().family_score,
                       .score = project.score,
                       .user_score = queue->account->score,
                       .group = queue->first_group()});
    }
  }
  return FirstOfEachPool(std::move(found));
}

// A pool keeps room for one job, so that the first one of each comes before the second one of any:
// a full pool with many jobs keeps none of another pool from its room.
std::vector<Core::Impl::LongWait> Core::Impl::FirstOfEachPool(std::vector<LongWait> waits) {
  std::sort(waits.begin(), waits.end());
  // Jobs that name the same pools, or none, have the same ones on a cluster, or in a lane.
  absl::flat_hash_map<std::pair<const void*, std::string>, size_t> known;
  std::vector<std::pair<size_t, size_t>> ranks;  // place among those of its pool, place among all
  for (size_t i = 0; i < waits.size(); ++i) {
    const void* const where = waits[i].there;
    const auto& pools = waits[i].group->requirements.pools;
    std::pair key(where != nullptr ? where : waits[i].group->lane(), absl::StrJoin(pools, ","));
    ranks.emplace_back(known[std::move(key)]++, i);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.resize(std::min(ranks.size(), kMostLongWaits));
  std::sort(ranks.begin(), ranks.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<LongWait> first;
  for (const auto& [rank, place] : ranks) first.push_back(waits[place]);
  return first;
}

void Core::Impl::FindWaitsOn(Cluster* cluster, absl::Time now, absl::Duration at_least,
                             std::vector<LongWait>* found) const {
  const auto& pools = cluster->load.pools();
  const auto queueing = [](const auto& pool) { return pool.second.queueing > 0; };
  if (std::none_of(pools.begin(), pools.end(), queueing)) return;
  size_t looked_at = 0;
  for (const auto& [id, run] : cluster->runs) {
    if (++looked_at > kMostRunsLookedAt) return;
    if (!LookAt(*run).queues || IsAtLimitThere(*run)) continue;
    const Job& job = jobs_.at(id.job);
    if (now - submit_times_.Of(id.job) < at_least) continue;
    if (job.cancel_requested() || StandingOf(id.job, job).phase != placement::Phase::kWaits)
      continue;
    found->push_back(
        {.turn = {job.priority, id.job}, .there = cluster, .group = groups_.at(job.group)});
  }
}

void Core::Impl::KeepRoomFor(const LongWait& wait, absl::Time now) {
  if (wait.there != nullptr) {
    if (auto kept = RoomToKeep(*wait.there, wait, now)) Keep(wait.there, *std::move(kept), now);
    return;
  }
  const ClusterSet& fits = wait.group->lane()->fits;
  const bool has_some = std::any_of(fits.begin(), fits.end(), [&](const Cluster* cluster) {
    const auto& all = cluster->load.kept;
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& kept) { return kept.job == wait.turn.job; });
  });
  if (has_some) return;
  Cluster* best = nullptr;
  std::optional<placement::KeptRoom> best_kept;
  int compared = 0;
  for (Cluster* cluster : fits) {
    if (Refits::IsStale(*wait.group, *cluster) || compared == kMostClustersCompared) continue;
    auto kept = RoomToKeep(*cluster, wait, now);
    if (!kept) continue;
    ++compared;
    if (best != nullptr && kept->start >= best_kept->start) continue;
    best = cluster;
    best_kept = std::move(kept);
  }
  if (best == nullptr) return;
  Keep(best, *std::move(best_kept), now);
  waiting_.Unblock(wait.group->queue);
}

std::optional<placement::KeptRoom> Core::Impl::RoomToKeep(const Cluster& cluster,
                                                          const LongWait& wait,
                                                          absl::Time now) const {
  if (!cluster.TakesRuns() && wait.there == nullptr) return std::nullopt;
  if (cluster.has_own_queue) return std::nullopt;
  const Requirements& job = wait.group->requirements;
  const placement::Capacity capacity = CapacityFor(job, cluster.saved);
  if (!capacity.knows_nodes || capacity.good_nodes < job.nodes) return std::nullopt;
  const placement::KeptRoom* const other =
      cluster.load.KeptIn(*capacity.pool, capacity.shares_nodes);
  if (other != nullptr && other->priority >= wait.turn.priority) return std::nullopt;
  placement::KeptRoom kept;
  kept.job = wait.turn.job;
  kept.priority = wait.turn.priority;
  kept.pool = capacity.pool->name();
  kept.is_there = wait.there != nullptr;
  kept.need = placement::DemandOf(job);
  kept.gpu_type = absl::AsciiStrToLower(job.gpu_type);
  ExpectStart(cluster, job, now, &kept);
  return kept;
}

void Core::Impl::ExpectStart(const Cluster& cluster, const Requirements& job, absl::Time now,
                             placement::KeptRoom* kept) const {
  const placement::Capacity capacity = CapacityFor(job, cluster.saved);
  kept->usable = capacity.usable;
  kept->start = absl::InfiniteFuture();
  kept->spare = {};
  if (capacity.pool == nullptr || cluster.runs.size() > kMostRunsLookedAt) return;
  std::vector<placement::EndOfRun> runs;
  for (const auto& [id, run] : cluster.runs) {
    if (contract::IsTerminal(run->state()) || id.job == kept->job) continue;
    const Job& other = jobs_.at(id.job);
    if (StandingOf(id.job, other).phase == placement::Phase::kNone) continue;
    // Its turn comes later, and the cluster respects the order.
    const bool queues = LookAt(*run).queues;
    if (queues && Turn{kept->priority, kept->job} < Turn{other.priority, id.job}) continue;
    const Requirements& needs = groups_.at(other.group)->requirements;
    if (!placement::Load::CountsIn(needs, *capacity.pool, capacity.shares_nodes)) continue;
    placement::EndOfRun end{.at = absl::InfiniteFuture(),
                            .amounts = placement::DemandBeside(*kept, needs)};
    // Nobody knows when a run starts that also waits there.
    if (other.preempted()) end.at = now + placement::kLaunchAndEnd;
    if (needs.time_limit_s && !queues && !other.preempted()) {
      const absl::Time start = run->has_start_time() ? ToTime(run->start_time()) : now;
      end.at = std::max(now, start + absl::Seconds(*needs.time_limit_s)) + placement::kLaunchAndEnd;
    }
    runs.push_back(end);
  }
  placement::ExpectStart(std::move(runs), now, kept);
}

void Core::Impl::Keep(Cluster* cluster, placement::KeptRoom kept, absl::Time now) {
  const placement::Capacity capacity =
      CapacityFor(groups_.at(jobs_.at(kept.job).group)->requirements, cluster->saved);
  std::erase_if(cluster->load.kept, [&](const placement::KeptRoom& other) {
    return capacity.shares_nodes || other.pool == kept.pool;
  });
  cluster->load.kept.push_back(std::move(kept));
  if (std::find(keeping_.begin(), keeping_.end(), cluster) == keeping_.end())
    keeping_.push_back(cluster);
  KeptChanged(cluster);
  cluster->kept_version = cluster->load_version;
  cluster->kept_at = now;
}

void Core::Impl::KeptChanged(Cluster* cluster) {
  ++cluster->load_version;
  Show(cluster);
  Open(cluster);
}

void Core::Impl::NoteBesideKept(Cluster* cluster, uint64_t id, const Job& job, absl::Time now) {
  const Requirements& needs = groups_.at(job.group)->requirements;
  for (Cluster* keeper : keeping_) {
    for (auto kept = keeper->load.kept.begin(); kept != keeper->load.kept.end();) {
      if (kept->job == id && keeper != cluster) {
        kept = keeper->load.kept.erase(kept);
        KeptChanged(keeper);
        continue;
      }
      if (kept->job == id) {
        kept->is_there = true;
        KeptChanged(keeper);
      } else if (keeper == cluster && job.priority > kept->priority) {
        // The job comes first. The next round draws the conclusions.
        kept->start = absl::InfiniteFuture();
        kept->spare = {};
        Show(keeper);
      } else if (keeper == cluster && !placement::EndsInTime(*kept, needs, now)) {
        kept->spare = kept->spare - placement::DemandBeside(*kept, needs);
        Show(keeper);
      }
      ++kept;
    }
  }
  std::erase_if(keeping_, [](const Cluster* keeper) { return keeper->load.kept.empty(); });
}

absl::Status Core::Impl::CheckKept() const {
  for (const auto& [name, cluster] : clusters_by_name_) {
    const bool is_known = std::find(keeping_.begin(), keeping_.end(), cluster) != keeping_.end();
    if (is_known == cluster->load.kept.empty())
      return absl::InternalError("a cluster keeps room and is not known to, or the other way");
  }
  return absl::OkStatus();
}

}  // namespace muster::core
