#include "agents/kubernetes/verdict/explain_failure.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agents/kubernetes/manifest/manifest.h"
#include "contract/failures.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// Shells and container runtimes tell a death by signal as 128 and the signal's number.
constexpr int kSignalBase = 128;
constexpr int kMaxSignal = 64;

using contract::FailureCause;

bool Mentions(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool HasFailed(const ContainerObject& container) {
  return container.state == ContainerState::kTerminated &&
         (container.exit_code != 0 || container.signal != 0);
}

// With it the Job controller begins to end what is left of the Job; null if it has not.
const Condition* StopCondition(const JobObject& job) {
  const Condition* target = job.Find("FailureTarget");
  return target != nullptr ? target : job.Find("Failed");
}

absl::Time StopTime(const JobObject& job) {
  const Condition* target = StopCondition(job);
  if (target == nullptr) return absl::InfiniteFuture();
  return target->since.value_or(absl::InfiniteFuture());
}

v1::ExitStatus MakeExit(int code, int signal, uint32_t rank) {
  const int above = code - kSignalBase;
  if (signal == 0 && above > 0 && above <= kMaxSignal) signal = above;
  v1::ExitStatus exit;
  exit.set_signal(signal);
  exit.set_code(signal != 0 ? 0 : code);
  exit.set_rank(rank);
  return exit;
}

v1::ExitStatus ExitOf(const Culprit& culprit) {
  return MakeExit(culprit.container->exit_code, culprit.container->signal, culprit.pod->index);
}

// Then its exit code is nobody's: no script of ours ran.
bool WasNotStarted(const ContainerObject& container) {
  return container.reason == "StartError" || container.reason == "ContainerCannotRun";
}

// Returns whether its exit status is that of the command.
bool TellsExit(const ContainerObject& container) {
  return !container.is_init && container.records.empty() && !WasNotStarted(container) &&
         !IsLost(container);
}

// Returns the exit status of a command that was ended at its time limit, and may have ended well
// then; nothing: its node does not tell, as kubelets do that let a pod fail before its containers
// have ended.
std::optional<v1::ExitStatus> ExitAtLimit(const PodObject& pod) {
  for (const ContainerObject& container : pod.containers) {
    if (container.name == kMainContainer && container.state == ContainerState::kTerminated &&
        TellsExit(container))
      return MakeExit(container.exit_code, container.signal, pod.index);
  }
  return std::nullopt;
}

// Says it of the pod. `parts` without the pod.
v1::Failure OfPod(const PodObject& pod, v1::FailureCode code, v1::FailureClass failure_class,
                  bool retriable, contract::FailureParts parts) {
  parts.is_retriable = retriable;
  v1::Failure failure = contract::MakeFailure(code, failure_class, parts);
  NamePod(pod, &failure);
  return failure;
}

// Returns the reason that the cluster itself ended the pod; nothing if it did not. Source:
// https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions.
std::optional<v1::Failure> ExplainDisruption(const PodObject& pod) {
  const Condition* disruption = pod.Find("DisruptionTarget");
  // Drains and lost nodes mark pods that have ended before as well.
  const absl::Time end = pod.HasEnded() ? EndOf(pod) : absl::InfiniteFuture();
  if (disruption != nullptr && disruption->since.value_or(absl::InfinitePast()) <= end) {
    const std::string words = Joined(disruption->reason, disruption->message);
    if (disruption->reason == "PreemptionByScheduler") {
      return OfPod(pod, v1::FAILURE_CODE_PREEMPTED, v1::FAILURE_CLASS_PREEMPTED, true,
                   {.detail = words});
    }
    return OfPod(pod, v1::FAILURE_CODE_EVICTED, v1::FAILURE_CLASS_INFRA, true, {.detail = words});
  }
  if (pod.phase != "Failed") return std::nullopt;
  const std::string words = Joined(pod.reason, pod.message);
  // For a pod that used more of the node's disk than it may, the kubelet reports no disruption.
  if (pod.reason == "Evicted" && Mentions(pod.message, "exceeds")) {
    return OfPod(pod, v1::FAILURE_CODE_DISK_LIMIT, v1::FAILURE_CLASS_CONFIG, false,
                 {.detail = words});
  }
  if (pod.reason == "NodeLost")
    return OfPod(pod, v1::FAILURE_CODE_NODE_LOST, v1::FAILURE_CLASS_INFRA, true, {.detail = words});
  for (const char* reason : {"Evicted", "Shutdown", "NodeShutdown", "Terminated"}) {
    if (pod.reason == reason) {
      return OfPod(pod, v1::FAILURE_CODE_EVICTED, v1::FAILURE_CLASS_INFRA, true, {.detail = words});
    }
  }
  return std::nullopt;
}

// Returns "exit code 137 of container main, OOMKilled".
std::string EndWords(const ContainerObject& container) {
  const bool says_more = !container.reason.empty() && container.reason != "Error";
  return fmt::format("exit code {} of container {}{}", container.exit_code, container.name,
                     says_more ? ", " + container.reason : "");
}

v1::Failure ExplainOwnExit(const Culprit& culprit) {
  const ContainerObject& container = *culprit.container;
  const v1::ExitStatus exit = ExitOf(culprit);
  // The command's own code stands in the sentence.
  const bool is_plain = container.name == kMainContainer && exit.signal() == 0 &&
                        (container.reason.empty() || container.reason == "Error");
  v1::Failure failure = contract::OwnEnd(
      exit, {.detail = is_plain ? "" : EndWords(container), .phase = v1::FAILURE_PHASE_COMMAND});
  NamePod(*culprit.pod, &failure);
  return failure;
}

// Explains the deletion of the pod while its program ran; nothing if nobody deleted it. Kubernetes
// tells whole seconds: a program that ended in that of the deletion may have been told to, and
// answered with code 0.
std::optional<v1::Failure> ExplainDeletion(const JobObject& job, const PodObject& pod,
                                           absl::Time end, const std::string& words) {
  if (!pod.deletion_time.has_value() || *pod.deletion_time > end) return std::nullopt;
  // Another attempt loses nothing if nothing has run.
  if (job.is_suspended && HasStarted(pod)) return ExplainSuspension(job, words);
  return OfPod(pod, v1::FAILURE_CODE_ENDED_BY_OTHERS, v1::FAILURE_CLASS_INFRA, true,
               {.detail = words, .meaning = "its pod was deleted"});
}

FailureCause CauseOf(const EndRecord& record) {
  switch (record.problem) {
    case EndRecord::Problem::kFailed:
    case EndRecord::Problem::kMissing:
    case EndRecord::Problem::kLeaseEnded:
    case EndRecord::Problem::kNoLease:
      return FailureCause::kNone;
    case EndRecord::Problem::kStart:
      return FailureCause::kProgramNotInImage;
    case EndRecord::Problem::kWorkingDirectory:
      return FailureCause::kDirectoryNotInImage;
    case EndRecord::Problem::kNoTar:
      return FailureCause::kTarNotInImage;
    case EndRecord::Problem::kNotMade:
    case EndRecord::Problem::kNotUnpacked:
      break;
  }
  return FailureCause::kOutputSaysWhy;
}

v1::FailureCode CodeOf(const EndRecord& record) {
  switch (record.problem) {
    case EndRecord::Problem::kFailed:
      return v1::FAILURE_CODE_SETUP_FAILED;
    case EndRecord::Problem::kStart:
      return v1::FAILURE_CODE_PROGRAM_NOT_STARTED;
    case EndRecord::Problem::kWorkingDirectory:
      return v1::FAILURE_CODE_WORKING_DIRECTORY;
    case EndRecord::Problem::kMissing:
    case EndRecord::Problem::kNoTar:
      return v1::FAILURE_CODE_INPUTS_MISSING;
    case EndRecord::Problem::kNotMade:
      return v1::FAILURE_CODE_RESULTS_DIRECTORY;
    case EndRecord::Problem::kNotUnpacked:
      return v1::FAILURE_CODE_FILES_NOT_BROUGHT;
    case EndRecord::Problem::kLeaseEnded:
    case EndRecord::Problem::kNoLease:
      return v1::FAILURE_CODE_LEASE_ENDED;
  }
  return v1::FAILURE_CODE_PROGRAM_NOT_STARTED;
}

v1::FailurePhase PhaseOfContainer(const ContainerObject& container) {
  if (WasNotStarted(container)) return v1::FAILURE_PHASE_COMMAND_START;
  if (container.is_init) return v1::FAILURE_PHASE_FILES;
  if (container.records.empty()) return v1::FAILURE_PHASE_COMMAND;
  const EndRecord& record = container.records.front();
  const bool is_of_setup = record.phase == EndRecord::Phase::kSetup;
  if (record.problem == EndRecord::Problem::kFailed) return v1::FAILURE_PHASE_SETUP;
  if (record.problem == EndRecord::Problem::kLeaseEnded)
    return is_of_setup ? v1::FAILURE_PHASE_SETUP : v1::FAILURE_PHASE_COMMAND;
  return is_of_setup ? v1::FAILURE_PHASE_SETUP_START : v1::FAILURE_PHASE_COMMAND_START;
}

// Explains by the records of our own scripts, of which there is one at least, why there was no
// command.
v1::Failure ExplainRecords(const Culprit& culprit) {
  const ContainerObject& container = *culprit.container;
  const EndRecord& first = container.records.front();
  contract::FailureParts parts = {.detail = EndWords(container),
                                  .subject = first.subject,
                                  .cause = CauseOf(first),
                                  .phase = PhaseOfContainer(container)};
  if (first.problem == EndRecord::Problem::kFailed) {
    v1::Failure failure =
        contract::OwnEnd(MakeExit(container.exit_code, container.signal, culprit.pod->index),
                         {.phase = parts.phase});
    NamePod(*culprit.pod, &failure);
    return failure;
  }
  if (CodeOf(first) == v1::FAILURE_CODE_LEASE_ENDED) {
    if (first.problem == EndRecord::Problem::kNoLease)
      parts.meaning = "before its program could start";
    return OfPod(*culprit.pod, v1::FAILURE_CODE_LEASE_ENDED, v1::FAILURE_CLASS_INFRA, true,
                 std::move(parts));
  }
  if (first.phase == EndRecord::Phase::kFiles) {
    for (const EndRecord& record : container.records)
      absl::StrAppend(&parts.meaning, parts.meaning.empty() ? "" : "; ", WordsOf(record));
  }
  return OfPod(*culprit.pod, CodeOf(first), v1::FAILURE_CLASS_CONFIG, false, std::move(parts));
}

v1::Failure ExplainExit(const JobObject& job, const Culprit& culprit) {
  const ContainerObject& container = *culprit.container;
  const PodObject& pod = *culprit.pod;
  const std::string words = EndWords(container);
  const v1::FailurePhase phase = PhaseOfContainer(container);
  if (container.reason == "OOMKilled") {
    v1::Failure failure = OfPod(pod, v1::FAILURE_CODE_OUT_OF_MEMORY, v1::FAILURE_CLASS_OOM, false,
                                {.detail = words, .phase = phase});
    failure.set_memory_limit_bytes(container.memory_limit_bytes);
    contract::PutSentence(&failure);
    return failure;
  }
  if (!container.records.empty()) return ExplainRecords(culprit);
  if (WasNotStarted(container)) {
    return OfPod(pod, v1::FAILURE_CODE_PROGRAM_NOT_STARTED, v1::FAILURE_CLASS_CONFIG, false,
                 {.detail = words + ": " + container.message,
                  .cause = FailureCause::kShellNotInImage,
                  .phase = phase});
  }
  if (container.is_init) {
    return OfPod(pod, v1::FAILURE_CODE_PREPARATION_FAILED, v1::FAILURE_CLASS_CONFIG, false,
                 {.detail = words, .subject = container.name, .phase = phase});
  }
  if (!culprit.was_stopped) {
    if (auto deletion = ExplainDeletion(job, pod, culprit.end(), words))
      return *std::move(deletion);
  }
  if (IsLost(container)) {
    return OfPod(pod, v1::FAILURE_CODE_END_UNKNOWN, v1::FAILURE_CLASS_INFRA, true,
                 {.detail = Joined(container.reason, container.message),
                  .meaning = "the node has lost the container",
                  .cause = FailureCause::kContainerLost,
                  .phase = phase});
  }
  return ExplainOwnExit(culprit);
}

// Reads 3 from "…for pod lab/k7m2-42-1-3-x8f2p failed…" of an Indexed Job; 0 if there is no index.
uint32_t RankIn(const JobObject& job, std::string_view message) {
  const std::string start = job.name.name_space + "/" + job.name.name + "-";
  const size_t at = message.find(start);
  if (at == message.npos) return 0;
  const std::string_view rest = message.substr(at + start.size());
  uint32_t rank = 0;
  const bool has_index = absl::SimpleAtoi(ToAbsl(rest.substr(0, rest.find('-'))), &rank);
  return has_index && rest.find('-') < rest.find(' ') ? rank : 0;
}

// Explains an end by the Job alone, whose pods are gone. Source of its words: matchPodFailurePolicy
// in pkg/controller/job/pod_failure_policy.go of Kubernetes.
Ending ExplainByJob(const JobObject& job, const Condition& failed) {
  contract::FailureParts parts = {.detail = Joined(failed.reason, failed.message),
                                  .object = NameOf(job),
                                  .phase = v1::FAILURE_PHASE_COMMAND};
  constexpr std::string_view kExit = "failed with exit code ";
  const std::string_view message = failed.message;
  int code = 0;
  if (const size_t at = message.find(kExit); at != message.npos) {
    const std::string_view rest = message.substr(at + kExit.size());
    (void)absl::SimpleAtoi(ToAbsl(rest.substr(0, rest.find(' '))), &code);
  }
  if (code != 0) {
    const v1::ExitStatus exit = MakeExit(code, 0, RankIn(job, message));
    return {contract::OwnEnd(exit, parts), exit};
  }
  parts.is_retriable = true;
  if (Mentions(message, "has condition DisruptionTarget"))
    return {contract::MakeFailure(v1::FAILURE_CODE_EVICTED, v1::FAILURE_CLASS_INFRA, parts),
            std::nullopt};
  parts.meaning = "no pod of it is left";
  return {contract::MakeFailure(v1::FAILURE_CODE_END_UNEXPLAINED, v1::FAILURE_CLASS_INFRA, parts),
          std::nullopt};
}

// Returns the pod that came to its time limit, if that is what ended the run.
const PodObject* FindOverdue(const Culprit& culprit, const std::vector<PodObject>& pods) {
  const auto is_overdue = [](const PodObject& pod) { return pod.reason == "DeadlineExceeded"; };
  const bool was_first = culprit.container != nullptr && !culprit.was_stopped;
  if (was_first) return is_overdue(*culprit.pod) ? culprit.pod : nullptr;
  const auto found = std::find_if(pods.begin(), pods.end(), is_overdue);
  return found == pods.end() ? nullptr : &*found;
}

}  // namespace

std::string NameOf(const JobObject& job) {
  return fmt::format("Job {}/{}", job.name.name_space, job.name.name);
}

void NamePod(const PodObject& pod, v1::Failure* failure) {
  failure->set_object("pod " + pod.name.name);
  failure->set_rank(pod.index);
  failure->set_node(pod.node);
  contract::PutSentence(failure);
}

absl::Time Culprit::end() const {
  if (container == nullptr) return absl::InfiniteFuture();
  return container->finished.value_or(absl::InfiniteFuture());
}

Culprit FindCulprit(const JobObject& job, const std::vector<PodObject>& pods) {
  const absl::Time stop = StopTime(job);
  const Condition* target = StopCondition(job);
  // Times are in whole seconds; of several in one, the Job has named the first that it saw.
  const auto is_unnamed = [&](const Culprit& culprit) {
    return target == nullptr || !Mentions(target->message, culprit.pod->name.name + " ");
  };
  Culprit first;
  for (const PodObject& pod : pods) {
    for (const ContainerObject& container : pod.containers) {
      // A side-car is an init container that lives on, and is ended with the others.
      if (!HasFailed(container) || (container.is_init && HasStarted(pod))) continue;
      Culprit culprit{&pod, &container};
      // The one that the Job names was there before the Job controller stopped any.
      culprit.was_stopped = is_unnamed(culprit) && pod.deletion_time.has_value() &&
                            *pod.deletion_time >= stop && culprit.end() >= *pod.deletion_time;
      const auto order = [&](const Culprit& one) {
        return std::make_tuple(one.was_stopped, one.end(), is_unnamed(one));
      };
      if (first.container == nullptr || order(culprit) < order(first)) first = culprit;
    }
  }
  if (first.pod != nullptr) return first;
  const auto failed = std::find_if(pods.begin(), pods.end(),
                                   [](const PodObject& pod) { return pod.phase == "Failed"; });
  if (failed != pods.end()) first.pod = &*failed;
  return first;
}

// Tells whether the Job controller took it away because of the culprit's end, and its node lived on
// to tell its own: a disruption that came in between has changed nothing. (A node that dies is
// noticed late.)
bool WasGoingAnyway(const PodObject& pod, const Culprit& culprit) {
  if (culprit.container == nullptr || culprit.pod == &pod || !pod.deletion_time.has_value())
    return false;
  const Condition* disruption = pod.Find("DisruptionTarget");
  const bool came_later = disruption != nullptr && disruption->since.has_value() &&
                          *disruption->since > *pod.deletion_time &&
                          *pod.deletion_time >= culprit.end();
  return came_later && std::any_of(pod.containers.begin(), pod.containers.end(),
                                   [](const ContainerObject& container) {
                                     return container.finished.has_value() && !IsLost(container);
                                   });
}

namespace {

Ending ExplainCulprit(const JobObject& job, const Condition& failed,
                      const std::vector<PodObject>& pods, const Culprit& culprit) {
  const PodObject* overdue = FindOverdue(culprit, pods);
  if (overdue != nullptr || failed.reason == "DeadlineExceeded") {
    const std::string words = overdue != nullptr ? Joined(overdue->reason, overdue->message)
                                                 : Joined(failed.reason, failed.message);
    const PodObject* ended = overdue != nullptr ? overdue : culprit.pod;
    Ending ending = {contract::MakeFailure(v1::FAILURE_CODE_TIME_LIMIT, v1::FAILURE_CLASS_TIMEOUT,
                                           {.detail = words, .object = NameOf(job)}),
                     ended != nullptr ? ExitAtLimit(*ended) : std::nullopt};
    if (ended != nullptr) NamePod(*ended, &ending.failure);
    return ending;
  }
  std::optional<v1::ExitStatus> exit;
  if (culprit.container != nullptr && TellsExit(*culprit.container)) exit = ExitOf(culprit);
  for (const PodObject& pod : pods) {
    if (WasGoingAnyway(pod, culprit)) continue;
    if (std::optional<v1::Failure> disruption = ExplainDisruption(pod))
      return {*std::move(disruption), exit};
  }
  if (culprit.container == nullptr) return ExplainByJob(job, failed);
  return {ExplainExit(job, culprit), exit};
}

}  // namespace

Ending ExplainFailure(const JobObject& job, const Condition& failed,
                      const std::vector<PodObject>& pods) {
  const Culprit culprit = FindCulprit(job, pods);
  Ending ending = ExplainCulprit(job, failed, pods, culprit);
  ending.failure.set_phase(culprit.container == nullptr ? v1::FAILURE_PHASE_COMMAND
                                                        : PhaseOfContainer(*culprit.container));
  contract::PutSentence(&ending.failure);
  if (culprit.pod != nullptr && !ending.failure.has_rank()) NamePod(*culprit.pod, &ending.failure);
  return ending;
}

v1::Failure ExplainSuspension(const JobObject& job, const std::string& words) {
  if (job.is_held) {
    return contract::MakeFailure(v1::FAILURE_CODE_HELD_TOO_LATE, v1::FAILURE_CLASS_INFRA,
                                 {.detail = words, .is_retriable = true});
  }
  return contract::MakeFailure(v1::FAILURE_CODE_SUSPENDED, v1::FAILURE_CLASS_PREEMPTED,
                               {.detail = words, .is_retriable = true});
}

std::optional<v1::Failure> ExplainStop(const JobObject& job, const std::vector<PodObject>& pods) {
  const Condition* met = job.Find("SuccessCriteriaMet");
  const bool has_policy = met != nullptr && met->reason == "SuccessPolicy";
  // Since then the Job controller stops those that do not lead.
  const absl::Time met_since =
      has_policy ? met->since.value_or(absl::InfinitePast()) : absl::InfiniteFuture();
  for (const PodObject& pod : pods) {
    // One that did not end with 0 is not what the Job counts.
    if (pod.phase != "Succeeded") continue;
    if (has_policy && pod.deletion_time.value_or(absl::InfiniteFuture()) >= met_since) continue;
    std::optional<v1::Failure> failure = ExplainDisruption(pod);
    if (!failure) failure = ExplainDeletion(job, pod, EndOf(pod), "it answered with code 0");
    if (!failure) continue;
    failure->set_phase(v1::FAILURE_PHASE_COMMAND);
    NamePod(pod, &*failure);
    return failure;
  }
  return std::nullopt;
}

bool IsLost(const ContainerObject& container) {
  return container.reason == "ContainerStatusUnknown";
}

bool HasStarted(const PodObject& pod) {
  if (pod.phase == "Running" || pod.phase == "Succeeded") return true;
  return std::any_of(pod.containers.begin(), pod.containers.end(),
                     [](const ContainerObject& container) {
                       return !container.is_init && container.started.has_value();
                     });
}

const Condition* FindUnscheduled(const PodObject& pod) {
  const auto found =
      std::find_if(pod.conditions.begin(), pod.conditions.end(),
                   [](const Condition& c) { return c.type == "PodScheduled" && !c.is_true; });
  return found == pod.conditions.end() ? nullptr : &*found;
}

absl::Time EndOf(const PodObject& pod) {
  if (pod.containers.empty()) return absl::InfiniteFuture();
  absl::Time end = absl::InfinitePast();
  for (const ContainerObject& container : pod.containers)
    end = std::max(end, container.finished.value_or(absl::InfiniteFuture()));
  return end;
}

std::string PodWords(const PodObject& pod, std::string_view what) {
  return fmt::format("pod {} (resourceVersion {}){}{}: {}", pod.name.name,
                     pod.name.resource_version, pod.node.empty() ? "" : " on ", pod.node, what);
}

std::string JobWords(const JobObject& job, std::string_view what) {
  return fmt::format("Job {}/{} (resourceVersion {}): {}", job.name.name_space, job.name.name,
                     job.name.resource_version, what);
}

std::string Joined(const std::string& reason, const std::string& message) {
  if (reason.empty() || message.empty()) return reason + message;
  return reason + ": " + message;
}

}  // namespace muster::kubernetes
