// Looks at runs: what the watches know is judged, and what follows from it is done.
#include <algorithm>
#include <set>
#include <utility>

#include "agents/core/steady_time.h"
#include "agents/kubernetes/backend.h"
#include "agents/kubernetes/objects/kueue.h"
#include "agents/kubernetes/verdict/explain_failure.h"
#include "agents/kubernetes/verdict/gang.h"
#include "agents/kubernetes/verdict/hold.h"
#include "contract/failures.h"
#include "contract/sentences.h"
#include "contract/states.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

using agents::Observation;
using agents::ObserveOutcome;
using agents::RunHandle;

// The clocks of the cluster's own machines may differ by this; times are in whole seconds. A try
// that a queue takes back and lets go again lasts longer.
constexpr absl::Duration kObservedClockSlack = absl::Seconds(2);

size_t CountEnded(const RunFacts& facts) {
  return static_cast<size_t>(std::count_if(facts.pods.begin(), facts.pods.end(),
                                           [](const PodObject& pod) { return pod.HasEnded(); }));
}

// A queue has taken the Job back since, and let it go again: its start is that of the latest try,
// by the clock of its controller, and its pods' by that of the server.
bool IsOfEarlierTry(const PodObject& pod, const JobObject& job) {
  return pod.HasEnded() && pod.created.has_value() && job.start_time.has_value() &&
         *pod.created < *job.start_time - kObservedClockSlack;
}

// A Job makes no pods while it is suspended.
bool HasBegunSuspended(const RunFacts& facts) {
  return facts.job.has_value() && facts.job->is_suspended &&
         std::any_of(facts.pods.begin(), facts.pods.end(), HasStarted);
}

// Returns whether the program runs or has run in all ranks, so that how it ends is the run's own
// end, whatever it was given up for before. `state`: as Judge has it.
bool HasItsOwnEnd(const RunFacts& facts, v1::RunState state) {
  if (!facts.job.has_value()) return false;
  if (state == v1::RUN_STATE_RUNNING || facts.job->HasEnded()) return true;
  // A Job that is suspended in the midst of its work has no end of its own.
  if (state != v1::RUN_STATE_FINISHING || facts.job->is_suspended) return false;
  std::set<uint32_t> ranks;
  for (const PodObject& pod : facts.pods) {
    if (HasStarted(pod)) ranks.insert(pod.index);
  }
  return !ranks.empty() && ranks.size() >= facts.job->completions;
}

// The end as it is told for now: that it is near, and why not yet.
Observation NotYet(Observation end, const std::string& why) {
  end.state = v1::RUN_STATE_FINISHING;
  end.reason = contract::MakeReason(v1::STATE_REASON_CODE_READING_END, {.detail = why});
  end.exit.reset();
  end.failure.reset();
  end.end_time.reset();
  return end;
}

}  // namespace

std::set<NamespaceRuns*> KubernetesBackend::ReadyHomes(absl::Status* trouble) {
  std::set<NamespaceRuns*> ready;
  for (const auto& [name, home] : homes_) {
    const absl::Status state = home->state();
    if (state.ok()) ready.insert(home.get());
    trouble->Update(state);
  }
  // One that cannot be looked at does not stop the others.
  if (!ready.empty()) *trouble = absl::OkStatus();
  return ready;
}

ObserveOutcome KubernetesBackend::Observe(const std::vector<RunHandle>& runs) {
  ObserveOutcome outcome;
  const std::set<NamespaceRuns*> ready = ReadyHomes(&outcome.scheduler);
  if (ready.empty()) return outcome;
  std::set<std::string> news = std::exchange(untold_, {});
  for (NamespaceRuns* home : ready) news.merge(home->store().TakeNews());
  if (log_news_.exchange(false)) news.insert(awaiting_logs_.begin(), awaiting_logs_.end());
  const absl::Time now = agents::SteadyNow();
  const bool full = now - last_full_ >= kObserveIntervalOfAll;
  if (full) last_full_ = now;
  for (const RunHandle& run : runs) {
    NamespaceRuns& home = HomeOf(run);
    if (!ready.contains(&home) || (!full && !news.contains(run.run_key))) continue;
    home.store().Want(run.run_key);
    absl::StatusOr<std::optional<Observation>> seen = Look(run);
    outcome.scheduler.Update(seen.status());
    if (!seen.ok()) untold_.insert(run.run_key);
    if (seen.ok() && seen->has_value()) outcome.observations.push_back(**std::move(seen));
  }
  WakeStarter();
  return outcome;
}

absl::StatusOr<std::optional<Observation>> KubernetesBackend::Look(const RunHandle& run) {
  const absl::StatusOr<std::optional<RunFacts>> gathered = Gather(run);
  if (!gathered.ok()) return gathered.status();
  if (!gathered->has_value()) return std::nullopt;
  const RunFacts& facts = **gathered;
  if (facts.job.has_value() || facts.deleted_job.has_value()) return JudgeRun(run, facts);
  queue_.Remove(run.run_key);
  return AwaitLogs(facts, Gone(run, facts.cancel_asked));
}

Observation KubernetesBackend::Gone(const RunHandle& run, bool cancel_asked) const {
  Observation seen;
  seen.run_key = run.run_key;
  const std::string gone = fmt::format("the API server has no Job {}/{}, and nobody saw it go",
                                       NamespaceOf(run), run.run_key);
  if (cancel_asked) {
    seen.state = v1::RUN_STATE_CANCELED;
    seen.evidence = MakeEvidence(gone + "; its deletion had been asked for");
  } else if (std::optional<v1::Failure> failure = given_up_.Find(run.run_key)) {
    seen.state = v1::RUN_STATE_FAILED;
    seen.evidence = MakeEvidence(gone + "; it had been given up, and its deletion asked for");
    seen.failure = *std::move(failure);
  } else {
    seen.state = v1::RUN_STATE_LOST;
    seen.evidence = MakeEvidence(gone + " or heard how it ended");
  }
  return seen;
}

absl::StatusOr<std::optional<RunFacts>> KubernetesBackend::Gather(const RunHandle& run) {
  const std::string name_space = NamespaceOf(run);
  RunStore& store = HomeOf(name_space).store();
  RunFacts facts = store.Facts(run.run_key);
  if (!facts.job.has_value() && !facts.deleted_job.has_value()) {
    absl::StatusOr<std::optional<JobObject>> job = calls_.FindRun(name_space, run.run_key);
    if (!job.ok()) return job.status();
    if (job->has_value()) {
      store.Put(**std::move(job));
    } else {
      if (const absl::Status same = ConfirmCluster(); !same.ok()) return same;
      store.PutAbsent(run.run_key);
    }
    facts = store.Facts(run.run_key);
  }
  // The watch of Jobs may be behind that of pods, so what seems to be suspended in the midst of its
  // work may just have been let go.
  const bool seems_suspended = HasBegunSuspended(facts) &&
                               asked_if_suspended_[run.run_key] != facts.job->name.resource_version;
  // The answer to its launch's last step was lost, and the watch may be behind that.
  const bool may_be_let_go = facts.job.has_value() && queue_.MayBeLetGo(run.run_key);
  if (seems_suspended || may_be_let_go) {
    absl::StatusOr<std::optional<JobObject>> job = calls_.FindRun(name_space, run.run_key);
    if (!job.ok()) return job.status();
    queue_.SetAsked(run.run_key);
    if (!job->has_value()) return std::nullopt;
    if (seems_suspended) asked_if_suspended_[run.run_key] = (*job)->name.resource_version;
    store.Put(**std::move(job));
    facts = store.Facts(run.run_key);
  }
  // The watch of pods may be behind that of Jobs, so an end is not told before its pods were seen.
  const bool ends = facts.job.has_value() && facts.job->HasEnded();
  if (ends && CountEnded(facts) < PodsOf(run) && !asked_for_pods_.contains(run.run_key)) {
    absl::StatusOr<std::vector<PodObject>> pods = calls_.ListPods(name_space, run.run_key);
    if (!pods.ok()) return pods.status();
    asked_for_pods_.insert(run.run_key);
    store.PutPods(*std::move(pods));
    facts = store.Facts(run.run_key);
  }
  facts.now = api_.ServerTime();
  facts.last_state = run.state;
  facts.cancel_asked = WasCancelAsked(run);
  facts.given_up = given_up_.Find(run.run_key).has_value();
  if (run.assignment != nullptr && WaitsForClaims(facts.pods))
    facts.unbound_claims = things_.FindUnbound(run.assignment->spec(), name_space);
  if (facts.job.has_value() && facts.job->is_suspended && !facts.job->queue.empty()) {
    QueueWait wait = queues_.WaitOf(*facts.job);
    facts.queue_wait = std::move(wait.words);
    facts.queue_has_given_up = wait.is_given_up;
  }
  return facts;
}

absl::StatusOr<std::optional<Observation>> KubernetesBackend::JudgeRun(const RunHandle& run,
                                                                       const RunFacts& facts) {
  std::optional<Observation> seen = Judge(facts, {.start_grace = config_.start_grace});
  if (!seen.has_value()) return seen;
  if (run.assignment != nullptr) {
    const v1::JobSpec& spec = run.assignment->spec();
    if (!seen->reason.detail().empty()) {
      seen->reason.set_detail(WithField(seen->reason.detail(), spec));
      contract::PutSentence(&seen->reason);
    }
    if (seen->failure.has_value()) {
      seen->failure->set_detail(WithField(seen->failure->detail(), spec));
      contract::PutSentence(&*seen->failure);
    }
  }
  const std::optional<v1::Failure> given_up =
      facts.given_up && !facts.cancel_asked ? given_up_.Find(run.run_key) : std::nullopt;
  if (given_up.has_value()) {
    const bool goes_on =
        facts.job.has_value() && !facts.job->deletion_time.has_value() && !facts.job->HasEnded();
    if (goes_on && HasItsOwnEnd(facts, seen->state)) {
      // The trouble for which the run was given up has passed before its Job could be deleted.
      if (IsChangeUnderWay(run.run_key)) return std::nullopt;
      const absl::StatusOr<bool> runs = GoesOn(*facts.job);
      if (!runs.ok()) return runs.status();
      if (!*runs) return std::nullopt;
      given_up_.Forget(run.run_key);
    } else if (goes_on || (!facts.job.has_value() && seen->state == v1::RUN_STATE_CANCELED)) {
      seen->state = v1::RUN_STATE_FAILED;
      seen->reason.Clear();
      seen->failure = given_up;
    }
  }
  if (contract::IsTerminal(seen->state)) {
    queue_.Remove(run.run_key);
    // The run may have ended because its namespace is ending, where no other run is to be sent
    // then.
    const bool is_clusters_doing = seen->failure.has_value() && seen->failure->retriable();
    if (is_clusters_doing && !awaiting_logs_.contains(run.run_key)) TellInventory();
    const bool is_over =
        !facts.job.has_value() || facts.job->HasEnded() || !seen->failure.has_value();
    if (is_over) return AwaitLogs(facts, *std::move(seen));
    return End(run, *facts.job, *std::move(seen));
  }
  if (!facts.job.has_value() || facts.job->deletion_time.has_value()) return seen;
  // A run that is to be canceled is never let go, however long its deletion takes.
  if (run.assignment != nullptr && !facts.cancel_asked) {
    Queue(run, facts, &*seen);
    HeedHold(run, facts, &*seen);
  }
  if (std::optional<v1::Failure> stuck = FindStuckGang(facts, PodsOf(run), config_.gang_grace);
      stuck.has_value() && run.assignment != nullptr &&
      !HasOwnGangScheduler(InPlace(run)->spec())) {
    seen->failure = *std::move(stuck);
    return End(run, *facts.job, *std::move(seen));
  }
  return seen;
}

absl::StatusOr<bool> KubernetesBackend::GoesOn(const JobObject& job) {
  // The watch of pods may be ahead of that of Jobs.
  const absl::StatusOr<std::optional<JobObject>> now =
      calls_.FindRun(job.name.name_space, job.name.run_key);
  if (!now.ok()) return now.status();
  return now->has_value() && !(*now)->deletion_time.has_value();
}

absl::StatusOr<std::optional<Observation>> KubernetesBackend::End(const RunHandle& run,
                                                                  const JobObject& job,
                                                                  Observation seen) {
  // The decision is carried out, also by an agent that is started anew.
  const absl::Status kept = given_up_.Add(seen.run_key, *seen.failure);
  if (!kept.ok()) return kept;
  std::string why = "it cannot go on, and is being taken away: " + seen.failure->message();
  const std::string trouble = TryChange(
      run, &JobChange::deletions, [this, run, name = job.name] { return TakeAway(run, name); });
  if (!trouble.empty()) why += "; its Job could not be deleted yet: " + trouble;
  return NotYet(std::move(seen), std::move(why));
}

absl::Status KubernetesBackend::TakeAway(const RunHandle& run, const ObjectName& job) {
  RunFacts facts = HomeOf(run).store().Facts(run.run_key);
  facts.now = api_.ServerTime();
  const std::optional<Observation> seen = Judge(facts, {.start_grace = config_.start_grace});
  // The next look forgets that it was given up.
  if (seen.has_value() && HasItsOwnEnd(facts, seen->state)) return absl::OkStatus();
  return calls_.DeleteJob(job);
}

StartQueue::AssignmentPtr KubernetesBackend::InPlace(const RunHandle& run) const {
  return InPlace(run.assignment, NamespaceOf(run));
}

StartQueue::AssignmentPtr KubernetesBackend::InPlace(StartQueue::AssignmentPtr run,
                                                     const std::string& name_space) const {
  const std::string queue = queues_.QueueOf(run->spec(), name_space);
  if (kubernetes::NamespaceOf(run->spec(), config_.name_space) == name_space &&
      queue == run->spec().kubernetes().queue())
    return run;
  auto own = std::make_shared<agent::v1::Assignment>(*run);
  own->mutable_spec()->mutable_kubernetes()->set_namespace_(name_space);
  own->mutable_spec()->mutable_kubernetes()->set_queue(queue);
  return own;
}

void KubernetesBackend::Queue(const RunHandle& run, const RunFacts& facts, Observation* seen) {
  const JobObject& job = *facts.job;
  if (!job.is_launch_complete && job.is_suspended) {
    return QueueAgain(run, facts, seen);
  }
  // Kueue has let it go before its turn came, or in spite of a hold that came late.
  if (!job.is_launch_complete) {
    const std::string trouble = TryChange(run, &JobChange::patches, [this, name = job.name] {
      return ChangeJob(name, CompletePatch(name.uid));
    });
    if (!trouble.empty() && seen->state == v1::RUN_STATE_PENDING) {
      AddToReason(v1::STATE_REASON_CODE_AGENT_RETRIES,
                  "it has been let go, which could not be noted at its Job: " + trouble, seen);
    }
  }
  size_t ended = 0;
  size_t placed = 0;
  for (const PodObject& pod : facts.pods) {
    if (IsOfEarlierTry(pod, job)) continue;
    if (pod.HasEnded()) ++ended;
    if (!pod.node.empty()) ++placed;
  }
  if (ended >= PodsOf(run)) {
    queue_.Remove(run.run_key);
  } else if (placed >= PodsOf(run)) {
    queue_.SetPlaced(run.run_key);
  } else if (!job.is_suspended) {
    queue_.SetStarting(InPlace(run));
  }
}

void KubernetesBackend::QueueAgain(const RunHandle& run, const RunFacts& facts, Observation* seen) {
  const JobObject& job = *facts.job;
  const HoldAdvice advice = AdviseRelease(job, facts.pods);
  if (advice.step == HoldStep::kNow) {
    // A Job that is being let go may be seen in its earlier state.
    if (!queue_.IsBeingLetGo(run.run_key) && StillWaits(run)) queue_.TakeBack(run.run_key);
    // Also the runs of an agent that was started anew come here.
    // The hold in `run` may be older than the latest SetHeld.
    queue_.Add(InPlace(run), run.held);
  }
  if (seen->state != v1::RUN_STATE_PENDING) return;
  if (advice.step == HoldStep::kNow) {
    seen->reason = ReasonInQueue(job, *seen);
  } else if (!queue_.WishOf(run.run_key).value_or(run.held)) {
    seen->reason = contract::MakeReason(v1::STATE_REASON_CODE_RELEASED,
                                        {.detail = "the release waits: " + advice.why});
  }
}

bool KubernetesBackend::StillWaits(const RunHandle& run) {
  const std::optional<JobObject> job = HomeOf(run).store().FindJob(run.run_key);
  return job.has_value() && job->is_suspended && !job->is_launch_complete;
}

v1::StateReason KubernetesBackend::ReasonInQueue(const JobObject& job,
                                                 const Observation& seen) const {
  const std::string& run_key = job.name.run_key;
  // A run that may start all the same is not held.
  if (queue_.IsKeptBack(run_key))
    return IsInQueue(job) ? seen.reason : contract::MakeReason(v1::STATE_REASON_CODE_HELD);
  v1::StateReason reason = queue_.ReasonOf(run_key);
  const bool is_said = reason.code() != v1::STATE_REASON_CODE_UNSPECIFIED;
  return is_said ? reason : contract::MakeReason(v1::STATE_REASON_CODE_WAITS_IN_CLUSTER);
}

std::optional<Observation> KubernetesBackend::AwaitLogs(const RunFacts& facts, Observation end) {
  if (logs_.IsComplete(facts.run_key, facts.pods)) {
    awaiting_logs_.erase(facts.run_key);
    asked_for_pods_.erase(facts.run_key);
    asked_if_suspended_.erase(facts.run_key);
    ForgetChanges(facts.run_key);
    return end;
  }
  awaiting_logs_.insert(facts.run_key);
  return NotYet(std::move(end), "it has ended, and the last of its logs is being read");
}

}  // namespace muster::kubernetes
