#include <algorithm>
#include <utility>

#include "broker/core/impl.h"
#include "broker/core/run_machine.h"
#include "contract/refusals.h"
#include "contract/sentences.h"
#include "contract/states.h"

namespace muster::core {

void Core::Impl::On(Hold& in, Step& step) {
  const bool is_chosen = !in.chosen_at.empty();
  StatusReply reply{.ticket = in.ticket};
  if (!is_chosen) reply.refusal = CheckHold(in);
  if (reply.refusal || in.validate_only) {
    step.out->effects.push_back(std::move(reply));
    return;
  }
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
  // A run that is to come back stays held.
  if (job.is_on_cluster() && !job.withdrawn()) TellOfHold(id, job, keys);
}

bool Core::Impl::Waits(uint64_t id, const Job& job) const {
  if (job.is_queued()) return true;
  if (!job.held() && !job.Takes(contract::JobEvent::kHold)) return false;
  const v1::Run& run = *clusters_[job.cluster()]->runs.at({id, job.runs()});
  return run.state() != v1::RUN_STATE_FINISHING && !HasBegun(run);
}

std::optional<contract::Refusal> Core::Impl::CheckHold(const Hold& in) const {
  using contract::refused::Wish;
  contract::refused::NotWaiting others;
  others.asked = in.jobs.size();
  for (uint64_t id : in.jobs) {
    if (id == 0 || id >= next_job_id_) {
      return contract::Refusal{
          contract::refused::UnknownJob{id, in.held ? Wish::kHold : Wish::kRelease}};
    }
    auto it = jobs_.find(id);
    if (!in.held || (it != jobs_.end() && Waits(id, it->second))) continue;
    if (others.count++ >= contract::kMaxRefusedJobs) continue;
    contract::refused::NotWaiting::Job& job = others.jobs.emplace_back();
    job.id = id;
    // Only the store knows how a job has ended.
    if (it == jobs_.end()) continue;
    job.state = it->second.state();
    job.is_canceling = it->second.cancel_requested();
  }
  if (others.count == 0) return std::nullopt;
  return contract::Refusal{std::move(others)};
}

void Core::Impl::EndLateHold(const v1::Run& run, RunId id, Job& job, Step& step) {
  v1::Transition transition;
  transition.set_kind(v1::TRANSITION_KIND_RELEASE_REQUESTED);
  *transition.mutable_evidence() = BrokerEvidence(contract::HeldTooLate(run), step.now);
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
