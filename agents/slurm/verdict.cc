#include "agents/slurm/verdict.h"

#include <algorithm>

#include "agents/core/log_evidence.h"
#include "agents/core/proto_time.h"
#include "agents/slurm/explain_end.h"
#include "agents/slurm/fields.h"
#include "contract/failures.h"
#include "contract/sentences.h"
#include "contract/slurm_reasons.h"
#include "fmt/format.h"
#include "google/protobuf/timestamp.pb.h"

namespace muster::slurm {
namespace {

using agents::Observation;

void SetEvidence(v1::EvidenceSource source, const RunFacts& facts, std::string detail,
                 Observation* observation) {
  v1::Evidence& evidence = observation->evidence;
  evidence.set_source(source);
  evidence.set_detail(std::move(detail));
  evidence.mutable_observed_at()->set_seconds(absl::ToUnixSeconds(facts.now));
  evidence.mutable_observed_at()->set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(facts.now - absl::FromUnixSeconds(absl::ToUnixSeconds(facts.now)))));
}

std::string QueueWords(const QueueRow& row) {
  const bool reason = !row.reason.empty() && row.reason != "None";
  return reason ? fmt::format("{} ({})", row.state.word, row.reason) : row.state.word;
}

std::string RecordWords(const ExitRecord& record) {
  if (record.problem == ExitRecord::Problem::kUnknown) {
    return fmt::format("exit record of Slurm job {}: {} ended on rank {}; its code is not known",
                       record.job_id.ToString(), record.phase, record.rank);
  }
  return fmt::format(
      "exit record of Slurm job {}: {} ended with code {}, signal {} on rank {}{}{}",
      record.job_id.ToString(), record.phase, record.code, record.signal, record.rank,
      record.terminated  ? ", after a TERM"
      : record.continued ? ", after a CONT"
                         : "",
      record.pulled_image ? "; the image could not be converted, so each node pulled it" : "");
}

Observation MakeObservation(const RunFacts& facts, v1::RunState state) {
  Observation observation;
  observation.run_key = facts.run_key;
  observation.state = state;
  observation.external_id = facts.job_id.ToString();
  if (facts.queue.has_value()) {
    observation.nodes = ExpandNodeList(facts.queue->node_list);
    observation.restarts = facts.queue->restarts;
  } else if (facts.history.has_value()) {
    observation.nodes = ExpandNodeList(facts.history->node_list);
  }
  const v1::SlurmAllocation allocation = facts.queue.has_value()     ? facts.queue->allocation
                                         : facts.history.has_value() ? facts.history->allocation
                                                                     : v1::SlurmAllocation();
  if (allocation.ByteSizeLong() > 0) observation.slurm_allocation = allocation;
  if (observation.nodes.empty() && facts.record.has_value())
    observation.nodes = ExpandNodeList(facts.record->node_list);
  if (facts.record.has_value())
    observation.restarts = std::max(observation.restarts, facts.record->restart);
  return observation;
}

v1::RunState LiveState(JobPhase phase) {
  switch (phase) {
    case JobPhase::kPending:
      return v1::RUN_STATE_PENDING;
    case JobPhase::kStarting:
      return v1::RUN_STATE_STARTING;
    case JobPhase::kRunning:
      return v1::RUN_STATE_RUNNING;
    case JobPhase::kSuspended:
      return v1::RUN_STATE_SUSPENDED;
    case JobPhase::kCompleting:
      return v1::RUN_STATE_FINISHING;
    default:
      return v1::RUN_STATE_UNSPECIFIED;
  }
}

// The image is the reason of a run that waits for it: "Dependency" would say less than Slurm knows.
v1::StateReason WaitingReason(const RunFacts& facts) {
  if (!facts.conversion.has_value()) {
    const std::string& word = facts.queue->reason;
    const bool is_alone =
        facts.none_runs_for >= kAloneAfter && word.find("PerUser") != std::string::npos;
    v1::StateReason reason =
        is_alone ? contract::SlurmReasonAlone(word) : contract::SlurmReason(word);
    const bool is_of_time = reason.code() == v1::STATE_REASON_CODE_BEGIN_TIME;
    if (is_of_time && facts.queue->start_time.has_value())
      *reason.mutable_until() = agents::ToProto(*facts.queue->start_time);
    return reason;
  }
  const QueueRow& conversion = *facts.conversion;
  const std::string job = "Slurm job " + conversion.job_id.ToString();
  const std::string why = contract::ExplainSlurmReason(conversion.reason);
  return contract::MakeReason(
      v1::STATE_REASON_CODE_PULLING_IMAGE,
      {.detail = fmt::format("waiting for its image to be converted, by {} which is {}{}{}", job,
                             conversion.state.word, why.empty() ? "" : ": ", why),
       .subject = job});
}

// Slurm has the job and it has not ended.
std::optional<Observation> JudgeLive(const RunFacts& facts) {
  const QueueRow& row = *facts.queue;
  const v1::RunState state = LiveState(row.state.phase);
  if (state == v1::RUN_STATE_UNSPECIFIED) return std::nullopt;
  Observation observation = MakeObservation(facts, state);
  SetEvidence(v1::EVIDENCE_SOURCE_SQUEUE, facts,
              fmt::format("Slurm job {}: {}", row.job_id.ToString(), QueueWords(row)),
              &observation);
  if (state == v1::RUN_STATE_PENDING) {
    observation.reason = WaitingReason(facts);
    observation.estimated_start = row.start_time;
  }
  const bool started = state != v1::RUN_STATE_PENDING && state != v1::RUN_STATE_STARTING;
  if (started) observation.start_time = row.start_time;
  return observation;
}

// The command has ended, and Slurm's verdict is still to come.
Observation Finishing(const RunFacts& facts) {
  Observation observation = MakeObservation(facts, v1::RUN_STATE_FINISHING);
  if (facts.record.has_value()) {
    SetEvidence(v1::EVIDENCE_SOURCE_EXIT_RECORD, facts, RecordWords(*facts.record), &observation);
  } else {
    SetEvidence(
        v1::EVIDENCE_SOURCE_SQUEUE, facts,
        fmt::format("Slurm job {}: {}; waiting for its exit record or its accounting",
                    facts.job_id.ToString(),
                    facts.queue.has_value() ? QueueWords(*facts.queue) : "gone from the queue"),
        &observation);
  }
  return observation;
}

// There is a record, and nobody could be asked whether Slurm stopped the job.
Observation FinishingUnasked(const RunFacts& facts) {
  Observation observation = Finishing(facts);
  observation.reason = contract::MakeReason(
      v1::STATE_REASON_CODE_READING_END,
      {.detail = fmt::format("it has ended, and Slurm's accounting cannot be asked how; its exit "
                             "record counts after {}",
                             absl::FormatDuration(kMaxSilence))});
  return observation;
}

// The file server may be away: that there is no record is not known. Slurm's own word on a failure
// lacks the cause, so it waits for the record for a while.
bool WaitsForRecord(const RunFacts& facts, JobPhase phase) {
  if (facts.record_error.empty()) return false;
  const bool is_brief = facts.record_is_torn || facts.cancel_asked;
  if (phase == JobPhase::kUnknown) return facts.unread_for < (is_brief ? kMaxSilence : kMaxUnread);
  return phase == JobPhase::kFailed && !facts.record_is_torn && facts.unread_for < kMaxSilence;
}

Observation FinishingUnread(const RunFacts& facts) {
  Observation observation = Finishing(facts);
  observation.reason = contract::MakeReason(
      v1::STATE_REASON_CODE_READING_END,
      {.detail = fmt::format(
           "it has ended, and its exit record cannot be read: {}{}", facts.record_error,
           facts.cancel_asked
               ? fmt::format("; it counts as canceled after {}", absl::FormatDuration(kMaxSilence))
               : "")});
  return observation;
}

void SetTimesAndExit(const RunFacts& facts, bool slurm_code_counts, Observation* observation) {
  if (facts.queue.has_value()) {
    observation->start_time = facts.queue->start_time;
    observation->end_time = facts.queue->end_time;
  } else if (facts.history.has_value()) {
    observation->start_time = facts.history->start_time;
    observation->end_time = facts.history->end_time;
  }
  // A job that ended in the queue has its end there as its start.
  if (observation->nodes.empty()) observation->start_time.reset();
  v1::ExitStatus exit;
  if (facts.record.has_value()) {
    observation->start_time = facts.record->start;
    observation->end_time = facts.record->end;
    if (!facts.record->HasExitStatus()) return;
    exit.set_code(facts.record->code);
    exit.set_signal(facts.record->signal);
    exit.set_rank(facts.record->rank);
  } else if (slurm_code_counts && facts.history.has_value() && facts.history->exit_is_known &&
             facts.history->exit_code != kClaimLostCode) {
    exit.set_code(facts.history->exit_code);
    exit.set_signal(facts.history->signal);
  } else {
    return;
  }
  observation->exit = exit;
}

// Slurm's own words for the end, and where they are from.
struct SlurmEnd {
  JobPhase phase = JobPhase::kUnknown;
  v1::EvidenceSource source = v1::EVIDENCE_SOURCE_UNSPECIFIED;
  std::string words;
};

std::optional<SlurmEnd> EndAccordingToSlurm(const RunFacts& facts) {
  const bool history_ended = facts.history.has_value() && HasEnded(facts.history->state.phase);
  if (facts.queue.has_value()) {
    std::string words = QueueWords(*facts.queue);
    if (history_ended) words += "; " + facts.history->Words();
    return SlurmEnd{facts.queue->state.phase, v1::EVIDENCE_SOURCE_SQUEUE, words};
  }
  if (!history_ended) return std::nullopt;
  return SlurmEnd{
      facts.history->state.phase,
      facts.history->from_accounting ? v1::EVIDENCE_SOURCE_SACCT : v1::EVIDENCE_SOURCE_SQUEUE,
      facts.history->Words()};
}

// The queue has forgotten the job and no history tells: what the record and slurmstepd's last words
// say.
SlurmEnd EndAccordingToRecord(const RunFacts& facts) {
  SlurmEnd end{PhaseInOutput(facts.slurm_output), v1::EVIDENCE_SOURCE_EXIT_RECORD, ""};
  if (end.phase != JobPhase::kUnknown) return end;
  const ExitRecord& record = *facts.record;
  if (facts.cancel_asked && (record.terminated || record.continued)) {
    end.phase = JobPhase::kCancelled;
  } else {
    end.phase = record.EndedWithZero() ? JobPhase::kCompleted : JobPhase::kFailed;
  }
  return end;
}

// Returns the command that people type to see the same.
std::string_view CommandOf(v1::EvidenceSource source) {
  if (source == v1::EVIDENCE_SOURCE_SQUEUE) return "squeue";
  return source == v1::EVIDENCE_SOURCE_SACCT ? "sacct" : "exit record";
}

// The agent itself has canceled the job, because nobody else would have freed it.
Observation LaunchFailed(const RunFacts& facts) {
  Observation observation = MakeObservation(facts, v1::RUN_STATE_FAILED);
  const std::string words = QueueWords(*facts.queue);
  SetEvidence(v1::EVIDENCE_SOURCE_SQUEUE, facts,
              fmt::format("Slurm job {}: {}", facts.job_id.ToString(), words), &observation);
  v1::Failure failure = contract::MakeFailure(
      v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA,
      {.detail = words,
       .meaning = "Slurm could not do so on its node, and would have held the job for good",
       .phase = v1::FAILURE_PHASE_QUEUE,
       .is_retriable = true});
  agents::AddQuote("squeue", words, &failure);
  observation.failure = failure;
  return observation;
}

// Returns the message about a job whose end Slurm itself does not explain.
std::string Unsaid(const RunFacts& facts) {
  if (facts.history_answer != RunFacts::History::kNoAnswer)
    return "gone from the queue, and no history tells of its end";
  return fmt::format("gone from the queue, and its accounting could not be asked for {}",
                     absl::FormatDuration(absl::Trunc(facts.missing_for, absl::Seconds(1))));
}

// sacct tells a number, slurmrestd a name.
std::string UserWords(const std::string& user) {
  return fmt::format("user {}{}", ParseNumber<uint64_t>(user).has_value() ? "id " : "", user);
}

Observation Ended(const RunFacts& facts, const SlurmEnd& end) {
  const bool record_failed = facts.record.has_value() && !facts.record->EndedWithZero();
  v1::RunState state = v1::RUN_STATE_FAILED;
  if (end.phase == JobPhase::kCompleted && !record_failed) state = v1::RUN_STATE_SUCCEEDED;
  if (end.phase == JobPhase::kCancelled) state = v1::RUN_STATE_CANCELED;

  Observation observation = MakeObservation(facts, state);
  std::string detail = fmt::format("Slurm job {}: {}", facts.job_id.ToString(),
                                   end.words.empty() ? Unsaid(facts) : end.words);
  if (facts.record.has_value()) detail += "; " + RecordWords(*facts.record);
  if (state == v1::RUN_STATE_CANCELED && facts.history.has_value() &&
      !facts.history->state.cancelled_by.empty()) {
    detail += fmt::format("; canceled by {}", UserWords(facts.history->state.cancelled_by));
  }
  SetEvidence(end.source, facts, detail, &observation);
  const bool slurm_code_counts =
      end.phase == JobPhase::kFailed || end.phase == JobPhase::kCompleted;
  SetTimesAndExit(facts, slurm_code_counts, &observation);
  if (state != v1::RUN_STATE_FAILED) return observation;
  observation.failure = ExplainEnd(end.phase, end.words, facts);
  if (observation.failure->has_rank() && observation.failure->rank() < observation.nodes.size()) {
    observation.failure->set_node(observation.nodes[observation.failure->rank()]);
    contract::PutSentence(&*observation.failure);
  }
  agents::AddQuote(CommandOf(end.source), end.words, &*observation.failure);
  observation.may_logs_tell = end.phase == JobPhase::kDeadline;
  return observation;
}

Observation Succeeded(const RunFacts& facts) {
  Observation observation = MakeObservation(facts, v1::RUN_STATE_SUCCEEDED);
  SetEvidence(v1::EVIDENCE_SOURCE_EXIT_RECORD, facts, RecordWords(*facts.record), &observation);
  SetTimesAndExit(facts, false, &observation);
  return observation;
}

// Reports a run that Slurm has forgotten. If the agent has fenced it, that is a failure like
// others, because another run can never meet it.
Observation Lost(const RunFacts& facts) {
  Observation observation =
      MakeObservation(facts, facts.is_fenced ? v1::RUN_STATE_FAILED : v1::RUN_STATE_LOST);
  const std::string_view history =
      facts.history.has_value() ? "its accounting does not know of an end"
      : facts.history_answer == RunFacts::History::kUnavailable ? "the cluster keeps no accounting"
                                                                : "its accounting does not know it";
  const std::string detail = fmt::format(
      "Slurm job {}: not in the queue for {}, {}, and {}", facts.job_id.ToString(),
      absl::FormatDuration(
          absl::Trunc(std::max(facts.missing_for, facts.unread_for), absl::Seconds(1))),
      history,
      facts.record_error.empty() ? "the run left no exit record"
                                 : "its exit record could not be read: " + facts.record_error);
  SetEvidence(v1::EVIDENCE_SOURCE_AGENT, facts, detail, &observation);
  observation.failure = contract::MakeFailure(
      facts.is_fenced ? v1::FAILURE_CODE_FORGOTTEN : v1::FAILURE_CODE_LOST, v1::FAILURE_CLASS_INFRA,
      {.detail = detail,
       .phase = facts.is_fenced ? v1::FAILURE_PHASE_QUEUE : v1::FAILURE_PHASE_UNSPECIFIED,
       .is_retriable = facts.is_fenced});
  return observation;
}

// Slurm has no job of a run that was to end, and whether its command had ended before cannot be
// read.
Observation CanceledUnread(const RunFacts& facts) {
  Observation observation = MakeObservation(facts, v1::RUN_STATE_CANCELED);
  SetEvidence(v1::EVIDENCE_SOURCE_AGENT, facts,
              fmt::format("Slurm job {}: canceled, and not in the queue any more; its exit record "
                          "could not be read for {}: {}",
                          facts.job_id.ToString(),
                          absl::FormatDuration(absl::Trunc(facts.unread_for, absl::Seconds(1))),
                          facts.record_error),
              &observation);
  return observation;
}

// Slurm keeps nothing of a task that is canceled before it starts: no line in its queue, and none
// in its accounting.
bool WasCanceledInTheQueue(const RunFacts& facts, const Patience& patience) {
  if (!facts.job_id.task.has_value() || facts.record.has_value() || facts.may_have_started)
    return false;
  return facts.cancel_asked ||
         (facts.array_is_known && facts.missing_for >= patience.absence_grace);
}

Observation CanceledInTheQueue(const RunFacts& facts) {
  Observation observation = MakeObservation(facts, v1::RUN_STATE_CANCELED);
  SetEvidence(v1::EVIDENCE_SOURCE_SQUEUE, facts,
              fmt::format("Slurm job {}: neither squeue nor any history lists this task of an "
                          "array, and it has not claimed the run: it was canceled{} while it "
                          "waited",
                          facts.job_id.ToString(), facts.cancel_asked ? "" : ", not by Muster,"),
              &observation);
  return observation;
}

// Returns whether a job of a user whose record says 0 has ended, and not well in Slurm's words, or
// Slurm tells nothing of its end.
bool IsDenied(const RunFacts& facts) {
  const bool is_over =
      facts.queue.has_value() ? HasEnded(facts.queue->state.phase) : facts.queue_answered;
  if (!is_over || !ClaimsSuccess(facts)) return false;
  const std::optional<SlurmEnd> end = EndAccordingToSlurm(facts);
  return !end.has_value() || end->phase != JobPhase::kCompleted;
}

// Returns the time that an exit record waits for Slurm's own word on a job that has left the queue.
absl::Duration WaitForHistory(const RunFacts& facts, const Patience& patience) {
  switch (facts.history_answer) {
    case RunFacts::History::kUnavailable:
      return absl::ZeroDuration();
    case RunFacts::History::kAnswered:
      return patience.record_grace;
    default:
      return kMaxSilence;
  }
}

// squeue answered and has no such job.
std::optional<Observation> JudgeMissing(const RunFacts& facts, const Patience& patience) {
  if (std::optional<SlurmEnd> end = EndAccordingToSlurm(facts)) {
    return WaitsForRecord(facts, end->phase) ? FinishingUnread(facts) : Ended(facts, *end);
  }
  const bool silent = facts.history_answer == RunFacts::History::kUnavailable;
  if (facts.record.has_value()) {
    if (facts.missing_for >= WaitForHistory(facts, patience))
      return Ended(facts, EndAccordingToRecord(facts));
    return facts.history_answer == RunFacts::History::kNoAnswer ? FinishingUnasked(facts)
                                                                : Finishing(facts);
  }
  if (WaitsForRecord(facts, JobPhase::kUnknown)) return FinishingUnread(facts);
  if (silent && PhaseInOutput(facts.slurm_output) != JobPhase::kUnknown &&
      facts.missing_for >= patience.record_grace) {
    return Ended(facts, {PhaseInOutput(facts.slurm_output), v1::EVIDENCE_SOURCE_AGENT, ""});
  }
  const bool answered = silent || facts.history_answer == RunFacts::History::kAnswered;
  if (answered && !facts.record_error.empty())
    return facts.cancel_asked ? CanceledUnread(facts) : Lost(facts);
  if (answered && WasCanceledInTheQueue(facts, patience)) return CanceledInTheQueue(facts);
  if (answered && facts.missing_for >= patience.absence_grace) return Lost(facts);
  return std::nullopt;
}

// Returns whether more can still come that would change the verdict on a job that has ended in the
// queue's eyes.
bool MoreMayCome(const RunFacts& facts) {
  const bool history_ended = facts.history.has_value() && HasEnded(facts.history->state.phase);
  switch (facts.queue->state.phase) {
    case JobPhase::kCompleted:
      return !facts.record.has_value();
    case JobPhase::kFailed:
      return !facts.record.has_value() && !history_ended;
    case JobPhase::kCancelled:
      return !facts.cancel_asked && !history_ended &&
             facts.history_answer != RunFacts::History::kUnavailable;
    default:
      return false;
  }
}

}  // namespace

bool NeedsHistory(const RunFacts& facts) {
  if (ProvesSuccess(facts)) return false;
  if (!facts.queue.has_value()) return facts.queue_answered;
  switch (facts.queue->state.phase) {
    case JobPhase::kCompleted:
      return !facts.record.has_value();
    case JobPhase::kFailed:
      return !facts.record.has_value() || ClaimsSuccess(facts);
    case JobPhase::kCancelled:
      return !facts.cancel_asked;
    default:
      return false;
  }
}

std::optional<Observation> Judge(const RunFacts& facts, const Patience& patience) {
  if (ProvesSuccess(facts)) return Succeeded(facts);
  if (IsDenied(facts)) {
    RunFacts without = facts;
    without.record.reset();
    return Judge(without, patience);
  }
  if (facts.queue.has_value() && !HasEnded(facts.queue->state.phase)) {
    // The record of an earlier start is void once Slurm has put the job back.
    const bool pending = facts.queue->state.phase == JobPhase::kPending;
    if (facts.record.has_value() && !pending &&
        LiveState(facts.queue->state.phase) != v1::RUN_STATE_UNSPECIFIED) {
      return Finishing(facts);
    }
    return JudgeLive(facts);
  }
  if (!facts.queue.has_value()) {
    if (facts.queue_answered) return JudgeMissing(facts, patience);
    // While a run waits, the record may come from before a requeue: only Slurm can tell. If a run
    // is known to be finishing, the reason that the last squeue led to still holds.
    if (facts.record.has_value() && facts.last_state != v1::RUN_STATE_PENDING &&
        facts.last_state != v1::RUN_STATE_FINISHING)
      return Finishing(facts);
    return std::nullopt;
  }
  if (facts.queue->state.phase == JobPhase::kCancelled && IsLaunchFailed(facts) &&
      !facts.cancel_asked) {
    return LaunchFailed(facts);
  }
  if (WaitsForRecord(facts, facts.queue->state.phase)) return FinishingUnread(facts);
  if (MoreMayCome(facts) && facts.ended_for < patience.record_grace) return Finishing(facts);
  return Ended(facts, *EndAccordingToSlurm(facts));
}

}  // namespace muster::slurm
