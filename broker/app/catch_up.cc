#include "broker/app/catch_up.h"

#include <algorithm>
#include <utility>

#include "contract/states.h"

namespace muster::broker {
namespace {

// Transitions read and held by one stream at a time.
constexpr int kPage = 200;
// Jobs whose states are remembered from page to page, about 20 B each.
constexpr size_t kMaxStates = 100'000;
// How far into a job's history its state before a step is looked for. A job with a longer one is
// judged by what it was after the step.
constexpr int kMaxHistory = 200;

// The job as a filter saw it when it had this state, as far as is known.
v1::Job InState(v1::Job job, v1::JobState state) {
  job.set_state(state);
  if (contract::IsTerminal(state)) return job;
  job.clear_end_time();
  return job;
}

}  // namespace

absl::StatusOr<CatchUp::Page> CatchUp::ReadAfter(uint64_t sequence, uint64_t up_to) {
  auto steps = store_->ListTransitions(scope_, jobs_, sequence, kPage);
  if (!steps.ok()) return steps.status();
  Page page;
  const bool is_last_page = steps->size() < kPage;
  // Later transitions are in the tail.
  while (!steps->empty() && steps->back().transition.sequence() > up_to) steps->pop_back();
  page.read_up_to = is_last_page || steps->empty() ? std::max(sequence, up_to)
                                                   : steps->back().transition.sequence();
  std::vector<uint64_t> ids;
  for (const auto& step : *steps) ids.push_back(step.job);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const auto by_id = ReadJobs(ids);
  if (!by_id.ok()) return by_id.status();
  if (states_.size() > kMaxStates) states_.clear();
  for (auto& step : *steps) {
    const auto found = by_id->find(step.job);
    if (found == by_id->end()) continue;  // it was deleted meanwhile
    const v1::Job& now = found->second;
    const absl::StatusOr<bool> takes = Takes(step, now);
    if (!takes.ok()) return takes.status();
    if (contract::IsTerminal(step.transition.job_state())) page.ended.push_back(step.job);
    if (!*takes) continue;
    v1::JobChange& change = *page.messages.emplace_back().mutable_change();
    change.set_sequence(step.transition.sequence());
    *change.mutable_job() = now;
    *change.mutable_transition() = std::move(step.transition);
  }
  return page;
}

absl::StatusOr<absl::flat_hash_map<uint64_t, v1::Job>> CatchUp::ReadJobs(
    const std::vector<uint64_t>& ids) const {
  absl::flat_hash_map<uint64_t, v1::Job> by_id;
  auto all = store_->GetJobs(scope_, ids);
  if (all.ok()) {
    for (v1::Job& job : *all) by_id.emplace(job.id(), std::move(job));
    return by_id;
  }
  if (!absl::IsNotFound(all.status())) return all.status();
  for (const uint64_t id : ids) {
    auto job = store_->GetJobs(scope_, {id});
    if (absl::IsNotFound(job.status())) continue;
    if (!job.ok()) return job.status();
    by_id.emplace(id, std::move(job->front()));
  }
  return by_id;
}

absl::StatusOr<bool> CatchUp::Takes(const store::JobTransition& step, const v1::Job& now) {
  if (filter_.kind == contract::Filter::Kind::kAll) return true;
  const absl::StatusOr<v1::JobState> before = StateBefore(step);
  if (!before.ok()) return before.status();
  const v1::JobState after = states_[step.job] = step.transition.job_state();
  if (filter_.Matches(InState(now, after))) return true;
  return *before != v1::JOB_STATE_UNSPECIFIED && filter_.Matches(InState(now, *before));
}

absl::StatusOr<v1::JobState> CatchUp::StateBefore(const store::JobTransition& step) {
  if (const auto known = states_.find(step.job); known != states_.end()) return known->second;
  if (step.transition.job_sequence() <= 1) return v1::JOB_STATE_UNSPECIFIED;
  const auto history = store_->ListTransitions(scope_, {step.job}, 0, kMaxHistory);
  if (!history.ok()) return history.status();
  for (const store::JobTransition& past : *history) {
    if (past.transition.job_sequence() + 1 == step.transition.job_sequence()) {
      return past.transition.job_state();
    }
  }
  return v1::JOB_STATE_UNSPECIFIED;
}

}  // namespace muster::broker
