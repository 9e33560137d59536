#include "agents/kubernetes/cluster/obstacle.h"

#include "gtest/gtest.h"
#include "tests/unit/kubernetes/rooms.h"

namespace muster::kubernetes {
namespace {

constexpr int64_t kGibibyte = int64_t{1} << 30;
constexpr char kFirst[] = "k7m2-1-1";
constexpr char kSecond[] = "k7m2-2-1";

// Makes `pods` pods with four GPUs each.
agent::v1::Assignment MakeRun(const std::string& run_key, uint32_t pods) {
  agent::v1::Assignment run;
  run.set_run_key(run_key);
  run.mutable_spec()->set_nodes(pods);
  run.mutable_spec()->mutable_resources()->add_gpus()->set_count_millis(4000);
  return run;
}

// Asks for eight GPUs for each of two pods.
agent::v1::Assignment MakeLarge() {
  agent::v1::Assignment large = MakeRun(kFirst, 2);
  large.mutable_spec()->mutable_resources()->mutable_gpus(0)->set_count_millis(8000);
  return large;
}

PodUse Pod(const std::string& run_key, const std::string& node) {
  PodUse pod;
  pod.node = node;
  pod.is_own = !run_key.empty();
  pod.run_key = run_key;
  pod.requests = {1000, kGibibyte, 1, {{"nvidia.com/gpu", 4}}};
  return pod;
}

// Sees two nodes with eight GPUs each, and a quota of which `used` is taken.
Seen See(const std::vector<PodUse>& pods, const std::string& resource, const std::string& hard,
         const std::string& used) {
  std::vector<NodeObject> nodes(2);
  nodes[0].name = "node-1";
  nodes[1].name = "node-2";
  for (NodeObject& node : nodes) {
    node.ready = true;
    node.allocatable = {16000, 64 * kGibibyte, 110, {{"nvidia.com/gpu", 8}}};
  }
  Seen seen;
  seen.knows_nodes = true;
  seen.rooms = RoomOf(nodes, pods);
  seen.namespaces = {{.name = ""}, {.name = "team-a"}};
  seen.namespaces[0].quotas =
      ParseQuota({{"metadata", {{"name", "lab"}}},
                  {"status", {{"hard", {{resource, hard}}}, {"used", {{resource, used}}}}}});
  return seen;
}

RunNeed NeedOfLaunched(const agent::v1::Assignment& run) {
  RunNeed need = NeedOf(run, KubernetesConfig());
  need.has_objects = true;
  return need;
}

// Takes the room of the run, none of whose pods have come.
void TakeRoom(const agent::v1::Assignment& run, Seen* seen) {
  const RunNeed need = NeedOfLaunched(run);
  LeaveRoom(need, {need.pods, need.pods}, seen);
}

// Judges a run of so many pods behind a first one that is starting and has these.
std::optional<Misfit> FindBehind(const agent::v1::Assignment& first, Seen seen, uint32_t pods,
                                 PodsThere there = {}) {
  const KubernetesConfig config;
  const auto pods_of = [&](const std::string& run_key) {
    return run_key == first.run_key() ? there : PodsThere();
  };
  const auto run = std::make_shared<const agent::v1::Assignment>(first);
  return RoomBehind({{run}}, pods_of, config, std::move(seen))->WaitsFor(MakeRun(kSecond, pods));
}

TEST(KubernetesObstacleTest, WhatRunsThatComeFirstWillTakeOfAQuotaIsKeptForThem) {
  EXPECT_EQ(FindBehind(MakeRun(kFirst, 2), See({}, "pods", "3", "0"), 2),
            (Misfit{false,
                    "quota lab: 0 of 3 pods used and 2 kept for runs that start first, the run "
                    "needs 2",
                    true}));
  EXPECT_EQ(FindBehind(MakeRun(kFirst, 2), See({}, "pods", "4", "0"), 2), std::nullopt);
  EXPECT_EQ(FindBehind(MakeRun(kFirst, 1), See({}, "requests.nvidia.com/gpu", "8", "1"), 1),
            (Misfit{false,
                    "quota lab: 1 of 8 requests.nvidia.com/gpu used and 4 kept for runs that start "
                    "first, the run needs 4",
                    true}));
}

TEST(KubernetesObstacleTest, PodsThatTheQuotaHasCountedAreNotKeptForAgain) {
  // Both pods of the first run are there; one is on no node yet.
  const std::vector<PodUse> pods = {Pod(kFirst, "node-1"), Pod(kFirst, "")};
  const PodsThere there = {.made = 2, .placed = 1};
  EXPECT_EQ(FindBehind(MakeRun(kFirst, 2), See(pods, "pods", "4", "2"), 2, there), std::nullopt);
  EXPECT_TRUE(FindBehind(MakeRun(kFirst, 2), See(pods, "pods", "3", "2"), 2, there).has_value());
}

TEST(KubernetesObstacleTest, RoomIsLeftForThosePodsOnlyThatAreOnNoNode) {
  const std::vector<PodUse> placed = {Pod(kFirst, "node-1"), Pod(kFirst, "")};
  const PodsThere there = {.made = 2, .placed = 1};
  EXPECT_EQ(FindBehind(MakeRun(kFirst, 2), See(placed, "pods", "9", "2"), 2, there), std::nullopt);
  EXPECT_TRUE(FindBehind(MakeRun(kFirst, 2), See(placed, "pods", "9", "2"), 3, there).has_value());
  // Pods of others are not its own.
  const std::vector<PodUse> others = {Pod("", "node-1"), Pod("", "")};
  EXPECT_TRUE(FindBehind(MakeRun("", 2), See(others, "pods", "9", "2"), 2).has_value());
}

TEST(KubernetesObstacleTest, TheQuotaOfANamespaceStandsAgainstRunsThereAlone) {
  const Seen seen = See({}, "pods", "1", "1");
  agent::v1::Assignment run = MakeRun(kFirst, 1);
  EXPECT_EQ(FindObstacle(NeedOf(run, KubernetesConfig()), seen),
            (Misfit{false, "quota lab: 1 of 1 pods used, the run needs 1", true}));
  run.mutable_spec()->mutable_kubernetes()->set_namespace_("team-a");
  EXPECT_EQ(FindObstacle(NeedOf(run, KubernetesConfig()), seen), std::nullopt);
  run.mutable_spec()->mutable_kubernetes()->clear_namespace_();
  run.mutable_spec()->mutable_placement()->set_pool("team-a");
  EXPECT_EQ(FindObstacle(NeedOf(run, KubernetesConfig()), seen), std::nullopt);
}

TEST(KubernetesObstacleTest, WhatARunTakesOfAQuotaIsKeptInItsNamespaceAlone) {
  agent::v1::Assignment first = MakeRun(kFirst, 2);
  first.mutable_spec()->mutable_kubernetes()->set_namespace_("team-a");
  EXPECT_EQ(FindBehind(first, See({}, "pods", "2", "0"), 2), std::nullopt);
  EXPECT_TRUE(FindBehind(MakeRun(kFirst, 2), See({}, "pods", "2", "0"), 2).has_value());
}

TEST(KubernetesObstacleTest, ARunThatItsQuotaKeepsFromStartingKeepsNoNodes) {
  Seen seen = See({}, "pods", "2", "0");
  LeaveLimits(NeedOfLaunched(MakeRun(kFirst, 2)), &seen);
  agent::v1::Assignment second = MakeRun(kSecond, 4);
  second.mutable_spec()->mutable_kubernetes()->set_namespace_("team-a");
  EXPECT_EQ(FindObstacle(NeedOf(second, KubernetesConfig()), seen), std::nullopt);
  // The rest of the quota stays kept in its own namespace.
  EXPECT_TRUE(FindObstacle(NeedOf(MakeRun(kSecond, 1), KubernetesConfig()), seen).has_value());
}

TEST(KubernetesObstacleTest, NoRoomIsLeftOnNodesThatTheFirstRunExcludes) {
  agent::v1::Assignment first = MakeRun(kFirst, 2);
  first.add_excluded_nodes("node-1");
  Seen seen = See({}, "pods", "9", "0");
  TakeRoom(first, &seen);
  EXPECT_EQ(seen.rooms[0].free.Gpus("nvidia.com/gpu"), 8);
  EXPECT_EQ(seen.rooms[1].free.Gpus("nvidia.com/gpu"), 0);
}

TEST(KubernetesObstacleTest, WhatOneThatHasWaitedLongCannotUseYetIsKeptUnlessOthersAreInItsWay) {
  const agent::v1::Assignment first = MakeLarge();
  const RunNeed second = NeedOf(MakeRun(kSecond, 1), KubernetesConfig());
  const Seen own = See({Pod("k7m2-3-1", "node-1")}, "pods", "99", "0");
  const Seen foreign = See({Pod("", "node-1")}, "pods", "99", "0");
  for (const Seen& seen : {own, foreign}) {
    Seen passing = seen;
    TakeRoom(first, &passing);
    EXPECT_FALSE(FindObstacle(second, passing).has_value()) << "half of node-1 is of no use to it";
  }
  Seen kept = own;
  EXPECT_TRUE(LeaveShares(NeedOfLaunched(first), &kept));
  EXPECT_TRUE(FindObstacle(second, kept).has_value());
  kept = foreign;
  EXPECT_FALSE(LeaveShares(NeedOfLaunched(first), &kept));
  EXPECT_FALSE(FindObstacle(second, kept).has_value()) << "nobody knows when it will be free";
}

TEST(KubernetesObstacleTest, WhatOneThatHasWaitedLongDoesNotNeedIsLeftToOthers) {
  Seen seen = See({Pod("k7m2-3-1", "node-1")}, "pods", "99", "0");
  EXPECT_TRUE(LeaveShares(NeedOfLaunched(MakeLarge()), &seen));
  agent::v1::Assignment plain = MakeRun(kSecond, 1);
  plain.mutable_spec()->mutable_resources()->clear_gpus();
  EXPECT_FALSE(FindObstacle(NeedOf(plain, KubernetesConfig()), seen).has_value());
  // The first one leaves a core, of sixteen, on each node to itself.
  plain.mutable_spec()->mutable_resources()->set_cpu_millis(16000);
  EXPECT_TRUE(FindObstacle(NeedOf(plain, KubernetesConfig()), seen).has_value());
}

TEST(KubernetesObstacleTest, OneThatANodeOutOfServiceKeepsWaitingForLongKeepsNeitherNodesNorQuota) {
  Seen seen = See({Pod("k7m2-3-1", "node-1")}, "pods", "2", "0");
  ChangeNode(&seen.rooms[1], [](NodeObject* node) { node->unschedulable = true; });
  EXPECT_FALSE(LeaveShares(NeedOfLaunched(MakeLarge()), &seen));
  EXPECT_EQ(seen.rooms[0].free.Gpus("nvidia.com/gpu"), 4);
  EXPECT_EQ(FindObstacle(NeedOf(MakeRun(kSecond, 1), KubernetesConfig()), seen), std::nullopt);
}

TEST(KubernetesObstacleTest, OnlyWhatWouldFitOnNodesThatAreKeptIsBehindTheirRun) {
  Seen seen = See({Pod("k7m2-3-1", "node-1")}, "pods", "2", "0");
  EXPECT_TRUE(LeaveShares(NeedOfLaunched(MakeLarge()), &seen));
  const auto is_behind = [&](uint32_t pods) {
    agent::v1::Assignment run = MakeRun(kSecond, pods);
    run.mutable_spec()->mutable_kubernetes()->set_namespace_("team-a");
    const std::optional<Misfit> misfit = FindObstacle(NeedOf(run, KubernetesConfig()), seen);
    return misfit.has_value() && misfit->is_behind;
  };
  EXPECT_TRUE(is_behind(3));
  EXPECT_FALSE(is_behind(4)) << "half of node-1 is taken";
  EXPECT_EQ(FindObstacle(NeedOf(MakeRun(kSecond, 1), KubernetesConfig()), seen)->words,
            "quota lab: 0 of 2 pods used and 2 kept for runs that start first, the run needs 1")
      << "what else stands against it is told";
}

TEST(KubernetesObstacleTest, RunsThatStartAndAskForTheSameTakeTheRoomOfAllOfThem) {
  const KubernetesConfig config;
  Alike alike;
  for (int job = 3; job < 6; ++job) {
    alike.push_back(std::make_shared<const agent::v1::Assignment>(
        MakeRun("k7m2-" + std::to_string(job) + "-1", 1)));
  }
  const auto fits_behind = [&](uint32_t pods) {
    // One of the three has its pod on a node, in the room that nothing of the others is in.
    const auto pods_of = [](const std::string& run_key) {
      return run_key == "k7m2-3-1" ? PodsThere{.made = 1, .placed = 1} : PodsThere();
    };
    Seen seen = See({Pod("k7m2-3-1", "node-1")}, "pods", "99", "0");
    const auto left = RoomBehind({alike}, pods_of, config, std::move(seen));
    return !left->WaitsFor(MakeRun(kSecond, pods)).has_value();
  };
  EXPECT_TRUE(fits_behind(1)) << "three of four halves of nodes are taken";
  EXPECT_FALSE(fits_behind(2));
}

TEST(KubernetesObstacleTest, RunsThatSpreadMayShareTheirNodesWithOneAnother) {
  const KubernetesConfig config;
  agent::v1::Assignment spread = MakeRun(kFirst, 2);
  spread.mutable_spec()->mutable_kubernetes()->set_spread(v1::KUBERNETES_SPREAD_REQUIRED);
  Alike alike(2, std::make_shared<const agent::v1::Assignment>(spread));
  const auto no_pods = [](const std::string&) { return PodsThere(); };
  const auto left = RoomBehind({alike}, no_pods, config, See({}, "pods", "99", "0"));
  EXPECT_TRUE(left->WaitsFor(MakeRun(kSecond, 1)).has_value()) << "two pods are on each node";
}

// ---- what GPUs bring along

TEST(KubernetesObstacleTest, GpusBringTheirShareOfTheSmallestNodeThatMatches) {
  Seen seen = See({}, "pods", "9", "0");
  ChangeNode(&seen.rooms[1],
             [](NodeObject* node) { node->allocatable.memory_bytes = 32 * kGibibyte; });
  agent::v1::Assignment run = MakeRun(kFirst, 2);
  // The half of 16 cores and 32 GiB, without a tenth.
  EXPECT_EQ(NeedIn(run, KubernetesConfig(), seen).each.cpu_millis, 7000);
  EXPECT_EQ(NeedIn(run, KubernetesConfig(), seen).each.memory_bytes, 14 * kGibibyte);
  ChangeNode(&seen.rooms[1], [](NodeObject* node) {
    node->taints = {{"team", "vision", "NoSchedule"}};
  });
  EXPECT_EQ(NeedIn(run, KubernetesConfig(), seen).each.memory_bytes, 28 * kGibibyte);
  run.mutable_spec()->mutable_resources()->set_memory_bytes(2 * kGibibyte);
  EXPECT_EQ(NeedIn(run, KubernetesConfig(), seen).each.memory_bytes, 2 * kGibibyte);
  EXPECT_EQ(NeedIn(run, KubernetesConfig(), seen).each.cpu_millis, 7000);
}

TEST(KubernetesObstacleTest, TheShareOfGpusStaysWithinTheLimitsOfTheNamespace) {
  Seen seen = See({}, "limits.memory", "16Gi", "0");
  seen.namespaces[0].ranges = ParseLimitRange(Json::parse(R"({
      "metadata": {"name": "lr"},
      "spec": {"limits": [{"type": "Container", "max": {"cpu": "3"}}]}})"));
  const agent::v1::Assignment run = MakeRun(kFirst, 2);
  const RunNeed need = NeedIn(run, KubernetesConfig(), seen);
  EXPECT_EQ(need.each.cpu_millis, 3000);
  EXPECT_EQ(need.each.memory_bytes, 8 * kGibibyte) << "of each of the two pods";
  EXPECT_EQ(FindObstacle(need, seen), std::nullopt);
}

TEST(KubernetesObstacleTest, WithoutNodesOrByTheOperatorsWillGpusBringNothingAlong) {
  Seen seen = See({}, "pods", "9", "0");
  KubernetesConfig config;
  config.default_gpu_share = false;
  const agent::v1::Assignment run = MakeRun(kFirst, 1);
  EXPECT_EQ(NeedIn(run, config, seen).each.memory_bytes, kGibibyte);
  seen.knows_nodes = false;
  EXPECT_EQ(NeedIn(run, KubernetesConfig(), seen).each.memory_bytes, kGibibyte);
  agent::v1::Assignment plain = run;
  plain.mutable_spec()->mutable_resources()->clear_gpus();
  seen.knows_nodes = true;
  EXPECT_EQ(NeedIn(plain, KubernetesConfig(), seen).each.cpu_millis, 1000);
}

}  // namespace
}  // namespace muster::kubernetes
