#include "contract/duration_text.h"

#include <gtest/gtest.h>

namespace muster::contract {
namespace {

std::string Text(int64_t seconds, int32_t nanos = 0) {
  google::protobuf::Duration duration;
  duration.set_seconds(seconds);
  duration.set_nanos(nanos);
  return DurationText(duration);
}

TEST(DurationTextTest, IsExactlyWhatPeopleWrite) {
  EXPECT_EQ(Text(0), "0s");
  EXPECT_EQ(Text(45), "45s");
  EXPECT_EQ(Text(7200), "2h");
  EXPECT_EQ(Text(88200), "1d30m");
  EXPECT_EQ(Text(365 * 86400 + 1), "365d1s");
  EXPECT_EQ(Text(0, 500'000'000), "0.5s");
  EXPECT_EQ(Text(60, 1), "1m0.000000001s");
}

TEST(DurationTextTest, WhatIsNoneIsToldAsItIs) {
  EXPECT_EQ(Text(-5), "-5s");
  EXPECT_EQ(Text(1, -1), "1 s and -1 ns");
  EXPECT_EQ(Text(1, 1'000'000'000), "1 s and 1000000000 ns");
}

}  // namespace
}  // namespace muster::contract
