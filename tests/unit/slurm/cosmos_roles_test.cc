#include "agents/slurm/cosmos_roles.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidcheck/gtest.h"

namespace muster::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

CosmosParallelism Sizes(uint32_t tp, int32_t dp_shard, uint32_t replicas) {
  CosmosParallelism sizes;
  sizes.tp = tp;
  sizes.dp_shard = dp_shard;
  sizes.replicas = replicas;
  return sizes;
}

TEST(PlanCosmosTest, TheExampleOfTheHeaderIsTrue) {
  const auto plan = PlanCosmos("grpo", Sizes(4, 4, 1), Sizes(2, 1, 6), 8);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->policy.gpus_per_replica, 16u);
  EXPECT_EQ(plan->policy.nodes, 2u);
  EXPECT_EQ(plan->policy.replicas[0].first_node, 0u);
  EXPECT_EQ(plan->policy.replicas[0].port, 29345u);
  EXPECT_THAT(plan->policy.replicas[0].gpus, IsEmpty());
  EXPECT_EQ(plan->rollout.nodes, 2u);
  EXPECT_THAT(plan->rollout.replicas[1].gpus, ElementsAre(2, 3));
  EXPECT_EQ(plan->rollout.replicas[3].first_node, 0u);
  EXPECT_EQ(plan->rollout.replicas[4].first_node, 1u);
  EXPECT_THAT(plan->rollout.replicas[4].gpus, ElementsAre(0, 1));
  EXPECT_EQ(plan->rollout.replicas[5].port, 29350u);
  EXPECT_EQ(plan->nodes(), 4u);
}

TEST(PlanCosmosTest, AllFactorsOfAPolicyReplicaCount) {
  CosmosParallelism policy = Sizes(2, 3, 2);
  policy.pp = 2;
  policy.cp = 2;
  policy.dp_replicate = 2;
  const auto plan = PlanCosmos("", policy, Sizes(8, 1, 1), 8);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->policy.gpus_per_replica, 48u);
  EXPECT_EQ(plan->policy.nodes, 12u);
  EXPECT_EQ(plan->policy.replicas[1].first_node, 6u);
  EXPECT_EQ(plan->rollout.nodes, 1u);
}

TEST(PlanCosmosTest, AnOpenDpShardCountsAsOne) {
  for (const int32_t dp_shard : {-1, 0, 1}) {
    EXPECT_EQ(PlanCosmos("sft", Sizes(4, dp_shard, 1), {}, 8)->policy.gpus_per_replica, 4u);
  }
}

TEST(PlanCosmosTest, SupervisedFineTuningHasNoRollout) {
  const auto plan = PlanCosmos("sft", Sizes(8, 1, 1), Sizes(8, 1, 4), 8);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->rollout.replicas, IsEmpty());
  EXPECT_EQ(plan->nodes(), 1u);
}

TEST(PlanCosmosTest, ASmallReplicaNeverSpansTwoNodes) {
  // Three GPUs of eight: two replicas on a node, not ceil(3 * 3 / 8).
  const auto plan = PlanCosmos("sft", Sizes(3, 1, 5), {}, 8);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->policy.nodes, 3u);
}

TEST(PlanCosmosTest, WhatDoesNotFitIsNamed) {
  const std::pair<const char*, absl::Status> cases[] = {
      {"train_type", PlanCosmos("ppo", {}, {}, 8).status()},
      {"gpus_per_node", PlanCosmos("", {}, {}, 0).status()},
      {"policy.tp", PlanCosmos("", Sizes(0, 1, 1), {}, 8).status()},
      {"policy.dp_shard", PlanCosmos("", Sizes(1, 2000, 1), {}, 8).status()},
      {"policy.n_init_replicas", PlanCosmos("", Sizes(1, 1, 0), {}, 8).status()},
      {"rollout.n_init_replicas", PlanCosmos("", {}, Sizes(1, 1, 5000), 8).status()},
      {"a replica of 12 GPUs does not fill nodes of 8",
       PlanCosmos("", Sizes(12, 1, 1), {}, 8).status()},
      {"use at most 10000", PlanCosmos("", Sizes(1024, 1, 1024), {}, 8).status()},
      {"more than 10000 nodes", PlanCosmos("", Sizes(1024, 1024, 1), {}, 8).status()},
  };
  for (const auto& [words, status] : cases) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << words;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
}

RC_GTEST_PROP(PlanCosmosTest, NoGpuAndNoPortIsGivenTwice, ()) {
  const uint32_t per_node = *rc::gen::inRange<uint32_t>(1, 17);
  const auto plan = PlanCosmos(
      "sft", Sizes(*rc::gen::inRange<uint32_t>(1, 33), 1, *rc::gen::inRange<uint32_t>(1, 40)), {},
      per_node);
  if (!plan.ok()) return;
  std::set<std::pair<uint32_t, uint32_t>> gpus;
  std::set<std::pair<uint32_t, uint32_t>> ports;
  for (const auto& replica : plan->policy.replicas) {
    RC_ASSERT(replica.first_node + replica.nodes <= plan->policy.nodes);
    RC_ASSERT(ports.insert({replica.first_node, replica.port}).second);
    for (uint32_t node = 0; replica.gpus.empty() && node < replica.nodes; ++node) {
      for (uint32_t gpu = 0; gpu < per_node; ++gpu) {
        RC_ASSERT(gpus.insert({replica.first_node + node, gpu}).second);
      }
    }
    for (const uint32_t gpu : replica.gpus) {
      RC_ASSERT(gpu < per_node);
      RC_ASSERT(gpus.insert({replica.first_node, gpu}).second);
    }
  }
  RC_ASSERT(gpus.size() == size_t{plan->policy.gpus_per_replica} * plan->policy.replicas.size());
}

}  // namespace
}  // namespace muster::slurm
