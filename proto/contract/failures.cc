#include "contract/failures.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/time/time.h"
#include "contract/counted.h"
#include "contract/failure_patterns.h"
#include "contract/signal_name.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr int kKilledBy = 9;
// Exit codes of shells.
constexpr int kShellNotExecutable = 126;
constexpr int kShellNotFound = 127;

constexpr std::string_view kReadItsOutput = "Read the end of its output.";
constexpr std::string_view kSubmitItAgain = "Submit the job again.";
constexpr std::string_view kNotItsFault = "Submit the job again; it was not the program's fault.";

struct FailureRow {
  v1::FailureCode code;
  // "{0}" names the event at a sentence's start ("The command"), and "{1}" within a sentence.
  // Empty: the fields say it.
  std::string_view event;
  std::string_view remedy;
  bool quotes_subject = false;
};

constexpr std::array kFailureRows = {
    // The job's own program.
    FailureRow{
        v1::FAILURE_CODE_PROGRAM_NOT_STARTED, "{0} could not be started",
        "Check the program's name, and that it is there and executable where the job runs: on its "
        "nodes, or in its image. Its output may have the node's own words.",
        true},
    FailureRow{v1::FAILURE_CODE_FILE_NOT_OPENED,
               "A file that the batch script reads or writes could not be opened",
               "Correct the name, or make the directory: file names are relative to the working "
               "directory, and their directories must be there."},
    FailureRow{v1::FAILURE_CODE_STATUS_SAYS_FAILURE,
               "The command ended with 0, but its status.json says FAILURE", "Read its output."},
    FailureRow{
        v1::FAILURE_CODE_STATUS_MISSING,
        "The command ended with 0, but its status.json does not say how it went",
        "Read its output: it may have been cut short. If the command writes no such file, leave "
        "status_json out."},
    FailureRow{v1::FAILURE_CODE_PREPARATION_FAILED, "What comes before the command failed",
               "Read the end of its output, and correct what it names."},
    FailureRow{v1::FAILURE_CODE_INPUTS_MISSING, "What the job needs is not all there",
               "Put the data there, or correct the path."},
    // Limits.
    FailureRow{v1::FAILURE_CODE_TIME_LIMIT, "The run was stopped at its time limit",
               "Ask for more time (time), as far as the cluster allows it, or write checkpoints."},
    FailureRow{v1::FAILURE_CODE_DEADLINE, "The run could not end before its deadline",
               "Submit it earlier."},
    FailureRow{
        v1::FAILURE_CODE_NOT_REQUEUED,
        "{0} was stopped after slurm.timeout, and the job was not requeued",
        "Allow Slurm to requeue it (slurm.requeue), so that it goes on from a checkpoint, or give "
        "it more time."},
    FailureRow{v1::FAILURE_CODE_DISK_LIMIT, "The run used too much of its node's disk",
               "Write less to the container's own file system, or into a volume."},
    // Failures caused by the cluster or by others.
    FailureRow{v1::FAILURE_CODE_NODE_LOST, "A node of the run failed", kSubmitItAgain},
    FailureRow{v1::FAILURE_CODE_NODE_NOT_BOOTED, "A node of the run did not boot", kSubmitItAgain},
    FailureRow{v1::FAILURE_CODE_EVICTED, "The cluster took the run off its node", kNotItsFault},
    FailureRow{v1::FAILURE_CODE_PREEMPTED,
               "The cluster gave the run's place to a job of higher priority",
               "Submit the job again, or where it is not preempted: with another partition, QOS or "
               "priority class."},
    FailureRow{v1::FAILURE_CODE_SUSPENDED,
               "The run was suspended, by its queue or by others, which ended its pods",
               "Submit the job again, or let it be tried again after a preemption."},
    FailureRow{v1::FAILURE_CODE_HELD_TOO_LATE,
               "A hold came as the command began, and the cluster ended what it ran", kNotItsFault},
    FailureRow{v1::FAILURE_CODE_ENDED_BY_OTHERS, "The run was ended by others, not by Muster",
               kNotItsFault},
    FailureRow{v1::FAILURE_CODE_TAKEN_ELSEWHERE, "Another cluster of the federation took the job",
               "Submit it through the agent of one cluster only."},
    // Runs whose end is unknown.
    FailureRow{v1::FAILURE_CODE_END_UNKNOWN, "How {1} ended is not known", kSubmitItAgain},
    FailureRow{v1::FAILURE_CODE_LOST, "Nobody knows of the run any more",
               "Read its output so far, and submit the job again if it did not finish."},
    FailureRow{v1::FAILURE_CODE_FORGOTTEN,
               "The cluster has forgotten the run, which had not begun and cannot begin any more",
               "Submit the job again; the scheduler may have lost its memory."},
    FailureRow{
        v1::FAILURE_CODE_NOT_CLAIMED,
        "What the cluster started could not claim the run: another start of it did, and that one "
        "is gone, or the node could not write to run_dir",
        kSubmitItAgain},
    // Lost clusters.
    FailureRow{v1::FAILURE_CODE_LEASE_ENDED,
               "Its node stopped the run, because its lease had run out: the cluster's agent, or "
               "the broker, had not been heard of",
               "Submit the job again. If this happens often, have the cluster's operator look "
               "after the connection of its agent."},
    FailureRow{v1::FAILURE_CODE_CLUSTER_LOST, "The run's cluster was lost, and the run given up",
               "Submit the job again, and tell the cluster's operator."},
    // The launch and the queue.
    FailureRow{v1::FAILURE_CODE_LAUNCH_REFUSED, "The cluster refused the run",
               "Correct what these words name, or ask the cluster's operator."},
    FailureRow{v1::FAILURE_CODE_LAUNCH_FAILED, "The run could not be started",
               "Submit the job again; if it fails again, tell the cluster's operator."},
    FailureRow{v1::FAILURE_CODE_JOB_INVALID, "The job cannot be given to the cluster",
               "Correct the job and submit it again, or choose another cluster."},
    FailureRow{v1::FAILURE_CODE_DOES_NOT_FIT, "The cluster has nothing that the job fits",
               "Ask for less, or choose another cluster."},
    FailureRow{v1::FAILURE_CODE_GIVEN_UP_BY_QUEUE, "The queue has given the job up",
               "Correct what these words and the events name, or ask who has the queue in hand."},
    FailureRow{v1::FAILURE_CODE_STARTED_IN_PART,
               "The run was ended because not all of its ranks could be started",
               "Submit the job again; the agent's log says which host it was."},
    FailureRow{
        v1::FAILURE_CODE_CANNOT_START, "The pod cannot start",
        "Check that what the job names is in its namespace, and that pods like it are let in."},
    FailureRow{
        v1::FAILURE_CODE_NAME_TAKEN, "Something else has the name that the run needs",
        "Have its owner rename or remove it; names like this one are those of Muster's runs."},
    // The image.
    FailureRow{v1::FAILURE_CODE_IMAGE_NOT_FOUND, "There is no such image",
               "Check the image's name and tag."},
    FailureRow{
        v1::FAILURE_CODE_IMAGE_ACCESS_DENIED,
        "The registry does not let the cluster have the image",
        "Check the image's name; if it is private, have the cluster's operator give its agent the "
        "registry's credentials."},
    FailureRow{v1::FAILURE_CODE_IMAGE_NAME_INVALID, "The image's name cannot be read",
               "Check the image's name: registry/name:tag, in lower case."},
    FailureRow{v1::FAILURE_CODE_IMAGE_BROKEN, "The image is damaged, or no image",
               "Submit the job again; if it fails again, make the image anew."},
    FailureRow{v1::FAILURE_CODE_IMAGE_UNSUITABLE, "The image cannot start the command",
               "Use another image."},
    FailureRow{v1::FAILURE_CODE_IMAGE_NOT_CONVERTED, "The image could not be converted",
               kSubmitItAgain, true},
    FailureRow{v1::FAILURE_CODE_IMAGE_UNAVAILABLE, "The image cannot be had",
               "Check the image's name and tag, and that the cluster may have it."},
    FailureRow{v1::FAILURE_CODE_REGISTRY_UNAVAILABLE,
               "The image's registry does not answer, or limits what is pulled",
               "Check the registry's name; if it is right, submit the job again later, or tell the "
               "cluster's operator that it cannot be reached from there."},
    FailureRow{
        v1::FAILURE_CODE_NO_ROOM_FOR_IMAGE, "There was no room for the image",
        "Free disk space where the cluster keeps images, or tell its operator; then submit the job "
        "again."},
    FailureRow{v1::FAILURE_CODE_CONTAINER_NOT_STARTED, "The container could not be started",
               "Check the image. Read its output: it has the node's own words."},
    FailureRow{v1::FAILURE_CODE_NO_CONTAINERS, "The cluster runs no containers",
               "Use another cluster, or have its operator install what containers need."},
    FailureRow{v1::FAILURE_CODE_MOUNT_MISSING,
               "A directory that the container is to show is not on its node",
               "Correct mounts, or tell the cluster's operator."},
    // Files.
    FailureRow{v1::FAILURE_CODE_FILES_NOT_BROUGHT,
               "The files that the job brings along are not there", "Tell the cluster's operator."},
    FailureRow{v1::FAILURE_CODE_FILES_NOT_TAKEN,
               "The cluster does not take the files that the job brings along",
               "Submit the job to a cluster that does."},
    FailureRow{
        v1::FAILURE_CODE_RUN_FILES_UNREADABLE, "The node could not open the files of the run",
        "The agent's run_dir must be the same directory on the compute nodes, and writable there; "
        "tell the cluster's operator."},
    FailureRow{v1::FAILURE_CODE_RESULTS_DIRECTORY, "The directory for the results cannot be made",
               "Name another results_directory."},
    FailureRow{v1::FAILURE_CODE_OTHER, "", ""},
    // The job itself, which has no run.
    FailureRow{v1::FAILURE_CODE_DEPENDENCY_FAILED, "",
               "See how that job ended; then run it again, and this one with it."},
};

// Null: the code has an event or a remedy of its own, which the fields decide, or none is known.
const FailureRow* FindFailureRow(v1::FailureCode code) {
  const auto* found = std::find_if(kFailureRows.begin(), kFailureRows.end(),
                                   [&](const FailureRow& row) { return row.code == code; });
  return found == kFailureRows.end() ? nullptr : found;
}

std::string_view WhoWithin(v1::FailurePhase phase) {
  switch (phase) {
    case v1::FAILURE_PHASE_SETUP_START:
    case v1::FAILURE_PHASE_SETUP:
      return "the setup script";
    case v1::FAILURE_PHASE_COMMAND_START:
    case v1::FAILURE_PHASE_COMMAND:
    case v1::FAILURE_PHASE_RESULTS:
      return "the command";
    default:
      return "the run";
  }
}

std::string Who(v1::FailurePhase phase) {
  std::string who(WhoWithin(phase));
  who.front() = 'T';
  return who;
}

std::string HowItEnded(const v1::ExitStatus& exit) {
  return exit.signal() != 0 ? "was ended by " + SignalName(exit.signal())
                            : fmt::format("ended with exit code {}", exit.code());
}

std::string OwnEvent(const v1::Failure& failure) {
  const bool is_setup = failure.code() == v1::FAILURE_CODE_SETUP_FAILED;
  if (failure.has_exit()) {
    return fmt::format("{} {}", is_setup ? "The setup script" : "The command",
                       HowItEnded(failure.exit()));
  }
  return is_setup ? "The setup script failed"
                  : "The command failed, and its exit code is not known";
}

// Says what happened, without where and why.
std::string EventOf(const v1::Failure& failure) {
  switch (failure.code()) {
    case v1::FAILURE_CODE_COMMAND_FAILED:
    case v1::FAILURE_CODE_COMMAND_SIGNALED:
    case v1::FAILURE_CODE_SETUP_FAILED:
      return OwnEvent(failure);
    case v1::FAILURE_CODE_WORKING_DIRECTORY:
      return failure.subject().empty()
                 ? "The working directory cannot be entered"
                 : fmt::format("The working directory \"{}\" cannot be entered", failure.subject());
    case v1::FAILURE_CODE_OUT_OF_MEMORY:
      return Who(failure.phase()) + " used more memory than it had";
    case v1::FAILURE_CODE_END_UNEXPLAINED:
      return failure.has_exit()
                 ? "The command ended with 0, yet the cluster says that the run failed"
                 : "The cluster says that the run failed, and nothing tells why";
    case v1::FAILURE_CODE_DEPENDENCY_FAILED:
      return fmt::format(
          "{} did not end as this job needs it to (depends_on), so that this job was not started",
          failure.subject().empty() ? "Another job" : "Job " + failure.subject());
    case v1::FAILURE_CODE_PLACED_IN_PART:
      return fmt::format("{} of {} pods had nodes and kept them from others for {}",
                         failure.placed_nodes(), failure.requested_nodes(),
                         absl::FormatDuration(absl::Seconds(failure.waited().seconds())));
    default:
      break;
  }
  const FailureRow* row = FindFailureRow(failure.code());
  if (row == nullptr) return "";
  return fmt::format(fmt::runtime(row->event), Who(failure.phase()), WhoWithin(failure.phase()));
}

// The place in the sentence that says on which rank it happened.
enum class RankPlace {
  kNowhere,  // the rank is the one that ended first, and not where it happened
  kWithin,   // "The command ended with exit code 3 on rank 1 (role worker, n3)"
  kBehind,   // "There is no such image: 404 Not Found (rank 1, role worker, n3)"
};

RankPlace RankPlaceOf(const v1::Failure& failure) {
  switch (failure.code()) {
    case v1::FAILURE_CODE_TIME_LIMIT:
    case v1::FAILURE_CODE_DEADLINE:
    case v1::FAILURE_CODE_NOT_REQUEUED:
    case v1::FAILURE_CODE_NODE_LOST:
    case v1::FAILURE_CODE_NODE_NOT_BOOTED:
    case v1::FAILURE_CODE_PREEMPTED:
    case v1::FAILURE_CODE_TAKEN_ELSEWHERE:
    case v1::FAILURE_CODE_CLUSTER_LOST:
    case v1::FAILURE_CODE_END_UNEXPLAINED:
    case v1::FAILURE_CODE_PLACED_IN_PART:
    case v1::FAILURE_CODE_OTHER:
      return RankPlace::kNowhere;
    case v1::FAILURE_CODE_COMMAND_FAILED:
    case v1::FAILURE_CODE_COMMAND_SIGNALED:
      // "..., and its exit code is not known".
      return failure.has_exit() ? RankPlace::kWithin : RankPlace::kBehind;
    case v1::FAILURE_CODE_SETUP_FAILED:
    case v1::FAILURE_CODE_PROGRAM_NOT_STARTED:
    case v1::FAILURE_CODE_WORKING_DIRECTORY:
    case v1::FAILURE_CODE_FILE_NOT_OPENED:
    case v1::FAILURE_CODE_PREPARATION_FAILED:
    case v1::FAILURE_CODE_OUT_OF_MEMORY:
    case v1::FAILURE_CODE_LAUNCH_FAILED:
    case v1::FAILURE_CODE_CONTAINER_NOT_STARTED:
    case v1::FAILURE_CODE_RESULTS_DIRECTORY:
      return RankPlace::kWithin;
    default:
      return RankPlace::kBehind;
  }
}

// " on rank 1 (role worker, n3)", or " (rank 1, role worker, n3)". The name of a pod says its rank.
std::string RankOf(const v1::Failure& failure, RankPlace place) {
  if (!failure.has_rank() || !failure.object().empty() || RankPlaceOf(failure) != place) return "";
  std::string more = failure.role().empty() ? "" : "role " + failure.role();
  if (!failure.node().empty()) more += (more.empty() ? "" : ", ") + failure.node();
  if (place == RankPlace::kBehind)
    return fmt::format(" (rank {}{}{})", failure.rank(), more.empty() ? "" : ", ", more);
  return fmt::format(" on rank {}{}", failure.rank(), more.empty() ? "" : " (" + more + ")");
}

// Returns "3 of its processes were killed at its memory limit of 2Gi; it ended with exit code 1".
std::string MemoryWords(const v1::Failure& failure) {
  std::string words;
  if (failure.killed_processes() > 0) {
    const uint32_t killed = failure.killed_processes();
    words = fmt::format("{} of its processes {} killed", killed, WordFor(killed, "was", "were"));
  }
  if (failure.memory_limit_bytes() > 0) {
    words += fmt::format("{} memory limit of {}", words.empty() ? "its" : " at its",
                         FormatBytes(failure.memory_limit_bytes()));
  }
  if (failure.has_exit())
    words += fmt::format("{}it {}", words.empty() ? "" : "; ", HowItEnded(failure.exit()));
  return words;
}

// Returns the reasons, with the words of others last, each after a colon.
std::string WhyOf(const v1::Failure& failure) {
  const FailureRow* row = FindFailureRow(failure.code());
  std::string why;
  const auto add = [&why](const std::string& words) {
    if (!words.empty()) why += ": " + words;
  };
  if (row != nullptr && row->quotes_subject && !failure.subject().empty())
    add(fmt::format("\"{}\"", failure.subject()));
  if (failure.code() == v1::FAILURE_CODE_OUT_OF_MEMORY) add(MemoryWords(failure));
  add(failure.meaning());
  add(failure.detail());
  return why;
}

// Returns " (pod k7m2-42-1-0-x8f2p on node-2)"; the cause comes first, because tables cut what is
// behind it.
std::string ObjectOf(const v1::Failure& failure) {
  if (failure.object().empty()) return "";
  return fmt::format(" ({}{}{})", failure.object(), failure.node().empty() ? "" : " on ",
                     failure.node());
}

// Returns the end of the sentence, which follows the words of others that may end with a full stop.
std::string EndOf(const v1::Failure& failure) {
  std::string end = ObjectOf(failure) + RankOf(failure, RankPlace::kBehind);
  if (failure.code() == v1::FAILURE_CODE_PLACED_IN_PART)
    end += "; all were taken away, so that two halves do not block each other";
  return end;
}

std::string SentenceOf(const v1::Failure& failure) {
  std::string text = EventOf(failure);
  if (!text.empty()) text += RankOf(failure, RankPlace::kWithin);
  if (failure.code() == v1::FAILURE_CODE_SETUP_FAILED) text += ", so the command was not started";
  const std::string why = WhyOf(failure);
  text += text.empty() ? why.substr(std::min<size_t>(why.size(), 2)) : why;
  text.erase(text.find_last_not_of(' ') + 1);
  if (const std::string end = EndOf(failure); !end.empty()) {
    if (text.ends_with('.') && !text.ends_with("..")) text.pop_back();
    text += end;
  }
  if (failure.log_sign().empty()) return text;
  return fmt::format("{}{} Its output says {} ({}).", text, text.ends_with('.') ? "" : ".",
                     failure.retriable() ? "that the cluster was at fault" : "why",
                     failure.log_sign());
}

// Returns advice about a command or a setup script that has failed by itself.
std::string OwnRemedy(const v1::Failure& failure) {
  const v1::ExitStatus& exit = failure.exit();
  if (exit.signal() == kKilledBy) {
    return "If nobody killed it, its node may have run out of memory: ask for more, or use less. "
           "Read the end of its output.";
  }
  if (exit.code() == kShellNotFound || exit.code() == kShellNotExecutable) {
    return "Read the end of its output: a shell ends with 127 if it finds no command of that name, "
           "and with 126 if a file is none that it may run; source and [[ are bash's, for which a "
           "script begins with the line #!/bin/bash.";
  }
  return failure.code() == v1::FAILURE_CODE_SETUP_FAILED
             ? "Read the end of its output, and correct the setup."
             : std::string(kReadItsOutput);
}

std::string RemedyOf(const v1::Failure& failure) {
  if (const std::string_view of_sign = RemedyForSign(failure.log_sign()); !of_sign.empty())
    return std::string(of_sign);
  switch (failure.code()) {
    case v1::FAILURE_CODE_COMMAND_FAILED:
    case v1::FAILURE_CODE_COMMAND_SIGNALED:
    case v1::FAILURE_CODE_SETUP_FAILED:
      return OwnRemedy(failure);
    case v1::FAILURE_CODE_WORKING_DIRECTORY:
      return "Make the directory where the job runs, or name another workdir (sbatch: "
             "--chdir).";
    case v1::FAILURE_CODE_OUT_OF_MEMORY:
      return "Ask for more memory (resources.memory), or use less of it, with smaller "
             "batches.";
    case v1::FAILURE_CODE_END_UNEXPLAINED:
      return failure.has_exit() ? "Look at the scheduler's words; an epilog or a limit of the "
                                  "cluster may have struck."
                                : std::string(kSubmitItAgain);
    case v1::FAILURE_CODE_LAUNCH_FAILED:
      if (failure.phase() != v1::FAILURE_PHASE_QUEUE) break;
      return "Ask the cluster's administrators why the launch failed (a prolog, or an ill node), "
             "and submit the job again.";
    case v1::FAILURE_CODE_NAME_TAKEN:
      if (failure.subject().empty()) break;
      return fmt::format(
          "Have its owner rename the {} or delete it; names like this one are those of Muster's "
          "runs.",
          failure.subject());
    case v1::FAILURE_CODE_PLACED_IN_PART:
      return "Nothing, if the job has runs left: it is queued again. Each try is one of its "
             "retry.max_runs; a gang, or fewer pods, keeps it from being placed in part.";
    default:
      break;
  }
  const FailureRow* row = FindFailureRow(failure.code());
  return row == nullptr ? "" : std::string(row->remedy);
}

}  // namespace

v1::Failure MakeFailure(v1::FailureCode code, v1::FailureClass failure_class,
                        const FailureParts& parts) {
  v1::Failure failure;
  failure.set_code(code);
  failure.set_failure_class(failure_class);
  failure.set_retriable(parts.is_retriable);
  failure.set_phase(parts.phase);
  failure.set_detail(parts.detail);
  failure.set_subject(parts.subject);
  failure.set_meaning(parts.meaning);
  failure.set_object(parts.object);
  PutSentence(parts.cause, &failure);
  return failure;
}

void PutSentence(v1::Failure* failure) {
  if (failure->code() == v1::FAILURE_CODE_UNSPECIFIED) return;
  failure->set_message(SentenceOf(*failure));
  if (failure->remedy().empty()) failure->set_remedy(RemedyOf(*failure));
}

void PutSentence(FailureCause cause, v1::Failure* failure) {
  failure->set_remedy(cause == FailureCause::kNone
                          ? ""
                          : fmt::format(fmt::runtime(RemedyFor(cause)), failure->subject()));
  PutSentence(failure);
}

std::string AsClause(std::string remedy) {
  if (remedy.empty()) return remedy;
  remedy.front() = absl::ascii_tolower(static_cast<unsigned char>(remedy.front()));
  if (remedy.ends_with('.')) remedy.pop_back();
  return remedy;
}

std::string RemedyWhileWaiting(v1::FailureCode code, FailureCause cause) {
  return MakeFailure(code, v1::FAILURE_CLASS_CONFIG, {.cause = cause}).remedy() +
         " The cluster's operator sets how long Muster waits (kubernetes.start_grace).";
}

v1::ExitStatus ExitWithCode(int code) {
  v1::ExitStatus exit;
  exit.set_code(code);
  return exit;
}

v1::ExitStatus ExitBySignal(int signal) {
  v1::ExitStatus exit;
  exit.set_signal(signal);
  return exit;
}

v1::Failure OwnEnd(const v1::ExitStatus& exit, const FailureParts& parts) {
  const bool is_setup = parts.phase == v1::FAILURE_PHASE_SETUP;
  v1::Failure failure;
  failure.set_code(is_setup             ? v1::FAILURE_CODE_SETUP_FAILED
                   : exit.signal() != 0 ? v1::FAILURE_CODE_COMMAND_SIGNALED
                                        : v1::FAILURE_CODE_COMMAND_FAILED);
  failure.set_failure_class(is_setup ? v1::FAILURE_CLASS_CONFIG : v1::FAILURE_CLASS_PROGRAM);
  failure.set_phase(parts.phase);
  failure.set_detail(parts.detail);
  failure.set_object(parts.object);
  *failure.mutable_exit() = exit;
  PutSentence(parts.cause, &failure);
  return failure;
}

}  // namespace muster::contract
