#include "agents/slurm/explain_end.h"

#include <algorithm>
#include <array>

#include "agents/core/log_evidence.h"
#include "agents/slurm/explain_image.h"
#include "agents/slurm/fields.h"
#include "agents/slurm/slurm_output.h"
#include "contract/failure_patterns.h"
#include "contract/failures.h"
#include "fmt/format.h"

namespace muster::slurm {
namespace {

using contract::MakeFailure;

// slurmd gives this code to a batch script whose files could not be opened: "0:53".
constexpr int kLaunchSignal = 53;
// The exit code of a shell when there is no such program.
constexpr int kNotFoundCode = 127;
// Lines of Slurm's own that are quoted.
constexpr size_t kQuotedLogLines = 3;
constexpr std::string_view kSlurmOutput = "slurm.out";

// Lines about the image may be from its conversion, whose memory was another job's.
bool SaysOutOfMemory(std::string_view output) {
  constexpr std::array<std::string_view, 4> kSigns = {"oom_kill", "oom-kill", "OOM Killed",
                                                      "Exceeded job memory limit"};
  const std::vector<std::string_view> lines = Lines(output);
  return std::any_of(lines.begin(), lines.end(), [&](std::string_view line) {
    return !line.starts_with(kImageMark) &&
           std::any_of(kSigns.begin(), kSigns.end(), [&](std::string_view sign) {
             return line.find(sign) != std::string_view::npos;
           });
  });
}

// Recognises the words that srun and slurmstepd write about a step that failed; compiled once, for
// any thread.
bool ShowsFaultOfCluster(std::string_view output) {
  static const contract::FailurePatterns patterns;
  const std::optional<contract::LogVerdict> verdict = patterns.Find(output);
  return verdict.has_value() && verdict->retriable;
}

// Empty: the record does not say.
std::string WhyNotRequeued(const ExitRecord& record) {
  if (record.cause == ExitRecord::Cause::kRestartLimit) {
    return fmt::format("it has been started again {} times, and slurm.max_timeout_requeues is {}",
                       record.restart, record.about);
  }
  return record.cause == ExitRecord::Cause::kRefused ? record.about : "";
}

// The batch script's file with its option; empty if the record does not name it.
std::string WhatWasNotOpened(const ExitRecord& record) {
  const auto named = [&](const char* option) {
    return fmt::format("--{0} (slurm.batch_script.{0}): {1}", option, record.about);
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
  if (record.problem == ExitRecord::Problem::kLease && record.cause != ExitRecord::Cause::kNone)
    return record.IsOfSetup() ? v1::FAILURE_PHASE_SETUP_START : v1::FAILURE_PHASE_COMMAND_START;
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
    case ExitRecord::Problem::kLease:
    case ExitRecord::Problem::kUnknown:
    case ExitRecord::Problem::kNone:
      break;
  }
  return record.IsOfSetup() ? v1::FAILURE_PHASE_SETUP : v1::FAILURE_PHASE_COMMAND;
}

v1::ExitStatus ExitOf(int code, int signal) {
  return signal != 0 ? contract::ExitBySignal(signal) : contract::ExitWithCode(code);
}

ImageTrouble ImageTroubleOf(const RunFacts& facts) {
  const JobPhase conversion =
      facts.ended_conversion.has_value() ? facts.ended_conversion->state.phase : JobPhase::kUnknown;
  return ExplainImage(facts.slurm_output, facts.record->cause, conversion);
}

v1::Failure ExplainImageRecord(const RunFacts& facts) {
  const ImageTrouble trouble = ImageTroubleOf(facts);
  return MakeFailure(trouble.code, trouble.failure_class,
                     {.meaning = trouble.meaning,
                      .cause = trouble.cause,
                      .phase = v1::FAILURE_PHASE_IMAGE,
                      .is_retriable = trouble.retriable});
}

// srun failed, and no task said why.
v1::Failure ExplainSrun(const RunFacts& facts, v1::FailurePhase phase) {
  return MakeFailure(
      v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA,
      {.meaning =
           fmt::format("srun could not run the {} on all nodes (exit code {})",
                       facts.record->IsOfSetup() ? "setup script" : "command", facts.record->code),
       .phase = phase,
       .is_retriable = ShowsFaultOfCluster(facts.slurm_output)});
}

v1::Failure ExplainLease(const ExitRecord& record, v1::FailurePhase phase) {
  // Slurm gave a batch script several nodes although its options do not say so.
  if (record.cause == ExitRecord::Cause::kNodes) {
    return MakeFailure(
        v1::FAILURE_CODE_JOB_INVALID, v1::FAILURE_CLASS_CONFIG,
        {.detail = "on_cluster_loss: FAIL_OVER_WHEN_FENCED is not for a batch script on several "
                   "nodes, because nobody there would stop what it starts",
         .cause = contract::FailureCause::kScriptOnNodes,
         .phase = phase});
  }
  const bool is_early = record.cause == ExitRecord::Cause::kNotStarted;
  return MakeFailure(v1::FAILURE_CODE_LEASE_ENDED, v1::FAILURE_CLASS_INFRA,
                     {.meaning = is_early ? "before its program could start" : "",
                      .phase = phase,
                      .is_retriable = true});
}

v1::Failure ExplainRecord(const RunFacts& facts) {
  const ExitRecord& record = *facts.record;
  const v1::FailurePhase phase = PhaseOfRecord(record);
  switch (record.problem) {
    case ExitRecord::Problem::kStart:
      return MakeFailure(
          v1::FAILURE_CODE_PROGRAM_NOT_STARTED, v1::FAILURE_CLASS_CONFIG,
          {.subject = record.IsOfSetup() ? "" : facts.program,
           .meaning = fmt::format(
               "{} {}", record.IsOfSetup() || facts.program.empty() ? "its interpreter" : "it",
               record.code == kNotFoundCode ? "was not found" : "cannot be executed"),
           .phase = phase});
    case ExitRecord::Problem::kWorkingDirectory:
      return MakeFailure(v1::FAILURE_CODE_WORKING_DIRECTORY, v1::FAILURE_CLASS_CONFIG,
                         {.subject = facts.working_directory, .phase = phase});
    case ExitRecord::Problem::kFiles:
      return MakeFailure(v1::FAILURE_CODE_RUN_FILES_UNREADABLE, v1::FAILURE_CLASS_INFRA,
                         {.phase = phase, .is_retriable = true});
    case ExitRecord::Problem::kSrun:
      return ExplainSrun(facts, phase);
    case ExitRecord::Problem::kImage:
      return ExplainImageRecord(facts);
    case ExitRecord::Problem::kTimeout:
      return MakeFailure(v1::FAILURE_CODE_NOT_REQUEUED, v1::FAILURE_CLASS_TIMEOUT,
                         {.meaning = WhyNotRequeued(record), .phase = phase});
    case ExitRecord::Problem::kStreams:
      return MakeFailure(
          v1::FAILURE_CODE_FILE_NOT_OPENED, v1::FAILURE_CLASS_CONFIG,
          {.subject = record.about, .meaning = WhatWasNotOpened(record), .phase = phase});
    case ExitRecord::Problem::kLease:
      return ExplainLease(record, phase);
    case ExitRecord::Problem::kUnknown:
      return MakeFailure(
          v1::FAILURE_CODE_END_UNKNOWN, v1::FAILURE_CLASS_INFRA,
          {.meaning =
               "the process that waited for it was killed, or a TERM came at the same moment",
           .phase = phase,
           .is_retriable = true});
    case ExitRecord::Problem::kNone:
      break;
  }
  return contract::OwnEnd(ExitOf(record.code, record.signal), {.phase = phase});
}

// Returns whether the node could not execute the batch script that it has a copy of (seen on 22.05,
// a loaded node: "slurmstepd-n2: error: execve(): SPOOL/job00215/slurm_script: No such file ..."),
// so that nothing of the run has begun.
bool LostItsScript(std::string_view slurm_output) {
  const std::vector<std::string_view> lines = Lines(slurm_output);
  return std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    const size_t words = line.find("error: execve(): ");
    return line.starts_with("slurmstepd") && words != line.npos &&
           line.find("/slurm_script: ", words) != line.npos;
  });
}

// FAILED, and no exit record: what Slurm's own code tells.
v1::Failure ExplainWithoutRecord(const RunFacts& facts) {
  const v1::FailurePhase phase = v1::FAILURE_PHASE_COMMAND;
  if (!facts.history.has_value()) {
    return MakeFailure(v1::FAILURE_CODE_END_UNEXPLAINED, v1::FAILURE_CLASS_INFRA, {.phase = phase});
  }
  const HistoryRow& history = *facts.history;
  if (history.WasRefused()) {
    return MakeFailure(v1::FAILURE_CODE_DOES_NOT_FIT, v1::FAILURE_CLASS_CONFIG,
                       {.meaning = "Slurm gave it up before it had a node: no node is like that",
                        .cause = contract::FailureCause::kNodesTooSmall,
                        .phase = v1::FAILURE_PHASE_QUEUE});
  }
  if (history.signal == kLaunchSignal) {
    return MakeFailure(v1::FAILURE_CODE_RUN_FILES_UNREADABLE, v1::FAILURE_CLASS_INFRA,
                       {.phase = v1::FAILURE_PHASE_FILES, .is_retriable = true});
  }
  if (history.exit_code == kClaimLostCode) {
    return MakeFailure(v1::FAILURE_CODE_NOT_CLAIMED, v1::FAILURE_CLASS_INFRA,
                       {.phase = v1::FAILURE_PHASE_COMMAND_START, .is_retriable = true});
  }
  if (LostItsScript(facts.slurm_output)) {
    return MakeFailure(v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA,
                       {.meaning = "its node could not execute the batch script that it was given",
                        .phase = v1::FAILURE_PHASE_COMMAND_START,
                        .is_retriable = true});
  }
  if (!history.exit_is_known) {
    return MakeFailure(v1::FAILURE_CODE_COMMAND_FAILED, v1::FAILURE_CLASS_PROGRAM,
                       {.meaning = "there is no exit record, and accounting over slurmrestd does "
                                   "not have it",
                        .phase = phase});
  }
  v1::Failure failure =
      contract::OwnEnd(ExitOf(history.exit_code, history.signal), {.phase = phase});
  failure.set_meaning(facts.record_error.empty()
                          ? "it could not write its exit record"
                          : "its exit record could not be read: " + facts.record_error);
  return failure;
}

bool IsCommandsOwn(v1::FailureCode code) {
  return code == v1::FAILURE_CODE_COMMAND_FAILED || code == v1::FAILURE_CODE_COMMAND_SIGNALED;
}

v1::Failure ExplainFailed(const RunFacts& facts) {
  const bool by_itself = facts.record.has_value() && !facts.record->EndedWithZero();
  v1::Failure failure = by_itself ? ExplainRecord(facts) : ExplainWithoutRecord(facts);
  if (facts.record.has_value() && !by_itself) {
    failure = MakeFailure(v1::FAILURE_CODE_END_UNEXPLAINED, v1::FAILURE_CLASS_INFRA,
                          {.phase = v1::FAILURE_PHASE_RESULTS});
    *failure.mutable_exit() = contract::ExitWithCode(0);
    contract::PutSentence(contract::FailureCause::kNone, &failure);
  }
  if (SaysOutOfMemory(facts.slurm_output)) {
    // Words about a program, an image or a file are beside the point then.
    if (!IsCommandsOwn(failure.code())) {
      failure.clear_meaning();
      failure.clear_subject();
    }
    failure.set_code(v1::FAILURE_CODE_OUT_OF_MEMORY);
    failure.set_failure_class(v1::FAILURE_CLASS_OOM);
    failure.clear_remedy();
    failure.set_retriable(false);
  }
  return failure;
}

v1::Failure Explain(JobPhase phase, const RunFacts& facts) {
  constexpr v1::FailurePhase kRan = v1::FAILURE_PHASE_COMMAND;
  constexpr v1::FailurePhase kWaited = v1::FAILURE_PHASE_QUEUE;
  switch (phase) {
    case JobPhase::kTimeout:
      return MakeFailure(v1::FAILURE_CODE_TIME_LIMIT, v1::FAILURE_CLASS_TIMEOUT, {.phase = kRan});
    case JobPhase::kDeadline:
      return MakeFailure(v1::FAILURE_CODE_DEADLINE, v1::FAILURE_CLASS_TIMEOUT, {.phase = kRan});
    case JobPhase::kOutOfMemory:
      return MakeFailure(v1::FAILURE_CODE_OUT_OF_MEMORY, v1::FAILURE_CLASS_OOM, {.phase = kRan});
    case JobPhase::kNodeFail:
      return MakeFailure(v1::FAILURE_CODE_NODE_LOST, v1::FAILURE_CLASS_INFRA,
                         {.phase = kRan, .is_retriable = true});
    case JobPhase::kBootFail:
      return MakeFailure(v1::FAILURE_CODE_NODE_NOT_BOOTED, v1::FAILURE_CLASS_INFRA,
                         {.phase = kWaited, .is_retriable = true});
    case JobPhase::kPreempted:
      return MakeFailure(v1::FAILURE_CODE_PREEMPTED, v1::FAILURE_CLASS_PREEMPTED, {.phase = kRan});
    case JobPhase::kRevoked:
      return MakeFailure(v1::FAILURE_CODE_TAKEN_ELSEWHERE, v1::FAILURE_CLASS_INFRA,
                         {.phase = kWaited});
    default:
      return ExplainFailed(facts);
  }
}

bool HasImageTrouble(const RunFacts& facts) {
  return facts.record.has_value() && facts.record->problem == ExitRecord::Problem::kImage;
}

// Quotes the last lines that Slurm itself wrote; for a container that did not start, what was said
// of it.
void Quote(const RunFacts& facts, v1::Failure* failure) {
  if (HasImageTrouble(facts)) {
    for (const std::string& line : ImageTroubleOf(facts).words)
      agents::AddQuote(kSlurmOutput, line, failure);
    if (facts.ended_conversion.has_value()) {
      const QueueRow& job = *facts.ended_conversion;
      agents::AddQuote("squeue",
                       fmt::format("the conversion, Slurm job {}: {} ({})", job.job_id.ToString(),
                                   job.state.word, job.reason),
                       failure);
    }
    return;
  }
  std::vector<std::string_view> lines = Lines(facts.slurm_output);
  std::erase_if(lines, [](std::string_view line) {
    return line.find("error:") == std::string_view::npos && !line.starts_with(kNoteMark);
  });
  if (lines.size() > kQuotedLogLines) lines.erase(lines.begin(), lines.end() - kQuotedLogLines);
  for (std::string_view line : lines) agents::AddQuote(kSlurmOutput, line, failure);
}

}  // namespace

std::string_view SinceLastStart(std::string_view slurm_output) {
  const size_t mark = slurm_output.rfind(fmt::format("\n{}", kStartMark));
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
  v1::Failure failure = Explain(phase, facts);
  failure.set_detail(std::string(slurm_words));
  if (facts.record.has_value() && !facts.record->EndedWithZero()) {
    const bool is_setup = facts.record->IsOfSetup();
    if (is_setup && failure.phase() == v1::FAILURE_PHASE_COMMAND)
      failure.set_phase(v1::FAILURE_PHASE_SETUP);
    // srun does not tell on which node it failed.
    if (facts.record->problem != ExitRecord::Problem::kSrun) failure.set_rank(facts.record->rank);
    if (!is_setup) failure.set_role(facts.role);
  }
  if (failure.code() == v1::FAILURE_CODE_OUT_OF_MEMORY)
    failure.set_memory_limit_bytes(facts.memory_limit_bytes);
  contract::PutSentence(&failure);
  Quote(facts, &failure);
  return failure;
}

}  // namespace muster::slurm
