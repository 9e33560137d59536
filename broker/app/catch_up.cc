#include "broker/app/catch_up.h"

#include <algorithm>
#include <utility>

#include "contract/states.h"

namespace muster::broker {
namespace {

// Transitions read and held by one stream at a time.
constexpr int kPage = 200;
// Changes of runs likewise, each with up to 256 KiB of nodes.
constexpr int kRunPage = 50;
// Jobs whose steps so far are remembered from page to page, 48 B each.
constexpr size_t kMaxPasts = 100'000;

template <typename Item>
void DropAfter(uint64_t last, uint64_t (*sequence_of)(const Item&), std::vector<Item>* items) {
  while (!items->empty() && sequence_of(items->back()) > last) items->pop_back();
}
uint64_t SequenceOfStep(const store::JobTransition& step) { return step.transition.sequence(); }
uint64_t SequenceOfChange(const store::RunChange& change) { return change.sequence; }

}  // namespace

absl::StatusOr<CatchUp::Found> CatchUp::List(uint64_t sequence, uint64_t up_to) const {
  auto steps = store_->ListTransitions(scope_, jobs_, sequence, kPage);
  if (!steps.ok()) return steps.status();
  auto changes = store_->ListRunChanges(scope_, jobs_, sequence, kRunPage);
  if (!changes.ok()) return changes.status();
  // Later steps are in the tail, or on the next page.
  if (steps->size() == kPage) up_to = std::min(up_to, SequenceOfStep(steps->back()));
  if (changes->size() == kRunPage) up_to = std::min(up_to, SequenceOfChange(changes->back()));
  DropAfter(up_to, SequenceOfStep, &*steps);
  DropAfter(up_to, SequenceOfChange, &*changes);
  return Found{*std::move(steps), *std::move(changes), std::max(sequence, up_to)};
}

absl::StatusOr<CatchUp::Page> CatchUp::ReadAfter(uint64_t sequence, uint64_t up_to) {
  auto found = List(sequence, up_to);
  if (!found.ok()) return found.status();
  const auto jobs = ReadJobs(*found);
  if (!jobs.ok()) return jobs.status();
  if (filter_.kind != contract::Filter::Kind::kAll) {
    // Reads the steps once more, after the jobs: edits from before the jobs were read are among
    // them now.
    const int limit = static_cast<int>(found->steps.size());
    auto steps = store_->ListTransitions(scope_, jobs_, sequence, limit);
    if (!steps.ok()) return steps.status();
    DropAfter(found->up_to, SequenceOfStep, &*steps);
    found->steps = *std::move(steps);
  }
  if (pasts_.size() > kMaxPasts || sequence != read_up_to_) pasts_.clear();
  Page page;
  page.read_up_to = found->up_to;
  auto change = found->changes.begin();
  const auto give_changes_before = [&](uint64_t next) {
    for (; change != found->changes.end() && change->sequence < next; ++change) {
      if (absl::Status status = Give(*change, *jobs, &page); !status.ok()) return status;
    }
    return absl::OkStatus();
  };
  for (store::JobTransition& step : found->steps) {
    absl::Status status = give_changes_before(SequenceOfStep(step));
    if (status.ok()) status = Give(step, *jobs, &page);
    if (!status.ok()) return status;
  }
  if (absl::Status status = give_changes_before(found->up_to + 1); !status.ok()) return status;
  read_up_to_ = page.read_up_to;
  return page;
}

absl::Status CatchUp::Give(store::JobTransition& step, const Jobs& jobs, Page* page) {
  const auto now = jobs.find(step.job);
  if (now == jobs.end()) return absl::OkStatus();  // it was deleted meanwhile
  const absl::StatusOr<bool> takes = Takes(step, now->second);
  if (!takes.ok()) return takes.status();
  if (contract::IsTerminal(step.transition.job_state())) page->ended.push_back(step.job);
  if (!*takes) return absl::OkStatus();
  v1::JobChange& change = page->changes.emplace_back();
  change.set_sequence(step.transition.sequence());
  *change.mutable_job() = now->second;
  change.mutable_job()->clear_runs();
  *change.mutable_transition() = std::move(step.transition);
  return absl::OkStatus();
}

absl::Status CatchUp::Give(store::RunChange& changed, const Jobs& jobs, Page* page) {
  const auto now = jobs.find(changed.job);
  if (now == jobs.end()) return absl::OkStatus();
  const absl::StatusOr<bool> takes = Takes(changed, now->second);
  if (!takes.ok()) return takes.status();
  if (!*takes) return absl::OkStatus();
  v1::JobChange& change = page->changes.emplace_back();
  change.set_sequence(changed.sequence);
  *change.mutable_job() = now->second;
  change.mutable_job()->clear_runs();
  *change.mutable_job()->add_runs() = std::move(changed.run);
  return absl::OkStatus();
}

absl::StatusOr<CatchUp::Jobs> CatchUp::ReadJobs(const Found& found) const {
  std::vector<uint64_t> ids;
  for (const auto& step : found.steps) ids.push_back(step.job);
  for (const auto& change : found.changes) {
    if (change.job != 0) ids.push_back(change.job);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  // Only a filter looks into the runs.
  const bool with_runs = filter_.kind != contract::Filter::Kind::kAll;
  const auto read = [&](absl::Span<const uint64_t> some) {
    return with_runs ? store_->GetJobsAndRuns(scope_, some) : store_->GetJobs(scope_, some);
  };
  Jobs by_id;
  auto all = read(ids);
  if (all.ok()) {
    for (v1::Job& job : *all) by_id.emplace(job.id(), std::move(job));
    return by_id;
  }
  if (!absl::IsNotFound(all.status())) return all.status();
  for (const uint64_t id : ids) {
    auto job = read({id});
    if (absl::IsNotFound(job.status())) continue;
    if (!job.ok()) return job.status();
    by_id.emplace(id, std::move(job->front()));
  }
  return by_id;
}

absl::StatusOr<store::StepsSoFar*> CatchUp::PastOf(uint64_t job, uint64_t sequence) {
  auto known = pasts_.find(job);
  if (known == pasts_.end()) {
    auto past = store::ReadPast(*store_, scope_, job, /*up_to_sequence=*/sequence - 1);
    if (!past.ok()) return past.status();
    known = pasts_.emplace(job, past->steps).first;
  }
  return &known->second;
}

// This is not remembered with the steps: the job may be edited between two pages.
absl::StatusOr<std::optional<store::Editable>> CatchUp::EditedSince(
    uint64_t job, const store::StepsSoFar& steps) const {
  if (steps.empty()) return std::nullopt;
  const auto latest = store_->ListTransitions(scope_, {&job, 1}, steps.sequence() - 1, 1);
  if (!latest.ok()) return latest.status();
  return latest->empty() ? std::nullopt : latest->front().edited_later;
}

absl::StatusOr<bool> CatchUp::Takes(const store::JobTransition& step, const v1::Job& now) {
  if (filter_.kind == contract::Filter::Kind::kAll) return true;
  const auto steps = PastOf(step.job, step.transition.sequence());
  if (!steps.ok()) return steps.status();
  const auto& edited_before = step.edited ? step.edited : step.edited_later;
  // A new job has nothing before its first step.
  const bool matched =
      !(*steps)->empty() && filter_.Matches((*steps)->Then(now, edited_before, kind_of_));
  (*steps)->Take(step.transition);
  return matched || filter_.Matches((*steps)->Then(now, step.edited_later, kind_of_));
}

absl::StatusOr<bool> CatchUp::Takes(const store::RunChange& change, const v1::Job& now) {
  if (filter_.kind == contract::Filter::Kind::kAll) return true;
  const auto steps = PastOf(change.job, change.sequence);
  if (!steps.ok()) return steps.status();
  const auto edited_later = EditedSince(change.job, **steps);
  if (!edited_later.ok()) return edited_later.status();
  return filter_.Matches((*steps)->Then(now, *edited_later, kind_of_));
}

}  // namespace muster::broker
