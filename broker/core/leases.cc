#include "broker/core/leases.h"

#include <algorithm>
#include <utility>

#include "broker/core/impl.h"
#include "broker/core/run_machine.h"
#include "broker/core/timestamps.h"
#include "contract/failures.h"
#include "contract/lost_clusters.h"
#include "contract/states.h"

namespace muster::core {
namespace {

// This many take about 10 ms and a commit of as many rows; the next tick goes on.
constexpr int kMaxGivenUpPerTick = 10'000;

}  // namespace

void Core::Impl::ExtendLease(Cluster* cluster, absl::Time now) {
  // An earlier lease may have been longer, and last longer.
  cluster->lease_end = std::max(cluster->lease_end, now + options_.lease);
  cluster->has_given_up_now = cluster->has_given_up_fenced = false;
}

void Core::Impl::RenewLeases(Cluster* cluster, SessionId session, uint64_t heartbeat_number,
                             Step& step) {
  ExtendLease(cluster, step.now);
  // An agent of an earlier release does not number its heartbeats.
  if (cluster->saved.fence_delay <= absl::ZeroDuration() || heartbeat_number == 0) return;
  if (cluster->saved.lease != options_.lease) {
    cluster->saved.lease = options_.lease;
    ShowSaved(cluster);
    PutNow(*cluster, step);
  }
  SendToAgent send;
  send.session = session;
  agent::v1::LeaseRenewal* renewal = send.message.mutable_lease_renewal();
  renewal->set_heartbeat_number(heartbeat_number);
  SetDuration(options_.lease, renewal->mutable_duration());
  step.out->effects.push_back(std::move(send));
}

void Core::Impl::BeginLeases(absl::Time now) {
  for (const auto& [name, cluster] : clusters_by_name_) {
    cluster->lease_end = now + std::max(cluster->saved.lease, options_.lease);
    Show(cluster);
  }
}

void Core::Impl::FailOver(Step& step) {
  int left = kMaxGivenUpPerTick;
  for (const auto& [name, cluster] : clusters_by_name_) {
    if (cluster->session || cluster->active == 0) continue;
    for (const auto& [rule, is_done] :
         {std::pair(LossRule::kNow, &cluster->has_given_up_now),
          std::pair(LossRule::kWhenFenced, &cluster->has_given_up_fenced)}) {
      const absl::Time when =
          GiveUpTime(rule, cluster->lease_end, std::max(cluster->saved.lease, options_.lease),
                     cluster->saved.fence_delay);
      if (!*is_done && step.now >= when) *is_done = GiveUpRuns(cluster, rule, &left, step);
    }
  }
}

bool Core::Impl::GiveUpRuns(Cluster* cluster, LossRule rule, int* left, Step& step) {
  for (const auto& [id, run] : cluster->runs) {
    if (contract::IsTerminal(run->state())) continue;
    if (groups_.at(jobs_.at(id.job).group)->requirements.on_loss != rule) continue;
    if (*left == 0) return false;
    --*left;
    GiveUpRun(cluster, id, *run, step);
  }
  return true;
}

void Core::Impl::GiveUpRun(Cluster* cluster, RunId id, v1::Run& run, Step& step) {
  Job& job = jobs_.at(id.job);
  const RunLook before = LookAt(run);
  const std::string words = contract::GivenUp(cluster->name(), cluster->last_heard);
  core::GiveUp(contract::MakeFailure(v1::FAILURE_CODE_CLUSTER_LOST, v1::FAILURE_CLASS_INFRA,
                                     {.detail = words, .subject = cluster->name()}),
               step.now, &run);
  NoteReport(cluster, id, run, before, step.now);
  const bool is_followed =
      job.Takes(contract::JobEvent::kFailOver) && job.fail_overs() < kMaxFailOvers;
  v1::Transition transition;
  if (is_followed) transition.set_kind(v1::TRANSITION_KIND_FAILED_OVER);
  transition.set_run(id.number);
  transition.set_run_state(run.state());
  *transition.mutable_evidence() = BrokerEvidence(words, step.now);
  step.runs.emplace_back(cluster, id);
  step.given_up.insert(id);
  const size_t at = step.out->changes.size();
  const JobChange change{is_followed ? contract::JobEvent::kFailOver : JobEventOf(run, false)};
  if (Apply(id.job, job, change, std::move(transition), step)) step.moved[id] = at;
  CountUsage(run, job, step);
}

}  // namespace muster::core
