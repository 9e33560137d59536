#include "agents/kubernetes/cluster/room_book.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster::kubernetes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kBytes = int64_t{1} << 30;

NodeObject Node(const std::string& name, int64_t gpus = 8) {
  NodeObject node;
  node.name = name;
  node.labels["nvidia.com/gpu.product"] = "type-of-" + name;
  node.allocatable = {16000, 64 * kBytes, 110, {{"nvidia.com/gpu", gpus}}};
  return node;
}

PodUse Pod(const std::string& node, const std::string& run_key = "") {
  PodUse pod;
  pod.node = node;
  pod.is_own = !run_key.empty();
  pod.run_key = run_key;
  pod.requests = {1000, kBytes, 1, {{"nvidia.com/gpu", 2}}};
  return pod;
}

class KubernetesRoomBookTest : public testing::Test {
 protected:
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const NodeRoom& room : book.Rooms()) names.push_back(room.node->name);
    return names;
  }
  // The GPUs of each node that are free, and those that would be without Muster's own runs.
  std::vector<std::pair<int64_t, int64_t>> Gpus() {
    std::vector<std::pair<int64_t, int64_t>> gpus;
    for (const NodeRoom& room : book.Rooms())
      gpus.emplace_back(room.free.Gpus("nvidia.com/gpu"), room.for_runs.Gpus("nvidia.com/gpu"));
    return gpus;
  }

  KubernetesConfig config;
  RoomBook book{config};
};

TEST_F(KubernetesRoomBookTest, PodsTakeRoomWhileTheyAreOnTheirNode) {
  const NodeObject one = Node("node-1"), two = Node("node-2");
  book.MoveNode(nullptr, &two);
  book.MoveNode(nullptr, &one);
  EXPECT_THAT(Names(), ElementsAre("node-1", "node-2"));
  const PodUse waiting = Pod(""), placed = Pod("node-2"), own = Pod("node-2", "k7m2-1-1");
  book.MovePod(nullptr, &waiting);
  book.MovePod(nullptr, &own);
  EXPECT_THAT(Gpus(), ElementsAre(std::pair(8, 8), std::pair(6, 8)));
  book.MovePod(&waiting, &placed);
  EXPECT_THAT(Gpus(), ElementsAre(std::pair(8, 8), std::pair(4, 6)));
  EXPECT_EQ(book.Rooms()[1].free.cpu_millis, 14000);
  book.MovePod(&placed, nullptr);
  book.MovePod(&own, nullptr);
  EXPECT_THAT(Gpus(), ElementsAre(std::pair(8, 8), std::pair(8, 8)));
}

TEST_F(KubernetesRoomBookTest, ANodeThatComesLaterOrChangesHasThePodsThatAreOnIt) {
  const PodUse pod = Pod("node-1");
  book.MovePod(nullptr, &pod);
  EXPECT_THAT(Gpus(), IsEmpty());
  const NodeObject node = Node("node-1"), smaller = Node("node-1", 4);
  book.MoveNode(nullptr, &node);
  EXPECT_THAT(Gpus(), ElementsAre(std::pair(6, 6)));
  EXPECT_THAT(book.GpuLabels(), ElementsAre("type-of-node-1"));
  book.MoveNode(&node, &smaller);
  EXPECT_THAT(Gpus(), ElementsAre(std::pair(2, 2)));
  book.MoveNode(&smaller, nullptr);
  EXPECT_THAT(Gpus(), IsEmpty());
  EXPECT_THAT(book.GpuLabels(), IsEmpty());
}

TEST_F(KubernetesRoomBookTest, MorePodsThanThereIsRoomForLeaveNothingUntilEnoughOfThemAreGone) {
  const NodeObject node = Node("node-1", 3);
  const PodUse pod = Pod("node-1");
  book.MoveNode(nullptr, &node);
  for (int i = 0; i < 3; ++i) book.MovePod(nullptr, &pod);
  EXPECT_THAT(Gpus(), ElementsAre(std::pair(0, 0)));
  book.MovePod(&pod, nullptr);
  EXPECT_THAT(Gpus(), ElementsAre(std::pair(0, 0)));
  book.MovePod(&pod, nullptr);
  EXPECT_THAT(Gpus(), ElementsAre(std::pair(1, 1)));
}

TEST_F(KubernetesRoomBookTest, ThePodsOfARunAreCounted) {
  const PodUse waiting = Pod("", "k7m2-1-1"), placed = Pod("node-1", "k7m2-1-1");
  book.MovePod(nullptr, &waiting);
  book.MovePod(nullptr, &waiting);
  book.MovePod(&waiting, &placed);
  EXPECT_EQ(book.PodsOf("k7m2-1-1").made, 2);
  EXPECT_EQ(book.PodsOf("k7m2-1-1").placed, 1);
  book.MovePod(&placed, nullptr);
  EXPECT_EQ(book.PodsOf("k7m2-1-1").made, 1);
  EXPECT_EQ(book.PodsOf("k7m2-1-1").placed, 0);
  EXPECT_EQ(book.PodsOf("k7m2-2-1").made, 0);
}

}  // namespace
}  // namespace muster::kubernetes
