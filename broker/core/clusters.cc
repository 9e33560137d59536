#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/core/impl.h"
#include "broker/core/leases.h"
#include "contract/lacks.h"
#include "contract/sentences.h"
#include "contract/text.h"

namespace muster::core {
namespace {

using google::protobuf::util::MessageDifferencer;

// `lease` is the length of leases.
ClusterView ViewOf(const Cluster& cluster, absl::Duration lease) {
  ClusterView view;
  view.is_connected = cluster.session.has_value();
  view.last_heard = cluster.last_heard;
  view.lease_end = cluster.lease_end;
  view.fenced_at = GiveUpTime(LossRule::kWhenFenced, cluster.lease_end,
                              std::max(cluster.saved.lease, lease), cluster.saved.fence_delay);
  view.scheduler_observed_at = cluster.scheduler_observed_at;
  view.scheduler_error = cluster.scheduler_error;
  view.scheduler_calls = cluster.scheduler_calls;
  view.cloned_at = cluster.cloned_at;
  view.active = cluster.active;
  view.held = cluster.held;
  view.full_since = cluster.full_since;
  view.load = cluster.load;
  return view;
}

bool AreAlike(const ClusterView& a, const ClusterView& b) {
  return a.is_connected == b.is_connected && a.last_heard == b.last_heard &&
         a.lease_end == b.lease_end && a.fenced_at == b.fenced_at &&
         a.scheduler_observed_at == b.scheduler_observed_at &&
         a.scheduler_error == b.scheduler_error && a.scheduler_calls == b.scheduler_calls &&
         a.cloned_at == b.cloned_at && a.active == b.active && a.held == b.held &&
         a.full_since == b.full_since && a.load.pools() == b.load.pools() &&
         a.load.kept == b.load.kept;
}

}  // namespace

void Core::Impl::Show(Cluster* cluster) {
  if (std::exchange(cluster->waits_to_be_shown, true)) return;
  to_show_.push_back(cluster->name());
}

void Core::Impl::ShowSaved(Cluster* cluster) {
  cluster->shows_saved = false;
  Show(cluster);
}

std::vector<ShownCluster> Core::Impl::TakeShownClusters(absl::Time now) {
  std::vector<ShownCluster> shown;
  shown.reserve(to_show_.size());
  for (std::string& name : std::exchange(to_show_, {})) {
    Cluster* const cluster = FindCluster(name);
    if (cluster == nullptr) {
      shown.push_back({std::move(name), nullptr});
      continue;
    }
    if (!std::exchange(cluster->waits_to_be_shown, false)) continue;
    cluster->NoteWhetherFull(now);
    auto view = std::make_shared<ClusterView>(ViewOf(*cluster, options_.lease));
    const bool is_as_before = std::exchange(cluster->shows_saved, true);
    view->saved =
        is_as_before ? cluster->shown->saved : std::make_shared<const PutCluster>(cluster->saved);
    cluster->shown = std::move(view);
    shown.push_back({std::move(name), cluster->shown});
  }
  return shown;
}

absl::Status Core::Impl::CheckShown(const Cluster& cluster) const {
  if (cluster.waits_to_be_shown) return absl::OkStatus();
  const bool is_shown =
      cluster.shown != nullptr && AreAlike(*cluster.shown, ViewOf(cluster, options_.lease)) &&
      cluster.shown->saved->max_active_runs == cluster.saved.max_active_runs &&
      cluster.shown->saved->kind == cluster.saved.kind &&
      cluster.shown->saved->fence_delay == cluster.saved.fence_delay &&
      cluster.shown->saved->cordon.has_value() == cluster.saved.cordon.has_value() &&
      MessageDifferencer::Equals(cluster.shown->saved->inventory, cluster.saved.inventory);
  if (is_shown) return absl::OkStatus();
  return absl::InternalError(
      ToAbsl(fmt::format("cluster {} has changed, and is not to be shown", cluster.name())));
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
  ShowSaved(raw);
  return raw;
}

void Core::Impl::PutNow(const Cluster& cluster, Step& step) {
  step.out->changes.push_back(cluster.saved);
}

contract::refused::Clusters Core::Impl::KnownClusters() const {
  contract::refused::Clusters known;
  known.count = clusters_by_name_.size();
  for (const auto& [name, cluster] : clusters_by_name_) {
    if (known.named.size() == contract::kMaxNamedClusters) break;
    known.named.push_back(name);
  }
  return known;
}

std::vector<v1::StateReason> Core::Impl::LacksOf(const Requirements& requirements) const {
  std::vector<std::pair<Fit::Verdict, v1::StateReason>> found;
  for (const auto& [name, cluster] : clusters_by_name_) {
    // The reason need not say of each other cluster that its kind is not Slurm.
    if (requirements.needs_slurm && cluster->saved.kind != v1::CLUSTER_KIND_SLURM) continue;
    const Fit fit = CheckFit(requirements, cluster->saved, *limits_);
    if (fit.verdict == Fit::Verdict::kNotNamed) continue;
    found.emplace_back(fit.verdict, contract::LackReason(fit.lack, name));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<v1::StateReason> lacks;
  for (auto& [verdict, lack] : found) lacks.push_back(std::move(lack));
  return lacks;
}

}  // namespace muster::core
