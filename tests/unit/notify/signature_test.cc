#include "broker/notify/signature.h"

#include <gtest/gtest.h>

namespace muster::notify {
namespace {

// The expected text is that of Python's hmac.
TEST(Signature, IsTheHmacOfTheTimeAndTheBody) {
  EXPECT_EQ(Signature("0123456789abcdef0123456789abcdef", absl::FromUnixMillis(1'767'323'045'678),
                      R"({"id":"7"})"),
            "t=1767323045,v1=eb6915e0dd2640fecda37753f79441066594e6057d6d8f31c60319565bb40465");
}

TEST(Signature, DiffersWithTheTimeTheBodyAndTheSecret) {
  const absl::Time now = absl::FromUnixSeconds(1'767'323'045);
  const std::string one = Signature("secret", now, "body");
  EXPECT_NE(Signature("secret", now, "body2"), one);
  EXPECT_NE(Signature("secret2", now, "body"), one);
  EXPECT_NE(Signature("secret", now + absl::Seconds(1), "body").substr(one.find(',')),
            one.substr(one.find(',')));
}

}  // namespace
}  // namespace muster::notify
