#include "agents/kubernetes/api/retry_after.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace muster::kubernetes {
namespace {

TEST(RetryAfterTest, ItIsANumberOfSecondsUpToABound) {
  EXPECT_EQ(RetryAfterOf({{"retry-after", "7"}}), absl::Seconds(7));
  EXPECT_EQ(RetryAfterOf({{"retry-after", "86400"}}), kLongestRetryAfter);
  EXPECT_EQ(RetryAfterOf({}), absl::ZeroDuration());
  for (const char* text : {"", "soon", "0", "-3", "Wed, 21 Oct 2026 07:28:00 GMT"})
    EXPECT_EQ(RetryAfterOf({{"retry-after", text}}), absl::ZeroDuration()) << text;
}

TEST(RetryAfterTest, NobodyComesBackEarlierThanTheServerSaysAndNotAllAtOnce) {
  absl::Duration least = absl::InfiniteDuration();
  absl::Duration most;
  for (int draw = 0; draw < 1000; ++draw) {
    const absl::Duration pause = PauseOf(absl::Milliseconds(500), absl::Seconds(10));
    least = std::min(least, pause);
    most = std::max(most, pause);
  }
  EXPECT_GE(least, absl::Seconds(10));
  EXPECT_LE(most, absl::Seconds(15));
  EXPECT_GT(most - least, absl::Seconds(1));
}

TEST(RetryAfterTest, AServerThatSaysNothingIsLeftAloneForThePauseOrHalfOfIt) {
  for (int draw = 0; draw < 1000; ++draw) {
    const absl::Duration pause = PauseOf(absl::Seconds(8), absl::Seconds(1));
    EXPECT_GE(pause, absl::Seconds(4)) << "its own pause has grown longer";
    EXPECT_LE(pause, absl::Seconds(8));
    EXPECT_LE(PauseOf(absl::Seconds(8), absl::ZeroDuration()), absl::Seconds(8));
  }
}

}  // namespace
}  // namespace muster::kubernetes
