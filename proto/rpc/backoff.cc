#include "rpc/backoff.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace muster::rpc {

absl::Duration Backoff::Next() {
  const absl::Duration step = next_;
  next_ = std::min(next_ * 2, max_);
  return Jitter(step);
}

absl::Duration Backoff::Jitter(absl::Duration step) {
  return step * std::uniform_real_distribution<>(0.5, 1.0)(random_);
}

bool Backoff::Wait(absl::Time deadline, absl::Duration at_least) {
  const double jitter = std::uniform_real_distribution<>(0.5, 1.0)(random_);
  const absl::Duration step = std::max(next_ * jitter, at_least * (0.5 + jitter));
  if (absl::Now() + step > deadline) return false;
  absl::SleepFor(step);
  next_ = std::min(next_ * 2, max_);
  return true;
}

}  // namespace muster::rpc
