#include "broker/store/job_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "broker/core/timestamps.h"
#include "contract/queue_words.h"
#include "contract/retry.h"
#include "contract/text.h"

namespace muster::store {
namespace {

// Of a cluster that does not say who it was.
constexpr char kCanceledByOthers[] = "canceled on its cluster, not by Muster";

std::string_view Describe(v1::FailureClass failure_class) {
  switch (failure_class) {
    case v1::FAILURE_CLASS_INFRA:
      return "an infrastructure failure";
    case v1::FAILURE_CLASS_IMAGE:
      return "a failure of the image";
    case v1::FAILURE_CLASS_PREEMPTED:
      return "a preemption";
    default:
      return "a failure that another run may not have";
  }
}

std::string WhyItWaits(uint32_t next_run, const v1::Job& job) {
  const absl::Time time = core::ToTime(job.retry_time());
  // Without the spec nothing says how many runs there may be.
  const std::string of =
      job.has_spec() ? fmt::format(" of {}", contract::RetryRuleOf(job.spec()).max_runs) : "";
  return fmt::format("waits until {} UTC for run {}{} after {}: {}",
                     ToStd(absl::FormatTime("%H:%M:%S", time, absl::UTCTimeZone())), next_run, of,
                     Describe(job.failure().failure_class()), job.failure().message());
}

// A failure after which another run would have followed, if there were one left.
bool UsedUpItsRuns(const v1::Run& latest, const v1::Job& job) {
  return job.state() == v1::JOB_STATE_FAILED && latest.state() == v1::RUN_STATE_FAILED &&
         latest.number() > 1 && latest.failure().retriable() && !job.cancel_requested();
}

// Whether nobody knows how far the job is, though it is RUNNING. Other reasons of such a run may be
// over: agents say when one begins.
bool IsUnseen(const v1::Run& latest, const v1::Job& job) {
  return job.state() == v1::JOB_STATE_RUNNING && contract::SaysHostIsSilent(latest.reason());
}

constexpr char kHeld[] = "held";

// In the words of Slurm's reasons, or in those of the other agents.
bool SaysHeld(std::string_view reason) {
  return reason.find("(JobHeld") != reason.npos || reason.starts_with("held:");
}

// A cluster that was only asked to hold its run may start it yet.
std::string WhyHeld(const v1::Run* latest, const v1::Job& job) {
  const bool is_placed = job.state() != v1::JOB_STATE_QUEUED && latest != nullptr;
  if (!is_placed || SaysHeld(latest->reason())) return kHeld;
  return latest->reason().empty() ? "asked to hold" : "asked to hold; " + latest->reason();
}

}  // namespace

void ShowState(const v1::Run* latest, v1::Job* job) {
  if (latest != nullptr) {
    if (latest->has_exit()) *job->mutable_exit() = latest->exit();
    if (latest->has_failure()) *job->mutable_failure() = latest->failure();
    if (job->state() == v1::JOB_STATE_PENDING || IsUnseen(*latest, *job))
      job->set_reason(latest->reason());
    if (job->state() == v1::JOB_STATE_CANCELED && !job->cancel_requested())
      job->set_reason(latest->reason().empty() ? kCanceledByOthers : latest->reason());
    if (UsedUpItsRuns(*latest, *job)) {
      job->mutable_failure()->set_message(
          fmt::format("after {} runs: {}", latest->number(), latest->failure().message()));
    }
    if (job->has_retry_time()) job->set_reason(WhyItWaits(latest->number() + 1, *job));
  }
  if (job->held()) job->set_reason(WhyHeld(latest, *job));
}

void ShowHold(const v1::Transition& step, v1::Job* job) {
  if (job->reason() == kHeld) job->set_reason(step.evidence().detail());
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
