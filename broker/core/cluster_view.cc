#include "broker/core/cluster_view.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "broker/core/fit.h"
#include "broker/core/timestamps.h"
#include "contract/issues.h"
#include "contract/lacks.h"
#include "contract/place_limits.h"

namespace muster::core {
namespace {

v1::Cluster DescribeWithoutInventory(const ClusterView& cluster) {
  v1::Cluster out;
  out.set_name(cluster.name());
  out.set_kind(cluster.saved->kind);
  out.set_state(cluster.is_connected ? v1::CLUSTER_STATE_CONNECTED
                                     : v1::CLUSTER_STATE_DISCONNECTED);
  SetTimestamp(cluster.last_heard, out.mutable_last_seen());
  if (cluster.scheduler_observed_at) {
    SetTimestamp(*cluster.scheduler_observed_at, out.mutable_scheduler_observed_at());
  }
  out.set_scheduler_error(cluster.scheduler_error);
  out.set_agent_version(cluster.saved->agent_version);
  out.set_active_runs(cluster.active);
  out.set_max_active_runs(cluster.saved->max_active_runs);
  if (cluster.saved->fence_delay > absl::ZeroDuration())
    SetDuration(cluster.saved->fence_delay, out.mutable_fence_delay());
  if (cluster.saved->cordon) *out.mutable_cordon() = *cluster.saved->cordon;
  if (v1::EstimateErrors errors; cluster.load.errors.Describe(&errors))
    *out.mutable_estimate_errors() = std::move(errors);
  for (const auto& [command, calls] : cluster.scheduler_calls) {
    (*out.mutable_scheduler_calls())[command] = calls;
  }
  return out;
}

v1::Cluster Describe(const ClusterView& cluster) {
  v1::Cluster out = DescribeWithoutInventory(cluster);
  *out.mutable_inventory() = cluster.saved->inventory;
  if (cluster.cloned_at != absl::InfinitePast()) {
    *out.mutable_inventory()->add_issues() =
        contract::AgentCloned(cluster.name(), cluster.cloned_at + kCloneMemory);
  }
  return out;
}

// Describes a cluster that was asked about a job, as far as the explanation of its fit needs it.
v1::Cluster DescribeFor(const Fit& fit, const ClusterView& cluster) {
  v1::Cluster out = DescribeWithoutInventory(cluster);
  if (fit.lack.pool == nullptr) return out;
  *out.mutable_inventory()->add_pools() = *fit.lack.pool;
  *out.mutable_inventory()->mutable_issues() = cluster.saved->inventory.issues();
  return out;
}

// Lists the clusters that have the same identity, because several agents may speak for one.
using Identities = std::map<std::string_view, std::vector<std::string_view>>;

Identities IdentitiesOf(const ClusterViews& clusters) {
  Identities identities;
  for (const auto& cluster : clusters) {
    const std::string& identity = cluster->saved->inventory.identity();
    if (cluster->saved->kind == v1::CLUSTER_KIND_KUBERNETES && !identity.empty())
      identities[identity].push_back(cluster->name());
  }
  return identities;
}

void WarnOfTwins(const Identities& identities, v1::Cluster* cluster) {
  const auto found = identities.find(cluster->inventory().identity());
  if (found == identities.end()) return;
  for (std::string_view name : found->second) {
    if (name == cluster->name()) continue;
    *cluster->mutable_inventory()->add_issues() = contract::SameCluster(std::string(name));
    return;  // one tells it
  }
}

// True if the cluster could run the job, now or later.
bool CouldTake(const ClusterView& cluster, const Requirements& job,
               const contract::PlaceLimits& limits, Fit* fit) {
  if (!cluster.is_connected) return false;
  *fit = CheckFit(job, *cluster.saved, limits);
  return fit->ever();
}

// Returns the part of the requirements that capacity decides; a plan itself names what published
// facts speak against.
Requirements CapacityOf(const v1::JobSpec& spec) {
  Requirements requirements = RequirementsOf(spec);
  requirements.admission = {};
  return requirements;
}

// A cluster that could run a job.
struct Found {
  // Says how far a cluster is from taking the job: it does so now, it is full or cordoned, or its
  // pool is closed.
  enum class Distance { kTakesIt, kFull, kCordoned, kNotNow } distance;
  Fit fit;
  placement::Estimate estimate;
  placement::Rank rank;
  const ClusterView* cluster;

  friend bool operator<(const Found& a, const Found& b) {
    return std::tie(a.distance, a.rank) < std::tie(b.distance, b.rank);
  }
};

Found::Distance DistanceOf(const Fit& fit, const ClusterView& cluster) {
  if (!fit.now()) return Found::Distance::kNotNow;
  if (cluster.saved->cordon) return Found::Distance::kCordoned;
  return cluster.is_full() ? Found::Distance::kFull : Found::Distance::kTakesIt;
}

// Returns those that could take the job, the best one first.
ClustersReply ListForJob(const ListClusters& which, const ClusterViews& clusters,
                         const contract::PlaceLimits& limits) {
  const Requirements job = CapacityOf(*which.that_could_take);
  std::vector<Found> found;
  for (const auto& cluster : clusters) {
    Fit fit;
    if (!CouldTake(*cluster, job, limits, &fit)) continue;
    const Turn turn{.priority = which.that_could_take->priority()};
    const placement::Estimate estimate = placement::MakeEstimate(
        job, turn, CapacityFor(job, *cluster->saved), cluster->load, which.now);
    const Found::Distance distance = DistanceOf(fit, *cluster);
    found.push_back({.distance = distance,
                     .fit = std::move(fit),
                     .estimate = estimate,
                     .rank = placement::RankOf(estimate),
                     .cluster = cluster.get()});
  }
  std::stable_sort(found.begin(), found.end());
  ClustersReply reply;
  reply.more = found.size() > which.max_clusters;
  found.resize(std::min(found.size(), which.max_clusters));
  for (const Found& one : found) {
    const ClusterView& cluster = *one.cluster;
    reply.clusters.push_back(DescribeFor(one.fit, cluster));
    if (one.fit.lack.pool != nullptr) reply.not_now.emplace(cluster.name(), one.fit.lack.code);
    if (one.distance > Found::Distance::kFull) continue;
    if (auto estimate = placement::ToShow(one.estimate, cluster.load, which.now))
      reply.estimates.emplace(cluster.name(), *std::move(estimate));
  }
  return reply;
}

bool ComesBefore(const std::shared_ptr<const ClusterView>& cluster, const std::string& name) {
  return cluster->name() < name;
}

// Returns the clusters that a page may have.
std::pair<ClusterViews::const_iterator, ClusterViews::const_iterator> Among(
    const ListClusters& which, const ClusterViews& clusters) {
  const std::string& name = which.name.empty() ? which.after : which.name;
  auto first = std::lower_bound(clusters.begin(), clusters.end(), name, ComesBefore);
  const bool is_there = first != clusters.end() && (*first)->name() == name;
  if (which.name.empty()) return {is_there ? first + 1 : first, clusters.end()};
  return {first, is_there ? first + 1 : first};
}

}  // namespace

placement::Estimate EstimateOn(const ClusterView& cluster, const Requirements& job,
                               const Turn& turn, absl::Time now) {
  placement::Capacity capacity = CapacityFor(job, *cluster.saved);
  capacity.is_full = cluster.is_full();
  return placement::MakeEstimate(job, turn, capacity, cluster.load, now);
}

ClustersReply List(const ListClusters& which, const ClusterViews& clusters) {
  if (which.that_could_take != nullptr) {
    const contract::PlaceLimits none;
    return ListForJob(which, clusters, which.limits != nullptr ? *which.limits : none);
  }
  ClustersReply reply;
  const Identities identities = IdentitiesOf(clusters);
  size_t bytes = 0;
  for (auto [next, end] = Among(which, clusters); next != end; ++next) {
    const ClusterView& cluster = **next;
    bytes += cluster.saved->inventory.ByteSizeLong();
    const bool is_full = reply.clusters.size() == which.max_clusters || bytes > which.max_bytes;
    if (is_full && !reply.clusters.empty()) {
      reply.more = true;
      break;
    }
    reply.clusters.push_back(Describe(cluster));
    if (cluster.saved->kind == v1::CLUSTER_KIND_KUBERNETES)
      WarnOfTwins(identities, &reply.clusters.back());
  }
  return reply;
}

std::optional<v1::Cluster> Find(const std::string& name, const ClusterViews& clusters) {
  if (name.empty()) return std::nullopt;
  ClustersReply reply = List({.name = name}, clusters);
  if (reply.clusters.empty()) return std::nullopt;
  return std::move(reply.clusters.front());
}

const ClusterView* FindView(const std::string& name, const ClusterViews& clusters) {
  const auto at = std::lower_bound(clusters.begin(), clusters.end(), name, ComesBefore);
  return at != clusters.end() && (*at)->name() == name ? at->get() : nullptr;
}

v1::ClusterKind KindOf(const std::string& name, const ClusterViews& clusters) {
  const ClusterView* const cluster = FindView(name, clusters);
  return cluster != nullptr ? cluster->saved->kind : v1::CLUSTER_KIND_UNSPECIFIED;
}

}  // namespace muster::core
