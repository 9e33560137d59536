// Tests that each store keeps the cordons of clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "tests/unit/store/store_fixture.h"
#include "tests/unit/store/take_over_fixture.h"
#include "tests/unit/store/version_8.h"

namespace muster::store {
namespace {

using ::testing::SizeIs;

class CordonsTest : public StoreTest {
 protected:
  static core::PutCluster ClusterWith(std::optional<v1::ClusterCordon> cordon) {
    core::PutCluster cluster;
    cluster.name = "lab";
    cluster.last_seen = kStart;
    cluster.cordon = std::move(cordon);
    return cluster;
  }
};

INSTANTIATE_TEST_SUITE_P(Stores, CordonsTest, ::testing::Values(Kind::kMemory, Kind::kSqlite),
                         [](const auto& info) {
                           return info.param == Kind::kMemory ? "memory" : "sqlite";
                         });

TEST_P(CordonsTest, ComeBackWithWhatTheySayAndGoWithTheirEnd) {
  v1::ClusterCordon cordon;
  cordon.set_user("ann");
  cordon.set_reason("new drivers");
  Commit({ClusterWith(cordon)});
  Reopen();
  core::Restored restored = Restore();
  ASSERT_THAT(restored.clusters, SizeIs(1));
  ASSERT_TRUE(restored.clusters[0].cordon.has_value());
  EXPECT_EQ(restored.clusters[0].cordon->user(), "ann");
  EXPECT_EQ(restored.clusters[0].cordon->reason(), "new drivers");
  Commit({ClusterWith(std::nullopt)});
  Reopen();
  EXPECT_FALSE(Restore().clusters[0].cordon.has_value());
}

TEST_P(CordonsTest, OneThatSaysNothingIsACordon) {
  Commit({ClusterWith(v1::ClusterCordon())});
  Reopen();
  EXPECT_TRUE(Restore().clusters[0].cordon.has_value());
}

using Version8CordonsTest = TakeOverTest;

TEST_F(Version8CordonsTest, ClustersOfAnOlderFileHaveNone) {
  Take(kVersion8Dump);
  const core::Restored restored = Restore(absl::Now());
  ASSERT_FALSE(restored.clusters.empty());
  for (const core::PutCluster& cluster : restored.clusters)
    EXPECT_FALSE(cluster.cordon.has_value());
}

}  // namespace
}  // namespace muster::store
