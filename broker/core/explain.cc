#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "broker/core/cluster_view.h"
#include "broker/core/fit.h"
#include "broker/core/timestamps.h"
#include "contract/lacks.h"
#include "contract/launch_refusals.h"
#include "contract/place_limits.h"
#include "contract/reservations.h"
#include "contract/sentences.h"

namespace muster::core {
namespace {

struct Obstacle {
  int near = 0;  // how near the cluster is to having the job
  v1::StateReason reason;
};

v1::StateReason ClusterFull(const ClusterView& cluster) {
  v1::StateReason reason;
  reason.set_code(v1::STATE_REASON_CODE_CLUSTER_FULL);
  reason.set_cluster(cluster.name());
  reason.set_active_runs(cluster.active);
  reason.set_max_active_runs(cluster.saved->max_active_runs);
  reason.set_held_runs(cluster.held);
  if (cluster.full_since && *cluster.full_since != absl::InfinitePast())
    SetTimestamp(*cluster.full_since, reason.mutable_since());
  contract::PutSentence(&reason);
  return reason;
}

// Returns the room that the cluster keeps for the job; null: none.
const placement::KeptRoom* FindKept(const ClusterView& cluster, uint64_t job) {
  const auto& kept = cluster.load.kept;
  const auto found = std::find_if(kept.begin(), kept.end(),
                                  [job](const auto& one) { return job != 0 && one.job == job; });
  return found == kept.end() ? nullptr : &*found;
}

v1::StateReason RoomReserved(const ClusterView& cluster, uint64_t job) {
  const placement::KeptRoom* const kept = FindKept(cluster, job);
  contract::ReasonParts parts{.subject = fmt::format("{}", job), .cluster = cluster.name()};
  if (kept->start != absl::InfiniteFuture()) parts.until = kept->start;
  return contract::MakeReason(v1::STATE_REASON_CODE_ROOM_RESERVED, parts);
}

// Returns the reasons of the clusters that have refused runs of the job and are not asked now.
std::vector<v1::StateReason> FindRefusals(const Requirements& requirements, const v1::Job& job,
                                          const ClusterViews& clusters,
                                          const contract::PlaceLimits& limits, absl::Time now) {
  const std::vector<contract::RefusingCluster> refusals = contract::RefusalsOf(job);
  if (refusals.empty()) return {};
  const auto refuses = [&](const std::string& name) {
    return std::any_of(refusals.begin(), refusals.end(),
                       [&](const auto& one) { return one.cluster == name && one.until > now; });
  };
  const bool has_others = std::any_of(clusters.begin(), clusters.end(), [&](const auto& view) {
    return !refuses(view->name()) && CheckFit(requirements, *view->saved, limits).ever();
  });
  std::vector<v1::StateReason> reasons;
  for (const contract::RefusingCluster& one : refusals) {
    // Without another cluster the job waits for a retry there.
    if (one.until <= now || (one.passes && !has_others)) continue;
    const auto run = std::find_if(job.runs().begin(), job.runs().end(),
                                  [&](const v1::Run& each) { return each.number() == one.run; });
    reasons.push_back(contract::RefusedThere(one, run->failure()));
  }
  return reasons;
}

// Says why a cluster that may fit does not have the job yet.
Obstacle WhyNot(const Requirements& job, const Turn& turn, const ClusterView& cluster,
                const contract::PlaceLimits& limits, absl::Time now) {
  const Fit fit = CheckFit(job, *cluster.saved, limits);
  const int near = static_cast<int>(fit.verdict);
  if (!fit.now()) return {near, contract::LackReason(fit.lack, cluster.name())};
  if (cluster.saved->cordon)
    return {near, contract::Cordoned(*cluster.saved->cordon, cluster.name())};
  if (!cluster.is_connected) {
    return {near, contract::MakeReason(v1::STATE_REASON_CODE_AGENT_DISCONNECTED,
                                       {.cluster = cluster.name(), .since = cluster.last_heard})};
  }
  const bool is_full = cluster.is_full();
  const placement::Estimate estimate = EstimateOn(cluster, job, turn, now);
  Obstacle obstacle{near + (is_full ? 1 : estimate.may_go ? 3 : 2), {}};
  if (is_full) {
    obstacle.reason = ClusterFull(cluster);
  } else if (estimate.kept_for != 0) {
    obstacle.reason = RoomReserved(cluster, estimate.kept_for);
  } else {
    obstacle.reason =
        contract::MakeReason(estimate.may_go ? v1::STATE_REASON_CODE_ABOUT_TO_BE_PLACED
                                             : v1::STATE_REASON_CODE_CLUSTER_BUSY,
                             {.cluster = cluster.name()});
  }
  if (FindKept(cluster, turn.job) != nullptr) contract::SayRoomIsKept(&obstacle.reason);
  if (auto shown = placement::ToShow(estimate, cluster.load, now))
    *obstacle.reason.mutable_start_estimate() = *std::move(shown);
  return obstacle;
}

}  // namespace

bool IsRoomKept(uint64_t job, const ClusterViews& clusters) {
  return std::any_of(clusters.begin(), clusters.end(),
                     [job](const auto& one) { return FindKept(*one, job) != nullptr; });
}

v1::StateReason WhyQueued(const Requirements& job, const Turn& turn, const ClusterViews& clusters,
                          const contract::PlaceLimits& limits, absl::Time now,
                          const v1::Job* with_runs) {
  if (clusters.empty()) return contract::MakeReason(v1::STATE_REASON_CODE_NO_CLUSTERS);
  std::vector<v1::StateReason> refusals;
  if (with_runs != nullptr) refusals = FindRefusals(job, *with_runs, clusters, limits, now);
  std::vector<Obstacle> obstacles;
  for (const auto& cluster : clusters) {
    Obstacle obstacle = WhyNot(job, turn, *cluster, limits, now);
    const auto refusal = std::find_if(refusals.begin(), refusals.end(), [&](const auto& reason) {
      return reason.cluster() == cluster->name();
    });
    if (refusal != refusals.end())
      obstacle = {static_cast<int>(Fit::Verdict::kRefused), std::move(*refusal)};
    if (obstacle.near != static_cast<int>(Fit::Verdict::kNotNamed))
      obstacles.push_back(std::move(obstacle));
  }
  std::stable_sort(obstacles.begin(), obstacles.end(),
                   [](const Obstacle& a, const Obstacle& b) { return a.near > b.near; });
  std::vector<v1::StateReason> reasons;
  for (Obstacle& obstacle : obstacles) reasons.push_back(std::move(obstacle.reason));
  return contract::NotPlaced(std::move(reasons));
}

}  // namespace muster::core
