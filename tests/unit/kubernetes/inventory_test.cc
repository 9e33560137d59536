#include "agents/kubernetes/cluster/inventory.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/kubernetes/rooms.h"

namespace muster::kubernetes {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kGibibyte = int64_t{1} << 30;

NodeObject Node(const std::string& name, int64_t gpus = 8, int64_t memory = 64 * kGibibyte) {
  NodeObject node;
  node.name = name;
  node.ready = true;
  node.labels = {{"nvidia.com/gpu.product", "H100"}};
  node.allocatable = {16500, memory, 110, {}};
  if (gpus > 0) node.allocatable.gpus["nvidia.com/gpu"] = gpus;
  return node;
}

PodUse Pod(const std::string& node, const std::string& job, bool is_own = false) {
  PodUse pod;
  pod.node = node;
  pod.name_space = "lab";
  pod.job_uid = job;
  pod.is_own = is_own;
  pod.requests = {1500, kGibibyte, 1, {{"nvidia.com/gpu", 2}}};
  return pod;
}

Seen See(const std::vector<NodeObject>& nodes, const std::vector<PodUse>& pods = {}) {
  Seen seen;
  seen.namespaces = {{.name = "lab"}};
  seen.knows_nodes = true;
  seen.pod_scope = PodScope::kCluster;
  seen.pods = pods;
  seen.rooms = RoomOf(nodes, pods);
  return seen;
}

TEST(KubernetesInventoryTest, NodesThatAreAlikeAreOneGroup) {
  NodeObject cordoned = Node("node-3");
  cordoned.unschedulable = true;
  NodeObject tainted = Node("node-4");
  tainted.taints.push_back({"team", "vision", "NoSchedule"});
  // The memory that the kernel keeps differs a little.
  const NodeObject almost = Node("node-5", 8, 64 * kGibibyte + 4096);
  const v1::Pool pool = PoolsOf(See({Node("node-1"), Node("node-2", 0), cordoned, tainted, almost}),
                                KubernetesConfig())
                            .at(0);
  EXPECT_EQ(pool.name(), "lab");
  EXPECT_TRUE(pool.is_default());
  EXPECT_TRUE(pool.available());
  ASSERT_EQ(pool.node_groups_size(), 2) << pool.DebugString();
  EXPECT_EQ(pool.node_groups(0).count(), 1u);
  EXPECT_TRUE(pool.node_groups(0).gpus().empty());
  const v1::NodeGroup& gpus = pool.node_groups(1);
  EXPECT_EQ(gpus.count(), 4u);
  EXPECT_EQ(gpus.usable_count(), 2u);
  EXPECT_EQ(gpus.cpus(), 16u);
  EXPECT_EQ(gpus.memory_bytes(), uint64_t{64} << 30);
  EXPECT_EQ(gpus.gpus().at("H100"), 8u);
}

TEST(KubernetesInventoryTest, GpusWhoseDevicePlugInStartsAnewAreThereAndNotFree) {
  NodeObject node = Node("node-1", 0);
  node.gpu_capacity["nvidia.com/gpu"] = 8;
  const v1::ClusterDetails details = DetailsOf(See({node}), KubernetesConfig());
  ASSERT_EQ(details.nodes_size(), 1);
  EXPECT_EQ(details.nodes(0).gpus().at("H100"), 8u);
  const v1::PoolLoad& load = details.pools(0);
  EXPECT_EQ(load.now().node_groups(0).gpus().at("H100"), 8u);
  EXPECT_EQ(load.gpus().at("H100"), 8u);
  EXPECT_EQ(load.free_gpus().at("H100"), 0u);
}

TEST(KubernetesInventoryTest, WhatIsNotKnownIsToldAndIsNotNone) {
  Seen seen;
  seen.namespaces = {{.name = "lab"}};
  seen.nodes_problem = absl::PermissionDeniedError("nodes is forbidden");
  seen.pods_problem = absl::PermissionDeniedError("pods is forbidden");
  const v1::Pool pool = PoolsOf(seen, KubernetesConfig()).at(0);
  EXPECT_TRUE(pool.available());
  EXPECT_EQ(pool.node_groups_size(), 0);
  const std::vector<v1::ClusterIssue> issues = IssuesOf(seen, KubernetesConfig());
  ASSERT_EQ(issues.size(), 2u);
  EXPECT_EQ(issues[0].code(), v1::CLUSTER_ISSUE_CODE_NODES_UNKNOWN);
  EXPECT_THAT(issues[0].message(), HasSubstr("nodes is forbidden"));
  EXPECT_THAT(issues[0].remedy(), HasSubstr("list and watch nodes"));
  EXPECT_THAT(issues[1].message(), HasSubstr("pods is forbidden"));
  EXPECT_THAT(issues[1].remedy(), HasSubstr("list and watch pods"));
  const v1::ClusterDetails details = DetailsOf(seen, KubernetesConfig());
  EXPECT_THAT(details.pools(0).limits(),
              ElementsAre(HasSubstr("nodes are not known"), HasSubstr("cannot see what pods use")));
}

TEST(KubernetesInventoryTest, EachNamespaceIsAPoolOnTheSameNodesWithLimitsOfItsOwn) {
  Seen seen = See({Node("node-1")}, {Pod("node-1", "a", true)});
  seen.namespaces.push_back({.name = "team-a"});
  seen.namespaces[1].quotas = {{"q", "pods", "4", "4", 4000, 4000}};
  const std::vector<v1::Pool> pools = PoolsOf(seen, KubernetesConfig());
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_EQ(pools[1].name(), "team-a");
  EXPECT_TRUE(pools[0].is_default());
  EXPECT_FALSE(pools[1].is_default());
  EXPECT_EQ(pools[1].node_groups(0).DebugString(), pools[0].node_groups(0).DebugString());
  const v1::ClusterDetails details = DetailsOf(seen, KubernetesConfig());
  ASSERT_EQ(details.pools_size(), 2);
  EXPECT_THAT(details.pools(0).limits(), IsEmpty());
  EXPECT_THAT(details.pools(1).limits(), ElementsAre("quota q: 4 of 4 pods used"));
  EXPECT_EQ(details.pools(0).running_jobs(), 1u);
  EXPECT_EQ(details.pools(1).running_jobs(), 0u);
  EXPECT_THAT(details.nodes(0).pools(), ElementsAre("lab", "team-a"));
  const std::vector<v1::ClusterIssue> issues = IssuesOf(seen, KubernetesConfig());
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_EQ(issues[0].pool(), "team-a");
  EXPECT_THAT(issues[0].remedy(), HasSubstr("raise the quota in namespace team-a"));
}

TEST(KubernetesInventoryTest, ANamespaceThatTakesNoRunsSaysWhyAndTheOthersDoNot) {
  Seen seen = See({Node("node-1")});
  seen.namespaces.push_back({.name = "team-a"});
  const auto judge = [&](const absl::StatusOr<Json>& answer, const absl::Status& runs) {
    seen.namespaces[1] = {.name = "team-a"};
    JudgeNamespace(answer, runs, &seen.namespaces[1]);
    const std::vector<v1::Pool> pools = PoolsOf(seen, KubernetesConfig());
    EXPECT_EQ(pools[0].state(), "");
    EXPECT_TRUE(pools[0].available());
    EXPECT_EQ(pools[1].available(), pools[1].state().empty());
    const std::vector<v1::ClusterIssue> issues = IssuesOf(seen, KubernetesConfig());
    EXPECT_EQ(issues.size(), pools[1].state().empty() ? 0u : 1u);
    if (issues.empty()) return std::string("well");
    EXPECT_EQ(issues[0].pool(), "team-a");
    EXPECT_EQ(issues[0].code(), pools[1].state() == "forbidden"
                                    ? v1::CLUSTER_ISSUE_CODE_POOL_FORBIDDEN
                                    : v1::CLUSTER_ISSUE_CODE_POOL_MISSING);
    return issues[0].message() + "; " + issues[0].remedy();
  };
  const Json active = {{"status", {{"phase", "Active"}}}};
  const absl::Status refused = absl::PermissionDeniedError("jobs is forbidden");
  EXPECT_EQ(judge(active, absl::OkStatus()), "well");
  // An agent that may not look at the namespace may run jobs in it all the same.
  EXPECT_EQ(judge(refused, absl::OkStatus()), "well");
  EXPECT_EQ(judge(absl::UnavailableError("away"), absl::UnavailableError("away")), "well");
  EXPECT_THAT(judge(absl::NotFoundError("namespaces \"team-a\" not found"), absl::OkStatus()),
              AllOf(HasSubstr("namespace team-a is missing: namespaces \"team-a\" not found"),
                    HasSubstr("kubectl create namespace team-a")));
  EXPECT_THAT(judge(Json{{"status", {{"phase", "Terminating"}}}}, absl::OkStatus()),
              HasSubstr("namespace team-a is terminating"));
  EXPECT_THAT(judge(refused, refused),
              AllOf(HasSubstr("namespace team-a is forbidden: jobs is forbidden"),
                    HasSubstr("kubectl apply -n team-a -f rights.yaml")));
}

TEST(KubernetesInventoryTest, AClusterThatHasNoNodesTakesNoJobs) {
  EXPECT_FALSE(PoolsOf(See({}), KubernetesConfig()).at(0).available());
  const std::vector<v1::ClusterIssue> issues = IssuesOf(See({}), KubernetesConfig());
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_EQ(issues[0].code(), v1::CLUSTER_ISSUE_CODE_NO_NODES);
  EXPECT_TRUE(IssuesOf(See({Node("node-1")}), KubernetesConfig()).empty());
}

TEST(KubernetesInventoryTest, DetailsHaveWhatIsUsedAndByHowManyJobs) {
  NodeObject lost = Node("node-2");
  lost.ready = false;
  lost.not_ready_reason = "kubelet stopped posting node status";
  PodUse elsewhere = Pod("node-1", "far");
  elsewhere.name_space = "other";
  const v1::ClusterDetails details =
      DetailsOf(See({Node("node-1"), lost},
                    {Pod("node-1", "a", true), Pod("", "a", true), Pod("", "b"), elsewhere}),
                KubernetesConfig());
  const v1::PoolLoad& load = details.pools(0);
  EXPECT_EQ(load.cpus(), 32u);
  EXPECT_EQ(load.free_cpus(), 13u);
  EXPECT_EQ(load.gpus().at("H100"), 16u);
  EXPECT_EQ(load.free_gpus().at("H100"), 4u);
  EXPECT_EQ(load.running_jobs(), 1u);
  EXPECT_EQ(load.own_running_jobs(), 1u);
  EXPECT_EQ(load.waiting_jobs(), 1u);
  EXPECT_EQ(load.own_waiting_jobs(), 0u);
  ASSERT_EQ(details.nodes_size(), 2);
  EXPECT_EQ(details.nodes(0).state(), "ready");
  EXPECT_EQ(details.nodes(0).condition(), v1::NODE_CONDITION_READY);
  EXPECT_EQ(details.nodes(0).used_gpus().at("H100"), 4u);
  EXPECT_EQ(details.nodes(0).used_cpus(), 3u);
  EXPECT_THAT(details.nodes(0).features(), ElementsAre("nvidia.com/gpu.product=H100"));
  EXPECT_EQ(details.nodes(1).state(), "not ready");
  EXPECT_EQ(details.nodes(1).condition(), v1::NODE_CONDITION_DOWN);
  EXPECT_EQ(details.nodes(1).reason(), "kubelet stopped posting node status");
}

const Json kQuota = Json::parse(R"({"metadata": {"name": "q"}, "status": {
    "hard": {"requests.nvidia.com/gpu": "8", "cpu": "4", "memory": "8Gi", "pods": "3",
             "limits.cpu": "1"},
    "used": {"requests.nvidia.com/gpu": "6", "cpu": "500m"}}})");

RunNeed Need(int64_t gpus, int64_t pods, int64_t cpu_millis = 100) {
  RunNeed need;
  need.pods = pods;
  need.each = {cpu_millis, kGibibyte, 1, {}};
  if (gpus > 0) need.each.gpus["nvidia.com/gpu"] = gpus;
  return need;
}

TEST(KubernetesLimitsTest, ARunThatTheWholeQuotaCannotHoldIsRefusedAndOthersWait) {
  const std::vector<QuotaLine> quotas = ParseQuota(kQuota);
  ASSERT_EQ(quotas.size(), 5u);
  EXPECT_EQ(FindLimit(Need(2, 1), quotas, {}), std::nullopt);
  EXPECT_EQ(FindLimit(Need(4, 1), quotas, {}),
            (Misfit{false, "quota q: 6 of 8 requests.nvidia.com/gpu used, the run needs 4"}));
  EXPECT_EQ(FindLimit(Need(6, 2), quotas, {}),
            (Misfit{true, "quota q allows 8 requests.nvidia.com/gpu in all, the run needs 12"}));
  EXPECT_EQ(FindLimit(Need(0, 4), quotas, {}),
            (Misfit{true, "quota q allows 3 pods in all, the run needs 4"}));
  EXPECT_EQ(FindLimit(Need(0, 1, 3800), quotas, {}),
            (Misfit{false, "quota q: 500m of 4 cpu used, the run needs 3.8"}));
}

TEST(KubernetesLimitsTest, ARunWhoseObjectsAreThereDoesNotWaitForRoomForThem) {
  const std::vector<QuotaLine> quotas = ParseQuota(Json::parse(R"({
      "metadata": {"name": "q"}, "status": {
        "hard": {"count/jobs.batch": "1", "secrets": "1", "count/secrets": "1", "services": "1",
                 "count/services": "1"},
        "used": {"count/jobs.batch": "1", "secrets": "1", "count/secrets": "1", "services": "1",
                 "count/services": "1"}}})"));
  RunNeed need = Need(0, 2);
  EXPECT_TRUE(FindLimit(need, quotas, {}).has_value());
  need.has_objects = true;
  EXPECT_EQ(FindLimit(need, quotas, {}), std::nullopt);
}

TEST(KubernetesLimitsTest, AQuotaThatAllowsNoObjectsRefusesARunThatHasNone) {
  const std::vector<QuotaLine> quotas = ParseQuota(
      Json::parse(R"({"metadata": {"name": "q"}, "status": {"hard": {"count/jobs.batch": "0"}}})"));
  EXPECT_EQ(FindLimit(Need(0, 1), quotas, {}),
            (Misfit{true, "quota q allows 0 count/jobs.batch in all, the run needs 1"}));
}

TEST(KubernetesLimitsTest, AQuotaForSomePodsOnlyIsShownAndNotJudged) {
  Json scoped = kQuota;
  scoped["spec"]["scopes"] = {"BestEffort"};
  EXPECT_EQ(FindLimit(Need(16, 1), ParseQuota(scoped), {}), std::nullopt);
  EXPECT_THAT(Describe(ParseQuota(scoped).front()), HasSubstr("of some pods only"));
}

TEST(KubernetesLimitsTest, ALimitRangeRefusesWhatItForbids) {
  const std::vector<RangeLine> ranges = ParseLimitRange(Json::parse(R"({
      "metadata": {"name": "lr"}, "spec": {"limits": [
        {"type": "Container", "max": {"memory": "2Gi", "cpu": "4"}, "min": {"cpu": "100m"}},
        {"type": "Pod", "max": {"nvidia.com/gpu": "2"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}})"));
  ASSERT_EQ(ranges.size(), 4u);
  EXPECT_EQ(FindLimit(Need(2, 9, 4000), {}, ranges), std::nullopt);
  EXPECT_EQ(
      FindLimit(Need(4, 1), {}, ranges),
      (Misfit{true, "limit range lr: at most 2 nvidia.com/gpu for a pod, the job asks for 4"}));
  EXPECT_EQ(FindLimit(Need(0, 1, 5000), {}, ranges),
            (Misfit{true, "limit range lr: at most 4 cpu for a container, the job asks for 5"}));
  EXPECT_EQ(FindLimit(Need(0, 1, 50), {}, ranges),
            (Misfit{true,
                    "limit range lr: at least 100m cpu for a container, the job asks for "
                    "0.05"}));
}

TEST(KubernetesLimitsTest, AQuotaThatIsUsedUpIsAWarning) {
  Seen seen = See({Node("node-1")});
  Json full = kQuota;
  full["status"]["used"]["pods"] = "3";
  seen.namespaces[0].quotas = ParseQuota(full);
  const std::vector<v1::ClusterIssue> issues = IssuesOf(seen, KubernetesConfig());
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_THAT(issues[0].message(), HasSubstr("quota q: 3 of 3 pods used"));
  EXPECT_THAT(DetailsOf(seen, KubernetesConfig()).pools(0).limits(),
              testing::Contains("quota q: 6 of 8 requests.nvidia.com/gpu used"));
}

}  // namespace
}  // namespace muster::kubernetes
