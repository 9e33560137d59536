#include "contract/retry.h"

#include <algorithm>

#include "contract/duration_text.h"
#include "contract/errors.h"
#include "contract/units.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr int32_t kMaxNanos = 999'999'999;

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace

RetryRule RetryRuleOf(const v1::JobSpec& spec) {
  RetryRule rule;
  const v1::RetryPolicy& policy = spec.retry();
  if (policy.max_runs() > 0) rule.max_runs = policy.max_runs();
  rule.on_preemption = policy.on_preemption();
  if (policy.has_backoff()) rule.backoff = ToDuration(policy.backoff());
  return rule;
}

bool IsWorthAnother(const v1::Run& ended, const RetryRule& rule) {
  if (ended.state() != v1::RUN_STATE_FAILED) return false;
  if (ended.failure().failure_class() == v1::FAILURE_CLASS_PREEMPTED) return rule.on_preemption;
  return ended.failure().retriable();
}

absl::Duration BackoffBefore(uint32_t run, const RetryRule& rule) {
  absl::Duration wait = rule.backoff;
  for (uint32_t next = 2; next < run && wait < kMaxBackoff; ++next) wait *= 2;
  return std::min(wait, kMaxBackoff);
}

void CheckRetry(const v1::JobSpec& spec, FieldErrors* errors) {
  const v1::RetryPolicy& policy = spec.retry();
  if (policy.max_runs() > kMaxRuns) {
    errors->Add("retry.max_runs",
                fmt::format("{} is out of range; use 1 (no retries) to {}, or leave it out for {}",
                            policy.max_runs(), kMaxRuns, RetryRule().max_runs));
  }
  if (!policy.has_backoff()) return;
  const auto& backoff = policy.backoff();
  const bool is_valid = backoff.seconds() >= 0 &&
                        backoff.seconds() <= absl::ToInt64Seconds(kMaxBackoff) &&
                        backoff.nanos() >= 0 && backoff.nanos() <= kMaxNanos;
  if (is_valid && ToDuration(backoff) <= kMaxBackoff) return;
  errors->Add("retry.backoff",
              fmt::format("{} is out of range; use 0s to {}, or leave it out for {}",
                          DurationText(backoff), contract::FormatDuration(kMaxBackoff),
                          contract::FormatDuration(RetryRule().backoff)));
}

}  // namespace muster::contract
