// Tests what is left of an agent's event that is out of bounds.
#include "broker/core/event_bounds.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "absl/time/clock.h"

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

TEST(EventBounds, ATimeOfAProcessorThatIsNoneIsDropped) {
  v1::ResourceUsage usage;
  usage.mutable_user_cpu_time()->set_seconds(-1);
  usage.mutable_system_cpu_time()->set_seconds(5);
  usage.set_max_rss_bytes(7);
  BoundUsage(&usage);
  EXPECT_FALSE(usage.has_user_cpu_time());
  EXPECT_EQ(usage.system_cpu_time().seconds(), 5);
  EXPECT_EQ(usage.max_rss_bytes(), 7u);
}

TEST(EventBounds, WhatOnlyTheBrokerSaysInAReasonIsDropped) {
  agent::v1::RunEvent event;
  v1::StateReason& reason = *event.mutable_state_reason();
  reason.set_detail("seen");
  reason.set_unlisted_clusters(3);
  reason.add_clusters();
  reason.add_shortages();
  reason.mutable_last_known()->mutable_last_known()->set_message("nested");
  Bound(absl::Now(), absl::Now(), &event);
  v1::StateReason left;
  left.set_detail("seen");
  EXPECT_EQ(reason.SerializeAsString(), left.SerializeAsString());
}

TEST(EventBounds, ProgressHasFewNumbersWithShortNames) {
  agent::v1::RunEvent event;
  event.set_results_directory(std::string(5000, 'r'));
  v1::Progress& progress = *event.mutable_progress();
  progress.set_message(std::string(2000, 'm'));
  auto& numbers = *progress.mutable_numbers();
  for (int i = 0; i < 300; ++i) numbers["n" + std::to_string(i)] = i;
  numbers[std::string(200, 'n')] = 1;
  numbers["infinite"] = std::numeric_limits<double>::infinity();
  Bound(absl::Now(), absl::Now(), &event);
  EXPECT_EQ(event.results_directory().size(), 4096u);
  EXPECT_EQ(progress.message().size(), 1024u);
  EXPECT_EQ(numbers.size(), 100u);
  EXPECT_FALSE(numbers.contains(std::string(200, 'n')));
  EXPECT_FALSE(numbers.contains("infinite"));
}

}  // namespace
}  // namespace muster::core
