#include <algorithm>
#include <utility>

#include "broker/core/impl.h"
#include "broker/core/timestamps.h"
#include "contract/states.h"

namespace muster::core {
namespace {

template <typename T>
void SortUnique(std::vector<T>* values, bool (*less)(const T&, const T&)) {
  std::sort(values->begin(), values->end(), less);
  auto same = [less](const T& a, const T& b) { return !less(a, b) && !less(b, a); };
  values->erase(std::unique(values->begin(), values->end(), same), values->end());
}

bool IsEarlier(const std::pair<Cluster*, RunId>& a, const std::pair<Cluster*, RunId>& b) {
  return a.second < b.second;
}

}  // namespace

v1::Evidence BrokerEvidence(std::string detail, absl::Time now) {
  v1::Evidence evidence;
  evidence.set_source(v1::EVIDENCE_SOURCE_BROKER);
  SetTimestamp(now, evidence.mutable_observed_at());
  evidence.set_detail(std::move(detail));
  return evidence;
}

v1::Evidence UserEvidence(const contract::UserRequest& request, absl::Time now) {
  v1::Evidence evidence = contract::RequestEvidence(request);
  SetTimestamp(now, evidence.mutable_observed_at());
  return evidence;
}

Core::Impl::Step Core::Impl::Begin(absl::Time now, Output* out) {
  accounts_.SetNow(now);
  if (!broker_epoch_put_) {
    broker_epoch_put_ = true;
    BeginLeases(now);
    out->changes.push_back(PutBrokerEpoch{broker_epoch_});
  }
  return Step{.now = now, .out = out, .jobs = {}, .runs = {}};
}

void Core::Impl::Record(Step& step, uint64_t id, Job& job, v1::Transition transition) {
  transition.set_job_sequence(job.CountStep());
  transition.set_sequence(next_sequence_++);
  transition.set_job_state(job.state());
  SetTimestamp(step.now, transition.mutable_time());
  step.changed.erase({id, transition.run()});
  step.out->changes.push_back(AppendTransition{id, std::move(transition)});
  step.jobs.push_back(id);
  step.has_transitions = true;
}

void Core::Impl::Finish(Step& step) {
  JudgeDependents(step);
  SortUnique<uint64_t>(&step.jobs, [](const auto& a, const auto& b) { return a < b; });
  // The order is not that of addresses, because it must be the same in every process.
  SortUnique<std::pair<Cluster*, RunId>>(&step.runs, IsEarlier);
  for (uint64_t id : step.jobs) PutTouchedJob(step, id);
  for (auto [cluster, id] : step.runs) PutTouchedRun(step, cluster, id);
  for (AddUsage& usage : step.usage.Take()) step.out->changes.push_back(std::move(usage));
  if (!step.has_transitions && step.changed.empty()) return;
  for (const RunId& id : step.changed) step.jobs.push_back(id.job);
  SortUnique<uint64_t>(&step.jobs, [](const auto& a, const auto& b) { return a < b; });
  step.out->effects.push_back(JobsChanged{std::move(step.jobs), next_sequence_ - 1});
}

void Core::Impl::PutTouchedJob(Step& step, uint64_t id) {
  auto it = jobs_.find(id);
  if (it == jobs_.end()) return;
  const Job& job = it->second;
  if (job.sequence() == 1) return;  // just inserted with these values
  UpdateJob update;
  update.id = id;
  update.state = job.state();
  update.job_sequence = job.sequence();
  update.cancel_requested = job.cancel_requested();
  update.runs = job.runs();
  if (const auto start = job.start_unix_micros()) {
    update.start_time = absl::FromUnixMicros(*start);
  }
  const v1::Run* run = nullptr;
  if (job.cluster() != 0) {
    const Cluster& cluster = *clusters_[job.cluster()];
    update.cluster = cluster.name();
    update.cluster_kind = cluster.saved.kind;
    auto at = cluster.runs.find({id, job.runs()});
    if (at != cluster.runs.end()) run = at->second.get();
  }
  const bool has_ended = contract::IsTerminal(job.state());
  update.hold = job.hold();
  update.fail_overs = job.fail_overs();
  if (auto time = retries_.TimeOf(id)) update.retry_time = absl::FromUnixMicros(*time);
  if (has_ended) {
    // A job that ends while it is QUEUED ends with no run.
    update.end_time = run != nullptr ? ToTime(run->end_time()) : step.now;
    const auto failed = step.failed_dependency.find(id);
    if (failed != step.failed_dependency.end()) update.failed_dependency = failed->second;
    if (job.request != RequestMemory::kNone) requests_.JobEnded(job.request, step.now);
    refused_.Forget(id);
    LeaveGroup(job.group);
    jobs_.erase(it);
  }
  step.out->changes.push_back(std::move(update));
}

void Core::Impl::PutTouchedRun(Step& step, Cluster* cluster, RunId id) {
  auto it = cluster->runs.find(id);
  const uint64_t sequence = step.changed.contains(id) ? next_sequence_++ : 0;
  if (it->second->logs_complete() || step.given_up.contains(id)) {
    step.out->changes.push_back(PutRun{id.job, std::move(*it->second), /*is_last=*/true, sequence});
    cluster->runs.erase(it);
  } else {
    step.out->changes.push_back(PutRun{id.job, *it->second, /*is_last=*/false, sequence});
  }
}

}  // namespace muster::core
