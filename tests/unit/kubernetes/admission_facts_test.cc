#include "agents/kubernetes/cluster/admission_facts.h"

#include "agents/kubernetes/cluster/namespace_limits.h"
#include "agents/kubernetes/manifest/configured_facts.h"
#include "contract/admission.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/rooms.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kGibibytesOfNodes = int64_t{1} << 30;

NodeRoom Room(const std::string& name, std::map<std::string, std::string> labels = {},
              int64_t memory = 64 * kGibibytesOfNodes) {
  NodeObject node;
  node.name = name;
  node.labels = std::move(labels);
  node.labels["kubernetes.io/hostname"] = name;
  node.allocatable = {16500, memory, 110, {{"nvidia.com/gpu", 8}}};
  return NodeRoom(std::move(node));
}

std::vector<NodeRoom> Many(int count) {
  std::vector<NodeRoom> rooms;
  for (int i = 0; i < count; ++i) rooms.push_back(Room("node-" + std::to_string(i)));
  return rooms;
}

TEST(KubernetesAdmissionFactsTest, NodesThatAreAlikeAreOneProfileWithoutTheirNames) {
  std::vector<NodeRoom> rooms = Many(100);
  rooms.push_back(Room("other", {{"disk", "ssd"}}, 64 * kGibibytesOfNodes - 4096));
  // Both pass by themselves, or keep nobody off.
  ChangeNode(&rooms.front(), [](NodeObject* node) {
    node->taints = {{"node.kubernetes.io/not-ready", "", "NoExecute"},
                    {"slow", "", "PreferNoSchedule"}};
  });
  const v1::NodeFacts facts = NodeFactsOf(rooms);
  ASSERT_EQ(facts.profiles_size(), 2) << facts.DebugString();
  EXPECT_EQ(facts.profiles(0).count(), 100u);
  EXPECT_EQ(facts.profiles(0).example(), "node-0");
  EXPECT_THAT(facts.untold_labels(), ElementsAre("kubernetes.io/hostname"));
  EXPECT_TRUE(facts.profiles(0).labels().empty());
  EXPECT_EQ(facts.profiles(1).labels().at("disk"), "ssd");
  EXPECT_EQ(facts.profiles(1).memory_bytes(), static_cast<uint64_t>(64 * kGibibytesOfNodes));
  EXPECT_EQ(facts.profiles(1).gpus().at("nvidia.com/gpu"), 8u);
}

TEST(KubernetesAdmissionFactsTest, TooManyKindsOfNodesAreNotTold) {
  std::vector<NodeRoom> rooms;
  for (int i = 0; i <= contract::kMaxNodeProfiles; ++i)
    rooms.push_back(Room("n", {}, (1 + i) * kGibibytesOfNodes));
  EXPECT_EQ(NodeFactsOf(rooms).profiles_size(), 0);
  rooms.pop_back();
  EXPECT_EQ(NodeFactsOf(rooms).profiles_size(), contract::kMaxNodeProfiles);
}

TEST(KubernetesAdmissionFactsTest, NodesDifferByWhatIsTold) {
  NodeObject node = *Room("a").node;
  NodeObject now = node;
  now.ready = !now.ready;
  now.unschedulable = true;
  EXPECT_FALSE(AreToldApart(node, now));
  now.labels["disk"] = "ssd";
  EXPECT_TRUE(AreToldApart(node, now));
  now = node;
  now.taints.push_back({"team", "vision", "NoSchedule"});
  EXPECT_TRUE(AreToldApart(node, now));
}

TEST(KubernetesAdmissionFactsTest, WhatIsTooLargeIsLeftOutTheNodesFirst) {
  KubernetesConfig config;
  config.namespaces = {"a", "b"};
  config.allow_host_path = true;
  config.storage_roots["data"].mount = "/data";
  v1::AdmissionFacts facts = ConfiguredFacts(config);
  v1::KubernetesFacts& own = *facts.mutable_kubernetes();
  own.mutable_nodes()->add_profiles();
  own.mutable_priority_classes()->add_names("high");
  KeepWithinBounds(&facts);
  EXPECT_TRUE(own.has_nodes());
  for (int i = 0; i < contract::kMaxListedNames; ++i)
    own.mutable_namespaces(0)->mutable_claims()->add_names(std::string(200, 'x'));
  own.mutable_namespaces(1)->mutable_claims();
  KeepWithinBounds(&facts);
  EXPECT_FALSE(own.has_nodes());
  EXPECT_FALSE(own.namespaces(0).has_claims());
  EXPECT_TRUE(own.namespaces(1).has_claims());
  EXPECT_TRUE(own.has_priority_classes());
  EXPECT_TRUE(own.allows_host_path());
  EXPECT_EQ(own.storage_roots().at("data"), "/data");
  EXPECT_LE(facts.ByteSizeLong(), contract::kMaxAdmissionBytes);
}

TEST(KubernetesAdmissionFactsTest, QuotasDifferByTheirLimitsAndNotByWhatIsInUse) {
  const auto quota = [](const char* hard, const char* used) {
    return ParseQuota({{"metadata", {{"name", "q"}}},
                       {"status", {{"hard", {{"pods", hard}}}, {"used", {{"pods", used}}}}}});
  };
  EXPECT_FALSE(HaveOtherLimits(quota("4", "1"), quota("4", "2")));
  EXPECT_TRUE(HaveOtherLimits(quota("4", "1"), quota("5", "1")));
  EXPECT_TRUE(HaveOtherLimits(quota("4", "1"), std::vector<QuotaLine>()));
}

TEST(KubernetesAdmissionFactsTest, LimitsAreToldThatCountAllPods) {
  const auto quotas = ParseQuota(Json::parse(R"({
      "metadata": {"name": "q"},
      "status": {"hard": {"requests.cpu": "4", "limits.memory": "8Gi"}, "used": {}}})"));
  auto scoped = quotas;
  for (QuotaLine& line : scoped) line.has_scope = true;
  const auto ranges = ParseLimitRange(Json::parse(R"({
      "metadata": {"name": "lr"},
      "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m"}}]}})"));
  v1::NamespaceFacts facts;
  TellLimits(scoped, {}, &facts);
  EXPECT_TRUE(facts.limits().empty());
  TellLimits(quotas, ranges, &facts);
  ASSERT_EQ(facts.limits_size(), 3) << facts.DebugString();
  std::map<std::string, v1::NamespaceLimit> by_resource;
  for (const v1::NamespaceLimit& limit : facts.limits()) by_resource[limit.resource()] = limit;
  EXPECT_EQ(by_resource["requests.cpu"].kind(), v1::NAMESPACE_LIMIT_KIND_QUOTA);
  EXPECT_EQ(by_resource["requests.cpu"].name(), "q");
  EXPECT_EQ(by_resource["requests.cpu"].amount_millis(), 4000);
  EXPECT_EQ(by_resource["limits.memory"].text(), "8Gi");
  EXPECT_EQ(by_resource["cpu"].kind(), v1::NAMESPACE_LIMIT_KIND_RANGE);
  EXPECT_EQ(by_resource["cpu"].amount_millis(), 2000) << "the most, not the least";
}

TEST(KubernetesAdmissionFactsTest, WhereResultsAreAndWhatTheAgentSeesOfThemIsTold) {
  KubernetesConfig config;
  config.storage_roots["data"].mount = "/data";
  EXPECT_TRUE(ConfiguredFacts(config).has_results_root());
  EXPECT_EQ(ConfiguredFacts(config).results_root(), "");
  config.results_root = "slurm://data/results";
  config.agent_roots["data"] = "/mnt/data";
  const v1::AdmissionFacts facts = ConfiguredFacts(config);
  EXPECT_EQ(facts.results_root(), "/data/results");
  EXPECT_THAT(facts.kubernetes().agent_roots(), ElementsAre("data"));
  EXPECT_TRUE(facts.kubernetes().shares_gpu_nodes());
}

}  // namespace
}  // namespace muster::kubernetes
