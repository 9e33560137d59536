#include "agents/kubernetes/verdict.h"

#include <algorithm>
#include <set>
#include <utility>

#include "agents/core/log_evidence.h"
#include "agents/core/proto_time.h"
#include "agents/kubernetes/replicas.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

using agent::Observation;

// What the start script writes as the container's last words when it is not the command that ended.
constexpr std::string_view kSetupFailed = "muster: setup failed";
constexpr std::string_view kNotStarted = "muster: the command could not be started";
// Shells and container runtimes tell a death by signal as 128 and the signal's number.
constexpr int kSignalBase = 128;
constexpr int kMaxSignal = 64;

void SetEvidence(const RunFacts& facts, v1::EvidenceSource source, std::string detail,
                 Observation* seen) {
  seen->evidence.set_source(source);
  *seen->evidence.mutable_observed_at() = agent::ToProto(facts.now);
  seen->evidence.set_detail(std::move(detail));
}

std::string JobWords(const JobObject& job, std::string_view what) {
  return fmt::format("Job {}/{} (resourceVersion {}): {}", job.name.name_space, job.name.name,
                     job.name.resource_version, what);
}

std::string PodWords(const PodObject& pod, std::string_view what) {
  return fmt::format("pod {} (resourceVersion {}){}{}: {}", pod.name.name,
                     pod.name.resource_version, pod.node.empty() ? "" : " on ", pod.node, what);
}

std::string Joined(const std::string& reason, const std::string& message) {
  if (reason.empty() || message.empty()) return reason + message;
  return reason + ": " + message;
}

Observation MakeObservation(const RunFacts& facts, v1::RunState state) {
  Observation seen;
  seen.run_key = facts.run_key;
  seen.state = state;
  const JobObject* job = facts.job.has_value() ? &*facts.job : nullptr;
  if (job == nullptr && facts.deleted_job.has_value()) job = &*facts.deleted_job;
  if (job != nullptr) seen.external_id = job->name.name_space + "/" + job->name.name;
  std::vector<const PodObject*> pods;
  for (const PodObject& pod : facts.pods) {
    if (!pod.node.empty()) pods.push_back(&pod);
  }
  std::stable_sort(pods.begin(), pods.end(),
                   [](const PodObject* a, const PodObject* b) { return a->index < b->index; });
  for (const PodObject* pod : pods) seen.nodes.push_back(pod->node);
  seen.replicas = MakeReplicas(facts.pods, facts.events);
  return seen;
}

// The times of the containers that are no init containers: the first start, the last end.
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

// The container that failed first: its exit is the run's. Pods that were stopped because another
// one had failed end later.
struct Culprit {
  const PodObject* pod = nullptr;
  const ContainerObject* container = nullptr;
};

Culprit FindCulprit(const std::vector<PodObject>& pods) {
  Culprit culprit;
  absl::Time first = absl::InfiniteFuture();
  for (const PodObject& pod : pods) {
    for (const ContainerObject& container : pod.containers) {
      const bool failed = container.state == ContainerState::kTerminated &&
                          (container.exit_code != 0 || container.signal != 0);
      const absl::Time end = container.finished.value_or(absl::InfiniteFuture());
      if (!failed || (culprit.container != nullptr && end >= first)) continue;
      culprit = {&pod, &container};
      first = end;
    }
  }
  if (culprit.pod != nullptr) return culprit;
  const auto failed = std::find_if(pods.begin(), pods.end(),
                                   [](const PodObject& pod) { return pod.phase == "Failed"; });
  if (failed != pods.end()) culprit.pod = &*failed;
  return culprit;
}

v1::ExitStatus ExitOf(const Culprit& culprit) {
  const ContainerObject& container = *culprit.container;
  v1::ExitStatus exit;
  const int above = container.exit_code - kSignalBase;
  const int signal = container.signal != 0              ? container.signal
                     : above > 0 && above <= kMaxSignal ? above
                                                        : 0;
  exit.set_signal(signal);
  exit.set_code(signal != 0 ? 0 : container.exit_code);
  exit.set_rank(culprit.pod->index);
  return exit;
}

v1::Failure MakeFailure(v1::FailureClass failure_class, bool retriable, std::string message,
                        std::string suggestion) {
  v1::Failure failure;
  failure.set_failure_class(failure_class);
  failure.set_retriable(retriable);
  failure.set_message(std::move(message));
  failure.set_suggestion(std::move(suggestion));
  return failure;
}

// Why the cluster itself ended the pod; nothing if it did not.
// Source:
// https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions.
std::optional<v1::Failure> ExplainDisruption(const PodObject& pod) {
  const Condition* disruption = pod.Find("DisruptionTarget");
  if (disruption == nullptr) {
    if (pod.reason != "Evicted" && pod.reason != "NodeLost" && pod.reason != "Shutdown" &&
        pod.reason != "NodeShutdown" && pod.reason != "Terminated") {
      return std::nullopt;
    }
    return MakeFailure(v1::FAILURE_CLASS_INFRA, true,
                       PodWords(pod, "the node ended it: " + Joined(pod.reason, pod.message)),
                       "Submit the job again; it was not the program's fault.");
  }
  const std::string words = PodWords(pod, Joined(disruption->reason, disruption->message));
  if (disruption->reason == "PreemptionByScheduler") {
    return MakeFailure(v1::FAILURE_CLASS_PREEMPTED, true,
                       "A pod of a higher priority took its place: " + words,
                       "Submit the job again, or with a higher priority class.");
  }
  return MakeFailure(v1::FAILURE_CLASS_INFRA, true, "The cluster ended the pod: " + words,
                     "Submit the job again; it was not the program's fault.");
}

v1::Failure ExplainExit(const Culprit& culprit) {
  const ContainerObject& container = *culprit.container;
  const PodObject& pod = *culprit.pod;
  const std::string words =
      fmt::format("container {} ended with code {}{}{}", container.name, container.exit_code,
                  container.reason.empty() ? "" : ", ", container.reason);
  if (container.reason == "OOMKilled") {
    return MakeFailure(v1::FAILURE_CLASS_OOM, false,
                       "The memory limit of the container was reached: " + PodWords(pod, words),
                       "Ask for more memory, or make the batch smaller.");
  }
  const bool not_started = container.reason == "StartError" ||
                           container.reason == "ContainerCannotRun" ||
                           container.message.starts_with(kNotStarted);
  if (not_started) {
    return MakeFailure(
        v1::FAILURE_CLASS_CONFIG, false,
        "The command could not be started: " + PodWords(pod, words + ": " + container.message),
        "Check that the image has the program, and that it may be executed.");
  }
  if (container.is_init || container.message.starts_with(kSetupFailed)) {
    return MakeFailure(v1::FAILURE_CLASS_CONFIG, false, "The setup failed: " + PodWords(pod, words),
                       "Read the end of its output, and correct the setup.");
  }
  return MakeFailure(v1::FAILURE_CLASS_PROGRAM, false,
                     "The program failed: " + PodWords(pod, words), "Read the end of its output.");
}

v1::Failure ExplainFailure(const RunFacts& facts, const Condition& failed, const Culprit& culprit) {
  const bool is_deadline = failed.reason == "DeadlineExceeded" ||
                           (culprit.pod != nullptr && culprit.pod->reason == "DeadlineExceeded");
  if (is_deadline) {
    return MakeFailure(v1::FAILURE_CLASS_TIMEOUT, false,
                       "The time limit was reached: " +
                           JobWords(*facts.job, Joined(failed.reason, failed.message)),
                       "Ask for more time, or write checkpoints.");
  }
  for (const PodObject& pod : facts.pods) {
    if (std::optional<v1::Failure> disruption = ExplainDisruption(pod)) return *disruption;
  }
  if (culprit.container != nullptr) return ExplainExit(culprit);
  return MakeFailure(v1::FAILURE_CLASS_INFRA, true,
                     "The Job failed, and no pod of it is left to say why: " +
                         JobWords(*facts.job, Joined(failed.reason, failed.message)),
                     "Submit the job again.");
}

void QuoteEvents(const RunFacts& facts, v1::Failure* failure) {
  for (const EventObject& event : facts.events) {
    if (event.is_warning)
      agent::AddQuote("event", fmt::format("{}: {}: {}", event.object, event.reason, event.message),
                      failure);
  }
}

Observation Succeeded(const RunFacts& facts, const Condition& complete) {
  Observation seen = MakeObservation(facts, v1::RUN_STATE_SUCCEEDED);
  SetEvidence(facts, v1::EVIDENCE_SOURCE_POD,
              JobWords(*facts.job, Joined("Complete", complete.message)), &seen);
  SetTimes(facts, &seen);
  seen.exit.emplace();
  return seen;
}

Observation Failed(const RunFacts& facts, const Condition& failed) {
  // A cancel that was asked for and came before the failure is the deletion of the Job, not this.
  Observation seen = MakeObservation(facts, v1::RUN_STATE_FAILED);
  SetEvidence(
      facts, v1::EVIDENCE_SOURCE_POD,
      JobWords(*facts.job, fmt::format("Failed: {}", Joined(failed.reason, failed.message))),
      &seen);
  SetTimes(facts, &seen);
  const Culprit culprit = FindCulprit(facts.pods);
  seen.failure = ExplainFailure(facts, failed, culprit);
  if (culprit.container != nullptr && seen.failure->failure_class() != v1::FAILURE_CLASS_TIMEOUT)
    seen.exit = ExitOf(culprit);
  QuoteEvents(facts, &*seen.failure);
  return seen;
}

// Nobody but Muster should delete it; if somebody does, that is a cancel by others.
Observation Deleted(const RunFacts& facts) {
  Observation seen = MakeObservation(facts, v1::RUN_STATE_CANCELED);
  SetEvidence(
      facts, v1::EVIDENCE_SOURCE_POD,
      JobWords(*facts.deleted_job, facts.cancel_asked ? "deleted" : "deleted, not by Muster"),
      &seen);
  SetTimes(facts, &seen);
  return seen;
}

// ---- before the end

Observation Finishing(const RunFacts& facts, std::string_view why) {
  Observation seen = MakeObservation(facts, v1::RUN_STATE_FINISHING);
  SetEvidence(facts, v1::EVIDENCE_SOURCE_POD, JobWords(*facts.job, why), &seen);
  SetTimes(facts, &seen);
  return seen;
}

Observation Pending(const RunFacts& facts, const std::string& reason, const std::string& detail) {
  Observation seen = MakeObservation(facts, v1::RUN_STATE_PENDING);
  seen.reason = reason;
  SetEvidence(facts, v1::EVIDENCE_SOURCE_POD, detail, &seen);
  return seen;
}

// The trouble has lasted too long, or cannot pass: the run is over, and the caller deletes the Job.
std::optional<Observation> GiveUp(const RunFacts& facts, const PodObject& pod,
                                  const StartTrouble& trouble, const Patience& patience) {
  if (trouble.failure_class == v1::FAILURE_CLASS_UNSPECIFIED) return std::nullopt;
  const absl::Time since = trouble.since.value_or(facts.now);
  if (!trouble.is_final && facts.now - since < patience.start_grace) return std::nullopt;
  Observation seen = MakeObservation(facts, v1::RUN_STATE_FAILED);
  const std::string words = PodWords(pod, Joined(trouble.reason, trouble.message));
  SetEvidence(facts, v1::EVIDENCE_SOURCE_POD, words, &seen);
  const bool is_image = trouble.failure_class == v1::FAILURE_CLASS_IMAGE;
  seen.failure = MakeFailure(
      trouble.failure_class, false,
      fmt::format("{} {}", is_image ? "The image cannot be had:" : "The pod cannot start:", words),
      is_image
          ? "Check the image's name, and that the namespace has a pull secret for its registry."
          : "Check that what the job names is in its namespace.");
  QuoteEvents(facts, &*seen.failure);
  return seen;
}

v1::RunState StateOf(const PodObject& pod) {
  if (pod.phase == "Running" || pod.HasEnded()) return v1::RUN_STATE_RUNNING;
  return pod.node.empty() ? v1::RUN_STATE_PENDING : v1::RUN_STATE_STARTING;
}

std::optional<Observation> JudgeLive(const RunFacts& facts, const Patience& patience) {
  const JobObject& job = *facts.job;
  if (job.is_suspended) {
    return Pending(
        facts,
        facts.held ? "held: it starts once it is released" : "suspended by its queue, or by others",
        JobWords(job, "suspended"));
  }
  if (facts.pods.empty())
    return Pending(facts, "its pods are about to be made", JobWords(job, "no pod yet"));
  const PodObject* slowest = &facts.pods.front();
  for (const PodObject& pod : facts.pods) {
    if (StateOf(pod) < StateOf(*slowest)) slowest = &pod;
  }
  const std::optional<StartTrouble> trouble = FindStartTrouble(*slowest, facts.events);
  if (trouble.has_value()) {
    if (std::optional<Observation> end = GiveUp(facts, *slowest, *trouble, patience)) return end;
  }
  const std::string words =
      trouble.has_value() ? Joined(trouble->reason, trouble->message) : slowest->phase;
  Observation seen = MakeObservation(facts, StateOf(*slowest));
  if (trouble.has_value()) seen.reason = words;
  SetEvidence(facts, v1::EVIDENCE_SOURCE_POD, PodWords(*slowest, words), &seen);
  SetTimes(facts, &seen);
  seen.end_time.reset();
  return seen;
}

}  // namespace

std::optional<Observation> Judge(const RunFacts& facts, const Patience& patience) {
  if (!facts.job.has_value()) {
    if (!facts.deleted_job.has_value()) return std::nullopt;
    // What ended before it was deleted keeps its own end.
    RunFacts before = facts;
    before.job = facts.deleted_job;
    if (const Condition* complete = facts.deleted_job->Find("Complete"))
      return Succeeded(before, *complete);
    if (const Condition* failed = facts.deleted_job->Find("Failed")) return Failed(before, *failed);
    return Deleted(facts);
  }
  const JobObject& job = *facts.job;
  if (const Condition* complete = job.Find("Complete")) return Succeeded(facts, *complete);
  if (const Condition* failed = job.Find("Failed")) return Failed(facts, *failed);
  if (job.deletion_time.has_value()) return Finishing(facts, "its pods are being ended");
  if (const Condition* target = job.Find("FailureTarget"))
    return Finishing(facts, Joined(target->reason, target->message));
  if (job.Find("SuccessCriteriaMet") != nullptr)
    return Finishing(facts, "it has succeeded, and its pods are being ended");
  return JudgeLive(facts, patience);
}

}  // namespace muster::kubernetes
