#include "agents/machines/run_board.h"

#include <utility>

#include "agents/core/proto_time.h"
#include "contract/sentences.h"
#include "contract/states.h"

namespace muster::machines {
namespace {

void SetTime(absl::Time now, v1::Evidence* evidence) {
  *evidence->mutable_observed_at() = agents::ToProto(now);
}

}  // namespace

v1::StateReason WaitsFor(const std::string& what) {
  return contract::MakeReason(v1::STATE_REASON_CODE_WAITS_FOR_RESOURCES,
                              {.detail = "waiting for " + what});
}

v1::StateReason AwaitsBroker() {
  return contract::MakeReason(
      v1::STATE_REASON_CODE_WAITS_IN_CLUSTER,
      {.detail = "waiting for the broker's word on what is still wanted, as the agent was started "
                 "anew"});
}

void RunBoard::Put(const agents::Observation& observation, bool leaves_processes) {
  const MutexLock lock(mutex_);
  entries_[observation.run_key] = {
      .observation = observation, .news = true, .leaves_processes = leaves_processes};
  wake_due_ = true;
}

void RunBoard::PutQuietly(const agents::Observation& observation) {
  const MutexLock lock(mutex_);
  entries_[observation.run_key] = {.observation = observation, .news = false};
}

void RunBoard::PutSilent(const agents::Observation& observation) {
  const MutexLock lock(mutex_);
  entries_[observation.run_key] = {.observation = observation, .news = true, .silent = true};
  wake_due_ = true;
}

void RunBoard::PutUnseen(const std::string& run_key) {
  const MutexLock lock(mutex_);
  entries_[run_key] = {.observation = {}, .silent = true};
}

void RunBoard::Remove(const std::string& run_key) {
  const MutexLock lock(mutex_);
  entries_.erase(run_key);
  held_.erase(run_key);
  own_reasons_.erase(run_key);
}

bool RunBoard::Contains(const std::string& run_key) const {
  const MutexLock lock(mutex_);
  return entries_.contains(run_key);
}

std::optional<agents::FenceOutcome> RunBoard::Fence(const std::string& run_key) const {
  using Kind = agents::FenceOutcome::Kind;
  const MutexLock lock(mutex_);
  const auto found = entries_.find(run_key);
  if (found == entries_.end()) return std::nullopt;
  const agents::Observation& seen = found->second.observation;
  // Its hosts do not answer, or its records are gone, and it was given up.
  if (seen.state == v1::RUN_STATE_LOST)
    return agents::FenceOutcome{Kind::kImpossible, seen.evidence};
  const bool is_over = contract::IsTerminal(seen.state) && !found->second.leaves_processes;
  agents::FenceOutcome outcome{is_over ? Kind::kEnded : Kind::kNotYet, seen.evidence};
  if (outcome.evidence.detail().empty())
    outcome.evidence.set_detail("the run is there, and nothing has told of it yet");
  return outcome;
}

void RunBoard::SetReasons(const std::string& first, v1::StateReason first_reason,
                          absl::Time first_start) {
  const MutexLock lock(mutex_);
  first_ = first;
  first_reason_ = std::move(first_reason);
  first_start_ = first_start;
}

void RunBoard::SetOwnReason(const std::string& run_key, v1::StateReason reason) {
  const MutexLock lock(mutex_);
  own_reasons_[run_key] = std::move(reason);
}

void RunBoard::ClearOwnReason(const std::string& run_key) {
  const MutexLock lock(mutex_);
  own_reasons_.erase(run_key);
}

v1::StateReason RunBoard::ReasonOfLocked(const std::string& run_key) const {
  if (held_.contains(run_key)) return contract::MakeReason(v1::STATE_REASON_CODE_HELD);
  const auto own = own_reasons_.find(run_key);
  if (own != own_reasons_.end()) return own->second;
  return run_key == first_ ? first_reason_
                           : contract::MakeReason(v1::STATE_REASON_CODE_WAITS_FOR_TURN);
}

void RunBoard::SetHeld(const std::string& run_key, bool held) {
  const MutexLock lock(mutex_);
  const bool was_held = held_.contains(run_key);
  if (held == was_held) return;
  if (held) {
    held_.insert(run_key);
  } else {
    held_.erase(run_key);
  }
  const auto found = entries_.find(run_key);
  if (found == entries_.end()) return;
  found->second.news = true;
  wake_due_ = true;
}

std::vector<agents::Observation> RunBoard::Report(const std::vector<agents::RunHandle>& runs,
                                                  absl::Time now,
                                                  std::vector<agents::RunHandle>* unknown) {
  const MutexLock lock(mutex_);
  const bool full = now - last_full_ >= kFullReportInterval;
  if (full) last_full_ = now;
  std::vector<agents::Observation> report;
  for (const agents::RunHandle& run : runs) {
    const auto found = entries_.find(run.run_key);
    if (found == entries_.end()) {
      unknown->push_back(run);
      continue;
    }
    Entry& entry = found->second;
    if (!entry.news && (!full || entry.silent)) continue;
    entry.news = false;
    report.push_back(entry.observation);
    if (!entry.silent) SetTime(now, &report.back().evidence);
    if (entry.observation.state == v1::RUN_STATE_PENDING) {
      report.back().reason = ReasonOfLocked(run.run_key);
      const bool is_first = run.run_key == first_ && !held_.contains(run.run_key);
      if (is_first && first_start_ < absl::InfiniteFuture())
        report.back().estimated_start = first_start_;
    }
  }
  return report;
}

void RunBoard::NoteNews() {
  const MutexLock lock(mutex_);
  wake_due_ = true;
}

void RunBoard::SetWaker(std::function<void()> wake) {
  const MutexLock lock(mutex_);
  wake_ = std::move(wake);
}

void RunBoard::WakeIfNews() {
  std::function<void()> wake;
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(wake_due_, false)) return;
    wake = wake_;
  }
  if (wake) wake();
}

}  // namespace muster::machines
