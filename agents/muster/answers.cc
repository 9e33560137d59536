#include "agents/muster/answers.h"

#include <fmt/format.h>

#include <utility>

#include "agents/core/launch_refusal.h"
#include "agents/muster/translate.h"
#include "clients/cpp/client.h"
#include "contract/errors.h"
#include "contract/failures.h"
#include "contract/states.h"
#include "contract/text.h"

namespace muster::remote {
namespace {

using agents::FenceOutcome;
using agents::LaunchOutcome;

// The pause before a launch that the remote broker did not take, unless it says another one.
constexpr absl::Duration kRetry = absl::Seconds(5);
// This is the pause where only an operator can help.
constexpr absl::Duration kRetryRefused = absl::Seconds(30);

std::string WordsOf(const absl::Status& error) { return std::string(ToStd(error.message())); }

LaunchOutcome Deferred(const absl::Status& error, absl::Duration after) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kDeferred;
  outcome.retry_after = after;
  outcome.evidence = ByBroker(WordsOf(error));
  return outcome;
}

// Returns whether the remote broker refuses the agent's account or project, or has a job of the run
// that it does not show as one. Then the job is not at fault, and people can fix the cause.
bool IsOfTheAccount(const absl::Status& error) {
  if (absl::IsUnauthenticated(error) || absl::IsPermissionDenied(error)) return true;
  if (absl::IsAlreadyExists(error)) return true;
  const auto info = contract::GetErrorInfo(error);
  return info && (info->reason() == "NO_SUCH_PROJECT" || info->reason() == "PROJECT_ARCHIVED");
}

}  // namespace

v1::Evidence ByBroker(std::string detail) {
  v1::Evidence evidence;
  evidence.set_source(v1::EVIDENCE_SOURCE_BROKER);
  evidence.set_detail(std::move(detail));
  return evidence;
}

v1::Evidence ByAgent(std::string detail) {
  v1::Evidence evidence = ByBroker(std::move(detail));
  evidence.set_source(v1::EVIDENCE_SOURCE_AGENT);
  return evidence;
}

LaunchOutcome Launched(uint64_t job_id, std::string detail) {
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kLaunched;
  outcome.external_id = fmt::format("{}", job_id);
  outcome.evidence = ByBroker(std::move(detail));
  return outcome;
}

LaunchOutcome NotSubmitted(const absl::Status& error) {
  if (client::WasNeverSent(error)) return Deferred(error, kRetry);
  if (IsOfTheAccount(error)) return Deferred(error, kRetryRefused);
  switch (error.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
      return agents::RefusedAs(
          contract::MakeFailure(v1::FAILURE_CODE_LAUNCH_REFUSED, v1::FAILURE_CLASS_CONFIG,
                                {.detail = WordsOf(error), .phase = v1::FAILURE_PHASE_LAUNCH}),
          ByBroker(WordsOf(error)));
    case absl::StatusCode::kResourceExhausted:
      return Deferred(error, contract::GetRetryDelay(error).value_or(kRetry));
    default:
      break;
  }
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kUnclear;
  outcome.evidence = ByBroker(WordsOf(error));
  return outcome;
}

LaunchOutcome NotBrought(const absl::Status& error) {
  LaunchOutcome outcome = NotSubmitted(error);
  if (outcome.kind != LaunchOutcome::Kind::kUnclear) return outcome;
  return Deferred(error, kRetry);
}

LaunchOutcome NotExpressible(const absl::Status& error) {
  return agents::RefusedAs(
      contract::MakeFailure(v1::FAILURE_CODE_JOB_INVALID, v1::FAILURE_CLASS_CONFIG,
                            {.detail = WordsOf(error), .phase = v1::FAILURE_PHASE_LAUNCH}),
      ByAgent(WordsOf(error)));
}

FenceOutcome FenceBy(const v1::Job& job) {
  const std::string state =
      fmt::format("job {} of the remote broker is {}", job.id(), contract::Name(job.state()));
  using Kind = FenceOutcome::Kind;
  if (!contract::IsTerminal(job.state()))
    return {Kind::kNotYet, ByBroker(state + ", and ends only when it is canceled or done")};
  if (IsLost(job))
    return {Kind::kImpossible, ByBroker(state + ": its run is lost there, and may live")};
  if (HasBegun(job)) return {Kind::kEnded, ByBroker(state)};
  return {Kind::kNeverBegins, ByBroker(state + ", and has never begun")};
}

}  // namespace muster::remote
