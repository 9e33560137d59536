#include "broker/core/cluster_view.h"

#include <algorithm>
#include <string_view>
#include <utility>

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
  if (cluster.saved->cordon) *out.mutable_cordon() = *cluster.saved->cordon;
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

// The clusters that have the same identity: several agents may speak for one.
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

// The part of the requirements that capacity decides: a plan itself names what published facts
// speak against.
Requirements CapacityOf(const v1::JobSpec& spec) {
  Requirements requirements = RequirementsOf(spec);
  requirements.admission = {};
  return requirements;
}

bool ComesBefore(const std::shared_ptr<const ClusterView>& cluster, const std::string& name) {
  return cluster->name() < name;
}

// The clusters that a page may have.
std::pair<ClusterViews::const_iterator, ClusterViews::const_iterator> Among(
    const ListClusters& which, const ClusterViews& clusters) {
  const std::string& name = which.name.empty() ? which.after : which.name;
  auto first = std::lower_bound(clusters.begin(), clusters.end(), name, ComesBefore);
  const bool is_there = first != clusters.end() && (*first)->name() == name;
  if (which.name.empty()) return {is_there ? first + 1 : first, clusters.end()};
  return {first, is_there ? first + 1 : first};
}

}  // namespace

ClustersReply List(const ListClusters& which, const ClusterViews& clusters) {
  ClustersReply reply;
  const bool is_for_job = which.that_could_take != nullptr;
  const Requirements job = is_for_job ? CapacityOf(*which.that_could_take) : Requirements();
  const Identities identities = is_for_job ? Identities() : IdentitiesOf(clusters);
  const contract::PlaceLimits none;
  const contract::PlaceLimits& limits = which.limits != nullptr ? *which.limits : none;
  size_t bytes = 0;
  for (auto [next, end] = Among(which, clusters); next != end; ++next) {
    const ClusterView& cluster = **next;
    Fit fit;
    if (is_for_job && !CouldTake(cluster, job, limits, &fit)) continue;
    if (!is_for_job) bytes += cluster.saved->inventory.ByteSizeLong();
    const bool is_full = reply.clusters.size() == which.max_clusters || bytes > which.max_bytes;
    if (is_full && !reply.clusters.empty()) {
      reply.more = true;
      break;
    }
    reply.clusters.push_back(is_for_job ? DescribeFor(fit, cluster) : Describe(cluster));
    if (fit.lack.pool != nullptr) reply.not_now.emplace(cluster.name(), fit.lack.code);
    if (cluster.saved->kind == v1::CLUSTER_KIND_KUBERNETES && !is_for_job)
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

v1::ClusterKind KindOf(const std::string& name, const ClusterViews& clusters) {
  const auto at = std::lower_bound(
      clusters.begin(), clusters.end(), name,
      [](const auto& cluster, const std::string& wanted) { return cluster->name() < wanted; });
  const bool is_there = at != clusters.end() && (*at)->name() == name;
  return is_there ? (*at)->saved->kind : v1::CLUSTER_KIND_UNSPECIFIED;
}

}  // namespace muster::core
