#include <algorithm>
#include <utility>

#include "broker/core/impl.h"
#include "contract/refusals.h"

namespace muster::core {

void Core::Impl::On(Cancel& in, Step& step) {
  StatusReply reply{.ticket = in.ticket};
  const auto unknown = std::find_if(in.jobs.begin(), in.jobs.end(),
                                    [this](uint64_t id) { return id == 0 || id >= next_job_id_; });
  if (unknown != in.jobs.end()) {
    reply.refusal = contract::Refusal{
        contract::refused::UnknownJob{*unknown, contract::refused::Wish::kCancel}};
  }
  if (reply.refusal || in.validate_only) {
    step.out->effects.push_back(std::move(reply));
    return;
  }
  const v1::Evidence evidence =
      UserEvidence({.verb = "canceled", .user = in.user, .reason = in.reason}, step.now);
  const bool is_chosen = !in.chosen_at.empty();
  std::map<SessionId, std::vector<std::string>> cancellations;
  for (size_t i = 0; i < in.jobs.size(); ++i) {
    const uint64_t id = in.jobs[i];
    auto it = jobs_.find(id);
    // A job that is not in memory has ended.
    const bool is_as_chosen = it != jobs_.end() && IsAsChosen(it->second, in.chosen_at, i);
    if (is_chosen && !is_as_chosen) reply.is_stale = true;
    if (!is_as_chosen || !it->second.Takes(contract::JobEvent::kCancel)) continue;
    CancelJob(id, it->second, evidence, step, &cancellations);
    if (is_chosen) reply.changed.push_back(id);
  }
  for (const auto& [session, run_keys] : cancellations) SendCancellations(session, run_keys, step);
  step.out->effects.push_back(std::move(reply));
}

void Core::Impl::CancelJob(uint64_t id, Job& job, const v1::Evidence& evidence, Step& step,
                           std::map<SessionId, std::vector<std::string>>* cancellations) {
  v1::Transition transition;
  transition.set_kind(v1::TRANSITION_KIND_CANCEL_REQUESTED);
  *transition.mutable_evidence() = evidence;
  Apply(id, job, {contract::JobEvent::kCancel}, std::move(transition), step);
  if (!job.is_on_cluster()) return;
  const Cluster& cluster = *clusters_[job.cluster()];
  if (!cluster.session) return;
  (*cancellations)[*cluster.session].push_back(cluster.runs.at({id, job.runs()})->run_key());
}

void Core::Impl::SendCancellations(SessionId session, const std::vector<std::string>& run_keys,
                                   Step& step) {
  for (size_t begin = 0; begin < run_keys.size(); begin += kMaxPerMessage) {
    const size_t end = std::min(begin + kMaxPerMessage, run_keys.size());
    SendToAgent send;
    send.session = session;
    agent::v1::Cancellations* message = send.message.mutable_cancellations();
    for (size_t i = begin; i < end; ++i) message->add_run_keys(run_keys[i]);
    step.out->effects.push_back(std::move(send));
  }
}

}  // namespace muster::core
