#include "agents/muster/run_book.h"

#include <algorithm>

#include "agents/muster/translate.h"
#include "contract/states.h"

namespace muster::remote {

void RunBook::Add(const std::string& run_key, uint64_t job) {
  const MutexLock lock(mutex_);
  Entry& entry = entries_[run_key];
  if (entry.number == job) return;
  if (entry.number != 0) runs_.erase({entry.number, run_key});
  entry = Entry();
  entry.number = job;
  runs_.emplace(job, run_key);
}

uint64_t RunBook::JobOf(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(run_key);
  return found == entries_.end() ? 0 : found->second.number;
}

void RunBook::Forget(const std::string& run_key) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(run_key);
  if (found == entries_.end()) return;
  runs_.erase({found->second.number, run_key});
  entries_.erase(found);
}

std::vector<std::pair<const std::string, RunBook::Entry>*> RunBook::EntriesOf(uint64_t job) {
  std::vector<std::pair<const std::string, Entry>*> found;
  for (auto at = runs_.lower_bound({job, ""}); at != runs_.end() && at->first == job; ++at)
    found.push_back(&*entries_.find(at->second));
  return found;
}

bool RunBook::Mark(uint64_t job) {
  const MutexLock lock(mutex_);
  const auto found = EntriesOf(job);
  for (auto* const each : found) each->second.is_marked = true;
  return !found.empty();
}

void RunBook::MarkAll() {
  const MutexLock lock(mutex_);
  for (auto& [run_key, entry] : entries_) entry.is_marked = true;
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
    bool is_due = false;
    for (auto* const each : EntriesOf(job)) {
      is_due = IsDue(each->second, is_live, now) || is_due;
      // The look that follows sees each earlier change; a change that comes later marks the job
      // again.
      each->second.is_marked = false;
    }
    if (is_due) due.push_back(job);
  }
  std::sort(due.begin(), due.end());
  return due;
}

void RunBook::Put(const v1::Job& job, absl::Duration now) {
  const MutexLock lock(mutex_);
  const auto label = job.labels().find(std::string(kRunLabel));
  for (auto* const each : EntriesOf(job.id())) {
    Entry& entry = each->second;
    if (label == job.labels().end() || label->second != each->first) {
      if (!entry.missing) entry.missing = now;
      continue;
    }
    entry.job = std::make_shared<const v1::Job>(job);
    entry.looked = now;
    entry.missing.reset();
    if (contract::IsTerminal(job.state()) && !entry.ended) entry.ended = now;
  }
}

void RunBook::PutMissing(uint64_t job, absl::Duration now) {
  const MutexLock lock(mutex_);
  for (auto* const each : EntriesOf(job)) {
    if (!each->second.missing) each->second.missing = now;
  }
}

RunBook::Seen RunBook::Look(const std::string& run_key, absl::Duration now) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(run_key);
  if (found == entries_.end()) return {};
  const Entry& entry = found->second;
  Seen seen = {.job = entry.job, .awaits_output = AwaitsOutput(entry, now)};
  if (entry.missing) seen.missing = now - *entry.missing;
  return seen;
}

}  // namespace muster::remote
