#include "broker/notify/retries.h"

#include <algorithm>

namespace muster::notify {
namespace {

bool IsSuccess(int status) { return status >= 200 && status < 300; }

// Redirections are not followed, so that they take nothing either.
bool IsRefusal(int status) {
  constexpr int kRequestTimeout = 408;
  constexpr int kTooManyRequests = 429;
  return status >= 300 && status < 500 && status != kRequestTimeout && status != kTooManyRequests;
}

}  // namespace

void Retries::Begin(absl::Time now) {
  backoff_.Reset();
  begun_ = now;
  refusals_ = 0;
}

Retries::Next Retries::After(const Outcome& outcome, absl::Time now) {
  if (IsSuccess(outcome.status)) return {Verdict::kDelivered};
  if (IsRefusal(outcome.status)) ++refusals_;
  if (refusals_ >= kMaxRefusals || now - begun_ >= kRetryFor) return {Verdict::kGiveUp};
  const absl::Duration asked = outcome.retry_after.value_or(absl::ZeroDuration());
  return {Verdict::kRetry, std::max(backoff_.Next(), std::min(asked, kMaxRetryAfter))};
}

}  // namespace muster::notify
