// Gives a job another run after its run failed through the cluster's fault.
#include "contract/retry.h"

#include <utility>

#include "broker/core/event_bounds.h"
#include "broker/core/impl.h"
#include "contract/sentences.h"

namespace muster::core {
bool Core::Impl::WantsAnotherRun(const v1::Run& ended, const Job& job) const {
  return job.Takes(contract::JobEvent::kRetry) &&
         contract::IsWorthAnother(ended, groups_.at(job.group)->requirements.retry);
}

bool Core::Impl::HasRunsLeft(const Job& job) const {
  return CountedRuns(job) < groups_.at(job.group)->requirements.retry.max_runs;
}

absl::Time Core::Impl::NextRunTime(const Job& job, const Step& step) const {
  const contract::RetryRule& rule = groups_.at(job.group)->requirements.retry;
  return step.now + contract::BackoffBefore(CountedRuns(job) + 1, rule);
}

void Core::Impl::TellOfRetry(uint64_t id, Job& job, const v1::Run& ended, absl::Time next_run,
                             Step& step) {
  const contract::RetryRule& rule = groups_.at(job.group)->requirements.retry;
  RecordRetry(id, job, contract::RunFollows(CountedRuns(job) + 1, rule.max_runs, next_run, ended),
              step);
}

void Core::Impl::RecordRetry(uint64_t id, Job& job, std::string why, Step& step) {
  Truncate(kMaxDetailBytes, &why);
  v1::Transition transition;
  transition.set_kind(v1::TRANSITION_KIND_RETRY);
  *transition.mutable_evidence() = BrokerEvidence(std::move(why), step.now);
  Record(step, id, job, std::move(transition));
}

void Core::Impl::EndWaits(Step& step) {
  constexpr int kMaxPerTick = 10'000;  // about 10 ms, and a commit of as many rows
  const int64_t now = absl::ToUnixMicros(step.now);
  for (int i = 0; i < kMaxPerTick; ++i) {
    const std::optional<uint64_t> id = retries_.TakeDue(now);
    if (!id) return;
    const Job& job = jobs_.at(*id);
    if (!job.held()) LineUp(*id, job);
    step.jobs.push_back(*id);  // the time is no longer stored
  }
}

void Core::Impl::ShiftWaits(absl::Duration by, Step& step) {
  retries_.Shift(absl::ToInt64Microseconds(by));
  retries_.ForEach([&](uint64_t id) { step.jobs.push_back(id); });
  refused_.Shift(by);
}

}  // namespace muster::core
