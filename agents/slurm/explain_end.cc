#include "agents/slurm/explain_end.h"

#include <algorithm>
#include <array>

#include "agents/core/log_evidence.h"
#include "agents/slurm/explain_image.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/slurm_output.h"
#include "contract/failure_patterns.h"
#include "contract/signal_name.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

// slurmd's code for a batch script whose files could not be opened: "0:53".
constexpr int kLaunchSignal = 53;
// The exit code of a shell when there is no such program.
constexpr int kNotFoundCode = 127;
// Lines of Slurm's own that are quoted.
constexpr size_t kQuotedLogLines = 3;
constexpr std::string_view kSlurmOutput = "slurm.out";

struct QuotedEnd {
  v1::FailureClass failure_class = v1::FAILURE_CLASS_UNSPECIFIED;
  std::string message;
  std::string suggestion;
  bool retriable = false;
  v1::FailurePhase phase = v1::FAILURE_PHASE_COMMAND;
};

constexpr std::string_view kReadLog = "Read its output.";
constexpr std::string_view kMoreMemory =
    "Ask for more memory, or make the program use less (a smaller batch).";
constexpr std::string_view kSubmitAgain = "Submit the job again.";

bool SaysOutOfMemory(std::string_view output) {
  constexpr std::array<std::string_view, 4> kSigns = {"oom_kill", "oom-kill", "OOM Killed",
                                                      "Exceeded job memory limit"};
  return std::any_of(kSigns.begin(), kSigns.end(), [&](std::string_view sign) {
    return output.find(sign) != std::string_view::npos;
  });
}

// Recognises the words that srun and slurmstepd write about a step that failed; compiled once, for
// any thread.
bool ShowsFaultOfCluster(std::string_view output) {
  static const contract::FailurePatterns patterns;
  const std::optional<contract::LogVerdict> verdict = patterns.Find(output);
  return verdict.has_value() && verdict->retriable;
}

std::string HowItEnded(int code, int signal) {
  return signal != 0 ? "was ended by " + contract::SignalName(signal)
                     : fmt::format("ended with exit code {}", code);
}

std::string WhyNotRequeued(const ExitRecord& record) {
  if (record.cause == ExitRecord::Cause::kRestartLimit) {
    return fmt::format(
        "could not be requeued: it has been started again {} times, and "
        "slurm.max_timeout_requeues is {}",
        record.restart, record.about);
  }
  if (record.cause == ExitRecord::Cause::kRefused)
    return fmt::format("could not be requeued: {}", record.about);
  return "was not requeued";
}

// Names the batch script's file with its option, if the record has it.
std::string WhatWasNotOpened(const ExitRecord& record) {
  const auto named = [&](const char* option) {
    return fmt::format(": --{0} (slurm.batch_script.{0}): {1}", option, record.about);
  };
  switch (record.cause) {
    case ExitRecord::Cause::kInput:
      return named("input");
    case ExitRecord::Cause::kOutput:
      return named("output");
    case ExitRecord::Cause::kError:
      return named("error");
    default:
      return "";
  }
}

v1::FailurePhase PhaseOfRecord(const ExitRecord& record) {
  switch (record.problem) {
    case ExitRecord::Problem::kStart:
    case ExitRecord::Problem::kWorkingDirectory:
    case ExitRecord::Problem::kSrun:
    case ExitRecord::Problem::kStreams:
      return record.IsOfSetup() ? v1::FAILURE_PHASE_SETUP_START : v1::FAILURE_PHASE_COMMAND_START;
    case ExitRecord::Problem::kFiles:
      return v1::FAILURE_PHASE_FILES;
    case ExitRecord::Problem::kImage:
      return v1::FAILURE_PHASE_IMAGE;
    case ExitRecord::Problem::kTimeout:
    case ExitRecord::Problem::kUnknown:
    case ExitRecord::Problem::kNone:
      break;
  }
  return record.IsOfSetup() ? v1::FAILURE_PHASE_SETUP : v1::FAILURE_PHASE_COMMAND;
}

QuotedEnd ExplainRecord(const RunFacts& facts) {
  const ExitRecord& record = *facts.record;
  const bool setup = record.IsOfSetup();
  const std::string what = setup ? "setup script" : "command";
  const std::string where = setup || facts.role.empty()
                                ? fmt::format("rank {}", record.rank)
                                : fmt::format("rank {} (role {})", record.rank, facts.role);
  switch (record.problem) {
    case ExitRecord::Problem::kStart:
      return {v1::FAILURE_CLASS_CONFIG,
              fmt::format("The {} could not be started on {}: {} {}", what, where,
                          setup ? "its interpreter" : facts.program,
                          record.code == kNotFoundCode ? "was not found" : "cannot be executed"),
              "Check its name, and that it is there and executable on the compute nodes; muster "
              "logs has the node's own words."};
    case ExitRecord::Problem::kWorkingDirectory:
      return {v1::FAILURE_CLASS_CONFIG,
              fmt::format("The working directory \"{}\" could not be entered on {}",
                          facts.working_directory, where),
              "Set working_directory (sbatch: --chdir) to a directory that exists on the compute "
              "nodes."};
    case ExitRecord::Problem::kFiles:
      return {v1::FAILURE_CLASS_INFRA,
              fmt::format("The files of the run could not be read on {}", where),
              "The agent's run_dir must be the same directory on the compute nodes; tell the "
              "cluster's operator.",
              /*retriable=*/true};
    case ExitRecord::Problem::kSrun:
      return {
          v1::FAILURE_CLASS_INFRA,
          fmt::format("srun could not run the {} on all nodes (exit code {})", what, record.code),
          std::string(kSubmitAgain), ShowsFaultOfCluster(facts.slurm_output)};
    case ExitRecord::Problem::kImage: {
      const ImageTrouble trouble = ExplainImage(facts.slurm_output, record.cause);
      return {trouble.failure_class, trouble.message, trouble.suggestion, trouble.retriable};
    }
    case ExitRecord::Problem::kTimeout:
      return {v1::FAILURE_CLASS_TIMEOUT,
              fmt::format("The {} was stopped after slurm.timeout, and the job {}", what,
                          WhyNotRequeued(record)),
              "Allow Slurm to requeue it (slurm.requeue), so that it goes on from a checkpoint, or "
              "give it more time."};
    case ExitRecord::Problem::kStreams:
      return {v1::FAILURE_CLASS_CONFIG,
              fmt::format("A file that the batch script reads or writes could not be opened{}",
                          WhatWasNotOpened(record)),
              "Correct the name, or make the directory: file names are relative to the working "
              "directory, and "
              "their directories must be there."};
    case ExitRecord::Problem::kUnknown:
      return {v1::FAILURE_CLASS_INFRA,
              fmt::format("How the {} ended on {} is not known: a TERM came at the same moment",
                          what, where),
              std::string(kSubmitAgain), /*retriable=*/true};
    case ExitRecord::Problem::kNone:
      break;
  }
  return {setup ? v1::FAILURE_CLASS_CONFIG : v1::FAILURE_CLASS_PROGRAM,
          fmt::format("The {} {} on {}", what, HowItEnded(record.code, record.signal), where),
          std::string(kReadLog)};
}

// FAILED, and no exit record: what Slurm's own code tells.
QuotedEnd ExplainWithoutRecord(const RunFacts& facts) {
  if (!facts.history.has_value()) {
    return {v1::FAILURE_CLASS_INFRA, "Slurm says that the job failed, and nothing tells why",
            std::string(kSubmitAgain)};
  }
  const HistoryRow& history = *facts.history;
  if (history.WasRefused()) {
    return {v1::FAILURE_CLASS_CONFIG,
            "Slurm gave the job up before it had a node: no node is like that",
            "Ask for fewer CPUs, less memory or fewer GPUs on each node, or use another partition.",
            /*retriable=*/false, v1::FAILURE_PHASE_QUEUE};
  }
  if (history.signal == kLaunchSignal) {
    return {v1::FAILURE_CLASS_INFRA, "The node could not open the files of the run",
            "The agent's run_dir must be the same directory on the compute nodes, and writable "
            "there; tell the "
            "cluster's operator.",
            /*retriable=*/true, v1::FAILURE_PHASE_FILES};
  }
  if (history.exit_code == kClaimLostCode) {
    return {v1::FAILURE_CLASS_INFRA,
            "The Slurm job could not claim the run: another job of the run did, and that one is "
            "gone, or the node could not write to run_dir",
            std::string(kSubmitAgain), /*retriable=*/true, v1::FAILURE_PHASE_COMMAND_START};
  }
  if (!history.exit_is_known) {
    return {v1::FAILURE_CLASS_PROGRAM,
            "The run failed and could not write its exit record, and its code is not known: "
            "accounting over slurmrestd does not tell it",
            std::string(kReadLog)};
  }
  return {v1::FAILURE_CLASS_PROGRAM,
          fmt::format("The run {} and could not write its exit record",
                      HowItEnded(history.exit_code, history.signal)),
          std::string(kReadLog)};
}

QuotedEnd ExplainFailed(const RunFacts& facts) {
  const bool by_itself = facts.record.has_value() && !facts.record->EndedWithZero();
  QuotedEnd words = by_itself ? ExplainRecord(facts) : ExplainWithoutRecord(facts);
  if (by_itself) words.phase = PhaseOfRecord(*facts.record);
  if (facts.record.has_value() && !by_itself) {
    words = {v1::FAILURE_CLASS_INFRA,
             "The command ended with 0, yet Slurm says that the job failed",
             "Look at Slurm's words; an epilog or a limit of the cluster may have struck.",
             /*retriable=*/false, v1::FAILURE_PHASE_RESULTS};
  }
  if (SaysOutOfMemory(facts.slurm_output)) {
    words.failure_class = v1::FAILURE_CLASS_OOM;
    words.message = "The run used more memory than it had. " + words.message;
    words.suggestion = kMoreMemory;
    words.retriable = false;
  }
  return words;
}

QuotedEnd Explain(JobPhase phase, const RunFacts& facts) {
  switch (phase) {
    case JobPhase::kTimeout:
      return {v1::FAILURE_CLASS_TIMEOUT, "The run was stopped at its time limit",
              "Ask for more time (time_limit), as far as the partition allows."};
    case JobPhase::kDeadline:
      return {v1::FAILURE_CLASS_TIMEOUT, "The run could not end before its deadline",
              "Submit it earlier."};
    case JobPhase::kOutOfMemory:
      return {v1::FAILURE_CLASS_OOM, "The run used more memory than it had",
              std::string(kMoreMemory)};
    case JobPhase::kNodeFail:
      return {v1::FAILURE_CLASS_INFRA, "A node of the run failed", std::string(kSubmitAgain),
              /*retriable=*/true};
    case JobPhase::kBootFail:
      return {v1::FAILURE_CLASS_INFRA, "A node of the run did not boot", std::string(kSubmitAgain),
              /*retriable=*/true, v1::FAILURE_PHASE_QUEUE};
    case JobPhase::kPreempted:
      return {v1::FAILURE_CLASS_PREEMPTED,
              "The cluster stopped the run for a job of higher priority",
              "Submit it again, or use a partition or QOS that is not preempted."};
    case JobPhase::kRevoked:
      return {v1::FAILURE_CLASS_INFRA, "Another cluster of the federation took the job",
              "Submit it through the agent of one cluster only.", /*retriable=*/false,
              v1::FAILURE_PHASE_QUEUE};
    default:
      return ExplainFailed(facts);
  }
}

bool HasImageTrouble(const RunFacts& facts) {
  return facts.record.has_value() && facts.record->problem == ExitRecord::Problem::kImage;
}

// The last lines that Slurm itself wrote; of a container that did not start, what was said of it.
void Quote(const RunFacts& facts, v1::Failure* failure) {
  if (HasImageTrouble(facts)) {
    for (const std::string& line : ExplainImage(facts.slurm_output, facts.record->cause).words)
      agents::AddQuote(kSlurmOutput, line, failure);
    return;
  }
  std::vector<std::string_view> lines = Lines(facts.slurm_output);
  std::erase_if(lines, [](std::string_view line) {
    return line.find("error:") == std::string_view::npos && !line.starts_with(kNoteMark);
  });
  if (lines.size() > kQuotedLogLines) lines.erase(lines.begin(), lines.end() - kQuotedLogLines);
  for (std::string_view line : lines) agents::AddQuote(kSlurmOutput, line, failure);
}

// The mark of a run whose batch.sh is from before the exit record had a cause: each run keeps the
// one that it was launched with, which writes either mark and never both. This can go once no run
// of Muster's first release can be active.
size_t OldMark(std::string_view slurm_output) { return slurm_output.rfind("\nmuster: restart "); }

}  // namespace

std::string_view SinceLastStart(std::string_view slurm_output) {
  size_t mark = slurm_output.rfind(fmt::format("\n{}", kStartMark));
  if (mark == std::string_view::npos) mark = OldMark(slurm_output);
  if (mark != std::string_view::npos) slurm_output.remove_prefix(mark + 1);
  return slurm_output;
}

JobPhase PhaseInOutput(std::string_view slurm_output) {
  JobPhase phase = JobPhase::kUnknown;
  for (std::string_view line : Lines(slurm_output)) {
    const size_t mark = line.find(" CANCELLED AT ");
    if (!line.starts_with("slurmstepd") || mark == std::string_view::npos) continue;
    // "DUE TO JOB REQUEUE" is no end: the job comes back.
    const std::string_view rest = line.substr(mark);
    if (rest.find("DUE TO TIME LIMIT") != std::string_view::npos) {
      phase = JobPhase::kTimeout;
    } else if (rest.find("DUE TO PREEMPTION") != std::string_view::npos) {
      phase = JobPhase::kPreempted;
    } else if (rest.find("DUE TO NODE FAILURE") != std::string_view::npos) {
      phase = JobPhase::kNodeFail;
    } else if (rest.find("DUE TO") == std::string_view::npos) {
      phase = JobPhase::kCancelled;
    } else {
      phase = JobPhase::kUnknown;
    }
  }
  return phase;
}

v1::Failure ExplainEnd(JobPhase phase, std::string_view slurm_words, const RunFacts& facts) {
  const QuotedEnd words = Explain(phase, facts);
  v1::Failure failure;
  failure.set_failure_class(words.failure_class);
  std::string message = words.message + ".";
  if (!slurm_words.empty()) message += fmt::format(" Slurm said: {}.", slurm_words);
  failure.set_message(message);
  failure.set_suggestion(words.suggestion);
  failure.set_retriable(words.retriable);
  failure.set_phase(words.phase);
  if (facts.record.has_value() && !facts.record->EndedWithZero()) {
    if (facts.record->IsOfSetup() && words.phase == v1::FAILURE_PHASE_COMMAND)
      failure.set_phase(v1::FAILURE_PHASE_SETUP);
    failure.set_rank(facts.record->rank);
  }
  Quote(facts, &failure);
  return failure;
}

}  // namespace muster::slurm
