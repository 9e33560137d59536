#include "agents/machines/verdict.h"

#include <signal.h>
#include <string.h>

#include <cerrno>
#include <system_error>

#include "agents/core/proto_time.h"
#include "agents/machines/image_trouble.h"
#include "contract/signal_name.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

using agents::Observation;

// Exit codes of shells.
constexpr int kNotExecutableCode = 126;
constexpr int kNotFoundCode = 127;

v1::Evidence MakeEvidence(v1::EvidenceSource source, absl::Time now, const std::string& detail) {
  v1::Evidence evidence;
  evidence.set_source(source);
  *evidence.mutable_observed_at() = agents::ToProto(now);
  evidence.set_detail(detail);
  return evidence;
}

Observation Begin(const Witness& witness, v1::RunState state, v1::EvidenceSource source,
                  const std::string& detail) {
  Observation observation;
  observation.run_key = witness.run_key;
  observation.state = state;
  observation.evidence = MakeEvidence(source, witness.now, detail);
  return observation;
}

std::string EndText(const ExitRecord& exit) {
  return exit.end == ExitRecord::End::kSignaled
             ? fmt::format("was ended by {}", contract::SignalName(exit.status))
             : fmt::format("ended with exit code {}", exit.status);
}

std::string ProgramRemedy(int error) {
  switch (error) {
    case ENOENT:
      return "check the program's name, that it is installed on the machine (and in PATH if it "
             "has no '/'), and the interpreter in its first line";
    case EACCES:
      return "make the program executable: chmod +x";
    case ENOEXEC:
      return "begin a script with a line like #!/bin/sh, and use programs built for the machine";
    case E2BIG:
      return "pass long arguments and variables in a file";
    default:
      return "";
  }
}

v1::Failure ImageFailure(const ExitRecord& exit) {
  const ImageTrouble trouble = ExplainImageTrouble(exit.path);
  v1::Failure failure =
      MakeFailure(v1::FAILURE_CLASS_IMAGE, fmt::format("the image could not be had: {}", exit.path),
                  trouble.remedy);
  failure.set_retriable(trouble.is_passing);
  return failure;
}

v1::Failure NotStartedFailure(const ExitRecord& exit) {
  const std::string phase = exit.phase == ExitRecord::Phase::kSetup ? "setup" : "the command";
  const std::string words = std::generic_category().message(exit.error);
  switch (exit.step) {
    case ExitRecord::Step::kProgram:
      return MakeFailure(
          v1::FAILURE_CLASS_CONFIG,
          fmt::format("{} could not be started: \"{}\": {}", phase, exit.path, words),
          ProgramRemedy(exit.error));
    case ExitRecord::Step::kWorkingDirectory:
      return MakeFailure(
          v1::FAILURE_CLASS_CONFIG,
          fmt::format("the working directory \"{}\" cannot be entered: {}", exit.path, words),
          "make the directory on the machine, or name another working_directory");
    case ExitRecord::Step::kImage:
      return ImageFailure(exit);
    case ExitRecord::Step::kFiles:
    case ExitRecord::Step::kProcess:
      break;
  }
  return MakeFailure(v1::FAILURE_CLASS_INFRA,
                     fmt::format("the run could not be started: \"{}\": {}", exit.path, words),
                     exit.error == ENOSPC
                         ? "free disk space on the machine and submit the job again"
                         : "tell the machine's operator");
}

// "3 of its processes were killed at its memory limit of 2Gi"
std::string OomText(const ExitRecord& exit) {
  return fmt::format("{} of its processes {} killed at its memory limit of {}", exit.oom_kills,
                     exit.oom_kills == 1 ? "was" : "were",
                     contract::FormatBytes(exit.memory_limit_bytes));
}

// Advice about a setup or command that has failed by itself.
std::string ExitRemedy(const ExitRecord& exit) {
  if (exit.end == ExitRecord::End::kSignaled && exit.status == SIGKILL) {
    return "if nobody killed it, the machine may have run out of memory: ask for more, or use less";
  }
  const bool is_missing = exit.end == ExitRecord::End::kExited &&
                          (exit.status == kNotFoundCode || exit.status == kNotExecutableCode);
  if (is_missing) {
    return "read its output: a shell ends with 127 if the machine has no command of that name, and "
           "with 126 if a file is none that it may run; source and [[ are bash's, for which a "
           "script begins with the line #!/bin/bash";
  }
  return "read its output";
}

// Why a run failed whose setup or command ran to its end.
v1::Failure ProgramFailure(const ExitRecord& exit) {
  if (exit.oom_kills > 0) {
    return MakeFailure(
        v1::FAILURE_CLASS_OOM,
        fmt::format("{} {} after {}",
                    exit.phase == ExitRecord::Phase::kSetup ? "setup" : "the command",
                    EndText(exit), OomText(exit)),
        "ask for more memory (resources.memory_bytes), or use less of it, with smaller batches");
  }
  if (exit.phase == ExitRecord::Phase::kSetup) {
    return MakeFailure(v1::FAILURE_CLASS_CONFIG,
                       fmt::format("setup {}, so the command was not started", EndText(exit)),
                       ExitRemedy(exit));
  }
  return MakeFailure(v1::FAILURE_CLASS_PROGRAM, fmt::format("the command {}", EndText(exit)),
                     ExitRemedy(exit));
}

v1::RunState StateOf(const ExitRecord& exit) {
  if (exit.cause == ExitRecord::Cause::kCanceled) return v1::RUN_STATE_CANCELED;
  const bool succeeded = exit.cause == ExitRecord::Cause::kNone &&
                         exit.phase == ExitRecord::Phase::kCommand &&
                         exit.end == ExitRecord::End::kExited && exit.status == 0;
  return succeeded ? v1::RUN_STATE_SUCCEEDED : v1::RUN_STATE_FAILED;
}

v1::Failure FailureOf(const ExitRecord& exit) {
  if (exit.cause == ExitRecord::Cause::kTimeLimit) {
    return MakeFailure(v1::FAILURE_CLASS_TIMEOUT, "the run was ended at its time limit",
                       "raise time_limit");
  }
  if (exit.cause == ExitRecord::Cause::kTerminated) {
    return MakeFailure(
        v1::FAILURE_CLASS_INFRA,
        fmt::format("the run was ended from outside: its supervisor got {}", exit.sender),
        "submit the job again; if the machine was not being shut down, tell its operator");
  }
  if (exit.end == ExitRecord::End::kNotStarted) return NotStartedFailure(exit);
  if (exit.end == ExitRecord::End::kNothingRan) {
    return MakeFailure(v1::FAILURE_CLASS_INFRA,
                       "the run ended, and how its program ended could not be seen",
                       "tell the machine's operator");
  }
  return ProgramFailure(exit);
}

v1::FailurePhase PhaseOf(const ExitRecord& exit) {
  if (exit.phase == ExitRecord::Phase::kQueue) return v1::FAILURE_PHASE_QUEUE;
  const bool is_setup = exit.phase == ExitRecord::Phase::kSetup;
  if (exit.end != ExitRecord::End::kNotStarted)
    return is_setup ? v1::FAILURE_PHASE_SETUP : v1::FAILURE_PHASE_COMMAND;
  switch (exit.step) {
    case ExitRecord::Step::kImage:
      return v1::FAILURE_PHASE_IMAGE;
    case ExitRecord::Step::kFiles:
      return v1::FAILURE_PHASE_FILES;
    case ExitRecord::Step::kProgram:
    case ExitRecord::Step::kWorkingDirectory:
    case ExitRecord::Step::kProcess:
      break;
  }
  return is_setup ? v1::FAILURE_PHASE_SETUP_START : v1::FAILURE_PHASE_COMMAND_START;
}

std::string DetailOf(const ExitRecord& exit) {
  std::string detail;
  switch (exit.end) {
    case ExitRecord::End::kNothingRan:
      detail = "nothing was started";
      break;
    case ExitRecord::End::kNotStarted:
      detail =
          exit.step == ExitRecord::Step::kImage
              ? "the image: " + exit.path
              : fmt::format("\"{}\": {}", exit.path, std::generic_category().message(exit.error));
      break;
    case ExitRecord::End::kExited:
    case ExitRecord::End::kSignaled:
      detail =
          fmt::format("{} {}", exit.phase == ExitRecord::Phase::kSetup ? "setup" : "the command",
                      EndText(exit));
      break;
  }
  switch (exit.cause) {
    case ExitRecord::Cause::kNone:
      break;
    case ExitRecord::Cause::kTimeLimit:
      detail += " after TERM at the time limit";
      break;
    case ExitRecord::Cause::kCanceled:
      detail += ", canceled";
      break;
    case ExitRecord::Cause::kTerminated:
      detail += ", terminated by " + exit.sender;
      break;
  }
  if (exit.oom_kills > 0) detail += "; " + OomText(exit);
  if (!exit.unlimited.empty()) detail += "; it ran without limits: " + exit.unlimited;
  if (exit.left_behind) detail += "; some of its processes could not be killed";
  return detail;
}

}  // namespace

v1::Failure MakeFailure(v1::FailureClass failure_class, const std::string& message,
                        const std::string& suggestion) {
  v1::Failure failure;
  failure.set_failure_class(failure_class);
  failure.set_message(message);
  failure.set_suggestion(suggestion);
  // Another machine, or this one after its restart, may do better.
  failure.set_retriable(failure_class == v1::FAILURE_CLASS_INFRA);
  return failure;
}

Observation PendingVerdict(const Witness& witness) {
  return Begin(witness, v1::RUN_STATE_PENDING, v1::EVIDENCE_SOURCE_AGENT,
               witness.hostname.empty() ? "in the cluster's queue" : "in the machine's queue");
}

Observation StartingVerdict(const Witness& witness, pid_t supervisor) {
  Observation observation = Begin(witness, v1::RUN_STATE_STARTING, v1::EVIDENCE_SOURCE_PROCESS,
                                  fmt::format("supervisor process {}", supervisor));
  observation.nodes = {witness.hostname};
  return observation;
}

Observation RunningVerdict(const Witness& witness, const Started& started) {
  Observation observation = Begin(witness, v1::RUN_STATE_RUNNING, v1::EVIDENCE_SOURCE_PROCESS,
                                  fmt::format("process {} started", started.process.pid));
  observation.nodes = {witness.hostname};
  observation.external_id = std::to_string(started.process.pid);
  observation.start_time = absl::FromUnixMicros(started.time_us);
  return observation;
}

Observation EndVerdict(const Witness& witness, const ExitRecord& exit) {
  Observation observation =
      Begin(witness, StateOf(exit), v1::EVIDENCE_SOURCE_EXIT_RECORD, DetailOf(exit));
  observation.end_time = absl::FromUnixMicros(exit.end_us);
  if (exit.phase != ExitRecord::Phase::kQueue) observation.nodes = {witness.hostname};
  if (exit.start_us != 0) {
    observation.start_time = absl::FromUnixMicros(exit.start_us);
    observation.external_id = std::to_string(exit.pid);
  }
  // The exit status is the command's; how setup ended is in the failure.
  const bool ended = exit.end == ExitRecord::End::kExited || exit.end == ExitRecord::End::kSignaled;
  if (ended && exit.phase == ExitRecord::Phase::kCommand) {
    v1::ExitStatus status;
    if (exit.end == ExitRecord::End::kExited) status.set_code(exit.status);
    if (exit.end == ExitRecord::End::kSignaled) status.set_signal(exit.status);
    observation.exit = status;
  }
  if (observation.state == v1::RUN_STATE_FAILED) {
    observation.failure = FailureOf(exit);
    observation.failure->set_phase(PhaseOf(exit));
    if (!observation.nodes.empty()) {
      observation.failure->set_rank(0);
      observation.failure->set_node(witness.hostname);
    }
  }
  return observation;
}

Observation VanishedVerdict(const Witness& witness, const std::string& detail) {
  Observation observation =
      Begin(witness, v1::RUN_STATE_FAILED, v1::EVIDENCE_SOURCE_PROCESS, detail);
  observation.end_time = witness.now;
  observation.nodes = {witness.hostname};
  observation.failure =
      MakeFailure(v1::FAILURE_CLASS_INFRA,
                  fmt::format("the run was cut off before its end could be recorded: {}", detail),
                  "submit the job again");
  return observation;
}

Observation NotStartedVerdict(const Witness& witness, const v1::Failure& failure) {
  Observation observation =
      Begin(witness, v1::RUN_STATE_FAILED, v1::EVIDENCE_SOURCE_AGENT, failure.message());
  observation.end_time = witness.now;
  if (!witness.hostname.empty()) observation.nodes = {witness.hostname};
  observation.failure = failure;
  if (failure.phase() == v1::FAILURE_PHASE_UNSPECIFIED)
    observation.failure->set_phase(v1::FAILURE_PHASE_LAUNCH);
  return observation;
}

Observation LostVerdict(const Witness& witness, const std::string& directory) {
  Observation observation = Begin(
      witness, v1::RUN_STATE_LOST, v1::EVIDENCE_SOURCE_AGENT,
      fmt::format("the queue does not have the run, and \"{}\" has no record of it", directory));
  observation.end_time = witness.now;
  observation.failure =
      MakeFailure(v1::FAILURE_CLASS_INFRA,
                  fmt::format("the run's directory \"{}\" was removed or is damaged", directory),
                  "submit the job again; nothing but Muster may change its state directory");
  // It may have run, and nobody knows to what end.
  observation.failure->set_retriable(false);
  return observation;
}

}  // namespace muster::machines
