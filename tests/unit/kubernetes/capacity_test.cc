#include "agents/kubernetes/cluster/capacity.h"

#include "agents/kubernetes/objects/quantity.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/rooms.h"

namespace muster::kubernetes {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGibibyte = int64_t{1} << 30;

TEST(KubernetesQuantityTest, QuantitiesAreReadAsKubernetesWritesThem) {
  const struct {
    const char* text;
    int64_t whole;
    int64_t millis;
  } cases[] = {
      {"500m", 1, 500},
      {"2", 2, 2000},
      {"0", 0, 0},
      {"16Gi", 16 * kGibibyte, 16 * kGibibyte * 1000},
      {"1e3", 1000, 1'000'000},
      {"12E2", 1200, 1'200'000},
      {"1E", 1'000'000'000'000'000'000, INT64_MAX},
      {"128974848", 128'974'848, 128'974'848'000},
      {"1500Ki", 1'536'000, 1'536'000'000},
      {"1.5Gi", 1'610'612'736, 1'610'612'736'000},
      {".5", 1, 500},
      {"5.", 5, 5000},
      {"0.1n", 1, 1},
      {"100n", 1, 1},
      {"1k", 1000, 1'000'000},
      {"+3", 3, 3000},
      {"-2", -2, -2000},
      {"1e-1", 1, 100},
      {"9223372036854775807", INT64_MAX, INT64_MAX},
      {"100Ei", INT64_MAX, INT64_MAX},
      {"1e99", INT64_MAX, INT64_MAX},
      {"1.0000000000000000000000001", 2, 1001},
      {"1.0000000000000000000000000", 1, 1000},
      {"1000000000000000000000", INT64_MAX, INT64_MAX},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(ParseQuantity(one.text), one.whole) << one.text;
    EXPECT_EQ(ParseMilliQuantity(one.text), one.millis) << one.text;
  }
}

TEST(KubernetesQuantityTest, WhatIsNoQuantityIsNothing) {
  for (const char* text : {"", "m", "Gi", "1gi", "1 Gi", "1.2.3", "--1", "1e", "e3", "0x10", "1KiB",
                           "1e1.5", ".", "NaN"}) {
    EXPECT_EQ(ParseQuantity(text), std::nullopt) << text;
  }
}

const std::vector<std::string> kGpus = {"nvidia.com/gpu", "nvidia.com/mig-1g.5gb"};

Json PodJson(const std::string& spec) {
  return {{"metadata", {{"uid", "p"}, {"namespace", "lab"}}}, {"spec", Json::parse(spec)}};
}

TEST(KubernetesNodeObjectsTest, APodTakesWhatTheSchedulerCounts) {
  const struct {
    const char* claim;
    const char* spec;
    int64_t cpu_millis;
    int64_t gpus;
  } cases[] = {
      {"containers add up",
       R"({"containers": [{"resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": "1"}}},
                          {"resources": {"requests": {"cpu": "2", "nvidia.com/gpu": "2"}}}]})",
       2500, 3},
      {"the greatest init container counts, if it is greater",
       R"({"initContainers": [{"resources": {"requests": {"cpu": "4"}}},
                              {"resources": {"requests": {"cpu": "3"}}}],
           "containers": [{"resources": {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}}]})",
       4000, 1},
      {"sidecars stay",
       R"({"initContainers": [
             {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
             {"resources": {"requests": {"cpu": "4"}}}],
           "containers": [{"resources": {"requests": {"cpu": "2"}}}]})",
       5000, 0},
      {"overhead is added",
       R"({"containers": [{"resources": {"requests": {"cpu": "1"}}}], "overhead": {"cpu": "250m"}})",
       1250, 0},
      {"resources of the pod itself come first",
       R"({"containers": [{"resources": {"requests": {"cpu": "1"}}}],
           "resources": {"requests": {"cpu": "3"}}})",
       3000, 0},
      {"nothing asked for is nothing", R"({"containers": [{}]})", 0, 0},
  };
  for (const auto& one : cases) {
    const Json pod = PodJson(one.spec);
    for (const Json& read : {pod, TrimPod(pod)}) {
      const PodUse use = ParsePodUse(read, kGpus);
      EXPECT_EQ(use.requests.cpu_millis, one.cpu_millis) << one.claim;
      EXPECT_EQ(use.requests.Gpus("nvidia.com/gpu"), one.gpus) << one.claim;
      EXPECT_EQ(use.requests.pods, 1) << one.claim;
    }
  }
}

TEST(KubernetesNodeObjectsTest, ATrimmedPodKeepsWhoseItIs) {
  Json pod = PodJson(R"({"nodeName": "node-1", "containers": [], "volumes": [{"name": "big"}]})");
  pod["metadata"]["labels"] = {{"muster.dev/run-key", "k"}, {"other", "x"}};
  pod["metadata"]["ownerReferences"] = {{{"kind", "Job"}, {"uid", "j"}}};
  pod["status"] = {{"phase", "Running"}, {"podIP", "10.0.0.1"}};
  const Json trimmed = TrimPod(pod);
  EXPECT_EQ(trimmed.dump().find("big"), std::string::npos);
  const PodUse use = ParsePodUse(trimmed, kGpus);
  EXPECT_EQ(use.node, "node-1");
  EXPECT_EQ(use.name_space, "lab");
  EXPECT_EQ(use.job_uid, "j");
  EXPECT_TRUE(use.is_own);
  EXPECT_EQ(use.run_key, "k");
  EXPECT_FALSE(HasPodEnded(trimmed));
}

NodeObject Node(const std::string& name, int64_t gpus = 8) {
  NodeObject node;
  node.name = name;
  node.ready = true;
  node.labels = {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"}, {"zone", "west"}};
  node.allocatable = {16000, 64 * kGibibyte, 110, {}};
  if (gpus > 0) node.allocatable.gpus["nvidia.com/gpu"] = gpus;
  return node;
}

PodUse Pod(const std::string& node, int64_t gpus) {
  PodUse pod;
  pod.key = node;
  pod.node = node;
  pod.requests = {1000, kGibibyte, 1, {{"nvidia.com/gpu", gpus}}};
  return pod;
}

v1::JobSpec Spec(uint64_t gpus, uint32_t nodes = 1, const std::string& type = "") {
  v1::JobSpec spec;
  spec.set_nodes(nodes);
  if (gpus > 0 || !type.empty()) {
    v1::GpuRequest* request = spec.mutable_resources()->add_gpus();
    request->set_count_millis(gpus * 1000);
    request->set_type(type);
  }
  return spec;
}

std::optional<Misfit> Find(const v1::JobSpec& spec, const std::vector<NodeObject>& nodes,
                           const std::vector<PodUse>& pods = {}) {
  return FindMisfit(NeedOf(spec, KubernetesConfig()), RoomOf(nodes, pods));
}

void ExpectNever(const v1::JobSpec& spec, const std::vector<NodeObject>& nodes,
                 const std::string& words) {
  const std::optional<Misfit> misfit = Find(spec, nodes);
  ASSERT_TRUE(misfit.has_value()) << words;
  EXPECT_TRUE(misfit->is_final) << misfit->words;
  EXPECT_EQ(misfit->words, words);
}

void ExpectNotNow(const v1::JobSpec& spec, const std::vector<NodeObject>& nodes,
                  const std::vector<PodUse>& pods, const std::string& words) {
  const std::optional<Misfit> misfit = Find(spec, nodes, pods);
  ASSERT_TRUE(misfit.has_value()) << words;
  EXPECT_FALSE(misfit->is_final) << misfit->words;
  EXPECT_EQ(misfit->words, words);
}

TEST(KubernetesCapacityTest, ARunFitsWhereItsPodsHaveRoomTogether) {
  const std::vector<NodeObject> nodes = {Node("node-1"), Node("node-2")};
  EXPECT_EQ(Find(Spec(8, 2), nodes), std::nullopt);
  // Several pods share a node.
  EXPECT_EQ(Find(Spec(4, 4), nodes), std::nullopt);
  EXPECT_EQ(Find(Spec(6, 2), nodes, {Pod("node-1", 2), Pod("node-2", 2)}), std::nullopt);
  // Pods that are on no node, or on one that is gone, take nothing.
  EXPECT_EQ(Find(Spec(8, 2), nodes, {Pod("", 8), Pod("node-9", 8)}), std::nullopt);
}

TEST(KubernetesCapacityTest, ARunThatNoEmptyNodeHoldsIsRefusedWithTheNodeThatComesNearest) {
  const std::vector<NodeObject> nodes = {Node("node-1"), Node("node-2", 4)};
  ExpectNever(Spec(16), nodes, "node-1 has the most nvidia.com/gpu: 8, 16 are needed");
  v1::JobSpec memory = Spec(0);
  memory.mutable_resources()->set_memory_bytes(uint64_t{100} << 30);
  ExpectNever(memory, nodes, "node-1 has the most memory: 64Gi, 100Gi are needed");
  ExpectNever(Spec(8, 3), nodes,
              "the 2 nodes that match would have room for 1 pod of the run if they were empty, 3 "
              "are needed");
  v1::JobSpec apart = Spec(1, 3);
  apart.mutable_kubernetes()->set_spread(v1::KUBERNETES_SPREAD_REQUIRED);
  ExpectNever(apart, nodes,
              "the 2 nodes that match would have room for 2 pods of the run if they were empty, 3 "
              "are needed, each on a node of its own");
}

TEST(KubernetesCapacityTest, WhatNoNodeHasAtOnceIsTold) {
  NodeObject large = Node("large", 0);
  NodeObject gpus = Node("narrow");
  gpus.allocatable.memory_bytes = kGibibyte;
  v1::JobSpec spec = Spec(8);
  spec.mutable_resources()->set_memory_bytes(uint64_t{32} << 30);
  const std::optional<Misfit> misfit = Find(spec, {large, gpus});
  ASSERT_TRUE(misfit.has_value());
  EXPECT_TRUE(misfit->is_final);
  EXPECT_THAT(
      misfit->words,
      HasSubstr("no node has all at once; large comes nearest: it has 0 nvidia.com/gpu of 8"));
}

TEST(KubernetesCapacityTest, NodesThatDoNotMatchAreNamedWithWhatIsAgainstThem) {
  NodeObject tainted = Node("node-2");
  tainted.taints.push_back({"team", "vision", "NoSchedule"});
  v1::JobSpec zone = Spec(1);
  (*zone.mutable_kubernetes()->mutable_node_selector())["zone"] = "east";
  ExpectNever(zone, {Node("node-1"), tainted},
              "none of the 2 nodes matches; node-1 comes nearest: it has label zone=west, not east "
              "(kubernetes.node_selector)");
  ExpectNever(Spec(1), {tainted},
              "none of the 1 node matches; node-2 comes nearest: it has the taint "
              "team=vision:NoSchedule, which the job does not tolerate (kubernetes.tolerations)");
  v1::JobSpec required = Spec(1);
  v1::KubernetesNodeRequirement* one = required.mutable_kubernetes()->add_required_nodes();
  one->set_key("zone");
  one->set_operator_("In");
  one->add_values("north");
  one->add_values("south");
  ExpectNever(required, {Node("node-1")},
              "none of the 1 node matches; node-1 comes nearest: it does not fulfil \"zone In "
              "north, south\" (kubernetes.required_nodes)");
  ExpectNever(Spec(1, 1, "A100"), {Node("node-1")},
              "none of the 1 node matches; node-1 comes nearest: it has GPUs of type "
              "NVIDIA-H100-80GB-HBM3, not A100");
}

TEST(KubernetesCapacityTest, OperatorsAndTolerationsAreThoseOfKubernetes) {
  const auto fits = [](const char* key, const char* op, std::vector<std::string> values) {
    NodeObject node = Node("node-1");
    node.labels["generation"] = "7";
    v1::JobSpec spec = Spec(1);
    v1::KubernetesNodeRequirement* one = spec.mutable_kubernetes()->add_required_nodes();
    one->set_key(key);
    one->set_operator_(op);
    for (std::string& value : values) one->add_values(value);
    return !Find(spec, {node}).has_value();
  };
  EXPECT_TRUE(fits("zone", "In", {"east", "west"}));
  EXPECT_FALSE(fits("zone", "NotIn", {"west"}));
  EXPECT_TRUE(fits("missing", "NotIn", {"west"}));
  EXPECT_TRUE(fits("zone", "Exists", {}));
  EXPECT_FALSE(fits("missing", "Exists", {}));
  EXPECT_TRUE(fits("missing", "DoesNotExist", {}));
  EXPECT_TRUE(fits("generation", "Gt", {"6"}));
  EXPECT_FALSE(fits("generation", "Gt", {"7"}));
  EXPECT_TRUE(fits("generation", "Lt", {"8"}));
  EXPECT_FALSE(fits("zone", "Lt", {"8"}));

  const auto tolerates = [](const char* key, const char* op, const char* value,
                            const char* effect) {
    NodeObject node = Node("node-1");
    node.taints.push_back({"team", "vision", "NoSchedule"});
    v1::JobSpec spec = Spec(1);
    v1::KubernetesToleration* one = spec.mutable_kubernetes()->add_tolerations();
    one->set_key(key);
    one->set_operator_(op);
    one->set_value(value);
    one->set_effect(effect);
    return !Find(spec, {node}).has_value();
  };
  EXPECT_TRUE(tolerates("team", "", "vision", ""));
  EXPECT_TRUE(tolerates("team", "Equal", "vision", "NoSchedule"));
  EXPECT_FALSE(tolerates("team", "Equal", "speech", ""));
  EXPECT_TRUE(tolerates("team", "", "", ""));
  EXPECT_TRUE(tolerates("", "Exists", "", ""));
  EXPECT_FALSE(tolerates("team", "Exists", "", "NoExecute"));
  EXPECT_FALSE(tolerates("other", "Exists", "", ""));
}

TEST(KubernetesCapacityTest, ATaintThatOnlyDiscouragesOrIsTheGpusOwnKeepsNobodyOff) {
  NodeObject node = Node("node-1");
  node.taints = {{"slow", "", "PreferNoSchedule"}, {"nvidia.com/gpu", "present", "NoSchedule"}};
  EXPECT_EQ(Find(Spec(1), {node}), std::nullopt);
  EXPECT_TRUE(Find(Spec(0), {node})->is_final);
}

TEST(KubernetesCapacityTest, ARunWaitsForNodesThatAreOutOfService) {
  NodeObject cordoned = Node("node-2");
  cordoned.unschedulable = true;
  cordoned.taints.push_back({"node.kubernetes.io/unschedulable", "", "NoSchedule"});
  NodeObject lost = Node("node-3");
  lost.ready = false;
  lost.taints.push_back({"node.kubernetes.io/unreachable", "", "NoExecute"});
  ExpectNotNow(Spec(8, 2), {Node("node-1"), cordoned, lost}, {},
               "3 nodes match, 2 of them are out of service: node-2 (cordoned), node-3 (not "
               "ready); there is room for 1 pod of the run now, 2 are needed");
  NodeObject full = Node("node-4");
  full.taints.push_back({"node.kubernetes.io/memory-pressure", "", "NoSchedule"});
  ExpectNotNow(Spec(8), {full}, {},
               "1 node matches, 1 of them is out of service: node-4 (tainted "
               "node.kubernetes.io/memory-pressure:NoSchedule)");
}

TEST(KubernetesCapacityTest, ARunWaitsForWhatOthersUse) {
  ExpectNotNow(Spec(8), {Node("node-1"), Node("node-2")}, {Pod("node-1", 6), Pod("node-2", 2)},
               "node-2 has the most free nvidia.com/gpu: 6, 8 are needed");
  ExpectNotNow(Spec(4, 3), {Node("node-1"), Node("node-2")}, {Pod("node-1", 6)},
               "there is room for 2 pods of the run now, 3 are needed");
}

TEST(KubernetesCapacityTest, ARunWaitsForGpusWhoseDevicePlugInIsAway) {
  Json object = Json::parse(R"({"metadata": {"name": "node-1"}, "status": {
      "conditions": [{"type": "Ready", "status": "True"}],
      "capacity": {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"},
      "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "0"}}})");
  ExpectNotNow(Spec(8), {ParseNode(object, kGpus)}, {},
               "node-1 has the most free nvidia.com/gpu: 0, 8 are needed");
  ExpectNever(Spec(9), {ParseNode(object, kGpus)},
              "node-1 has the most nvidia.com/gpu: 8, 9 are needed");
  object["status"]["allocatable"]["nvidia.com/gpu"] = "8";
  EXPECT_EQ(Find(Spec(8), {ParseNode(object, kGpus)}), std::nullopt);
}

TEST(KubernetesCapacityTest, ARunFitsOnNoNodeThatItExcludes) {
  agent::v1::Assignment run;
  *run.mutable_spec() = Spec(8);
  run.add_excluded_nodes("node-1");
  const RunNeed need = NeedOf(run, KubernetesConfig());
  EXPECT_EQ(FindMisfit(need, RoomOf({Node("node-1"), Node("node-2")}, {})), std::nullopt);
  const auto busy = FindMisfit(need, RoomOf({Node("node-1"), Node("node-2")}, {Pod("node-2", 1)}));
  ASSERT_TRUE(busy.has_value());
  EXPECT_FALSE(busy->is_final);
  EXPECT_EQ(FindMisfit(need, RoomOf({Node("node-1")}, {})),
            (Misfit{true,
                    "none of the 1 node matches; node-1 comes nearest: it is excluded, because an "
                    "earlier run of the job failed there (retry.exclude_failed_nodes)"}));
}

TEST(KubernetesCapacityTest, AClusterWithoutNodesMayGetSome) {
  ExpectNotNow(Spec(1), {}, {}, "the cluster has no nodes");
}

TEST(KubernetesCapacityTest, WhatIsReservedIsNotFree) {
  std::vector<NodeRoom> rooms = RoomOf({Node("node-1"), Node("node-2")}, {});
  const RunNeed need = NeedOf(Spec(6), KubernetesConfig());
  Reserve(need, &rooms);
  EXPECT_EQ(FindMisfit(need, rooms), std::nullopt);
  Reserve(need, &rooms);
  ASSERT_TRUE(FindMisfit(need, rooms).has_value());
  EXPECT_FALSE(FindMisfit(need, rooms)->is_final);
}

TEST(KubernetesCapacityTest, WhatAJobLeavesOpenIsFilledInAndTypesNameResourcesOrLabels) {
  KubernetesConfig config;
  config.gpu_resources = kGpus;
  EXPECT_EQ(NeedOf(Spec(0), config).each.cpu_millis, 1000);
  EXPECT_EQ(NeedOf(Spec(0), config).each.memory_bytes, kGibibyte);
  EXPECT_TRUE(NeedOf(Spec(0), config).each.gpus.empty());
  EXPECT_EQ(NeedOf(Spec(2), config).each.Gpus("nvidia.com/gpu"), 2);
  const RunNeed mig = NeedOf(Spec(3, 1, "NVIDIA.com/mig-1g.5gb"), config);
  EXPECT_EQ(mig.each.Gpus("nvidia.com/mig-1g.5gb"), 3);
  EXPECT_EQ(mig.gpu_type, "");
  const RunNeed typed = NeedOf(Spec(1, 1, "nvidia-h100-80gb-hbm3"), config);
  EXPECT_EQ(typed.gpu_resource, "nvidia.com/gpu");
  EXPECT_EQ(FindMisfit(typed, RoomOf({Node("node-1")}, {})), std::nullopt);
}

TEST(KubernetesCapacityTest, TypesOfGpusAreLabelsForTheFirstResourceAndNamesForTheOthers) {
  KubernetesConfig config;
  config.gpu_resources = kGpus;
  NodeObject node = Node("node-1", 2);
  node.allocatable.gpus["nvidia.com/mig-1g.5gb"] = 7;
  const std::map<std::string, uint32_t> expected = {{"NVIDIA-H100-80GB-HBM3", 2},
                                                    {"nvidia.com/mig-1g.5gb", 7}};
  EXPECT_EQ(GpuTypesOf(node, node.allocatable, config), expected);
  const std::set<std::string> labels = GpuLabelsOf({NodeRoom(node), NodeRoom({})}, config);
  EXPECT_THAT(labels, testing::ElementsAre("NVIDIA-H100-80GB-HBM3"));
  EXPECT_EQ(SpellGpuType("nvidia-h100-80gb-hbm3", labels, config), "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(SpellGpuType("Nvidia.com/MIG-1g.5gb", labels, config), "nvidia.com/mig-1g.5gb");
  EXPECT_EQ(SpellGpuType("mig-1g.5gb", labels, config), "nvidia.com/mig-1g.5gb");
  EXPECT_EQ(SpellGpuType("h100", labels, config), "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(SpellGpuType("other", labels, config), "other");
  node.labels.clear();
  EXPECT_EQ(GpuTypesOf(node, node.allocatable, config).count("nvidia.com/gpu"), 1);
  EXPECT_TRUE(GpuLabelsOf({NodeRoom(node)}, config).empty());
}

TEST(KubernetesCapacityTest, ATypeThatMayBeSeveralIsRefusedWithThem) {
  KubernetesConfig config;
  config.gpu_resources = kGpus;
  v1::GpuRequest gpus;
  gpus.set_count_millis(2000);
  const std::set<std::string> labels = {"NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-PCIe"};
  for (const char* clear : {"", "PCIe", "nvidia-h100-pcie", "A100", "nvidia.com/gpu", "gpu"}) {
    gpus.set_type(clear);
    EXPECT_TRUE(CheckGpuType(gpus, labels, config).ok()) << clear;
  }
  gpus.set_type("H100");
  EXPECT_EQ(SpellGpuType("H100", labels, config), "H100");
  const absl::Status status = CheckGpuType(gpus, labels, config);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("NVIDIA-H100-80GB-HBM3:2"));
}

}  // namespace
}  // namespace muster::kubernetes
