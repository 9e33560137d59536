#include "agents/machines/verdict.h"

#include <string.h>

#include <cerrno>
#include <system_error>

#include "agents/core/proto_time.h"
#include "agents/machines/image_trouble.h"
#include "contract/counted.h"
#include "contract/failures.h"
#include "contract/signal_name.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::machines {
namespace {

using agents::Observation;
using contract::FailureCause;

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

v1::ExitStatus StatusOf(const ExitRecord& exit) {
  return exit.end == ExitRecord::End::kSignaled ? contract::ExitBySignal(exit.status)
                                                : contract::ExitWithCode(exit.status);
}

std::string EndText(const ExitRecord& exit) {
  return exit.end == ExitRecord::End::kSignaled
             ? fmt::format("was ended by {}", contract::SignalName(exit.status))
             : fmt::format("ended with exit code {}", exit.status);
}

FailureCause CauseOf(int error) {
  switch (error) {
    case ENOENT:
      return FailureCause::kProgramNotFound;
    case EACCES:
      return FailureCause::kProgramNotExecutable;
    case ENOEXEC:
      return FailureCause::kProgramNotOfMachine;
    case E2BIG:
      return FailureCause::kArgumentsTooLong;
    default:
      return FailureCause::kNone;
  }
}

// The failure of a run for which something could not be had or started.
v1::Failure NotStartedFailure(const ExitRecord& exit, v1::FailurePhase phase) {
  const std::string words = std::generic_category().message(exit.error);
  switch (exit.step) {
    case ExitRecord::Step::kProgram:
      return MakeFailure(
          v1::FAILURE_CODE_PROGRAM_NOT_STARTED, v1::FAILURE_CLASS_CONFIG,
          {.subject = exit.path, .meaning = words, .cause = CauseOf(exit.error), .phase = phase});
    case ExitRecord::Step::kWorkingDirectory:
      return MakeFailure(v1::FAILURE_CODE_WORKING_DIRECTORY, v1::FAILURE_CLASS_CONFIG,
                         {.subject = exit.path, .meaning = words, .phase = phase});
    case ExitRecord::Step::kImage: {
      const ImageTrouble trouble = ExplainImageTrouble(exit.path);
      v1::Failure failure =
          MakeFailure(trouble.code, v1::FAILURE_CLASS_IMAGE, {.detail = exit.path, .phase = phase});
      failure.set_retriable(trouble.is_passing);
      return failure;
    }
    case ExitRecord::Step::kFiles:
    case ExitRecord::Step::kProcess:
      break;
  }
  return MakeFailure(
      v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA,
      {.subject = exit.path,
       .meaning = fmt::format("\"{}\": {}", exit.path, words),
       .cause = exit.error == ENOSPC ? FailureCause::kMachineFull : FailureCause::kNone,
       .phase = phase});
}

// "3 of its processes were killed at its memory limit of 2Gi"
std::string OomText(const ExitRecord& exit) {
  return fmt::format("{} of its processes {} killed at its memory limit of {}", exit.oom_kills,
                     contract::WordFor(exit.oom_kills, "was", "were"),
                     contract::FormatBytes(exit.memory_limit_bytes));
}

// Returns the failure of a run whose setup or command ran to its end.
v1::Failure ProgramFailure(const ExitRecord& exit, v1::FailurePhase phase) {
  const v1::ExitStatus status = StatusOf(exit);
  if (exit.oom_kills == 0) return contract::OwnEnd(status, {.phase = phase});
  v1::Failure failure =
      MakeFailure(v1::FAILURE_CODE_OUT_OF_MEMORY, v1::FAILURE_CLASS_OOM, {.phase = phase});
  *failure.mutable_exit() = status;
  failure.set_killed_processes(static_cast<uint32_t>(exit.oom_kills));
  failure.set_memory_limit_bytes(exit.memory_limit_bytes);
  contract::PutSentence(&failure);
  return failure;
}

v1::RunState StateOf(const ExitRecord& exit) {
  if (exit.cause == ExitRecord::Cause::kCanceled) return v1::RUN_STATE_CANCELED;
  const bool succeeded = exit.cause == ExitRecord::Cause::kNone &&
                         exit.phase == ExitRecord::Phase::kCommand &&
                         exit.end == ExitRecord::End::kExited && exit.status == 0;
  return succeeded ? v1::RUN_STATE_SUCCEEDED : v1::RUN_STATE_FAILED;
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

v1::Failure FailureOf(const ExitRecord& exit) {
  const v1::FailurePhase phase = PhaseOf(exit);
  if (exit.cause == ExitRecord::Cause::kTimeLimit)
    return MakeFailure(v1::FAILURE_CODE_TIME_LIMIT, v1::FAILURE_CLASS_TIMEOUT, {.phase = phase});
  if (exit.cause == ExitRecord::Cause::kTerminated) {
    return MakeFailure(v1::FAILURE_CODE_ENDED_BY_OTHERS, v1::FAILURE_CLASS_INFRA,
                       {.meaning = "its supervisor got " + exit.sender,
                        .cause = FailureCause::kSupervisorStopped,
                        .phase = phase});
  }
  if (exit.cause == ExitRecord::Cause::kLeaseEnded)
    return MakeFailure(v1::FAILURE_CODE_LEASE_ENDED, v1::FAILURE_CLASS_INFRA, {.phase = phase});
  if (exit.end == ExitRecord::End::kNotStarted) return NotStartedFailure(exit, phase);
  if (exit.end == ExitRecord::End::kNothingRan) {
    return MakeFailure(v1::FAILURE_CODE_END_UNKNOWN, v1::FAILURE_CLASS_INFRA,
                       {.cause = FailureCause::kNothingRan, .phase = phase});
  }
  return ProgramFailure(exit, phase);
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
    case ExitRecord::Cause::kLeaseEnded:
      detail += exit.end == ExitRecord::End::kNothingRan ? ": its lease had ended"
                                                         : " after TERM at the end of its lease";
      break;
  }
  if (exit.oom_kills > 0) detail += "; " + OomText(exit);
  if (!exit.unlimited.empty()) detail += "; it ran without limits: " + exit.unlimited;
  if (exit.left_behind) detail += "; some of its processes could not be killed";
  return detail;
}

}  // namespace

v1::Failure MakeFailure(v1::FailureCode code, v1::FailureClass failure_class,
                        contract::FailureParts parts) {
  // Another machine, or this one after its restart, may do better.
  parts.is_retriable = failure_class == v1::FAILURE_CLASS_INFRA;
  return contract::MakeFailure(code, failure_class, parts);
}

std::string RemedyOf(const Misfit& misfit) {
  return contract::AsClause(MisfitFailure(misfit).remedy());
}

v1::Failure MisfitFailure(const Misfit& misfit) {
  v1::FailureCode code = v1::FAILURE_CODE_DOES_NOT_FIT;
  if (misfit.is_of_containers) code = v1::FAILURE_CODE_NO_CONTAINERS;
  if (misfit.is_of_users) code = v1::FAILURE_CODE_LAUNCH_REFUSED;
  return MakeFailure(code, v1::FAILURE_CLASS_CONFIG,
                     {.meaning = misfit.why, .cause = misfit.cause});
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
  if (exit.is_counted) {
    v1::ResourceUsage& usage = observation.usage.emplace();
    *usage.mutable_user_cpu_time() = agents::ToProto(absl::Microseconds(exit.user_cpu_us));
    *usage.mutable_system_cpu_time() = agents::ToProto(absl::Microseconds(exit.system_cpu_us));
    usage.set_max_rss_bytes(exit.max_rss_bytes);
  }
  // The exit status is the command's; how setup ended is in the failure.
  const bool ended = exit.end == ExitRecord::End::kExited || exit.end == ExitRecord::End::kSignaled;
  if (ended && exit.phase == ExitRecord::Phase::kCommand) {
    observation.exit = StatusOf(exit);
  }
  if (observation.state == v1::RUN_STATE_FAILED) {
    observation.failure = FailureOf(exit);
    if (!observation.nodes.empty()) {
      observation.failure->set_rank(0);
      observation.failure->set_node(witness.hostname);
      contract::PutSentence(&*observation.failure);
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
      MakeFailure(v1::FAILURE_CODE_END_UNKNOWN, v1::FAILURE_CLASS_INFRA,
                  {.detail = detail, .meaning = "it was cut off before that could be recorded"});
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
  observation.failure = MakeFailure(
      v1::FAILURE_CODE_LOST, v1::FAILURE_CLASS_INFRA,
      {.subject = directory,
       .meaning = fmt::format("its directory \"{}\" was removed or is damaged", directory),
       .cause = FailureCause::kStateDirectoryChanged});
  // It may have run, and nobody knows to what end.
  observation.failure->set_retriable(false);
  return observation;
}

}  // namespace muster::machines
