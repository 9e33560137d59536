#include "broker/core/refused_jobs.h"

#include <algorithm>
#include <utility>

namespace muster::core {

void RefusedJobs::Put(uint64_t job, Clusters clusters, absl::Time now) {
  Await(job, clusters, now);
  jobs_.insert_or_assign(job, std::move(clusters));
}

void RefusedJobs::Forget(uint64_t job) {
  if (jobs_.erase(job) > 0) times_.Remove(job);
}

const RefusedJobs::Clusters* RefusedJobs::Find(uint64_t job) const {
  const auto at = jobs_.find(job);
  return at == jobs_.end() ? nullptr : &at->second;
}

uint32_t RefusedJobs::TimesOf(uint64_t job) const {
  uint32_t times = 0;
  if (const Clusters* clusters = Find(job)) {
    for (const contract::RefusingCluster& one : *clusters) times += one.times;
  }
  return times;
}

std::vector<std::string> RefusedJobs::RuledOut(uint64_t job, absl::Time now) const {
  std::vector<std::string> names;
  if (const Clusters* clusters = Find(job)) {
    for (const contract::RefusingCluster& one : *clusters) {
      if (one.until > now) names.push_back(one.cluster);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<uint64_t> RefusedJobs::TakeDue(absl::Time now) {
  const std::optional<uint64_t> job = times_.TakeDue(absl::ToUnixMicros(now));
  if (job) Await(*job, jobs_.at(*job), now);
  return job;
}

void RefusedJobs::Shift(absl::Duration by) {
  times_.Shift(absl::ToInt64Microseconds(by));
  for (auto& [job, clusters] : jobs_) {
    for (contract::RefusingCluster& one : clusters) one.until += by;
  }
}

void RefusedJobs::Await(uint64_t job, const Clusters& clusters, absl::Time now) {
  times_.Remove(job);
  absl::Time next = absl::InfiniteFuture();
  for (const contract::RefusingCluster& one : clusters) {
    if (one.until > now) next = std::min(next, one.until);
  }
  if (next != absl::InfiniteFuture()) times_.Add(job, absl::ToUnixMicros(next));
}

}  // namespace muster::core
