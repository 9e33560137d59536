#include "agents/core/lease_file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace muster::agents {
namespace {

constexpr int64_t kNow = 1'700'000'000'000;
constexpr int64_t kSteady = 18'000'000;
constexpr int64_t kSecond = 1000;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kHour = 60 * kMinute;

TEST(LeaseFileTest, IsOneLineThatIsReadAsItWasWritten) {
  const LeaseFile lease = NextLease(0, kNow, kMinute);
  EXPECT_EQ(FormatLeaseFile(lease), "muster-lease 1 1700000000000 60000 1700000060000\n");
  const std::optional<LeaseFile> read = ParseLeaseFile(FormatLeaseFile(lease));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->number, lease.number);
  EXPECT_EQ(read->remaining_ms, kMinute);
  EXPECT_EQ(read->end_unix_ms, kNow + kMinute);
}

TEST(LeaseFileTest, ALeaseThatHasEndedHasNothingLeft) {
  EXPECT_EQ(NextLease(0, kNow, -kMinute).remaining_ms, 0);
  EXPECT_EQ(NextLease(0, kNow, -kMinute).end_unix_ms, kNow);
}

TEST(LeaseFileTest, TakesNoOtherTextForALease) {
  for (const char* text :
       {"", "\n", "muster-lease 1 1 60000 1700000060000", "muster-lease 1 1 60000\n",
        "muster-lease 2 1 60000 1700000060000\n", "muster-lease 1 0 60000 1700000060000\n",
        "muster-lease 1 1 -1 1700000060000\n", "muster-lease 1 1 60000 1700000060000 5\n",
        "muster-lease 1 1 60000 x\n", "muster-lease  1 1 60000 1700000060000\n",
        "muster-lease 11 60000 1700000060000 1\n", "muster-lease 1 1 86400001 1700000060000\n",
        "muster-lease 1 1 60000 99999999999999999999\n"}) {
    EXPECT_FALSE(ParseLeaseFile(text).has_value()) << text;
  }
  EXPECT_FALSE(ParseLeaseFile(std::string(kMaxLeaseFileBytes, ' ') + "\n").has_value());
}

TEST(LeaseFileTest, NumbersRiseAlsoWhenTheClockIsSetBackOrTheFileIsLost) {
  const LeaseFile first = NextLease(0, kNow, kMinute);
  EXPECT_EQ(NextLease(first.number, kNow - kHour, kMinute).number, first.number + 1);
  EXPECT_GT(NextLease(0, kNow + kSecond, kMinute).number, first.number);
}

TEST(MayStartUnderLeaseTest, NeedsALeaseThatIsNotOver) {
  const LeaseFile lease = NextLease(0, kNow, kMinute);
  EXPECT_TRUE(MayStartUnderLease(lease, kNow));
  EXPECT_TRUE(MayStartUnderLease(lease, kNow + kMinute - 1));
  EXPECT_FALSE(MayStartUnderLease(lease, kNow + kMinute));
  EXPECT_FALSE(MayStartUnderLease(std::nullopt, kNow));
}

TEST(MayStartUnderLeaseTest, RefusesANodeWhoseClockIsFarBehind) {
  const LeaseFile lease = NextLease(0, kNow, kMinute);
  EXPECT_TRUE(MayStartUnderLease(lease, kNow - kLeaseClockSkewMs));
  EXPECT_FALSE(MayStartUnderLease(lease, kNow - kLeaseClockSkewMs - 1));
}

TEST(NodeLeaseTest, EndsAtTheEndThatTheFileToldAtTheStart) {
  const LeaseFile lease = NextLease(0, kNow, kMinute);
  const int64_t start = kNow + 50 * kSecond;
  NodeLease node(lease, kSteady, start);
  EXPECT_FALSE(node.Over(lease, kSteady + 9 * kSecond, start + 9 * kSecond));
  EXPECT_TRUE(node.Over(lease, kSteady + 10 * kSecond, start + 10 * kSecond));
}

TEST(NodeLeaseTest, ANewNumberCountsFromWhenItWasSeenByTheSteadyClock) {
  LeaseFile lease = NextLease(0, kNow, kMinute);
  NodeLease node(lease, kSteady, kNow);
  lease = NextLease(lease.number, kNow + 30 * kSecond, kMinute);
  // The node's clock is set back by an hour meanwhile, which changes nothing.
  const int64_t wrong = kNow - kHour;
  EXPECT_FALSE(node.Over(lease, kSteady + 31 * kSecond, wrong));
  EXPECT_FALSE(node.Over(lease, kSteady + 90 * kSecond, wrong));
  EXPECT_TRUE(node.Over(lease, kSteady + 91 * kSecond, wrong));
}

TEST(NodeLeaseTest, AFileThatIsGoneOrOldRenewsNothing) {
  const LeaseFile lease = NextLease(0, kNow, kMinute);
  const LeaseFile older = {
      .number = lease.number - 1, .remaining_ms = kHour, .end_unix_ms = kNow + kHour};
  NodeLease node(lease, kSteady, kNow);
  EXPECT_FALSE(node.Over(std::nullopt, kSteady + 59 * kSecond, kNow + 59 * kSecond));
  EXPECT_FALSE(node.Over(older, kSteady + 59 * kSecond, kNow + 59 * kSecond));
  EXPECT_TRUE(node.Over(older, kSteady + kMinute, kNow + kMinute));
}

TEST(NodeLeaseTest, ARenewalThatIsSeenAfterTheEndComesTooLate) {
  LeaseFile lease = NextLease(0, kNow, kMinute);
  NodeLease node(lease, kSteady, kNow);
  lease = NextLease(lease.number, kNow + kMinute, kMinute);
  EXPECT_TRUE(node.Over(lease, kSteady + kMinute, kNow + kMinute));
  EXPECT_TRUE(node.Over(lease, kSteady + kMinute + 1, kNow + kMinute + 1));
}

TEST(NodeLeaseTest, ANumberThatIsSeenLongAfterItsEndRenewsNothing) {
  LeaseFile lease = NextLease(0, kNow, kHour);
  NodeLease node(lease, kSteady, kNow);
  // The node slept, and its steady clock with it.
  lease = NextLease(lease.number, kNow + kMinute, kMinute);
  EXPECT_TRUE(node.Over(lease, kSteady + kSecond, kNow + 2 * kHour));
}

}  // namespace
}  // namespace muster::agents
