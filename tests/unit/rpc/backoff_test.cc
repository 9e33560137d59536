#include "rpc/backoff.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace muster::rpc {
namespace {

TEST(Backoff, StepsDoubleUpToTheLargestEachHalfToAllOfIt) {
  Backoff backoff(absl::Seconds(1), absl::Seconds(4));
  for (const int64_t step : {1, 2, 4, 4}) {
    const absl::Duration wait = backoff.Next();
    EXPECT_GE(wait, absl::Seconds(step) / 2);
    EXPECT_LE(wait, absl::Seconds(step));
  }
}

TEST(Backoff, ASuccessBeginsWithShortStepsAgain) {
  Backoff backoff(absl::Seconds(1), absl::Hours(1));
  for (int i = 0; i < 10; ++i) backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Seconds(1));
}

TEST(Backoff, AWaitBeyondTheDeadlineIsRefusedAtOnce) {
  Backoff backoff(absl::Hours(1), absl::Hours(1));
  EXPECT_FALSE(backoff.Wait(absl::Now() + absl::Minutes(1)));
}

}  // namespace
}  // namespace muster::rpc
