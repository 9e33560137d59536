#include "broker/app/cluster_losses.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/time/time.h"
#include "broker/core/cluster_view.h"
#include "broker/core/timestamps.h"
#include "broker/engine/engine.h"
#include "broker/store/store.h"
#include "contract/lost_clusters.h"

namespace muster::broker {
namespace {

void AddLoss(const core::ClusterView& cluster, v1::ClusterLossPolicy policy, v1::Job* job,
             AnswerRoom& room) {
  if (policy != v1::CLUSTER_LOSS_POLICY_FAIL_OVER_WHEN_FENCED &&
      policy != v1::CLUSTER_LOSS_POLICY_FAIL_OVER_NOW) {
    return;
  }
  if (job->runs_size() > 0) {
    v1::Run& latest = *job->mutable_runs(job->runs_size() - 1);
    core::SetTimestamp(cluster.lease_end, latest.mutable_lease_end_time());
  }
  const absl::Time until =
      policy == v1::CLUSTER_LOSS_POLICY_FAIL_OVER_NOW ? cluster.lease_end : cluster.fenced_at;
  // The agent does not fence any more: the job waits for it.
  if (until == absl::InfiniteFuture()) return;
  room.Put(contract::ClusterLost(job->state_reason(), until), job);
}

}  // namespace

void AddLosses(const Services& services, const store::Scope& scope,
               const std::vector<v1::Job*>& jobs, AnswerRoom& room, SpecsRead read) {
  const std::shared_ptr<const core::ClusterViews> clusters = services.engine->clusters();
  std::vector<std::pair<v1::Job*, const core::ClusterView*>> unread;
  std::vector<uint64_t> ids;
  for (v1::Job* const job : jobs) {
    if (job->state_reason().code() != v1::STATE_REASON_CODE_AGENT_DISCONNECTED) continue;
    if (job->state() == v1::JOB_STATE_QUEUED) continue;
    const core::ClusterView* const cluster = core::FindView(job->cluster(), *clusters);
    if (cluster == nullptr || cluster->is_connected) continue;
    if (job->has_spec() && read == SpecsRead::kWhole) {
      AddLoss(*cluster, job->spec().on_cluster_loss(), job, room);
      continue;
    }
    unread.emplace_back(job, cluster);
    ids.push_back(job->id());
  }
  if (ids.empty()) return;
  const auto specs = services.store->GetSpecs(scope, ids);
  // Jobs without reasons are better than no jobs.
  if (!specs.ok()) return;
  for (size_t i = 0; i < unread.size(); ++i)
    AddLoss(*unread[i].second, (*specs)[i].spec.on_cluster_loss(), unread[i].first, room);
}

}  // namespace muster::broker
