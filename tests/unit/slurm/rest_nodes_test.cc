// Partitions and nodes as slurmrestd 22.05 tells them (recorded, shortened), and in the shapes of
// later versions of its API.
#include "agents/slurm/rest_nodes.h"

#include <nlohmann/json.hpp>

#include "agents/slurm/rest_json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

json Parse(std::string_view text) {
  const std::optional<json> parsed = ParseRestJson(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed.value_or(json::object());
}

TEST(RestPoolsTest, NodesAreCountedInTheirPartitions) {
  const json partitions = Parse(R"j({"partitions": [
      {"name": "debug", "flags": ["default"], "max_time_limit": 1440, "default_time_limit": 10,
       "maximum_nodes_per_job": -1,
       "state": "UP"},
      {"name": "long", "flags": [], "max_time_limit": null, "maximum_nodes_per_job": 4,
       "state": "DRAIN"}]})j");
  const json nodes = Parse(R"j({"nodes": [
      {"name": "n1", "cpus": 8, "real_memory": 16000, "gres": "gpu:h100:2(S:0-1)",
       "partitions": ["debug", "long"], "state": "mixed", "state_flags": []
},
      {"name": "n2", "cpus": 8, "real_memory": 16000, "gres": "gpu:h100:2", "partitions": ["debug"],
       "state": "idle", "state_flags": ["DRAIN"]},
      {"name": "n3", "cpus": 4, "real_memory": 16000, "gres": "", "partitions": ["debug"],
       "state": ["IDLE", "NOT_RESPONDING"]}]
})j");
  const auto pools = RestPools(partitions, nodes);
  ASSERT_TRUE(pools.ok()) << pools.status();
  ASSERT_EQ(pools->size(), 2u);
  const v1::Pool& debug = pools->at(0);
  EXPECT_TRUE(debug.is_default());
  EXPECT_TRUE(debug.available());
  EXPECT_EQ(debug.max_time_limit().seconds(), 24 * 3600);
  EXPECT_EQ(debug.default_time_limit().seconds(), 600);
  EXPECT_EQ(debug.max_nodes(), 0u);
  ASSERT_EQ(debug.node_groups_size(), 2);
  EXPECT_EQ(debug.node_groups(0).count(), 2u);
  EXPECT_EQ(debug.node_groups(0).usable_count(), 1u);
  EXPECT_EQ(debug.node_groups(0).gpus().at("h100"), 2u);
  EXPECT_EQ(debug.node_groups(1).usable_count(), 0u);
  const v1::Pool& other = pools->at(1);
  EXPECT_FALSE(other.available());
  EXPECT_FALSE(other.has_max_time_limit());
  EXPECT_EQ(other.max_nodes(), 4u);
}

TEST(RestKnownNodesTest, NamesThatNoNodeHasAreLeftOut) {
  const json nodes = Parse(R"j({"nodes": [{"name": "n1"}, {"name": "n2"}]})j");
  const auto known = RestKnownNodes(nodes, {"n2", "gone-7", "n1"});
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_THAT(*known, ElementsAre("n2", "n1"));
  for (const char* text : {"{}", R"j({"nodes": null})j", R"j({"nodes": [{"cpus": 8}]})j"}) {
    EXPECT_FALSE(RestKnownNodes(Parse(text), {"n1"}).ok())
        << text << " does not say that Slurm has forgotten n1";
  }
}

TEST(RestNodesTest, TellWhatEachHasAndWhatJobsHaveOfIt) {
  const auto nodes = RestNodes(Parse(R"j({"nodes": [
      {"name": "n1", "cpus": 8, "real_memory": 16000, "gres": "gpu:h100:2", "state": "mixed",
       "gres_used": "gpu:h100:1(IDX:0)", "partitions": ["debug", "gpu"], "state_flags": [],
       "alloc_cpus": 3, "alloc_memory": 100, "active_features": "ib,nvme", "reason": ""},
      {"name": "n2", "cpus": 8, "real_memory": 16000, "gres": "", "gres_used": "",
       "partitions": ["debug"], "state": "idle", "state_flags": ["DRAIN"], "alloc_cpus": 0,
       "alloc_memory": 0, "active_features": "", "reason": "bad = fan", "reason_set_by_user": "root",
       "reason_changed_at": 1795262039}]})j"));
  ASSERT_TRUE(nodes.ok()) << nodes.status();
  ASSERT_EQ(nodes->size(), 2u);
  const v1::Node& first = nodes->at(0);
  EXPECT_EQ(first.name(), "n1");
  EXPECT_EQ(first.state(), "mixed");
  EXPECT_THAT(first.pools(), ElementsAre("debug", "gpu"));
  EXPECT_EQ(first.cpus(), 8u);
  EXPECT_EQ(first.used_cpus(), 3u);
  EXPECT_EQ(first.memory_bytes(), uint64_t{16000} << 20);
  EXPECT_EQ(first.used_memory_bytes(), uint64_t{100} << 20);
  EXPECT_EQ(first.gpus().at("h100"), 2u);
  EXPECT_EQ(first.used_gpus().at("h100"), 1u);
  EXPECT_THAT(first.features(), ElementsAre("ib", "nvme"));
  const v1::Node& second = nodes->at(1);
  EXPECT_EQ(second.state(), "idle+drain");
  EXPECT_FALSE(TakesWork(second.state()));
  EXPECT_EQ(second.reason(), "bad = fan");
  EXPECT_EQ(second.reason_user(), "root");
  EXPECT_EQ(second.reason_time().seconds(), 1795262039);
  EXPECT_TRUE(second.gpus().empty());
}

TEST(RestNodesTest, WhatIsNoNodeIsNoAnswer) {
  for (const char* text : {"{}", R"j({"nodes": {}})j", R"j({"nodes": [{"state": "idle"}]})j",
                           R"j({"nodes": [{"name": "n1"}]})j"}) {
    EXPECT_FALSE(RestNodes(Parse(text)).ok()) << text;
  }
}

TEST(RestPartitionsTest, TellLimitsThatKeepSomebodyOut) {
  const auto partitions = RestPartitions(Parse(R"j({"partitions": [
      {"name": "debug", "flags": ["default"], "preemption_mode": ["disabled"], "state": "UP",
       "allowed_allocation_nodes": "", "allowed_accounts": "", "allowed_groups": "",
       "allowed_qos": "", "denied_accounts": "", "denied_qos": "", "qos": "",
       "maximum_cpus_per_node": -1, "maximum_memory_per_cpu": null, "maximum_memory_per_node": null,
       "maximum_nodes_per_job": -1, "max_time_limit": 1440, "default_time_limit": 10,
       "min nodes per job": 0},
      {"name": "vip", "flags": ["root_only"], "preemption_mode": ["requeue"], "state": "DRAIN",
       "allowed_accounts": "vision,nlp", "denied_qos": "low", "qos": "big",
       "maximum_cpus_per_node": 4, "maximum_nodes_per_job": 2, "max_time_limit": null,
       "default_time_limit": null, "min nodes per job": 2}]})j"));
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  ASSERT_EQ(partitions->size(), 2u);
  const Partition& open = partitions->at(0);
  EXPECT_EQ(open.pool.state(), "up");
  EXPECT_TRUE(open.pool.available());
  EXPECT_TRUE(open.pool.is_default());
  EXPECT_EQ(open.pool.max_time_limit().seconds(), 86400);
  EXPECT_EQ(open.pool.default_time_limit().seconds(), 600);
  EXPECT_THAT(open.limits, IsEmpty());
  const Partition& closed = partitions->at(1);
  EXPECT_EQ(closed.pool.state(), "drain");
  EXPECT_EQ(closed.pool.max_nodes(), 2u);
  EXPECT_FALSE(closed.pool.has_default_time_limit());
  EXPECT_THAT(closed.limits,
              ElementsAre("AllowAccounts=vision,nlp", "DenyQos=low", "QoS=big", "MinNodes=2",
                          "MaxCPUsPerNode=4", "RootOnly=YES", "PreemptMode=REQUEUE"));
  EXPECT_FALSE(RestPartitions(Parse("{}")).ok());
}

// slurmrestd 24.11 tells them like this.
TEST(RestPartitionsTest, FromV40OnMembersAreFurtherInside) {
  const auto partitions = RestPartitions(Parse(R"j({"partitions": [
      {"name": "debug", "partition": {"state": ["UP"]}, "nodes": {"allowed_allocation": ""},
       "accounts": {"allowed": "", "deny": ""}, "groups": {"allowed": ""},
       "qos": {"allowed": "", "deny": "", "assigned": ""}, "minimums": {"nodes": 0},
       "defaults": {"time": {"set": true, "infinite": false, "number": 10}},
       "maximums": {"cpus_per_node": {"set": false, "infinite": true, "number": 0},
                    "partition_memory_per_node": {"set": true, "infinite": false, "number": 0},
                    "nodes": {"set": false, "infinite": true, "number": 0},
                    "time": {"set": true, "infinite": false, "number": 1440}}},
      {"name": "vip", "partition": {"state": ["DRAIN"]}, "nodes": {"allowed_allocation": "login"},
       "accounts": {"allowed": "vision,nlp", "deny": ""}, "groups": {"allowed": "staff"},
       "qos": {"allowed": "", "deny": "low", "assigned": "big"}, "minimums": {"nodes": 2},
       "defaults": {"time": {"set": false, "infinite": false, "number": 0}},
       "maximums": {"cpus_per_node": {"set": true, "infinite": false, "number": 4},
                    "partition_memory_per_node": {"set": true, "infinite": false, "number": 2000},
                    "nodes": {"set": true, "infinite": false, "number": 2}}}]})j"));
  ASSERT_TRUE(partitions.ok()) << partitions.status();
  const Partition& open = partitions->at(0);
  EXPECT_EQ(open.pool.state(), "up");
  EXPECT_TRUE(open.pool.available());
  EXPECT_EQ(open.pool.max_time_limit().seconds(), 86400);
  EXPECT_EQ(open.pool.default_time_limit().seconds(), 600);
  EXPECT_EQ(open.pool.max_nodes(), 0u);
  EXPECT_THAT(open.limits, IsEmpty());
  const Partition& closed = partitions->at(1);
  EXPECT_EQ(closed.pool.state(), "drain");
  EXPECT_EQ(closed.pool.max_nodes(), 2u);
  EXPECT_FALSE(closed.pool.has_default_time_limit());
  EXPECT_THAT(closed.limits, ElementsAre("AllowGroups=staff", "AllowAccounts=vision,nlp",
                                         "DenyQos=low", "AllocNodes=login", "QoS=big", "MinNodes=2",
                                         "MaxCPUsPerNode=4", "MaxMemPerNode=2000"));
}

}  // namespace
}  // namespace muster::slurm
