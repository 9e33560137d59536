#include "agents/slurm/outcomes.h"

#include <utility>

#include "absl/time/clock.h"
#include "agents/core/job_storage.h"
#include "agents/slurm/call_gate.h"
#include "contract/failures.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::slurm {

using agents::LaunchOutcome;
using agents::LookupOutcome;

v1::Evidence MakeEvidence(v1::EvidenceSource source, std::string detail) {
  v1::Evidence evidence;
  evidence.set_source(source);
  evidence.set_detail(std::move(detail));
  evidence.mutable_observed_at()->set_seconds(absl::ToUnixSeconds(absl::Now()));
  return evidence;
}

LaunchOutcome RefusedBecause(const absl::Status& status) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kRefused;
  const std::string detail = agents::WhatIsWrong(status);
  outcome.failure = contract::MakeFailure(v1::FAILURE_CODE_JOB_INVALID, v1::FAILURE_CLASS_CONFIG,
                                          {.detail = detail});
  outcome.evidence = MakeEvidence(v1::EVIDENCE_SOURCE_AGENT, detail);
  return outcome;
}

LaunchOutcome RefusedFor(const v1::Failure& failure) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kRefused;
  outcome.failure = failure;
  outcome.evidence = MakeEvidence(v1::EVIDENCE_SOURCE_SBATCH, failure.message());
  return outcome;
}

LaunchOutcome Unclear(const absl::Status& status) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kUnclear;
  outcome.evidence = MakeEvidence(v1::EVIDENCE_SOURCE_AGENT, std::string(ToStd(status.message())));
  return outcome;
}

LaunchOutcome Deferred(const absl::Status& why) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kDeferred;
  outcome.retry_after = CallGate::HadNoTurn(why) ? absl::ZeroDuration() : kRetryAfter;
  outcome.evidence = MakeEvidence(v1::EVIDENCE_SOURCE_AGENT, std::string(ToStd(why.message())));
  return outcome;
}

absl::Status NotWritten(const absl::Status& status) {
  if (status.ok() || status.code() == absl::StatusCode::kInvalidArgument) return status;
  return absl::UnavailableError(fmt::format(
      "not submitted, the run's files could not be written: {}", ToStd(status.message())));
}

LookupOutcome MakeLookup(LookupOutcome::Kind kind, v1::EvidenceSource source, std::string detail) {
  LookupOutcome outcome;
  outcome.kind = kind;
  outcome.evidence = MakeEvidence(source, std::move(detail));
  return outcome;
}

LookupOutcome CouldNotAsk(const absl::Status& status) {
  return MakeLookup(LookupOutcome::Kind::kCouldNotAsk, v1::EVIDENCE_SOURCE_AGENT,
                    std::string(ToStd(status.message())));
}

}  // namespace muster::slurm
