#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "broker/core/impl.h"
#include "broker/core/run_machine.h"
#include "contract/errors.h"
#include "contract/states.h"

namespace muster::core {

void Core::Impl::On(Hold& in, Step& step) {
  const bool is_chosen = !in.chosen_at.empty();
  if (absl::Status status = is_chosen ? absl::OkStatus() : CheckHold(in);
      !status.ok() || in.validate_only) {
    step.out->effects.push_back(StatusReply{.ticket = in.ticket, .status = std::move(status)});
    return;
  }
  StatusReply reply{.ticket = in.ticket, .status = absl::OkStatus()};
  KeysBySession keys;
  for (size_t i = 0; i < in.jobs.size(); ++i) {
    const uint64_t id = in.jobs[i];
    auto it = jobs_.find(id);
    const bool is_as_chosen = it != jobs_.end() && IsAsChosen(it->second, in.chosen_at, i);
    if (is_chosen && !is_as_chosen) reply.is_stale = true;
    // A job that has ended is not held.
    if (!is_as_chosen || it->second.held() == in.held) continue;
    if (is_chosen && in.held && !Waits(id, it->second)) continue;
    HoldJob(id, it->second, in, step, &keys);
    if (is_chosen) reply.changed.push_back(id);
  }
  for (const auto& [session, run_keys] : keys) SendHolds(session, run_keys, in.held, step);
  step.out->effects.push_back(std::move(reply));
}

void Core::Impl::HoldJob(uint64_t id, Job& job, const Hold& in, Step& step, KeysBySession* keys) {
  v1::Transition transition;
  transition.set_kind(in.held ? v1::TRANSITION_KIND_HOLD_REQUESTED
                              : v1::TRANSITION_KIND_RELEASE_REQUESTED);
  *transition.mutable_evidence() = UserEvidence(
      {.verb = in.held ? "held" : "released", .user = in.user, .reason = in.reason}, step.now);
  const contract::JobEvent event =
      in.held ? contract::JobEvent::kHold : contract::JobEvent::kRelease;
  if (!Apply(id, job, {event}, std::move(transition), step)) return;
  if (job.is_on_cluster()) TellOfHold(id, job, keys);
}

bool Core::Impl::Waits(uint64_t id, const Job& job) const {
  if (job.is_queued()) return true;
  if (!job.held() && !job.Takes(contract::JobEvent::kHold)) return false;
  const v1::Run& run = *clusters_[job.cluster()]->runs.at({id, job.runs()});
  return run.state() != v1::RUN_STATE_FINISHING && !HasBegun(run);
}

absl::Status Core::Impl::CheckHold(const Hold& in) const {
  const std::string_view verb = in.held ? "held" : "released";
  std::string others;  // with why
  std::string numbers;
  size_t count = 0;
  for (uint64_t id : in.jobs) {
    if (id == 0 || id >= next_job_id_) {
      return contract::Error(absl::StatusCode::kNotFound, "UNKNOWN_JOB",
                             fmt::format("there is no job {}; nothing was {}", id, verb),
                             {{"job_id", fmt::format("{}", id)}});
    }
    auto it = jobs_.find(id);
    if (!in.held || (it != jobs_.end() && Waits(id, it->second))) continue;
    if (count++ >= kMaxNamedJobs) continue;
    // Only the store knows how a job has ended.
    const bool is_stopping = it != jobs_.end() && it->second.cancel_requested();
    numbers += fmt::format("{}{}", count > 1 ? "," : "", id);
    others += fmt::format("{}{} ({})", count > 1 ? ", " : "", id,
                          it == jobs_.end() ? "has ended"
                          : is_stopping     ? "is being canceled"
                          : it->second.state() == v1::JOB_STATE_PENDING
                              ? "a node has it, or it is ending; to keep it back, cancel it and "
                                "submit it again as a job that is held"
                              : contract::Name(it->second.state()));
  }
  if (count == 0) return absl::OkStatus();
  if (count > kMaxNamedJobs) others += fmt::format(" and {} more", count - kMaxNamedJobs);
  return contract::Error(
      absl::StatusCode::kFailedPrecondition, "NOT_WAITING",
      fmt::format("only jobs that wait can be held, and these do not: {}; nothing was held{}",
                  others, count < in.jobs.size() ? ", hold the others without them" : ""),
      {{"jobs", numbers}, {"count", fmt::format("{}", count)}});
}

void Core::Impl::EndLateHold(const v1::Run& run, RunId id, Job& job, Step& step) {
  v1::Transition transition;
  transition.set_kind(v1::TRANSITION_KIND_RELEASE_REQUESTED);
  *transition.mutable_evidence() =
      BrokerEvidence(fmt::format("the hold came too late: run {} had begun on cluster \"{}\"",
                                 run.number(), run.cluster()),
                     step.now);
  Apply(id.job, job, {contract::JobEvent::kRelease}, std::move(transition), step);
  // An agent that goes on holding the run would let its scheduler start it again.
  if (contract::IsTerminal(run.state())) return;
  KeysBySession keys;
  TellOfHold(id.job, job, &keys);
  for (const auto& [session, run_keys] : keys) SendHolds(session, run_keys, /*held=*/false, step);
}

void Core::Impl::TellOfHold(uint64_t id, const Job& job, KeysBySession* keys) const {
  const Cluster& cluster = *clusters_[job.cluster()];
  if (!cluster.session) return;
  (*keys)[*cluster.session].push_back(cluster.runs.at({id, job.runs()})->run_key());
}

void Core::Impl::SendHolds(SessionId session, const std::vector<std::string>& run_keys, bool held,
                           Step& step) {
  for (size_t begin = 0; begin < run_keys.size(); begin += kMaxPerMessage) {
    const size_t end = std::min(begin + kMaxPerMessage, run_keys.size());
    SendToAgent send;
    send.session = session;
    agent::v1::Holds* message = send.message.mutable_holds();
    message->set_held(held);
    for (size_t i = begin; i < end; ++i) message->add_run_keys(run_keys[i]);
    step.out->effects.push_back(std::move(send));
  }
}

}  // namespace muster::core
