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

// Returns whether a run whose program failed like this is followed by another one, as its user
// wants.
bool FollowsProgram(const v1::Run& ended, const RetryRule& rule) {
  if (rule.on_failure) return true;
  // A program that a signal ended has no exit code of its own.
  return ended.has_exit() && ended.exit().signal() == 0 &&
         std::find(rule.exit_codes.begin(), rule.exit_codes.end(), ended.exit().code()) !=
             rule.exit_codes.end();
}

void CheckExitCodes(const v1::RetryPolicy& policy, FieldErrors* errors) {
  constexpr int kMaxExitCode = 255;
  if (policy.exit_codes_size() > kMaxRetryExitCodes) {
    errors->Add("retry.exit_codes",
                fmt::format("has {} exit codes; use at most {}, or on_failure for all of them",
                            policy.exit_codes_size(), kMaxRetryExitCodes));
    return;
  }
  for (int i = 0; i < policy.exit_codes_size(); ++i) {
    const int32_t code = policy.exit_codes(i);
    if (code >= 1 && code <= kMaxExitCode) continue;
    errors->Add(fmt::format("retry.exit_codes[{}]", i),
                fmt::format("{} is no exit code of a program that failed; use 1 to {}", code,
                            kMaxExitCode));
  }
}

}  // namespace

RetryRule RetryRuleOf(const v1::JobSpec& spec) {
  RetryRule rule;
  const v1::RetryPolicy& policy = spec.retry();
  if (policy.max_runs() > 0) rule.max_runs = policy.max_runs();
  rule.on_preemption = policy.on_preemption();
  rule.on_failure = policy.on_failure();
  rule.exit_codes.assign(policy.exit_codes().begin(), policy.exit_codes().end());
  if (policy.has_backoff()) rule.backoff = ToDuration(policy.backoff());
  return rule;
}

bool IsWorthAnother(const v1::Run& ended, const RetryRule& rule) {
  if (ended.state() != v1::RUN_STATE_FAILED) return false;
  if (ended.failure().failure_class() == v1::FAILURE_CLASS_PREEMPTED) return rule.on_preemption;
  if (ended.failure().failure_class() == v1::FAILURE_CLASS_PROGRAM && FollowsProgram(ended, rule))
    return true;
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
  CheckExitCodes(policy, errors);
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
