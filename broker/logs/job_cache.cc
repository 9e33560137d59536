#include "broker/logs/job_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sync/mutex.h"

namespace muster::logs {

Log* Job::Find(const LogName& name) {
  const MutexLock lock(mutex);
  const auto found = logs.find(name);
  return found == logs.end() ? nullptr : found->second.get();
}

Log* Job::FindOrMake(const LogName& name) {
  const MutexLock lock(mutex);
  auto& log = logs[name];
  if (log == nullptr) {
    log = std::make_unique<Log>();
    auto& order = orders[{name.run, name.rank}];
    if (order == nullptr) order = std::make_unique<Order>();
    log->order = order.get();
  }
  return log.get();
}

Order* Job::FindOrder(const RankName& name) {
  const MutexLock lock(mutex);
  const auto found = orders.find(name);
  return found == orders.end() ? nullptr : found->second.get();
}

bool Job::HasEnded() {
  const MutexLock lock(mutex);
  return !logs.empty() && std::all_of(logs.begin(), logs.end(), [](const auto& named) {
    return named.second->state != LogState::kOpen;
  });
}

absl::StatusOr<std::shared_ptr<Job>> JobCache::Get(uint64_t job) {
  Shard& shard = ShardOf(job);
  const MutexLock lock(shard.mutex);
  if (const auto found = shard.jobs.find(job); found != shard.jobs.end()) return found->second;
  auto loaded = Load(job, &shard);
  if (!loaded.ok()) return loaded;
  if (shard.jobs.size() >= std::max(entries_kept_, shard.sweep_at)) {
    std::erase_if(shard.jobs, [](const auto& entry) { return entry.second.use_count() == 1; });
    shard.sweep_at = 2 * shard.jobs.size();
  }
  shard.jobs[job] = *loaded;
  return loaded;
}

absl::StatusOr<std::shared_ptr<Job>> JobCache::Load(uint64_t job, Shard* shard) {
  auto found = FindJob(root_, job);
  if (!found.ok()) return found.status();
  auto entry = std::make_shared<Job>(job);
  entry->expired = found->expired;
  entry->has_logs = !found->logs.empty();
  const bool is_counted = job <= surveyed_up_to_ || shard->counted.contains(job);
  if (auto status = LoadLogs(entry.get(), &*found, is_counted); !status.ok()) return status;
  if (!is_counted) {
    shard->counted.insert(job);
    Count(*found);
  }
  return entry;
}

absl::Status JobCache::LoadLogs(Job* job, FoundJob* found, bool is_counted) {
  for (auto& [name, file] : found->logs) {
    Log* log = job->FindOrMake(name);
    const MutexLock lock(log->mutex);
    if (file.state == LogState::kOpen && !found->expired) {
      const auto intact = RecoverLog(root_, job->id, name);
      if (!intact.ok()) return intact.status();
      if (is_counted) total_bytes_ -= static_cast<int64_t>(file.size - intact->bytes);
      file.size = intact->bytes;
      log->block_crc = intact->crc;
    }
    log->state = found->expired ? LogState::kExpired : file.state;
    log->size = file.size;
    log->exists = true;
    log->name = file.state;
    job->bytes += file.size;
  }
  return LoadOrders(job, *found);
}

absl::Status JobCache::LoadOrders(Job* job, const FoundJob& found) {
  for (const auto& [rank, marks] : found.marks) {
    const RankName& name = rank;  // clang 14 lets no lambda have a structured binding
    Order* const order = job->FindOrder(name);
    if (order == nullptr || found.expired) continue;
    order->marks = marks;
    const auto sizes = [&](v1::LogStream stream) -> std::pair<uint64_t, bool> {
      const auto log = found.logs.find({name.run, name.rank, stream});
      if (log == found.logs.end()) return {0, true};
      return {log->second.size, log->second.state == LogState::kOpen};
    };
    const auto [out, out_goes_on] = sizes(v1::LOG_STREAM_STDOUT);
    const auto [err, err_goes_on] = sizes(v1::LOG_STREAM_STDERR);
    if (!out_goes_on && !err_goes_on) continue;
    const auto kept = RecoverOrder(root_, job->id, name, {.out = out, .err = err});
    if (!kept.ok()) return kept.status();
    order->marks = *kept;
  }
  return absl::OkStatus();
}

absl::StatusOr<FoundJob> JobCache::Survey(uint64_t job) {
  Shard& shard = ShardOf(job);
  const MutexLock lock(shard.mutex);
  auto found = FindJob(root_, job);
  if (!found.ok()) return found;
  if (!shard.counted.contains(job)) Count(*found);
  surveyed_up_to_ = job;
  return found;
}

void JobCache::SurveyDone() {
  surveyed_up_to_ = std::numeric_limits<uint64_t>::max();
  for (Shard& shard : shards_) {
    const MutexLock lock(shard.mutex);
    shard.counted.clear();
  }
}

void JobCache::Count(const FoundJob& found) {
  for (const auto& [name, log] : found.logs) total_bytes_ += static_cast<int64_t>(log.size);
  if (!found.logs.empty()) ++total_jobs_;
}

}  // namespace muster::logs
