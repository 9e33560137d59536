#include "agents/kubernetes/clean_up.h"

#include "agents/kubernetes/manifest/manifest.h"

namespace muster::kubernetes {
namespace {

absl::Time EndOf(const JobObject& job) {
  const Condition* end = job.Find("Complete");
  if (end == nullptr) end = job.Find("Failed");
  return end->since.value_or(absl::InfinitePast());
}

}  // namespace

CleanUp CleanUpOf(const JobObject& job, bool was_let_go, absl::Time now) {
  if (job.deletion_time.has_value()) return CleanUp::kNothing;
  const absl::Time latest = was_let_go ? absl::InfiniteFuture() : now - kAbandonedAfter;
  // A Job that others have let go before its launch was complete may run.
  if (!job.is_launch_complete && (job.is_suspended || was_let_go)) {
    const bool is_abandoned = job.created.value_or(absl::InfiniteFuture()) <= latest;
    return is_abandoned ? CleanUp::kDelete : CleanUp::kNothing;
  }
  // A Job that is suspended although its pods have ended never ends by itself.
  if (!job.HasEnded()) return was_let_go ? CleanUp::kDelete : CleanUp::kTell;
  const bool goes_soon =
      job.time_to_live.has_value() &&
      *job.time_to_live <= job.final_time_to_live.value_or(kDefaultTimeToLiveSeconds);
  return goes_soon || EndOf(job) > latest ? CleanUp::kNothing : CleanUp::kLowerTimeToLive;
}

}  // namespace muster::kubernetes
