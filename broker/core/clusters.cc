#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/core/impl.h"
#include "broker/core/timestamps.h"
#include "contract/issues.h"
#include "contract/lacks.h"
#include "contract/sentences.h"

namespace muster::core {
namespace {

// Whether it could, now or later, whatever its published facts say: a plan says that itself.
bool CouldTake(const Cluster& cluster, const v1::JobSpec& spec, Fit* fit) {
  if (!cluster.session) return false;
  Requirements requirements = RequirementsOf(spec);
  requirements.admission = {};
  *fit = CheckFit(requirements, cluster.saved);
  return fit->ever();
}

v1::Cluster DescribeWithoutInventory(const Cluster& cluster) {
  v1::Cluster out;
  out.set_name(cluster.name());
  out.set_kind(cluster.saved.kind);
  out.set_state(cluster.session ? v1::CLUSTER_STATE_CONNECTED : v1::CLUSTER_STATE_DISCONNECTED);
  SetTimestamp(cluster.last_heard, out.mutable_last_seen());
  if (cluster.scheduler_observed_at) {
    SetTimestamp(*cluster.scheduler_observed_at, out.mutable_scheduler_observed_at());
  }
  out.set_scheduler_error(cluster.scheduler_error);
  out.set_agent_version(cluster.saved.agent_version);
  out.set_active_runs(cluster.active);
  out.set_max_active_runs(cluster.saved.max_active_runs);
  for (const auto& [command, calls] : cluster.scheduler_calls) {
    (*out.mutable_scheduler_calls())[command] = calls;
  }
  return out;
}

v1::Cluster Describe(const Cluster& cluster) {
  v1::Cluster out = DescribeWithoutInventory(cluster);
  *out.mutable_inventory() = cluster.saved.inventory;
  return out;
}

// As much of one that was asked for a job as its fit takes to explain.
v1::Cluster DescribeFor(const Fit& fit, const Cluster& cluster) {
  v1::Cluster out = DescribeWithoutInventory(cluster);
  if (fit.lack.pool == nullptr) return out;
  *out.mutable_inventory()->add_pools() = *fit.lack.pool;
  *out.mutable_inventory()->mutable_issues() = cluster.saved.inventory.issues();
  return out;
}

// The clusters that have the same identity: several agents may speak for one.
using Identities = std::map<std::string_view, std::vector<std::string_view>>;

void WarnOfTwins(const Identities& identities, v1::Cluster* cluster) {
  const auto found = identities.find(cluster->inventory().identity());
  if (found == identities.end()) return;
  for (std::string_view name : found->second) {
    if (name == cluster->name()) continue;
    *cluster->mutable_inventory()->add_issues() = contract::SameCluster(std::string(name));
    return;  // one tells it
  }
}

}  // namespace

void Core::Impl::On(ListClusters& in, Step& step) {
  ClustersReply reply;
  reply.ticket = in.ticket;
  size_t bytes = 0;
  auto next =
      in.name.empty() ? clusters_by_name_.upper_bound(in.after) : clusters_by_name_.find(in.name);
  const auto end = in.name.empty() || next == clusters_by_name_.end() ? clusters_by_name_.end()
                                                                      : std::next(next);
  Requirements requirements;
  if (in.that_could_take) requirements = RequirementsOf(*in.that_could_take);
  Identities identities;
  for (const auto& [name, cluster] : clusters_by_name_) {
    const v1::Inventory& inventory = cluster->saved.inventory;
    if (!in.that_could_take && cluster->saved.kind == v1::CLUSTER_KIND_KUBERNETES &&
        !inventory.identity().empty())
      identities[inventory.identity()].push_back(name);
  }
  for (; next != end; ++next) {
    const Cluster& cluster = *next->second;
    Fit fit;
    if (in.that_could_take && !CouldTake(cluster, *in.that_could_take, &fit)) continue;
    if (!in.that_could_take) bytes += cluster.saved.inventory.ByteSizeLong();
    const bool is_full = reply.clusters.size() == in.max_clusters || bytes > in.max_bytes;
    if (is_full && !reply.clusters.empty()) {
      reply.more = true;
      break;
    }
    reply.clusters.push_back(in.that_could_take ? DescribeFor(fit, cluster) : Describe(cluster));
    if (fit.lack.pool != nullptr)
      reply.not_now.emplace(cluster.name(), contract::SentenceOf(fit.lack));
    if (cluster.saved.kind == v1::CLUSTER_KIND_KUBERNETES && !in.that_could_take)
      WarnOfTwins(identities, &reply.clusters.back());
  }
  step.out->effects.push_back(std::move(reply));
}

Cluster* Core::Impl::FindCluster(std::string_view name) const {
  auto it = clusters_by_name_.find(name);
  return it == clusters_by_name_.end() ? nullptr : it->second;
}

Cluster* Core::Impl::AddCluster(std::string name) {
  auto cluster = std::make_unique<Cluster>();
  if (free_indexes_.empty()) {
    cluster->index = static_cast<ClusterIndex>(clusters_.size());
    clusters_.push_back(nullptr);
  } else {
    cluster->index = free_indexes_.back();
    free_indexes_.pop_back();
  }
  cluster->saved.name = name;
  Cluster* raw = cluster.get();
  clusters_[raw->index] = std::move(cluster);
  clusters_by_name_.emplace(std::move(name), raw);
  return raw;
}

void Core::Impl::PutNow(const Cluster& cluster, Step& step) {
  step.out->changes.push_back(cluster.saved);
}

std::string Core::Impl::KnownClusters() const {
  if (clusters_by_name_.empty()) return "no cluster has connected to this broker yet";
  std::string text = "the known ones are ";
  size_t named = 0;
  for (const auto& [name, cluster] : clusters_by_name_) {
    if (named == contract::kMaxNamedClusters) {
      return text + fmt::format(" and {} more", clusters_by_name_.size() - named);
    }
    text += fmt::format("{}\"{}\"", named++ > 0 ? ", " : "", name);
  }
  return text;
}

std::vector<contract::ClusterLack> Core::Impl::LacksOf(const Requirements& requirements) const {
  std::vector<std::pair<Fit::Verdict, contract::ClusterLack>> found;
  for (const auto& [name, cluster] : clusters_by_name_) {
    // That all others are of another kind than a job for Slurm needs, is not said of each.
    if (requirements.needs_slurm && cluster->saved.kind != v1::CLUSTER_KIND_SLURM) continue;
    const Fit fit = CheckFit(requirements, cluster->saved);
    if (fit.verdict == Fit::Verdict::kNotNamed) continue;
    found.emplace_back(fit.verdict, contract::ClusterLack{name, contract::SentenceOf(fit.lack)});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<contract::ClusterLack> lacks;
  for (auto& [verdict, lack] : found) lacks.push_back(std::move(lack));
  return lacks;
}

}  // namespace muster::core
