#include "agents/core/launch_secrets.h"

#include <utility>

#include "agents/core/launch_refusal.h"
#include "contract/errors.h"
#include "contract/failures.h"
#include "contract/text.h"
#include "fmt/format.h"

namespace muster::agents {
namespace {

// The broker is away, or busy: it is not asked all the time.
constexpr absl::Duration kRetryAfter = absl::Seconds(5);

// Returns whether another try gets the same answer until somebody changes something. The broker
// forgets for a moment that the agent is connected whenever the connection breaks.
bool IsFinal(const absl::Status& status) {
  const auto info = contract::GetErrorInfo(status);
  if (!info.has_value() || info->reason() == "NOT_CONNECTED") return false;
  return absl::IsNotFound(status) || absl::IsFailedPrecondition(status) ||
         absl::IsPermissionDenied(status) || absl::IsDataLoss(status);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const agent::v1::Assignment>> WithSecrets(
    std::shared_ptr<const agent::v1::Assignment> assignment, const FetchSecrets& fetch) {
  const int count = assignment->spec().secrets_size();
  if (count == 0) return assignment;
  absl::StatusOr<agent::v1::FetchRunSecretsResponse> told = fetch(assignment->run_key());
  if (!told.ok()) return told.status();
  if (told->secrets_size() != count) {
    return absl::UnavailableError(
        fmt::format("the broker told {} of the job's {} secrets", told->secrets_size(), count));
  }
  auto whole = std::make_shared<agent::v1::Assignment>(*assignment);
  whole->mutable_secrets()->Swap(told->mutable_secrets());
  return whole;
}

LaunchOutcome NotLaunchedWithout(const absl::Status& why) {
  const std::string detail =
      fmt::format("not launched, its secrets could not be had: {}", ToStd(why.message()));
  if (IsFinal(why)) {
    return RefusedAs(
        contract::MakeFailure(v1::FAILURE_CODE_LAUNCH_REFUSED, v1::FAILURE_CLASS_CONFIG,
                              {.detail = detail,
                               .cause = contract::FailureCause::kSecretMissing,
                               .phase = v1::FAILURE_PHASE_LAUNCH}),
        {});
  }
  LaunchOutcome outcome;
  outcome.kind = LaunchOutcome::Kind::kDeferred;
  outcome.evidence.set_detail(detail);
  outcome.retry_after = kRetryAfter;
  return outcome;
}

}  // namespace muster::agents
