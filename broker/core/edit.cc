// Changes of a job by its user: priority and labels.
#include <fmt/format.h>

#include <utility>

#include "broker/core/event_bounds.h"
#include "broker/core/impl.h"
#include "contract/errors.h"
#include "contract/states.h"

namespace muster::core {
namespace {

// The edits of ended jobs that are on their way to the readers of the store are far fewer than this
// bound on the memory.
constexpr size_t kMaxEdited = 10'000;

absl::Status JobChanged(uint64_t id) {
  return contract::RetryableError(
      absl::StatusCode::kAborted, "JOB_CHANGED",
      fmt::format("job {} changed while it was to be updated, and was left as it is; try again",
                  id),
      absl::Milliseconds(100));
}

}  // namespace

void Core::Impl::On(Edit& in, Step& step) {
  if (absl::Status status = CheckEdit(in); !status.ok()) {
    step.out->effects.push_back(StatusReply{.ticket = in.ticket, .status = std::move(status)});
    return;
  }
  auto it = jobs_.find(in.job);
  const bool has_ended = it == jobs_.end();
  // The core keeps nothing of a job that has ended.
  LiveJob as_stored;
  as_stored.state = in.state;
  as_stored.job_sequence = in.job_sequence;
  Job ended(as_stored);
  Job& job = has_ended ? ended : it->second;
  if (!has_ended && job.priority != in.priority) {
    const bool is_in_line = job.is_queued() && IsReady(in.job, job);
    if (is_in_line) StepAside(in.job, job);
    job.priority = static_cast<int16_t>(in.priority);
    if (is_in_line) LineUp(in.job, job);
  }
  v1::Transition transition;
  transition.set_kind(v1::TRANSITION_KIND_UPDATED);
  v1::Evidence& evidence = *transition.mutable_evidence();
  evidence = UserEvidence(in.request, step.now);
  Truncate(kMaxDetailBytes, evidence.mutable_detail());
  Record(step, in.job, job, std::move(transition));
  if (has_ended) RememberEdit(in.job, job.sequence());
  step.out->changes.push_back(EditJob{.id = in.job,
                                      .job_sequence = job.sequence(),
                                      .sequence = next_sequence_ - 1,
                                      .priority = in.priority,
                                      .labels = std::move(in.labels),
                                      .priority_before = in.priority_before,
                                      .labels_before = std::move(in.labels_before)});
  step.out->effects.push_back(StatusReply{.ticket = in.ticket, .status = absl::OkStatus()});
}

absl::Status Core::Impl::CheckEdit(const Edit& in) const {
  auto it = jobs_.find(in.job);
  if (it != jobs_.end()) {
    return it->second.sequence() == in.job_sequence ? absl::OkStatus() : JobChanged(in.job);
  }
  const auto edited = edited_.find(in.job);
  const bool is_stale = edited != edited_.end() && edited->second != in.job_sequence;
  return is_stale || !contract::IsTerminal(in.state) ? JobChanged(in.job) : absl::OkStatus();
}

void Core::Impl::RememberEdit(uint64_t id, uint64_t job_sequence) {
  const auto [at, is_new] = edited_.insert_or_assign(id, job_sequence);
  if (!is_new) return;
  edited_order_.push_back(id);
  if (edited_order_.size() <= kMaxEdited) return;
  edited_.erase(edited_order_.front());
  edited_order_.pop_front();
}

}  // namespace muster::core
