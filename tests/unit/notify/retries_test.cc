#include "broker/notify/retries.h"

#include <gtest/gtest.h>

namespace muster::notify {
namespace {

using Verdict = Retries::Verdict;

// The time of the test; nobody waits.
absl::Time Start() { return absl::FromUnixSeconds(1'767'323'045); }

Retries Begun() {
  Retries retries;
  retries.Begin(Start());
  return retries;
}

TEST(Retries, TakeEachAnswerOfTheTwoHundredsAsASuccess) {
  for (const int status : {200, 202, 204, 299}) {
    EXPECT_EQ(Begun().After({status}, Start()).verdict, Verdict::kDelivered) << status;
  }
}

TEST(Retries, TryAgainAfterLongerAndLongerWaits) {
  Retries retries = Begun();
  absl::Duration step = kFirstWait;
  for (int i = 0; i < 12; ++i) {
    const Retries::Next next = retries.After({503}, Start());
    ASSERT_EQ(next.verdict, Verdict::kRetry);
    EXPECT_GE(next.wait, step / 2);
    EXPECT_LE(next.wait, step);
    step = std::min(2 * step, kMaxWait);
  }
}

TEST(Retries, GiveAnEventUpADayAfterItsFirstTry) {
  for (const int status : {0, 408, 429, 500, 503}) {
    Retries retries = Begun();
    EXPECT_EQ(retries.After({status}, Start() + kRetryFor - absl::Seconds(1)).verdict,
              Verdict::kRetry);
    EXPECT_EQ(retries.After({status}, Start() + kRetryFor).verdict, Verdict::kGiveUp);
    retries.Begin(Start() + kRetryFor);
    EXPECT_EQ(retries.After({status}, Start() + kRetryFor).verdict, Verdict::kRetry) << status;
  }
}

TEST(Retries, GiveUpARefusedEventAfterAFewTriesOverSomeTime) {
  for (const int status : {301, 302, 400, 401, 403, 404, 499}) {
    Retries retries = Begun();
    for (int i = 0; i < 2 * kMaxRefusals; ++i) {
      ASSERT_EQ(retries.After({status}, Start() + kRefusedFor - absl::Seconds(1)).verdict,
                Verdict::kRetry)
          << status;
    }
    EXPECT_EQ(retries.After({status}, Start() + kRefusedFor).verdict, Verdict::kGiveUp) << status;
    // Time alone is not enough.
    retries.Begin(Start());
    EXPECT_EQ(retries.After({status}, Start() + kRefusedFor).verdict, Verdict::kRetry) << status;
  }
}

TEST(Retries, GiveUpAtOnceAfterAFewTriesWhatIsGoneOrTooLarge) {
  for (const int status : {410, 413}) {
    Retries retries = Begun();
    for (int i = 1; i < kMaxRefusals; ++i) {
      ASSERT_EQ(retries.After({status}, Start()).verdict, Verdict::kRetry) << status;
    }
    EXPECT_EQ(retries.After({status}, Start()).verdict, Verdict::kGiveUp) << status;
  }
}

TEST(Retries, CountNoRefusalsForAnEndpointThatIsBusy) {
  Retries retries = Begun();
  for (int i = 0; i < 10 * kMaxRefusals; ++i) {
    ASSERT_EQ(retries.After({429}, Start()).verdict, Verdict::kRetry);
  }
}

TEST(Retries, WaitAsLongAsTheReceiverAsksWithinABound) {
  Retries retries = Begun();
  EXPECT_EQ(retries.After({429, absl::Minutes(7)}, Start()).wait, absl::Minutes(7));
  EXPECT_EQ(retries.After({503, absl::Hours(100)}, Start()).wait, kMaxRetryAfter);
  // A shorter time than the usual wait changes nothing.
  EXPECT_GE(retries.After({503, absl::Milliseconds(1)}, Start()).wait, absl::Seconds(2));
}

}  // namespace
}  // namespace muster::notify
