// Tests that each store keeps leases and counts of fail-overs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "tests/unit/store/store_fixture.h"
#include "tests/unit/store/take_over_fixture.h"
#include "tests/unit/store/version_8.h"

namespace muster::store {
namespace {

using ::testing::SizeIs;

class LeasesTest : public StoreTest {};

INSTANTIATE_TEST_SUITE_P(Stores, LeasesTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(LeasesTest, ComeBackWithTheirClusters) {
  core::PutCluster cluster;
  cluster.name = "lab";
  cluster.last_seen = kStart;
  cluster.fence_delay = absl::Milliseconds(21'500);
  cluster.lease = absl::Minutes(2);
  Commit({cluster});
  Reopen();
  const core::Restored restored = Restore();
  ASSERT_THAT(restored.clusters, SizeIs(1));
  EXPECT_EQ(restored.clusters[0].fence_delay, absl::Milliseconds(21'500));
  EXPECT_EQ(restored.clusters[0].lease, absl::Minutes(2));
}

TEST_P(LeasesTest, TheFailOversOfAJobAreCounted) {
  core::UpdateJob update;
  update.id = 1;
  update.state = v1::JOB_STATE_QUEUED;
  update.job_sequence = 2;
  update.fail_overs = 3;
  Commit({Insert(1), Insert(2), update});
  Reopen();
  const core::Restored restored = Restore();
  ASSERT_THAT(restored.jobs, SizeIs(2));
  EXPECT_EQ(restored.jobs[0].fail_overs, 3u);
  EXPECT_EQ(restored.jobs[1].fail_overs, 0u);
}

using Version8LeasesTest = TakeOverTest;

TEST_F(Version8LeasesTest, AnOlderFileHasNone) {
  Take(kVersion8Dump);
  const core::Restored restored = Restore(absl::Now());
  ASSERT_FALSE(restored.clusters.empty());
  for (const core::PutCluster& cluster : restored.clusters) {
    EXPECT_EQ(cluster.fence_delay, absl::ZeroDuration());
    EXPECT_EQ(cluster.lease, absl::ZeroDuration());
  }
  for (const core::LiveJob& job : restored.jobs) EXPECT_EQ(job.fail_overs, 0u);
}

}  // namespace
}  // namespace muster::store
