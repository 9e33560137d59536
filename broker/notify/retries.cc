#include "broker/notify/retries.h"

#include <algorithm>

namespace muster::notify {
namespace {

// Redirections are not followed, so that they take nothing either.
bool IsRefusal(int status) {
  constexpr int kRequestTimeout = 408;
  constexpr int kTooManyRequests = 429;
  return status >= 300 && status < 500 && status != kRequestTimeout && status != kTooManyRequests;
}

// The receiver means the event, or itself, and not a moment.
bool IsFinal(int status) {
  constexpr int kGone = 410;
  constexpr int kContentTooLarge = 413;
  return status == kGone || status == kContentTooLarge;
}

}  // namespace

void Retries::Begin(absl::Time now) {
  backoff_.Reset();
  begun_ = now;
  refusals_ = 0;
}

Retries::Next Retries::After(const Outcome& outcome, absl::Time now) {
  if (IsTaken(outcome)) return {Verdict::kDelivered};
  if (IsRefusal(outcome.status)) ++refusals_;
  const absl::Duration tried = now - begun_;
  const bool is_refused =
      refusals_ >= kMaxRefusals && (IsFinal(outcome.status) || tried >= kRefusedFor);
  if (is_refused || tried >= kRetryFor) return {Verdict::kGiveUp};
  const absl::Duration asked = outcome.retry_after.value_or(absl::ZeroDuration());
  return {Verdict::kRetry, std::max(backoff_.Next(), std::min(asked, kMaxRetryAfter))};
}

}  // namespace muster::notify
