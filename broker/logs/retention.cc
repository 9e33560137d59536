#include "broker/logs/retention.h"

#include <algorithm>

#include "sync/mutex.h"

namespace muster::logs {
namespace {

bool AllEnded(const FoundJob& found) {
  return !found.logs.empty() &&
         std::all_of(found.logs.begin(), found.logs.end(),
                     [](const auto& named) { return named.second.state != LogState::kOpen; });
}

}  // namespace

absl::Status Retention::Survey(const std::filesystem::path& root, JobCache* cache) {
  const MutexLock lock(survey_mutex_);
  if (surveyed_) return absl::OkStatus();
  const auto buckets = ListBuckets(root);
  if (!buckets.ok()) return buckets.status();
  for (const uint64_t bucket : *buckets) {
    if (bucket < next_job_ / kJobsPerBucket) continue;
    const auto jobs = ListJobs(root, bucket);
    if (!jobs.ok()) return jobs.status();
    for (const uint64_t job : *jobs) {
      if (job < next_job_) continue;
      const auto found = cache->Survey(job);
      if (!found.ok()) return found.status();
      next_job_ = job + 1;
      if (found->expired) {
        Add({.ended = absl::InfinitePast(), .job = job});
      } else if (AllEnded(*found)) {
        Add({.ended = found->ended, .job = job});
      }
    }
  }
  cache->SurveyDone();
  surveyed_ = true;
  return absl::OkStatus();
}

void Retention::Add(EndedJob ended) {
  const MutexLock lock(mutex_);
  ended_.push(ended);
}

std::optional<EndedJob> Retention::TakeFirst(absl::Time cutoff) {
  const MutexLock lock(mutex_);
  if (ended_.empty() || ended_.top().ended > cutoff) return std::nullopt;
  const EndedJob first = ended_.top();
  ended_.pop();
  return first;
}

}  // namespace muster::logs
