// Decides what becomes of jobs that wait for the end of other jobs when those end.
#include <memory>
#include <utility>
#include <vector>

#include "broker/core/dependencies.h"
#include "broker/core/impl.h"
#include "contract/dependencies.h"
#include "contract/sentences.h"

namespace muster::core {
namespace {

// Rows of one commit, as at the ends of waits (retry.cc). A longer chain of failures goes on in the
// next call.
constexpr int kMaxJudgedPerCall = 10'000;

}  // namespace

void Core::Impl::Await(uint64_t id, const v1::JobSpec& spec, const Ends& ends) {
  std::vector<Dependencies::Need> needs;
  std::vector<std::pair<uint64_t, v1::JobState>> failed;
  for (const v1::JobDependency& one : spec.depends_on()) {
    if (!jobs_.contains(one.job_id())) {
      const auto end = ends.find(one.job_id());
      if (end == ends.end() || contract::Meets(end->second, one.outcome())) continue;
      failed.push_back(*end);
    }
    needs.push_back({one.job_id(), one.outcome()});
  }
  dependencies_.Add(id, std::move(needs));
  for (const auto& [job, end] : failed) dependencies_.JobEnded(job, end);
}

void Core::Impl::AwaitAgain(const LiveJob& saved) {
  // A run is the proof that they were met.
  if (saved.state != v1::JOB_STATE_QUEUED || saved.runs > 0) return;
  std::vector<Dependencies::Need> needs;
  std::vector<std::pair<uint64_t, v1::JobState>> failed;
  for (const LiveJob::Dependency& one : saved.depends_on) {
    if (!jobs_.contains(one.job)) {
      // The end and its consequences are one commit, or the job is among those to be judged.
      if (!one.end || contract::Meets(*one.end, one.outcome)) continue;
      failed.emplace_back(one.job, *one.end);
    }
    needs.push_back({one.job, one.outcome});
  }
  dependencies_.Add(saved.id, std::move(needs));
  for (const auto& [job, end] : failed) dependencies_.JobEnded(job, end);
}

void Core::Impl::JudgeDependents(Step& step) {
  int budget = kMaxJudgedPerCall;
  while (const auto verdict = dependencies_.Next(&budget)) {
    Job& job = jobs_.at(verdict->job);
    if (verdict->is_met) {
      if (IsReady(verdict->job, job)) LineUp(verdict->job, job);
      continue;
    }
    step.failed_dependency[verdict->job] = verdict->need.job;
    v1::Transition transition;
    *transition.mutable_evidence() = BrokerEvidence(
        contract::DependencyEnded(verdict->need.job, verdict->end, verdict->need.outcome),
        step.now);
    Apply(verdict->job, job, {contract::JobEvent::kDependencyFails}, std::move(transition), step);
  }
}

absl::Status Core::Impl::CheckDependencies() const {
  return dependencies_.Check([this](uint64_t id) { return jobs_.contains(id); });
}

}  // namespace muster::core
