#include "agents/kubernetes/verdict/explain_failure.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "agents/kubernetes/manifest/manifest.h"
#include "contract/signal_name.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::kubernetes {
namespace {

// Shells and container runtimes tell a death by signal as 128 and the signal's number.
constexpr int kSignalBase = 128;
constexpr int kMaxSignal = 64;
constexpr int kKillSignal = 9;
constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;

constexpr char kAgain[] = "Submit the job again; it was not the program's fault.";

bool Mentions(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool HasFailed(const ContainerObject& container) {
  return container.state == ContainerState::kTerminated &&
         (container.exit_code != 0 || container.signal != 0);
}

// With it the Job controller begins to end what is left of the Job; null: it has not.
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

// Why the cluster itself ended the pod; nothing if it did not. Source:
// https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions.
std::optional<v1::Failure> ExplainDisruption(const PodObject& pod) {
  const Condition* disruption = pod.Find("DisruptionTarget");
  // Drains and lost nodes mark pods that have ended before as well.
  const absl::Time end = pod.HasEnded() ? EndOf(pod) : absl::InfiniteFuture();
  if (disruption != nullptr && disruption->since.value_or(absl::InfinitePast()) <= end) {
    const std::string words = Told(pod, Joined(disruption->reason, disruption->message));
    if (disruption->reason == "PreemptionByScheduler") {
      return MakeFailure(v1::FAILURE_CLASS_PREEMPTED, true,
                         "A pod of a higher priority took its place: " + words,
                         "Submit the job again, or with a higher priority class.");
    }
    return MakeFailure(v1::FAILURE_CLASS_INFRA, true, "The cluster ended the pod: " + words,
                       kAgain);
  }
  if (pod.phase != "Failed") return std::nullopt;
  const std::string words = Told(pod, Joined(pod.reason, pod.message));
  // For a pod that used more of the node's disk than it may, the kubelet reports no disruption.
  if (pod.reason == "Evicted" && Mentions(pod.message, "exceeds")) {
    return MakeFailure(v1::FAILURE_CLASS_CONFIG, false, "The pod used too much disk: " + words,
                       "Write less to the container's own file system, or into a volume.");
  }
  for (const char* reason : {"Evicted", "NodeLost", "Shutdown", "NodeShutdown", "Terminated"}) {
    if (pod.reason == reason)
      return MakeFailure(v1::FAILURE_CLASS_INFRA, true, "The node ended the pod: " + words, kAgain);
  }
  return std::nullopt;
}

v1::Failure ExplainOwnExit(const Culprit& culprit, const std::string& words) {
  const v1::ExitStatus exit = ExitOf(culprit);
  std::string suggestion = "Read the end of its output.";
  if (exit.signal() == kKillSignal) {
    suggestion =
        "The cluster tells of nothing that killed it: the program did so itself, or the node's "
        "kernel took a part of it for want of memory. Read the end of its output.";
  } else if (exit.code() == kNotFound || exit.code() == kCannotExecute) {
    suggestion =
        "A shell ends with 127 if it finds no command of that name, and with 126 if a file is none "
        "that it may run. Read the end of its output.";
  }
  return MakeFailure(v1::FAILURE_CLASS_PROGRAM, false,
                     "The program failed: " + Told(*culprit.pod, words), suggestion);
}

// Explains the deletion of the pod while its program ran; nothing: nobody deleted it. Kubernetes
// tells whole seconds: a program that ended in that of the deletion may have been told to, and
// answered with code 0.
std::optional<v1::Failure> ExplainDeletion(const JobObject& job, const PodObject& pod,
                                           absl::Time end, const std::string& words) {
  if (!pod.deletion_time.has_value() || *pod.deletion_time > end) return std::nullopt;
  // Another attempt loses nothing if nothing has run.
  if (job.is_suspended && HasStarted(pod)) return ExplainSuspension(job, PodWords(pod, words));
  return MakeFailure(v1::FAILURE_CLASS_INFRA, true,
                     "The pod was deleted, not by Muster: " + Told(pod, words), kAgain);
}

// "exit code 3 of container main"; of a code that the run's exit status calls a signal also which.
std::string EndWords(const ContainerObject& container) {
  const int signal = MakeExit(container.exit_code, container.signal, 0).signal();
  const std::string as =
      signal != 0 ? fmt::format(", as of {},", contract::SignalName(signal)) : "";
  const bool says_more = !container.reason.empty() && container.reason != "Error";
  return fmt::format("exit code {}{} of container {}{}", container.exit_code, as, container.name,
                     says_more ? ", " + container.reason : "");
}

const char* RemedyOf(const EndRecord& record) {
  switch (record.problem) {
    case EndRecord::Problem::kFailed:
      return "Read the end of its output, and correct the setup.";
    case EndRecord::Problem::kStart:
      return "Check that the image has the program, and that it may be executed.";
    case EndRecord::Problem::kWorkingDirectory:
      return "Leave it out, name one that the image has (workdir; sbatch: --chdir=/, which each "
             "has), or mount this one (kubernetes.volumes).";
    case EndRecord::Problem::kMissing:
      return "Put the data there, or correct the path.";
    case EndRecord::Problem::kNoTar:
      return "Use an image that has tar, or put the files into it.";
    case EndRecord::Problem::kNotMade:
    case EndRecord::Problem::kNotUnpacked:
      break;
  }
  return "Read the end of its output, and correct what it names.";
}

// Explains by the records of our own scripts, of which there is one at least, why there was no
// command. `words`: how the container ended.
v1::Failure ExplainRecords(const ContainerObject& container, const std::string& words) {
  std::string said;
  for (const EndRecord& record : container.records)
    absl::StrAppend(&said, said.empty() ? "" : "; ", WordsOf(record));
  const EndRecord& first = container.records.front();
  if (first.phase == EndRecord::Phase::kFiles) {
    said.insert(0, "What the job needs is not all there: ");
  } else {
    said.front() = absl::ascii_toupper(static_cast<unsigned char>(said.front()));
  }
  return MakeFailure(v1::FAILURE_CLASS_CONFIG, false, said + ": " + words, RemedyOf(first));
}

v1::Failure ExplainExit(const JobObject& job, const Culprit& culprit) {
  const ContainerObject& container = *culprit.container;
  const PodObject& pod = *culprit.pod;
  const std::string words = EndWords(container);
  if (container.reason == "OOMKilled") {
    return MakeFailure(v1::FAILURE_CLASS_OOM, false,
                       "The memory limit of the container was reached: " + Told(pod, words),
                       "Ask for more memory, or make the batch smaller.");
  }
  if (!container.records.empty()) return ExplainRecords(container, Told(pod, words));
  if (WasNotStarted(container)) {
    return MakeFailure(
        v1::FAILURE_CLASS_CONFIG, false,
        "The command could not be started: " + Told(pod, words + ": " + container.message),
        "Check that the image has /bin/sh, which starts the command.");
  }
  if (container.is_init) {
    return MakeFailure(v1::FAILURE_CLASS_CONFIG, false,
                       "What comes before the program failed: " + Told(pod, words),
                       "Read the end of its output, and correct what it names.");
  }
  if (!culprit.was_stopped) {
    if (auto deletion = ExplainDeletion(job, pod, culprit.end(), words))
      return *std::move(deletion);
  }
  if (IsLost(container)) {
    return MakeFailure(v1::FAILURE_CLASS_INFRA, true,
                       "The node has lost the container, so that nobody knows how it ended: " +
                           Told(pod, Joined(container.reason, container.message)),
                       kAgain);
  }
  return ExplainOwnExit(culprit, words);
}

// "…for pod lab/k7m2-42-1-3-x8f2p failed…" of an Indexed Job: 3; 0 if there is no index.
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
  const std::string words = Told(job, Joined(failed.reason, failed.message));
  constexpr std::string_view kExit = "failed with exit code ";
  const std::string_view message = failed.message;
  int code = 0;
  if (const size_t at = message.find(kExit); at != message.npos) {
    const std::string_view rest = message.substr(at + kExit.size());
    (void)absl::SimpleAtoi(ToAbsl(rest.substr(0, rest.find(' '))), &code);
  }
  if (code != 0) {
    return {MakeFailure(v1::FAILURE_CLASS_PROGRAM, false, "The program failed: " + words,
                        "Read the end of its output."),
            MakeExit(code, 0, RankIn(job, message))};
  }
  if (Mentions(message, "has condition DisruptionTarget"))
    return {MakeFailure(v1::FAILURE_CLASS_INFRA, true, "The cluster ended a pod: " + words, kAgain),
            std::nullopt};
  return {MakeFailure(v1::FAILURE_CLASS_INFRA, true,
                      "The Job failed, and no pod of it is left to say why: " + words,
                      "Submit the job again."),
          std::nullopt};
}

// The pod that came to its time limit, if that is what ended the run.
const PodObject* FindOverdue(const Culprit& culprit, const std::vector<PodObject>& pods) {
  const auto is_overdue = [](const PodObject& pod) { return pod.reason == "DeadlineExceeded"; };
  const bool was_first = culprit.container != nullptr && !culprit.was_stopped;
  if (was_first) return is_overdue(*culprit.pod) ? culprit.pod : nullptr;
  const auto found = std::find_if(pods.begin(), pods.end(), is_overdue);
  return found == pods.end() ? nullptr : &*found;
}

}  // namespace

std::string Told(const PodObject& pod, std::string_view what) {
  return fmt::format("{} (pod {}{}{})", what, pod.name.name, pod.node.empty() ? "" : " on ",
                     pod.node);
}

std::string Told(const JobObject& job, std::string_view what) {
  return fmt::format("{} (Job {}/{})", what, job.name.name_space, job.name.name);
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

// The Job controller took it away because of the culprit's end, and its node lived on to tell its
// own: a disruption that came in between has changed nothing. (A node that dies is noticed late.)
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

void TellPod(const PodObject& pod, v1::Failure* failure) {
  failure->set_rank(pod.index);
  failure->set_node(pod.node);
}

v1::FailurePhase PhaseOfContainer(const ContainerObject& container) {
  if (WasNotStarted(container)) return v1::FAILURE_PHASE_COMMAND_START;
  if (container.is_init) return v1::FAILURE_PHASE_FILES;
  if (container.records.empty()) return v1::FAILURE_PHASE_COMMAND;
  const EndRecord& record = container.records.front();
  const bool is_of_setup = record.phase == EndRecord::Phase::kSetup;
  if (record.problem == EndRecord::Problem::kFailed) return v1::FAILURE_PHASE_SETUP;
  return is_of_setup ? v1::FAILURE_PHASE_SETUP_START : v1::FAILURE_PHASE_COMMAND_START;
}

Ending ExplainCulprit(const JobObject& job, const Condition& failed,
                      const std::vector<PodObject>& pods, const Culprit& culprit) {
  const PodObject* overdue = FindOverdue(culprit, pods);
  if (overdue != nullptr || failed.reason == "DeadlineExceeded") {
    const std::string words = overdue != nullptr
                                  ? Told(*overdue, Joined(overdue->reason, overdue->message))
                                  : Told(job, Joined(failed.reason, failed.message));
    const PodObject* ended = overdue != nullptr ? overdue : culprit.pod;
    Ending ending = {
        MakeFailure(v1::FAILURE_CLASS_TIMEOUT, false, "The time limit was reached: " + words,
                    "Ask for more time, or write checkpoints."),
        ended != nullptr ? ExitAtLimit(*ended) : std::nullopt};
    if (ended != nullptr) TellPod(*ended, &ending.failure);
    return ending;
  }
  std::optional<v1::ExitStatus> exit;
  if (culprit.container != nullptr && TellsExit(*culprit.container)) exit = ExitOf(culprit);
  for (const PodObject& pod : pods) {
    if (WasGoingAnyway(pod, culprit)) continue;
    if (std::optional<v1::Failure> disruption = ExplainDisruption(pod)) {
      TellPod(pod, &*disruption);
      return {*std::move(disruption), exit};
    }
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
  if (culprit.pod != nullptr && !ending.failure.has_rank()) TellPod(*culprit.pod, &ending.failure);
  return ending;
}

v1::Failure ExplainSuspension(const JobObject& job, const std::string& words) {
  if (job.is_held) {
    return MakeFailure(v1::FAILURE_CLASS_INFRA, true,
                       "A hold came as the program began, and Kubernetes deleted its pod: " + words,
                       kAgain);
  }
  return MakeFailure(
      v1::FAILURE_CLASS_PREEMPTED, true,
      "The Job was suspended, by its queue or by others, which ended its pods: " + words,
      "Submit the job again, or let it be tried again after a preemption.");
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
    TellPod(pod, &*failure);
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

v1::Failure MakeFailure(v1::FailureClass failure_class, bool retriable, std::string message,
                        std::string suggestion) {
  v1::Failure failure;
  failure.set_failure_class(failure_class);
  failure.set_retriable(retriable);
  failure.set_message(std::move(message));
  failure.set_suggestion(std::move(suggestion));
  return failure;
}

}  // namespace muster::kubernetes
