#include "agents/muster/inventory.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::remote {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::WhoAmIResponse Who() {
  v1::WhoAmIResponse who;
  who.set_user("bridge");
  who.set_broker_instance("b222");
  who.add_reached_instances("c333");
  return who;
}

v1::Cluster ClusterOf(const std::string& name, const std::vector<std::string>& pools) {
  v1::Cluster cluster;
  cluster.set_name(name);
  cluster.set_kind(v1::CLUSTER_KIND_SLURM);
  cluster.set_state(v1::CLUSTER_STATE_CONNECTED);
  for (const std::string& pool : pools) {
    v1::Pool* added = cluster.mutable_inventory()->add_pools();
    added->set_name(pool);
    added->set_available(true);
    added->set_is_default(pool == pools.front());
    added->add_node_groups()->set_count(4);
  }
  return cluster;
}

std::vector<std::string> NamesOf(const v1::Inventory& inventory) {
  std::vector<std::string> names;
  for (const v1::Pool& pool : inventory.pools()) names.push_back(pool.name());
  return names;
}

TEST(Inventory, ThePoolsOfAllClustersAreItsPools) {
  const v1::Inventory inventory = InventoryOf(
      {.cluster = "far"}, Who(), {ClusterOf("cpu", {"day"}), ClusterOf("gpu", {"a", "b"})});
  EXPECT_THAT(NamesOf(inventory), ElementsAre("cpu/day", "gpu/a", "gpu/b"));
  EXPECT_TRUE(inventory.pools(0).is_default());
  EXPECT_FALSE(inventory.pools(2).is_default());
  EXPECT_EQ(inventory.pools(1).node_groups(0).count(), 4u);
  EXPECT_EQ(inventory.identity(), "b222");
  EXPECT_THAT(inventory.broker_instances(), ElementsAre("b222", "c333"));
  EXPECT_FALSE(inventory.takes_secrets());
}

TEST(Inventory, APoolThatCannotBeUsedNowSaysWhy) {
  v1::Cluster away = ClusterOf("away", {"p"});
  away.set_state(v1::CLUSTER_STATE_DISCONNECTED);
  v1::Cluster cordoned = ClusterOf("cordoned", {"p"});
  cordoned.mutable_cordon();
  const v1::Inventory inventory = InventoryOf({.cluster = "far"}, Who(), {away, cordoned});
  EXPECT_FALSE(inventory.pools(0).available());
  EXPECT_EQ(inventory.pools(0).state(), "disconnected");
  EXPECT_FALSE(inventory.pools(1).available());
  EXPECT_EQ(inventory.pools(1).state(), "cordoned");
}

TEST(Inventory, OnlyTheClustersOfTheSettingCount) {
  const RemoteConfig config = {.cluster = "far", .clusters = {"gpu"}};
  const std::vector<v1::Cluster> clusters = {ClusterOf("cpu", {"day"}), ClusterOf("gpu", {"a"})};
  EXPECT_THAT(NamesOf(InventoryOf(config, Who(), clusters)), ElementsAre("gpu/a"));
  const v1::Inventory none = InventoryOf({.cluster = "far", .clusters = {"x"}}, Who(), clusters);
  ASSERT_EQ(none.pools_size(), 1) << "an inventory has a pool";
  EXPECT_FALSE(none.pools(0).available());
}

TEST(Inventory, ImagesAreRequiredOnlyIfEachClusterRequiresThem) {
  v1::Cluster kubernetes = ClusterOf("k", {"lab"});
  kubernetes.mutable_inventory()->set_images(v1::IMAGE_SUPPORT_REQUIRED);
  v1::Cluster machines = ClusterOf("m", {"default"});
  machines.mutable_inventory()->set_images(v1::IMAGE_SUPPORT_NONE);
  const RemoteConfig config = {.cluster = "far"};
  EXPECT_EQ(InventoryOf(config, Who(), {kubernetes}).images(), v1::IMAGE_SUPPORT_REQUIRED);
  EXPECT_EQ(InventoryOf(config, Who(), {machines}).images(), v1::IMAGE_SUPPORT_NONE);
  EXPECT_EQ(InventoryOf(config, Who(), {kubernetes, machines}).images(),
            v1::IMAGE_SUPPORT_OPTIONAL);
}

TEST(Checks, ABrokerThatDoesNotAnswerIsTheOnlyLine) {
  const absl::Status away = absl::UnavailableError("nobody listens");
  const v1::ClusterChecks checks = ChecksOf({.address = "unix:/b"}, away, away, away);
  ASSERT_EQ(checks.checks_size(), 1);
  EXPECT_EQ(checks.checks(0).result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(checks.checks(0).seen(), HasSubstr("nobody listens"));
}

TEST(Checks, TheWordsAboutTheProjectAreTheBrokers) {
  const v1::ClusterChecks checks =
      ChecksOf({.address = "unix:/b"}, Who(), absl::PermissionDeniedError("no submitter"),
               std::vector<v1::Cluster>{ClusterOf("gpu", {"a"})});
  ASSERT_EQ(checks.checks_size(), 3);
  EXPECT_EQ(checks.checks(1).result(), v1::CHECK_RESULT_FAIL);
  EXPECT_THAT(checks.checks(1).seen(), HasSubstr("no submitter"));
  EXPECT_EQ(checks.checks(2).result(), v1::CHECK_RESULT_OK);
}

}  // namespace
}  // namespace muster::remote
