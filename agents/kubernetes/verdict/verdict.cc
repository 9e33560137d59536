#include "agents/kubernetes/verdict/verdict.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "agents/core/log_evidence.h"
#include "agents/core/proto_time.h"
#include "agents/kubernetes/objects/kueue.h"
#include "agents/kubernetes/verdict/explain_failure.h"
#include "agents/kubernetes/verdict/replicas.h"
#include "contract/failures.h"
#include "contract/sentences.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

using agents::Observation;

constexpr std::string_view kDeletedByOthers = "deleted on the cluster, not by Muster";

// Nodes that are well end a pod within seconds of its grace.
constexpr absl::Duration kOverdue = absl::Minutes(1);

void SetEvidence(const RunFacts& facts, std::string detail, Observation* seen) {
  seen->evidence.set_source(v1::EVIDENCE_SOURCE_POD);
  *seen->evidence.mutable_observed_at() = agents::ToProto(facts.now);
  seen->evidence.set_detail(std::move(detail));
}

// The order matters: a deletion that comes after a pod's end does not explain that end.
bool WasEndedByDeletion(const PodObject& pod) {
  return pod.deletion_time.has_value() && *pod.deletion_time <= EndOf(pod);
}

// A Job that was suspended and went on has had others before; a Job controller that did not hear
// whether its pod was made makes another one, and takes back the one that is too much.
std::vector<PodObject> LatestOfEachRank(const std::vector<PodObject>& pods) {
  const auto order = [](const PodObject& pod) {
    return std::make_tuple(HasStarted(pod) || !pod.deletion_time.has_value(),
                           !WasEndedByDeletion(pod), pod.created);
  };
  std::map<uint32_t, const PodObject*> latest;
  for (const PodObject& pod : pods) {
    const PodObject*& known = latest[pod.index];
    if (known == nullptr || order(*known) < order(pod)) known = &pod;
  }
  std::vector<PodObject> kept;
  for (const auto& [rank, pod] : latest) kept.push_back(*pod);
  return kept;
}

// Returns a pod that has not ended, first one that is being deleted; null if there is none.
const PodObject* FindAlive(const std::vector<PodObject>& pods) {
  const PodObject* alive = nullptr;
  for (const PodObject& pod : pods) {
    if (pod.HasEnded()) continue;
    if (alive == nullptr || (pod.deletion_time.has_value() && !alive->deletion_time.has_value()))
      alive = &pod;
  }
  return alive;
}

Observation MakeObservation(const RunFacts& facts, v1::RunState state) {
  Observation seen;
  seen.run_key = facts.run_key;
  seen.state = state;
  const JobObject* job = facts.job.has_value() ? &*facts.job : nullptr;
  if (job == nullptr && facts.deleted_job.has_value()) job = &*facts.deleted_job;
  if (job != nullptr) seen.external_id = job->name.name_space + "/" + job->name.name;
  for (const PodObject& pod : facts.pods) {
    if (!pod.node.empty()) seen.nodes.push_back(pod.node);
  }
  seen.replicas = MakeReplicas(facts.pods, facts.events, facts.now, job);
  return seen;
}

// Sets the times of the containers that are no init containers: the first start, the last end.
void SetTimes(const RunFacts& facts, Observation* seen) {
  for (const PodObject& pod : facts.pods) {
    for (const ContainerObject& container : pod.containers) {
      if (container.is_init) continue;
      if (container.started.has_value())
        seen->start_time =
            std::min(seen->start_time.value_or(absl::InfiniteFuture()), *container.started);
      if (container.finished.has_value())
        seen->end_time =
            std::max(seen->end_time.value_or(absl::InfinitePast()), *container.finished);
    }
  }
}

// ---- the end

// Each event is quoted once, whatever pods it is about, unless the failure says it already: its
// detail and its meaning pass on the event's own words as they are, and are searched for them;
// nothing is concluded from them.
void QuoteEvents(const RunFacts& facts, v1::Failure* failure) {
  std::set<std::string> quoted;
  for (const EventObject& event : facts.events) {
    if (!event.is_warning) continue;
    const std::string message = WithoutEcho(event.message);
    const bool is_said = failure->detail().find(message) != std::string::npos ||
                         failure->meaning().find(message) != std::string::npos;
    if (is_said || !quoted.insert(event.reason + message).second) continue;
    agents::AddQuote("event", fmt::format("{}: {}: {}", event.object, event.reason, message),
                     failure);
  }
}

Observation MakeEnd(const RunFacts& facts, v1::RunState state, const char* what,
                    const JobObject& job, const Condition& condition) {
  Observation seen = MakeObservation(facts, state);
  SetEvidence(facts, JobWords(job, Joined(what, Joined(condition.reason, condition.message))),
              &seen);
  SetTimes(facts, &seen);
  return seen;
}

Observation Succeeded(const RunFacts& facts, const JobObject& job, const Condition& complete) {
  if (std::optional<v1::Failure> stop = ExplainStop(job, facts.pods)) {
    Observation seen = MakeEnd(facts, v1::RUN_STATE_FAILED, "Complete", job, complete);
    seen.failure = *std::move(stop);
    QuoteEvents(facts, &*seen.failure);
    return seen;
  }
  Observation seen = MakeEnd(facts, v1::RUN_STATE_SUCCEEDED, "Complete", job, complete);
  seen.exit.emplace();
  return seen;
}

// Returns whether all that lead had succeeded by themselves before the Job failed: what follows
// them may fail of their end before the Job controller has seen it.
bool HaveLeadersSucceeded(const JobObject& job, const std::vector<PodObject>& pods) {
  const auto has_succeeded = [&](uint32_t index) {
    return std::any_of(pods.begin(), pods.end(), [&](const PodObject& pod) {
      return pod.index == index && pod.phase == "Succeeded" && !WasEndedByDeletion(pod);
    });
  };
  return !job.leading.empty() && std::all_of(job.leading.begin(), job.leading.end(), has_succeeded);
}

Observation Failed(const RunFacts& facts, const JobObject& job, const Condition& failed) {
  if (HaveLeadersSucceeded(job, facts.pods)) {
    Observation seen =
        MakeEnd(facts, v1::RUN_STATE_SUCCEEDED, "its leading roles had succeeded", job, failed);
    seen.exit.emplace();
    return seen;
  }
  Observation seen = MakeEnd(facts, v1::RUN_STATE_FAILED, "Failed", job, failed);
  Ending ending = ExplainFailure(job, failed, facts.pods);
  seen.failure = std::move(ending.failure);
  seen.exit = std::move(ending.exit);
  QuoteEvents(facts, &*seen.failure);
  return seen;
}

// The Job controller goes on judging a Job while it is deleted, and its pods with it. Times are in
// whole seconds: for a condition of the same second as the deletion, the pods tell which came
// first.
bool CameOfDeletion(const RunFacts& facts, const JobObject& job, const Condition& condition) {
  if (!job.deletion_time.has_value()) return false;
  if (condition.since.value_or(absl::InfinitePast()) < *job.deletion_time) return false;
  return facts.pods.empty() ||
         std::any_of(facts.pods.begin(), facts.pods.end(), WasEndedByDeletion);
}

// Returns the end that the Job has of itself; nothing if it has none yet.
std::optional<Observation> ToldEnd(const RunFacts& facts, const JobObject& job,
                                   const char* succeeded, const char* failed) {
  const Condition* good = job.Find(succeeded);
  if (good != nullptr && !CameOfDeletion(facts, job, *good)) return Succeeded(facts, job, *good);
  const Condition* bad = job.Find(failed);
  if (bad != nullptr && !CameOfDeletion(facts, job, *bad)) return Failed(facts, job, *bad);
  return std::nullopt;
}

// The Job controller takes seconds to say how a Job has ended; what ended before the deletion was
// asked for has its own end all the same. Nothing: the deletion ended it.
std::optional<Observation> OwnEnd(const RunFacts& facts, const JobObject& job) {
  if (auto end = ToldEnd(facts, job, "Complete", "Failed")) return end;
  if (auto end = ToldEnd(facts, job, "SuccessCriteriaMet", "FailureTarget")) return end;
  if (!job.deletion_time.has_value()) return std::nullopt;
  const Culprit culprit = FindCulprit(job, facts.pods);
  if (culprit.end() < *job.deletion_time)
    return Failed(facts, job, {"Failed", true, "", "a pod failed before it was deleted", {}});
  const auto succeeded =
      std::count_if(facts.pods.begin(), facts.pods.end(), [&](const PodObject& pod) {
        return pod.phase == "Succeeded" && EndOf(pod) < *job.deletion_time;
      });
  if (job.completions == 0 || succeeded < static_cast<int64_t>(job.completions))
    return std::nullopt;
  return Succeeded(facts, job,
                   {"Complete", true, "", "its pods had succeeded before it was deleted", {}});
}

// ---- before the end

// A node that does not answer has not ended what it runs, as far as anybody can know: Kubernetes
// waits for it for ever, and so does the run, because a second one beside it would be worse. Only
// people can tell that the machine is off. Empty: nothing says that the node does not answer.
std::string WhatEndsItsPod(const RunFacts& facts, const PodObject& pod) {
  const Condition* target = pod.Find("DisruptionTarget");
  const bool was_evicted = target != nullptr && target->reason == "DeletionByTaintManager";
  const bool is_overdue = pod.deletion_time.has_value() &&
                          facts.now > *pod.deletion_time + pod.deletion_grace + kOverdue;
  if (pod.node.empty() || (!was_evicted && !is_overdue)) return "";
  return fmt::format(
      "; if {0} does not answer, its program may still be running there, and the run ends once the "
      "node is back, or, when its machine is off for good, with kubectl delete node {0}",
      pod.node);
}

v1::StateReason ReadingEnd(const std::string& why) {
  return contract::MakeReason(v1::STATE_REASON_CODE_READING_END, {.detail = why});
}

Observation Finishing(const RunFacts& facts, const JobObject& job, std::string why) {
  Observation seen = MakeObservation(facts, v1::RUN_STATE_FINISHING);
  SetTimes(facts, &seen);
  seen.end_time.reset();
  if (const PodObject* last = FindAlive(facts.pods)) {
    const Condition* target = last->Find("DisruptionTarget");
    why +=
        "; not yet ended: " +
        PodWords(*last, target == nullptr ? last->phase : Joined(target->reason, target->message)) +
        WhatEndsItsPod(facts, *last);
  }
  SetEvidence(facts, JobWords(job, why), &seen);
  seen.reason = ReadingEnd(why);
  return seen;
}

// Nobody but Muster should delete it; if somebody does, that is a cancel by others. Its pods may
// outlive it: by their grace, or for as long as their node does not answer.
Observation Deleted(const RunFacts& facts, const JobObject& job) {
  if (std::optional<Observation> end = OwnEnd(facts, job)) return *std::move(end);
  const std::string why(facts.cancel_asked ? "deleted"
                        : facts.given_up   ? "deleted, because Muster had given it up"
                                           : kDeletedByOthers);
  if (FindAlive(facts.pods) != nullptr) return Finishing(facts, job, why);
  Observation seen = MakeObservation(facts, v1::RUN_STATE_CANCELED);
  if (why == kDeletedByOthers) {
    seen.reason = contract::MakeReason(v1::STATE_REASON_CODE_CANCELED_BY_OTHERS, {.detail = why});
  }
  SetEvidence(facts, JobWords(job, why), &seen);
  SetTimes(facts, &seen);
  return seen;
}

Observation Pending(const RunFacts& facts, v1::StateReason reason, const std::string& detail) {
  Observation seen = MakeObservation(facts, v1::RUN_STATE_PENDING);
  seen.reason = std::move(reason);
  SetEvidence(facts, detail, &seen);
  return seen;
}

// The missing thing is a Secret that the run's launch makes.
bool IsOfOwnSecret(const RunFacts& facts, const StartTrouble& trouble) {
  const std::string own = "secret \"" + facts.run_key;
  return trouble.is_of_missing && (trouble.message.find(own + "\"") != std::string::npos ||
                                   trouble.message.find(own + "-files-") != std::string::npos);
}

// Kueue may have pods made before the launch was complete, however long an agent that was killed in
// between stays away. Only what is missing afterwards counts, and from then on.
void PardonUntilLaunched(const RunFacts& facts, StartTrouble* trouble) {
  const auto launched = facts.job.has_value() ? facts.job->launch_complete_since : std::nullopt;
  if (launched.has_value() && trouble->last_seen.value_or(facts.now) >= *launched) {
    trouble->since = std::max(trouble->since.value_or(*launched), *launched);
  } else {
    trouble->failure_class = v1::FAILURE_CLASS_UNSPECIFIED;
  }
}

// Returns the trouble that keeps the pod from starting, with the names of the claims without a
// volume.
std::optional<StartTrouble> TroubleOf(const PodObject& pod, const RunFacts& facts) {
  std::optional<StartTrouble> trouble = FindStartTrouble(pod, facts.events, facts.now);
  if (trouble.has_value() && IsOfOwnSecret(facts, *trouble)) PardonUntilLaunched(facts, &*trouble);
  if (!trouble.has_value() || !trouble->is_of_claims || facts.unbound_claims.empty())
    return trouble;
  trouble->reason.clear();
  trouble->message.clear();
  for (const UnboundClaim& claim : facts.unbound_claims) {
    trouble->message +=
        fmt::format("{}{} {}", trouble->message.empty() ? "" : "; ", claim.field, claim.words);
    if (claim.is_stuck) trouble->failure_class = v1::FAILURE_CLASS_CONFIG;
  }
  return trouble;
}

// The Job has no pod that it could be.
void NamePod(const JobObject& job, v1::Failure* failure) {
  failure->set_phase(v1::FAILURE_PHASE_LAUNCH);
  failure->set_object(NameOf(job));
  contract::PutSentence(failure);
}

// The trouble of the pod, or of the Job, has lasted too long, or cannot pass: the run is over, and
// the caller deletes the Job.
template <typename Object>
std::optional<Observation> GiveUp(const RunFacts& facts, const Object& whose,
                                  const std::string& evidence, const StartTrouble& trouble,
                                  const Patience& patience) {
  if (trouble.failure_class == v1::FAILURE_CLASS_UNSPECIFIED) return std::nullopt;
  const absl::Time since = trouble.since.value_or(facts.now);
  if (!trouble.is_final && facts.now - since < patience.start_grace) return std::nullopt;
  Observation seen = MakeObservation(facts, v1::RUN_STATE_FAILED);
  SetEvidence(facts, evidence, &seen);
  seen.failure = contract::MakeFailure(FailureCodeOf(trouble), trouble.failure_class,
                                       {.detail = Joined(trouble.reason, trouble.message),
                                        .cause = CauseOf(trouble),
                                        .phase = PhaseOf(trouble),
                                        .is_retriable = trouble.is_registrys || trouble.is_nodes});
  NamePod(whose, &*seen.failure);
  QuoteEvents(facts, &*seen.failure);
  return seen;
}

v1::RunState StateOf(const PodObject& pod) {
  if (pod.phase == "Running" || pod.HasEnded()) return v1::RUN_STATE_RUNNING;
  return pod.node.empty() ? v1::RUN_STATE_PENDING : v1::RUN_STATE_STARTING;
}

// No wait helps: the caller deletes the Job.
Observation GivenUpByQueue(const RunFacts& facts, const JobObject& job) {
  Observation seen = MakeObservation(facts, v1::RUN_STATE_FAILED);
  SetEvidence(facts, JobWords(job, facts.queue_wait), &seen);
  seen.failure = contract::MakeFailure(
      v1::FAILURE_CODE_GIVEN_UP_BY_QUEUE, v1::FAILURE_CLASS_CONFIG,
      {.detail = "it " + facts.queue_wait, .subject = job.queue, .phase = v1::FAILURE_PHASE_QUEUE});
  QuoteEvents(facts, &*seen.failure);
  return seen;
}

Observation JudgeSuspended(const RunFacts& facts, const JobObject& job) {
  v1::StateReason reason = contract::MakeReason(
      v1::STATE_REASON_CODE_WAITS_IN_CLUSTER,
      {.detail = facts.queue_wait.empty() ? "suspended by others" : facts.queue_wait,
       .subject = job.queue});
  // A Job that Kueue may let go is not held, whatever was wished; nor is a Job that may have begun
  // on a node that has not said so yet.
  if (job.is_held || job.queue == kHeldQueue) {
    reason = FindAlive(facts.pods) == nullptr
                 ? contract::MakeReason(v1::STATE_REASON_CODE_HELD)
                 : contract::MakeReason(v1::STATE_REASON_CODE_WAITS_IN_CLUSTER,
                                        {.detail = kBeingHeldWords});
  }
  const std::string why = reason.message();
  // Pods in which nothing has run just go, and the run waits as before.
  const auto lives = [](const PodObject& pod) { return !pod.HasEnded() && HasStarted(pod); };
  if (std::any_of(facts.pods.begin(), facts.pods.end(), lives))
    return Finishing(facts, job, job.is_held ? "the hold came as its program began" : why);
  const bool has_begun = facts.last_state == v1::RUN_STATE_RUNNING ||
                         facts.last_state == v1::RUN_STATE_FINISHING ||
                         std::any_of(facts.pods.begin(), facts.pods.end(), HasStarted);
  if (!has_begun && facts.queue_has_given_up) return GivenUpByQueue(facts, job);
  if (!has_begun) return Pending(facts, std::move(reason), JobWords(job, "suspended"));
  // Its controller tells how they ended, also of a Job that is suspended.
  const auto has_ended_by_itself = [](const PodObject& pod) {
    return pod.HasEnded() && !WasEndedByDeletion(pod);
  };
  if (facts.pods.size() >= job.completions &&
      std::all_of(facts.pods.begin(), facts.pods.end(), has_ended_by_itself))
    return Finishing(facts, job, "its pods have ended");
  // It may count pods that end so as failed, and the Job with them, or may not.
  Observation seen = MakeObservation(facts, v1::RUN_STATE_FAILED);
  SetEvidence(facts, JobWords(job, why), &seen);
  SetTimes(facts, &seen);
  seen.failure = ExplainSuspension(job, why);
  seen.failure->set_phase(v1::FAILURE_PHASE_COMMAND);
  seen.failure->set_object(NameOf(job));
  contract::PutSentence(&*seen.failure);
  return seen;
}

// Not all pods have been made, or were seen.
Observation JudgeIncomplete(const RunFacts& facts, const JobObject& job, const Patience& patience) {
  const std::optional<StartTrouble> trouble = FindCreateTrouble(job, facts.events, facts.now);
  if (!trouble.has_value()) {
    return Pending(facts,
                   contract::MakeReason(v1::STATE_REASON_CODE_WAITS_IN_CLUSTER,
                                        {.detail = "its pods are about to be made"}),
                   JobWords(job, fmt::format("{} pods", facts.pods.size())));
  }
  const std::string words = Joined(trouble->reason, trouble->message);
  if (auto end = GiveUp(facts, job, JobWords(job, words), *trouble, patience))
    return *std::move(end);
  return Pending(facts, WhileItLasts(facts, *trouble, "", patience), JobWords(job, words));
}

// Volcano says so of a pod that it has a node for, while others of its group have none.
bool WaitsForOthers(const PodObject& pod) {
  const Condition* unscheduled = FindUnscheduled(pod);
  return unscheduled != nullptr && unscheduled->reason == "Schedulable";
}

// Returns whether the pod is less far, or as far and rather says what keeps the run waiting.
bool IsSlower(const PodObject& pod, const PodObject& other) {
  if (StateOf(pod) != StateOf(other)) return StateOf(pod) < StateOf(other);
  return WaitsForOthers(other) && !WaitsForOthers(pod);
}

// All pods are there: the run is as far as the slowest of them.
Observation JudgePods(const RunFacts& facts, const Patience& patience) {
  const PodObject* slowest = &facts.pods.front();
  for (const PodObject& pod : facts.pods) {
    if (IsSlower(pod, *slowest)) slowest = &pod;
    const std::optional<StartTrouble> trouble = TroubleOf(pod, facts);
    if (!trouble.has_value()) continue;
    const std::string words = PodWords(pod, Joined(trouble->reason, trouble->message));
    if (auto end = GiveUp(facts, pod, words, *trouble, patience)) return *std::move(end);
  }
  // PENDING after RUNNING would say that it has been queued anew.
  const bool has_run = facts.last_state == v1::RUN_STATE_RUNNING;
  Observation seen = MakeObservation(facts, has_run ? v1::RUN_STATE_RUNNING : StateOf(*slowest));
  std::string words = slowest->phase;
  if (const std::optional<StartTrouble> trouble = TroubleOf(*slowest, facts)) {
    words = Joined(trouble->reason, trouble->message);
    seen.reason = WhileItLasts(facts, *trouble, slowest->name.name, patience);
    seen.reason.set_rank(slowest->index);
  }
  SetEvidence(facts, PodWords(*slowest, words), &seen);
  SetTimes(facts, &seen);
  seen.end_time.reset();
  return seen;
}

Observation JudgeLive(RunFacts facts, const JobObject& job, const Patience& patience) {
  if (job.is_suspended) return JudgeSuspended(facts, job);
  // Pods that a hold took back before anything ran in them: others follow, or the Job fails.
  std::erase_if(facts.pods, [](const PodObject& pod) {
    return pod.deletion_time.has_value() && !HasStarted(pod);
  });
  // With any of these the Job fails, once its controller has seen it.
  for (const PodObject& pod : facts.pods) {
    if (pod.phase == "Failed") return Finishing(facts, job, "a pod of it has failed");
    if (pod.deletion_time.has_value()) return Finishing(facts, job, "a pod of it is being deleted");
  }
  const bool is_incomplete = facts.pods.empty() || facts.pods.size() < job.completions;
  if (is_incomplete && facts.last_state != v1::RUN_STATE_RUNNING)
    return JudgeIncomplete(facts, job, patience);
  if (facts.pods.empty() || FindAlive(facts.pods) == nullptr)
    return Finishing(facts, job, "its pods have ended");
  return JudgePods(facts, patience);
}

Observation JudgeJob(const RunFacts& facts, const JobObject& job, const Patience& patience) {
  if (std::optional<Observation> end = ToldEnd(facts, job, "Complete", "Failed"))
    return *std::move(end);
  if (job.deletion_time.has_value()) return Finishing(facts, job, "its pods are being ended");
  // For a suspended Job the controller tells the end only once it is resumed, if ever.
  if (job.is_suspended && FindAlive(facts.pods) == nullptr) {
    if (auto end = ToldEnd(facts, job, "SuccessCriteriaMet", "FailureTarget"))
      return *std::move(end);
  }
  if (const Condition* target = job.Find("FailureTarget"))
    return Finishing(facts, job, Joined(target->reason, target->message));
  if (job.Find("SuccessCriteriaMet") != nullptr)
    return Finishing(facts, job, "it has succeeded, and its pods are being ended");
  return JudgeLive(facts, job, patience);
}

}  // namespace

void AddToReason(v1::StateReasonCode code, const std::string& words, Observation* seen) {
  if (seen->reason.code() == v1::STATE_REASON_CODE_UNSPECIFIED) {
    seen->reason = contract::MakeReason(code, {.detail = words});
    return;
  }
  contract::AddToSentence(words, &seen->reason);
}

std::optional<Observation> Judge(const RunFacts& all, const Patience& patience) {
  RunFacts facts = all;
  facts.pods = LatestOfEachRank(all.pods);
  if (facts.job.has_value()) return JudgeJob(facts, *facts.job, patience);
  if (facts.deleted_job.has_value()) return Deleted(facts, *facts.deleted_job);
  return std::nullopt;
}

}  // namespace muster::kubernetes
