#include "broker/store/job_view.h"

#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <utility>

#include "broker/core/timestamps.h"
#include "contract/failures.h"
#include "contract/retry.h"
#include "contract/sentences.h"
#include "contract/states.h"

namespace muster::store {
namespace {

// Tells whether the job's state is unknown, though it is RUNNING. Other reasons of such a run may
// be over: agents say when one begins.
bool IsUnseen(const v1::Run& latest, const v1::Job& job) {
  return job.state() == v1::JOB_STATE_RUNNING &&
         latest.state_reason().code() == v1::STATE_REASON_CODE_HOST_SILENT;
}

// Says why a run waits, or that there is no word of its host.
v1::StateReason WhyOfRun(const v1::Run& latest, const v1::Job& job) {
  const bool waits = job.state() == v1::JOB_STATE_PENDING;
  if (!waits && !IsUnseen(latest, job)) return {};
  return latest.has_state_reason() ? latest.state_reason() : contract::Unexplained(latest);
}

// A cluster that was only asked to hold its run may start it yet.
v1::StateReason WhyHeld(const v1::Run* latest, const v1::Job& job) {
  const bool is_placed = job.state() != v1::JOB_STATE_QUEUED && latest != nullptr;
  if (!is_placed || latest->state_reason().code() == v1::STATE_REASON_CODE_HELD)
    return contract::MakeReason(v1::STATE_REASON_CODE_HELD);
  return contract::HoldAsked(WhyOfRun(*latest, job));
}

v1::StateReason Withdrawing(const v1::Job& job) {
  const uint64_t other = job.withdrawal().for_job();
  return contract::MakeReason(v1::STATE_REASON_CODE_WITHDRAWING,
                              {.subject = other == 0 ? "" : fmt::format("{}", other),
                               .cluster = job.cluster(),
                               .since = core::ToTime(job.withdrawal().create_time())});
}

}  // namespace

void PutHold(core::HoldState hold, v1::Job* job) {
  job->set_held(hold == core::HoldState::kHeld);
  job->clear_state_reason();
  if (hold == core::HoldState::kReleased)
    job->mutable_state_reason()->set_code(v1::STATE_REASON_CODE_RELEASED);
}

void PutFailedDependency(uint64_t other, v1::Job* job) {
  *job->mutable_failure() =
      contract::MakeFailure(v1::FAILURE_CODE_DEPENDENCY_FAILED, v1::FAILURE_CLASS_CONFIG,
                            {.subject = fmt::format("{}", other)});
}

std::vector<core::LiveJob::Dependency> RestoredDependencies(const v1::JobSpec& spec,
                                                            absl::Span<const v1::JobState> states) {
  std::vector<core::LiveJob::Dependency> all;
  for (int i = 0; i < spec.depends_on_size(); ++i) {
    core::LiveJob::Dependency& one = all.emplace_back(core::LiveJob::Dependency{
        .job = spec.depends_on(i).job_id(), .outcome = spec.depends_on(i).outcome()});
    if (contract::IsTerminal(states[i])) one.end = states[i];
  }
  return all;
}

void ShowState(const v1::Run* latest, v1::Job* job) {
  const bool is_released = job->state_reason().code() == v1::STATE_REASON_CODE_RELEASED;
  job->clear_state_reason();
  if (latest != nullptr) {
    if (latest->has_exit()) *job->mutable_exit() = latest->exit();
    // A canceled job has not ended because its run failed, and its user need not mend that.
    if (latest->has_failure() && job->state() != v1::JOB_STATE_CANCELED)
      *job->mutable_failure() = latest->failure();
    const bool has_reason = latest->has_state_reason();
    if (v1::StateReason why = WhyOfRun(*latest, *job);
        why.code() != v1::STATE_REASON_CODE_UNSPECIFIED)
      *job->mutable_state_reason() = std::move(why);
    if (is_released && job->state_reason().code() == v1::STATE_REASON_CODE_HELD) {
      *job->mutable_state_reason() =
          contract::MakeReason(v1::STATE_REASON_CODE_RELEASED, {.cluster = job->cluster()});
    }
    if (job->state() == v1::JOB_STATE_CANCELED && !job->cancel_requested()) {
      *job->mutable_state_reason() =
          has_reason ? latest->state_reason()
                     : contract::MakeReason(v1::STATE_REASON_CODE_CANCELED_BY_OTHERS);
    }
    if (job->has_failure()) {
      contract::SayAfterRuns(job->mutable_failure());
      contract::SayTimeLimit(job->spec(), job->mutable_failure());
    }
    if (job->has_retry_time())
      *job->mutable_state_reason() = contract::RetryDelay(*latest, job->retry_time());
  }
  if (job->held()) *job->mutable_state_reason() = WhyHeld(latest, *job);
  if (job->has_withdrawal()) *job->mutable_state_reason() = Withdrawing(*job);
  if (job->cancel_requested() && !contract::IsTerminal(job->state()))
    *job->mutable_state_reason() = contract::CancelAsked(job->state_reason());
}

void ShowHold(const v1::Transition& step, v1::Job* job) {
  if (job->state_reason().code() != v1::STATE_REASON_CODE_HELD) return;
  v1::StateReason* held = job->mutable_state_reason();
  held->set_detail(step.evidence().detail());
  *held->mutable_since() = step.time();
  contract::PutSentence(held);
}

bool TakeUsage(const core::PutUsage& change, v1::Run* run) {
  using google::protobuf::util::MessageDifferencer;
  if (run->cluster() != change.cluster || !contract::IsTerminal(run->state())) return false;
  if (run->has_usage() && MessageDifferencer::Equals(run->usage(), change.usage)) return false;
  *run->mutable_usage() = change.usage;
  return true;
}

std::vector<std::string> FailedNodes(const google::protobuf::RepeatedPtrField<v1::Run>& runs) {
  std::vector<std::string> nodes;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    // A run that was preempted says nothing against its nodes.
    if (!contract::IsWorthAnother(*run, {.on_preemption = false})) continue;
    if (run->cluster() != runs.rbegin()->cluster()) continue;
    for (const std::string& node : run->nodes()) {
      if (nodes.size() == kMaxExcludedNodes) return nodes;
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    }
  }
  return nodes;
}

}  // namespace muster::store
