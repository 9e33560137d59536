#include "agents/slurm/inventory.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

TEST(ParseSettingsTest, ReadsWhatScontrolPrints) {
  const auto settings = ParseSettings(
      "Configuration data as of 2026-11-21T02:07:12\n"
      "SlurmUser               = slurm(64030)\n"
      "AccountingStorageType   = accounting_storage/slurmdbd\n"
      "ClusterName             = lab\n"
      "MinJobAge               = 300 sec\n"
      "SLURM_VERSION           = 22.05.8\n");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->name, "lab");
  EXPECT_EQ(settings->version, "22.05.8");
  EXPECT_EQ(settings->slurm_user, "slurm");
  EXPECT_EQ(settings->min_job_age, absl::Minutes(5));
  EXPECT_TRUE(settings->keeps_accounting);
  EXPECT_FALSE(ParseSettings("ClusterName = lab\nAccountingStorageType = accounting_storage/none\n")
                   ->keeps_accounting);
  EXPECT_FALSE(ParseSettings("").ok());
}

TEST(ParsePoolsTest, NodesThatAreAlikeAreOneGroup) {
  const auto pools = ParsePools(
      "debug*\037up\037"
      "1-00:00:00\037"
      "1-infinite\037"
      "2\037"
      "8\037"
      "16000\037gpu:h100:4(S:0-1)\037idle\037"
      "10:00\n"
      "debug*\037up\037"
      "1-00:00:00\037"
      "1-infinite\037"
      "1\037"
      "8\037"
      "16000\037gpu:h100:4(S:0-1)\037"
      "down*\037"
      "10:00\n"
      "debug*\037up\037"
      "1-00:00:00\037"
      "1-infinite\037"
      "3\037"
      "64\037"
      "16000\037(null)\037mix~\037"
      "10:00\n"
      "old\037"
      "down\037infinite\037"
      "1-4\037"
      "0\037"
      "0\037"
      "0\037(null)\037n/a\037n/a\n");
  ASSERT_TRUE(pools.ok()) << pools.status();
  ASSERT_EQ(pools->size(), 2u);
  const v1::Pool& debug = (*pools)[0];
  EXPECT_EQ(debug.name(), "debug");
  EXPECT_TRUE(debug.is_default());
  EXPECT_TRUE(debug.available());
  EXPECT_EQ(debug.max_time_limit().seconds(), 86400);
  EXPECT_EQ(debug.default_time_limit().seconds(), 600);
  EXPECT_EQ(debug.max_nodes(), 0u);
  ASSERT_EQ(debug.node_groups_size(), 2);
  EXPECT_EQ(debug.node_groups(0).count(), 3u);
  EXPECT_EQ(debug.node_groups(0).usable_count(), 2u);
  EXPECT_EQ(debug.node_groups(0).memory_bytes(), uint64_t{16000} << 20);
  EXPECT_EQ(debug.node_groups(0).gpus().at("h100"), 4u);
  EXPECT_EQ(debug.node_groups(1).usable_count(), 3u);
  EXPECT_TRUE(debug.node_groups(1).gpus().empty());
  const v1::Pool& old = (*pools)[1];
  EXPECT_FALSE(old.is_default());
  EXPECT_FALSE(old.available());
  EXPECT_FALSE(old.has_max_time_limit());
  EXPECT_FALSE(old.has_default_time_limit());
  EXPECT_EQ(old.max_nodes(), 4u);
  EXPECT_EQ(old.node_groups_size(), 0);
  EXPECT_EQ(GpuTypesOf(*pools), (GpuTypes{{"h100", "h100"}}));
}

TEST(ParsePoolsTest, ALineThatCannotBeReadSpoilsTheAnswer) {
  EXPECT_FALSE(ParsePools("debug*|up|infinite|1|2|8|16000|(null)|idle\n").ok());
}

TEST(MarkDefaultPoolsTest, ThePartitionsOfTheProfileAreTheDefaultPools) {
  std::vector<v1::Pool> pools(3);
  pools[0].set_name("cpu");
  pools[0].set_is_default(true);
  pools[1].set_name("gpu");
  pools[2].set_name("gpu3");
  for (const char* nothing : {"", "nosuch"}) {
    MarkDefaultPools(nothing, &pools);
    EXPECT_TRUE(pools[0].is_default()) << nothing;
    EXPECT_FALSE(pools[1].is_default()) << nothing;
  }
  MarkDefaultPools("nosuch,gpu,gpu3", &pools);
  EXPECT_FALSE(pools[0].is_default());
  EXPECT_TRUE(pools[1].is_default());
  EXPECT_TRUE(pools[2].is_default());
}

}  // namespace
}  // namespace muster::slurm
