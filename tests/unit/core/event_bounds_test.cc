// Tests what is left of an agent's event that is out of bounds.
#include "broker/core/event_bounds.h"

#include <gtest/gtest.h>

namespace muster::core {
namespace {

TEST(EventBounds, AWaitThatIsNoneIsDropped) {
  const auto waited = [](int64_t seconds, int32_t nanos) {
    agent::v1::RunEvent event;
    event.mutable_failure()->mutable_waited()->set_seconds(seconds);
    event.mutable_failure()->mutable_waited()->set_nanos(nanos);
    Bound(absl::UnixEpoch(), absl::UnixEpoch(), &event);
    return event.failure().has_waited();
  };
  EXPECT_TRUE(waited(300, 999'999'999));
  EXPECT_TRUE(waited(315'576'000'000, 0));
  EXPECT_FALSE(waited(315'576'000'001, 0));
  EXPECT_FALSE(waited(-1, 0));
  EXPECT_FALSE(waited(1, -1));
  EXPECT_FALSE(waited(1, 1'000'000'000));
}

}  // namespace
}  // namespace muster::core
