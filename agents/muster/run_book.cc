#include "agents/muster/run_book.h"

#include "agents/muster/translate.h"
#include "contract/states.h"

namespace muster::remote {

void RunBook::Add(const std::string& run_key, uint64_t job) {
  const MutexLock lock(mutex_);
  jobs_[run_key] = job;
  entries_[job].run_key = run_key;
}

uint64_t RunBook::JobOf(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(run_key);
  return found == jobs_.end() ? 0 : found->second;
}

void RunBook::Forget(const std::string& run_key) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(run_key);
  if (found == jobs_.end()) return;
  entries_.erase(found->second);
  jobs_.erase(found);
}

bool RunBook::Mark(uint64_t job) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(job);
  if (found == entries_.end()) return false;
  found->second.is_marked = true;
  return true;
}

void RunBook::MarkAll() {
  const MutexLock lock(mutex_);
  for (auto& [job, entry] : entries_) entry.is_marked = true;
}

bool RunBook::AwaitsOutput(const Entry& entry, absl::Duration now) {
  return entry.job != nullptr && entry.ended && !IsComplete(*entry.job) &&
         now - *entry.ended < kOutputPatience;
}

bool RunBook::IsDue(const Entry& entry, bool is_live, absl::Duration now) {
  if (entry.is_marked || !is_live || entry.job == nullptr || entry.missing) return true;
  if (entry.ended) return AwaitsOutput(entry, now);
  const bool waits = entry.job->state() == v1::JOB_STATE_QUEUED;
  return now - entry.looked >= (waits ? kWaitingAge : kAge);
}

std::vector<uint64_t> RunBook::TakeDue(const std::vector<uint64_t>& jobs, bool is_live,
                                       absl::Duration now) {
  const MutexLock lock(mutex_);
  std::vector<uint64_t> due;
  for (const uint64_t job : jobs) {
    const auto found = entries_.find(job);
    if (found == entries_.end() || !IsDue(found->second, is_live, now)) continue;
    // A change that comes from now on is seen by the look that follows, or marks it again.
    found->second.is_marked = false;
    due.push_back(job);
  }
  return due;
}

void RunBook::Put(const v1::Job& job, absl::Duration now) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(job.id());
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const auto label = job.labels().find(std::string(kRunLabel));
  if (label == job.labels().end() || label->second != entry.run_key) {
    if (!entry.missing) entry.missing = now;
    return;
  }
  entry.job = std::make_shared<const v1::Job>(job);
  entry.looked = now;
  entry.missing.reset();
  if (contract::IsTerminal(job.state()) && !entry.ended) entry.ended = now;
}

void RunBook::PutMissing(uint64_t job, absl::Duration now) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(job);
  if (found != entries_.end() && !found->second.missing) found->second.missing = now;
}

RunBook::Seen RunBook::Look(uint64_t job, absl::Duration now) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(job);
  if (found == entries_.end()) return {};
  const Entry& entry = found->second;
  Seen seen = {.job = entry.job, .awaits_output = AwaitsOutput(entry, now)};
  if (entry.missing) seen.missing = now - *entry.missing;
  return seen;
}

}  // namespace muster::remote
