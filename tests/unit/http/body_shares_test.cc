#include "broker/http/body_shares.h"

#include <gtest/gtest.h>

namespace muster::http {
namespace {

TEST(BodyShares, AUserHoldsUpToTheShareAndOthersTheirs) {
  BodyShares shares(10);
  EXPECT_TRUE(shares.Take("ada", 6));
  EXPECT_TRUE(shares.Take("ada", 4));
  EXPECT_FALSE(shares.Take("ada", 1));
  EXPECT_TRUE(shares.Take("bob", 10));
  shares.GiveBack("ada", 1);
  shares.GiveBack("ada", 6);
  EXPECT_TRUE(shares.Take("ada", 6));
  EXPECT_FALSE(shares.Take("bob", 1));
}

TEST(BodyShares, WhatIsGivenBackIsFreeAgain) {
  BodyShares shares(10);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(shares.Take("ada", 10));
    shares.GiveBack("ada", 10);
  }
  shares.GiveBack("ada", 0);
  EXPECT_TRUE(shares.Take("ada", 10));
}

}  // namespace
}  // namespace muster::http
