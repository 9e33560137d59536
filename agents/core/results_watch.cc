#include "agents/core/results_watch.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "sync/mutex.h"

namespace muster::agents {
namespace {

// Tells whether the run's command has begun, as far as is seen.
bool IsBegun(const Observation& seen) {
  return seen.state == v1::RUN_STATE_RUNNING || seen.state == v1::RUN_STATE_SUSPENDED ||
         seen.state == v1::RUN_STATE_SUCCEEDED || seen.start_time.has_value() ||
         seen.exit.has_value();
}

bool WritesStatus(const RunHandle& run) {
  return run.assignment != nullptr && run.assignment->spec().status_json();
}

}  // namespace

ResultsWatch::ResultsWatch(Backend* backend, Post post, absl::Duration interval)
    : backend_(*backend),
      judges_ends_(backend->capabilities().judges_ends),
      post_(std::move(post)),
      interval_(interval),
      output_host_(backend),
      status_(&output_host_.get()) {}

void ResultsWatch::Complete(const std::vector<RunHandle>& runs, ObserveOutcome* outcome) {
  if (judges_ends_) return;
  Forget(runs);
  std::map<std::string_view, const RunHandle*> by_key;
  for (const RunHandle& run : runs) by_key.emplace(run.run_key, &run);
  for (Observation& seen : outcome->observations) {
    const auto run = by_key.find(seen.run_key);
    if (run == by_key.end()) continue;
    if (!IsBegun(seen)) {
      ForgetProgress(seen.run_key);
      continue;
    }
    Known* known = Add(*run->second);
    const MutexLock lock(mutex_);
    seen.results_directory = known->directory;
    seen.progress = known->progress;
    if (seen.state == v1::RUN_STATE_RUNNING && WritesStatus(*run->second))
      Ask(*run->second, seen.start_time, known);
  }
}

void ResultsWatch::Forget(const std::vector<RunHandle>& runs) {
  std::set<std::string_view> wanted;
  for (const RunHandle& run : runs) wanted.insert(run.run_key);
  const MutexLock lock(mutex_);
  std::erase_if(known_, [&](const auto& entry) {
    return !wanted.contains(entry.first) && !entry.second.is_reading;
  });
}

// A run that waits again has none.
void ResultsWatch::ForgetProgress(const std::string& run_key) {
  const MutexLock lock(mutex_);
  if (const auto known = known_.find(run_key); known != known_.end())
    known->second.progress.reset();
}

// Only this thread adds and erases, so the pointer stays good.
ResultsWatch::Known* ResultsWatch::Add(const RunHandle& run) {
  {
    const MutexLock lock(mutex_);
    if (const auto known = known_.find(run.run_key); known != known_.end()) return &known->second;
  }
  // Settings and the run's own records tell, once.
  std::string directory = backend_.OpenLogs(run).results_directory;
  const MutexLock lock(mutex_);
  Known& known = known_[run.run_key];
  known.directory = std::move(directory);
  return &known;
}

void ResultsWatch::Ask(const RunHandle& run, std::optional<absl::Time> start_time, Known* known) {
  if (known->is_reading || time_.Now() < known->next_reading) return;
  known->is_reading = true;
  post_([this, run, start_time] { Read(run, start_time); });
}

void ResultsWatch::Read(const RunHandle& run, std::optional<absl::Time> start_time) {
  const absl::Time began = time_.Now();
  const absl::StatusOr<std::optional<FoundStatus>> found =
      status_.Find(backend_.OpenLogs(run), start_time);
  const absl::Duration took = time_.Now() - began;
  const MutexLock lock(mutex_);
  Known& known = known_.at(run.run_key);
  known.is_reading = false;
  known.next_reading =
      time_.Now() + interval_ * std::max(1.0, absl::FDivDuration(took, kQuickReading));
  // The earlier word stays while the host cannot say.
  if (!found.ok()) return;
  known.progress.reset();
  if (found->has_value()) known.progress = ProgressOf(**found);
}

}  // namespace muster::agents
