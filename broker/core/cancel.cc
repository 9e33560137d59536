#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "broker/core/impl.h"
#include "contract/errors.h"

namespace muster::core {

void Core::Impl::On(Cancel& in, Step& step) {
  for (uint64_t id : in.jobs) {
    if (id > 0 && id < next_job_id_) continue;
    step.out->effects.push_back(StatusReply{
        .ticket = in.ticket,
        .status = contract::Error(absl::StatusCode::kNotFound, "UNKNOWN_JOB",
                                  fmt::format("there is no job {}; nothing was canceled", id),
                                  {{"job_id", fmt::format("{}", id)}})});
    return;
  }
  if (in.validate_only) {
    step.out->effects.push_back(StatusReply{.ticket = in.ticket, .status = absl::OkStatus()});
    return;
  }
  const v1::Evidence evidence =
      UserEvidence({.verb = "canceled", .user = in.user, .reason = in.reason}, step.now);
  StatusReply reply{.ticket = in.ticket, .status = absl::OkStatus()};
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
