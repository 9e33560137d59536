// Changes a job as its user asks: priority and labels.
#include <utility>

#include "broker/core/event_bounds.h"
#include "broker/core/impl.h"
#include "contract/refusals.h"
#include "contract/states.h"

namespace muster::core {
namespace {

// The edits of ended jobs that are on their way to the readers of the store are far fewer than this
// bound on the memory.
constexpr size_t kMaxEdited = 10'000;

}  // namespace

void Core::Impl::On(Edit& in, Step& step) {
  StatusReply reply{.ticket = in.ticket, .refusal = CheckEdit(in)};
  if (reply.refusal) {
    step.out->effects.push_back(std::move(reply));
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
    const Standing standing = StandingOf(in.job, job);
    const bool runs = standing.phase == placement::Phase::kRuns;
    if (is_in_line) StepAside(in.job, job);
    if (runs) CountPreemptible(job, standing.cluster, -1);
    job.priority = static_cast<int16_t>(in.priority);
    if (runs) CountPreemptible(job, standing.cluster, 1);
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
  step.out->effects.push_back(std::move(reply));
}

std::optional<contract::Refusal> Core::Impl::CheckEdit(const Edit& in) const {
  const auto live = jobs_.find(in.job);
  const auto edited = edited_.find(in.job);
  const bool is_known_otherwise = edited != edited_.end() && edited->second != in.job_sequence;
  const bool has_changed = live != jobs_.end()
                               ? live->second.sequence() != in.job_sequence
                               : is_known_otherwise || !contract::IsTerminal(in.state);
  if (!has_changed) return std::nullopt;
  return contract::Refusal{contract::refused::JobChanged{in.job}};
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
