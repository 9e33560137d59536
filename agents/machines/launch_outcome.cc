#include "agents/machines/launch_outcome.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "agents/core/job_storage.h"
#include "agents/core/launch_refusal.h"
#include "agents/core/proto_time.h"
#include "agents/machines/verdict.h"
#include "contract/message_of.h"

namespace muster::machines {

using agents::LaunchOutcome;

namespace {

constexpr absl::Duration kLaunchAgain = absl::Seconds(5);

}  // namespace

v1::Evidence AgentEvidence(const std::string& detail) {
  v1::Evidence evidence;
  evidence.set_source(v1::EVIDENCE_SOURCE_AGENT);
  *evidence.mutable_observed_at() = agents::ToProto(absl::Now());
  evidence.set_detail(detail);
  return evidence;
}

LaunchOutcome Refused(v1::FailureCode code, v1::FailureClass failure_class,
                      const contract::FailureParts& parts) {
  return agents::RefusedAs(contract::MakeFailure(code, failure_class, parts), AgentEvidence(""));
}

LaunchOutcome Refused(const Misfit& misfit) {
  return agents::RefusedAs(MisfitFailure(misfit), AgentEvidence(""));
}

LaunchOutcome Deferred(const Misfit& misfit) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kDeferred;
  outcome.retry_after = kLaunchAgain;
  outcome.evidence = AgentEvidence(misfit.why);
  return outcome;
}

LaunchOutcome RefusedBecause(v1::FailureCode code, const absl::Status& status) {
  const contract::FailureParts parts = {.detail = agents::WhatIsWrong(status)};
  return absl::IsInvalidArgument(status)
             ? Refused(code, v1::FAILURE_CLASS_CONFIG, parts)
             : Refused(v1::FAILURE_CODE_LAUNCH_FAILED, v1::FAILURE_CLASS_INFRA, parts);
}

LaunchOutcome UnclearBecause(const absl::Status& status) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kUnclear;
  outcome.evidence = AgentEvidence(MessageOf(status));
  return outcome;
}

LaunchOutcome LaunchedAs(const std::string& detail) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kLaunched;
  outcome.evidence = AgentEvidence(detail);
  return outcome;
}

}  // namespace muster::machines
