#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "broker/core/impl.h"
#include "contract/lacks.h"
#include "contract/sentences.h"
#include "contract/states.h"

namespace muster::core {
namespace {

// Different jobs that one answer explains. Each is held against all clusters on the core's thread.
constexpr size_t kMaxExplainedGroups = 20;

struct Obstacle {
  int near = 0;  // how near the cluster is to having the job
  v1::StateReason reason;
};

v1::StateReason ClusterFull(const Cluster& cluster) {
  v1::StateReason reason;
  reason.set_code(v1::STATE_REASON_CODE_CLUSTER_FULL);
  reason.set_cluster(cluster.name());
  reason.set_active_runs(cluster.active);
  reason.set_max_active_runs(cluster.saved.max_active_runs);
  reason.set_held_runs(cluster.held);
  contract::PutSentence(&reason);
  return reason;
}

// Why a cluster that may fit does not have the job yet.
Obstacle WhyNot(const Requirements& requirements, const Cluster& cluster) {
  const Fit fit = CheckFit(requirements, cluster.saved);
  const int near = static_cast<int>(fit.verdict);
  if (!fit.now()) return {near, contract::LackReason(fit.lack, cluster.name())};
  if (!cluster.session) {
    return {near, contract::MakeReason(v1::STATE_REASON_CODE_AGENT_DISCONNECTED,
                                       {.cluster = cluster.name(), .since = cluster.last_heard})};
  }
  if (cluster.active >= cluster.saved.max_active_runs) return {near + 1, ClusterFull(cluster)};
  return {near + 2, contract::MakeReason(v1::STATE_REASON_CODE_ABOUT_TO_BE_PLACED,
                                         {.cluster = cluster.name()})};
}

}  // namespace

void Core::Impl::On(Explain& in, Step& step) {
  ExplainReply reply;
  reply.ticket = in.ticket;
  // Jobs of one group wait for the same.
  std::map<uint32_t, v1::StateReason> by_group;
  for (uint64_t id : in.jobs) {
    v1::StateReason& reason = reply.reasons.emplace_back();
    auto it = jobs_.find(id);
    if (it == jobs_.end()) continue;
    const Job& job = it->second;
    if (job.state() == v1::JOB_STATE_PENDING) reason = WhyPending(id, job);
    if (!job.is_queued() || !IsReady(id, job)) continue;
    auto known = by_group.find(job.group);
    if (known == by_group.end()) {
      if (by_group.size() == kMaxExplainedGroups) continue;
      known = by_group.emplace(job.group, WhyQueued(job)).first;
    }
    reason = known->second;
  }
  step.out->effects.push_back(std::move(reply));
}

v1::StateReason Core::Impl::WhyQueued(const Job& job) const {
  if (clusters_by_name_.empty()) return contract::MakeReason(v1::STATE_REASON_CODE_NO_CLUSTERS);
  const Requirements& requirements = groups_.at(job.group)->requirements;
  std::vector<Obstacle> obstacles;
  for (const auto& [name, cluster] : clusters_by_name_) {
    Obstacle obstacle = WhyNot(requirements, *cluster);
    if (obstacle.near != static_cast<int>(Fit::Verdict::kNotNamed))
      obstacles.push_back(std::move(obstacle));
  }
  std::stable_sort(obstacles.begin(), obstacles.end(),
                   [](const Obstacle& a, const Obstacle& b) { return a.near > b.near; });
  std::vector<v1::StateReason> reasons;
  for (Obstacle& obstacle : obstacles) reasons.push_back(std::move(obstacle.reason));
  return contract::NotPlaced(std::move(reasons));
}

v1::StateReason Core::Impl::WhyPending(uint64_t id, const Job& job) const {
  const Cluster& cluster = *clusters_[job.cluster()];
  const v1::Run& run = *cluster.runs.at({id, job.runs()});
  if (run.has_state_reason()) return run.state_reason();
  const std::string where = fmt::format("run {} is {} on cluster \"{}\"", job.runs(),
                                        contract::Name(run.state()), cluster.name());
  return contract::MakeReason(
      run.state() == v1::RUN_STATE_PENDING ? v1::STATE_REASON_CODE_WAITS_IN_CLUSTER
                                           : v1::STATE_REASON_CODE_LAUNCHING,
      {.detail = cluster.session ? where : where + ", whose agent is not connected",
       .cluster = cluster.name()});
}

}  // namespace muster::core
